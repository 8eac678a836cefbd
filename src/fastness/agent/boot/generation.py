"""Which openings of a volume it has been through: numbers on it that a copy of an older disk does not have.

    generation = count_opening(directory, opening=9, recorded=7)        # Generation(number=9, after=7, since=(8,))

A host can put back what the disk was last week, and it opens: neither the cipher nor its integrity code knows the time. The
cluster numbers the releases of a volume's key, and remembers the last one whose machine then gave proof (`recorded`). The volume
has in it which numbers it was opened under, where no host can write.

    file `generation`, one number a line:   the last recorded number that the volume was opened under, or after
                                            each opening since

* A volume that was not open under the number that is recorded is an old copy, however often it is opened: new openings get new
  numbers, and the recorded one is not among them. A mere count would catch up by rebooting.
* Openings whose machine never came to its proof stay in the list until one of them is recorded. Where an answer of the cluster
  was lost, the number is on no disk and nobody misses it.
* All of them are reported. A number that the cluster never gave, by its record, is of a time that the record has forgotten: it
  came from a backup. Hence none may be left out, and a list that is full begins anew as one that cannot be read.
* Written before it is reported. What is gone or cannot be read counts as none: the cluster then sees an old copy, and a person
  decides.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from fastness.protocol.disk_report import MOST_OPENINGS

FILE: Final = "generation"
# As deep as JSON carries integers exactly; a machine that boots each second gets there in 285 million years.
MOST: Final = 1 << 53
_NUMBERS: Final = re.compile(rb"(?:(?:0|[1-9][0-9]{0,15})\n){1,513}\Z")
_MAX_BYTES: Final = (MOST_OPENINGS + 1) * 17


class Generation(NamedTuple):
    """The number that a volume is opened under, the last recorded one that it was opened under before, and all since then."""

    number: int
    after: int
    since: tuple[int, ...] = ()


class _Openings(NamedTuple):
    recorded: int = 0
    since: tuple[int, ...] = ()


def count_opening(directory: Path, opening: int, recorded: int) -> Generation:
    """Write on a volume, durably, that it is open under a number; raises OSError on a full or read-only one.

    `recorded` is the number that the cluster has recorded of the volume.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    before = _read(directory)
    settled = _settled(before, recorded)
    _write(directory, _Openings(settled.recorded, (*settled.since, opening)))
    return Generation(opening, settled.recorded, settled.since)


def _settled(before: _Openings, recorded: int) -> _Openings:
    if recorded in before.since:
        # What came before the recorded opening is of no use any more, and the list stays short.
        return _Openings(recorded, before.since[before.since.index(recorded) + 1 :])
    return before if len(before.since) < MOST_OPENINGS else _Openings()


def _read(directory: Path) -> _Openings:
    try:
        descriptor = os.open(directory / FILE, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return _Openings()
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES or _NUMBERS.match(content) is None:
        return _Openings()
    recorded, *since = (int(line) for line in content.split())
    return _Openings(recorded, tuple(since)) if max(recorded, *since, 0) < MOST else _Openings()


def _write(directory: Path, openings: _Openings) -> None:
    draft = directory / f".{FILE}.new"
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(b"".join(b"%d\n" % number for number in (openings.recorded, *openings.since)))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(directory / FILE)
    _synced(directory)


def _synced(directory: Path) -> None:
    """The rename is durable only with its directory."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
