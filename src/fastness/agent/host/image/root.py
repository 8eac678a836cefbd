"""The root directory of an image that is being built: looked at by the checks, filled by `prepare`.

Everything goes through `RootedFiles`: no link inside of the tree leads a write out of it, each file is there whole or as it was,
and a link at the end of a path is replaced, not followed. What is already as it should be is not touched, so a second run changes
nothing and says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from fastness.agent.host.errors import FileFailure, PathTaken
from fastness.agent.host.files import RootedFiles
from fastness.agent.host.states import ABSENT, Absent, File, Large, Link, Other, State
from fastness.formats.cpio import HELD
from fastness.images.check.tree import FilePiece, LinkPiece, Piece

T = TypeVar("T")


class RootTree:
    """The files of a directory as `images.check` looks at them.

    What cannot be read counts as nothing in the answers, and is kept in `unread`: whoever asks must say that.
    """

    def __init__(self, files: RootedFiles) -> None:
        self._files = files
        self._unread: dict[str, str] = {}

    @property
    def unread(self) -> Sequence[str]:
        """What the system refused to show so far: path and reason."""
        return tuple(self._unread.values())

    def content(self, path: str) -> bytes | None:
        """The first HELD bytes of a regular file; None where there is none; raises UnsafePath."""
        return self._at(path, lambda: self._beginning(path))

    def target(self, path: str) -> str | None:
        """Where the link at a path leads; None where there is none; raises UnsafePath."""
        state = self._look(path)
        return state.target if isinstance(state, Link) else None

    def names(self, directory: str) -> Sequence[str]:
        """What a directory holds, in order; nothing where there is none; raises UnsafePath."""
        return self._at(directory, lambda: self._files.names(directory)) or ()

    def _look(self, path: str) -> State | Large:
        return self._at(path, lambda: self._files.inspect(path, 0)) or ABSENT

    def _beginning(self, path: str) -> bytes | None:
        with self._files.reading(path) as opened:
            return os.read(opened[0], HELD) if opened is not None else None

    def _at(self, path: str, look: Callable[[], T]) -> T | None:
        try:
            return look()
        except PathTaken:
            return None  # a file on the way where a directory was expected: nothing is at the path
        except FileFailure as error:
            # An image that cannot be read in part must not pass as one that was found good: the caller has to say what was not
            # seen.
            self._unread[path] = error.message
            return None

    def below(self, directory: str) -> Iterator[str]:
        """Every file and link below a directory."""
        for name in self.names(directory):
            path = f"{directory}/{name}"
            if isinstance(self._look(path), Other):
                yield from self.below(path)
            else:
                yield path


@dataclass(slots=True)
class Prepared:
    """What a run did, or would do: paths that were written anew, that differed, and that did not belong there."""

    written: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether anything had to be done."""
        return bool(self.written or self.replaced or self.removed)


def prepare(files: RootedFiles, pieces: Sequence[Piece], *, owned: str, dry: bool = False) -> Prepared:
    """Bring a tree to hold the pieces, and nothing else below `owned`; raises UnsafePath, FileFailure.

    Without a change on disk where `dry`. The directory of the agent is `owned`: a module of an older agent that stayed would
    be imported by the new one.
    """
    done = Prepared()
    for piece in pieces:
        # A longer file differs, whatever is in it: it is not read. Programs of a node are longer than what an update reads.
        present, state = files.inspect(piece.path, _length(piece)), _state(piece)
        if _same(present, state):
            continue
        (done.written if isinstance(present, Absent) else done.replaced).append(piece.path)
        if not dry:
            files.put(piece.path, state)
    belonging = {piece.path for piece in pieces}
    done.removed = [path for path in RootTree(files).below(owned) if path not in belonging]
    for path in () if dry else done.removed:
        files.put(path, ABSENT)
    return done


def _state(piece: Piece) -> File | Link:
    match piece:
        case FilePiece():
            return File(piece.content, piece.mode, 0, 0)
        case LinkPiece():
            return Link(piece.target)


def _length(piece: Piece) -> int:
    return len(piece.content) if isinstance(piece, FilePiece) else 0


def _same(present: State | Large, state: File | Link) -> bool:
    """Whether a path is as it should be; owners count where the process can set them."""
    if not isinstance(present, File) or not isinstance(state, File):
        return present == state
    owners = present.uid is None or (present.uid, present.gid) == (state.uid, state.gid)
    return owners and (present.content, present.mode) == (state.content, state.mode)
