"""Copies of what an update replaces, so that the journal can speak of a file without holding it.

A managed path may lie where an ordinary user writes, and a file there may be of any size. So originals are copied, from
descriptor to descriptor, into a directory of the agent's own (0700); the journal has their name and digest. Rules:

- What an update would keep is weighed before anything is written: by a bound for one update, and by what the disk has left.
  Files grow while one looks away, so the bound holds for the copying itself, too.
- Small files stay in the journal, up to a bound for all of them: a copy of its own costs two waits for the disk.
- Copies are written before the journal speaks of them, and go after the journal is gone: every undo can be repeated.

**A journal that cannot be undone in whole** is put away with its copies (`put_away`), so that the machine goes on: one that
stays in the way would stop its node for good, and whoever can cause that stops a pool. What lies on the disk then is compared
with the config as always, and whatever differs is told as drift. Nothing is thrown away: journal and copies lie in a numbered
directory below `/set-aside`, beside a text that says why; the oldest of more than a few goes. The order is such that a crash at
any point is finished by the next start: the directory is complete when it has the journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastness.agent.apply import journal
from fastness.agent.apply.ports import Files
from fastness.agent.apply.steps import Copy, Put, Step
from fastness.agent.host import sparse
from fastness.agent.host.errors import CopyDamaged, PathTaken, TooMuchToKeep
from fastness.agent.host.states import ABSENT, DEFAULT_DIRECTORY_MODE, Absent, File, Large, Link, Other, State, Stored

DIRECTORY: Final = "/kept"
MIB: Final = 1024 * 1024
# Generous for configuration; a user's disk image in the place of a file is somebody's mistake, or an attack.
MAX_KEPT: Final = 1024 * MIB
# Left to the machine: a full disk stops more than an update.
MARGIN: Final = 64 * MIB
# A copy costs two waits for the disk, and most files are small.
MAX_INLINE: Final = 16 * 1024
MAX_INLINE_TOGETHER: Final = MIB

SET_ASIDE: Final = "/set-aside"
# Whoever can cause one can cause many, and each may hold a gibibyte.
MAX_SET_ASIDE: Final = 8
_JOURNAL, _KEPT, _REASON = "journal", "kept", "reason"


def check_weight(steps: Sequence[Step], free: int) -> None:
    """Raise TooMuchToKeep when undoing these steps would need more than an update may keep, or than the disk has."""
    heavy = [step for step in steps if isinstance(step, Put | Copy) and step.replaces]
    together = sum(step.replaces for step in heavy)
    if not together or (together <= MAX_KEPT and together + MARGIN <= free):
        return
    largest = max(heavy, key=lambda step: step.replaces)
    bound = (
        f"{MAX_KEPT // MIB} MiB"
        if together > MAX_KEPT
        else f"the {max(0, free - MARGIN) // MIB} MiB that the disk has to spare"
    )
    raise TooMuchToKeep(
        f"the config replaces files of {together // MIB} MiB, which are kept until it is done, and that is more than {bound}; "
        f"the largest is {_place(largest)} with {largest.replaces // MIB} MiB"
    )


def _place(step: Put | Copy) -> str:
    return step.source if isinstance(step, Copy) else step.path


class KeptFiles:
    """The copies of one update; `state` is the agent's own tree."""

    def __init__(self, state: Files) -> None:
        self._state = state
        self._names = 0
        self._bytes = 0
        self._inline = 0

    def take(self, tree: Files, path: str) -> State | Stored:
        """What is at a path, to be brought back: small files by value, larger ones as a copy; raises DriverError."""
        present = tree.inspect(path, min(MAX_INLINE, MAX_INLINE_TOGETHER - self._inline))
        if isinstance(present, File):
            self._inline += len(present.content)
        if isinstance(present, Other):
            # A directory or a device cannot be kept by value or by copy: an update that replaced it could not be undone.
            raise PathTaken(f"{path} is {present.what}")
        return self._store(tree, path) if isinstance(present, Large) else present

    def _store(self, tree: Files, path: str) -> Stored:
        with tree.reading(path) as opened:
            if opened is None:
                raise PathTaken(f"{path} became something else")
            source, meta = opened
            name = str(self._names)
            # For root alone, whatever the original's mode was: a file that everybody may read can hold more tomorrow than it does
            # today.
            with self._state.writing(f"{DIRECTORY}/{name}", Large(0, 0, 0o600), directory_mode=0o700) as target:
                # Bounded while it is copied as well: the file that was weighed may have grown since.
                digest, data = _copied(source, target, MAX_KEPT - self._bytes, path)
        self._names += 1
        self._bytes += data
        return Stored(name, digest, meta.mode, meta.uid, meta.gid)

    def give_back(self, stored: Stored, tree: Files, path: str, directory_mode: int, own_directories: bool) -> None:
        """Put a copy where it came from; raises CopyDamaged when it is not what was kept, DriverError."""
        with self._state.reading(f"{DIRECTORY}/{stored.name}") as opened:
            if opened is None:
                raise CopyDamaged(f"the copy of {path} is gone")
            with tree.writing(path, stored, directory_mode=directory_mode, own_directories=own_directories) as target:
                digest, _ = _copied(opened[0], target, opened[1].size + sparse.BLOCK, path)
                # Before the rename: a copy that was changed on the disk never gets the name of the original.
                if digest != stored.digest:
                    raise CopyDamaged(f"the copy of {path} was changed")

    def clear(self) -> None:
        """The update is over, and nothing of it is needed any more."""
        for name in self._state.names(DIRECTORY):
            self._state.put(f"{DIRECTORY}/{name}", ABSENT)
        self._names = self._bytes = self._inline = 0


def copy_file(
    source: Files, path: str, target: Files, place: str, directory_mode: int = DEFAULT_DIRECTORY_MODE
) -> None:
    """Bring a place into the state of another one, whatever its size; raises DriverError."""
    present = source.inspect(path, 0)
    if isinstance(present, Link):
        target.put(place, present, directory_mode=directory_mode)
        return
    with source.reading(path) as opened:
        if opened is None:
            raise PathTaken(f"{path} is no file any more")
        with target.writing(place, opened[1], directory_mode=directory_mode) as descriptor:
            _copied(opened[0], descriptor, MAX_KEPT, path)


def _copied(source: int, target: int, limit: int, path: str) -> tuple[str, int]:
    try:
        return sparse.copy(source, target, limit)
    except TooMuchToKeep as error:
        raise TooMuchToKeep(f"{path} has {error.message}, which is more than an update may keep") from error


def put_away(state: Files, reason: str) -> str:
    """Move journal and copies away; the directory where they are, below the agent's own; raises DriverError."""
    numbers = sorted(int(name) for name in state.names(SET_ASIDE) if name.isdecimal())
    # One without a journal is what a crash left of an earlier attempt at the same.
    begun = [number for number in numbers if isinstance(state.inspect(_path(number, _JOURNAL), 0), Absent)]
    number = begun[-1] if begun else (numbers[-1] + 1 if numbers else 1)
    state.put(_path(number, _REASON), File(f"{reason}\n".encode(), 0o600), directory_mode=0o700)
    # Copies, then journal: a directory without a journal is one that is still being filled, and the next start goes on with it.
    state.move(DIRECTORY, _path(number, _KEPT))
    state.move(journal.PATH, _path(number, _JOURNAL))
    for old in numbers[: max(0, len({*numbers, number}) - MAX_SET_ASIDE)]:
        _throw_away(state, old)
    return f"{SET_ASIDE}/{number}"


def _throw_away(state: Files, number: int) -> None:
    # The journal last: without it, the directory would be taken for one that is being filled.
    for name in state.names(_path(number, _KEPT)):
        state.put(_path(number, f"{_KEPT}/{name}"), ABSENT)
    state.remove_empty(_path(number, _KEPT))
    for name in (_REASON, _JOURNAL):
        state.put(_path(number, name), ABSENT)
    state.remove_empty(f"{SET_ASIDE}/{number}")


def _path(number: int, name: str) -> str:
    return f"{SET_ASIDE}/{number}/{name}"
