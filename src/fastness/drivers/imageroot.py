"""The root directory of an image that is being built: looked at by the checks, filled by `prepare`.

Everything goes through `RootedFiles`: no link inside of the tree leads a write out of it, each file is there whole or as it was,
and a link at the end of a path is replaced, not followed. What is already as it should be is not touched, so a second run changes
nothing and says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from fastness.domain.imagecheck.layout import FilePiece, LinkPiece, Piece
from fastness.drivers.errors import FileFailure
from fastness.drivers.files import RootedFiles
from fastness.drivers.states import ABSENT, Absent, File, Link, Other, State


class RootTree:
    """The files of a directory as `domain.imagecheck` looks at them."""

    def __init__(self, files: RootedFiles) -> None:
        self._files = files

    def content(self, path: str) -> bytes | None:
        """What a regular file holds; None where there is none; raises UnsafePath, FileFailure."""
        state = self._look(path)
        return state.content if isinstance(state, File) else None

    def target(self, path: str) -> str | None:
        """Where the link at a path leads; None where there is none; raises UnsafePath, FileFailure."""
        state = self._look(path)
        return state.target if isinstance(state, Link) else None

    def names(self, directory: str) -> Sequence[str]:
        """What a directory holds, in order; nothing where there is none; raises UnsafePath."""
        with suppress(FileFailure):
            return self._files.names(directory)
        return ()

    def _look(self, path: str) -> State:
        # A file on the way where a directory was expected means that nothing is at the path.
        with suppress(FileFailure):
            return self._files.look(path)
        return ABSENT

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
        present, state = files.look(piece.path), _state(piece)
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


def _same(present: State, state: File | Link) -> bool:
    """Whether a path is as it should be; owners count where the process can set them."""
    if not isinstance(present, File) or not isinstance(state, File):
        return present == state
    owners = present.uid is None or (present.uid, present.gid) == (state.uid, state.gid)
    return owners and (present.content, present.mode) == (state.content, state.mode)
