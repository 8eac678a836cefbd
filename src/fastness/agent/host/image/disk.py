"""The root of a raw disk image, mounted for the time of a block.

The kernel reads the file system, through a loop device: that needs root, and a host that has such devices. The partition is the
one that holds an os-release; where none or several do, nobody guesses. Nothing of the image runs, and its devices and set-user-id
programs do not count while it is mounted here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from fastness.agent.host.errors import CommandFailed, FileFailure
from fastness.agent.host.process import Run, run

SECTOR: Final = 512
_RELEASES: Final = ("usr/lib/os-release", "etc/os-release")
_BY_HAND: Final = "Mount the root of the image yourself, give that directory, and unmount it again."
_NO_LOOP: Final = f"A disk image is mounted through a loop device, as root. {_BY_HAND}"


@contextmanager
def root_of_disk(disk: Path, *, writable: bool, call: Run = run) -> Iterator[Path]:
    """The directory of the one root in a disk image; raises FileFailure."""
    roots, refusal = [], ""
    with tempfile.TemporaryDirectory(prefix="fastness-disk-") as scratch:
        place = Path(scratch)
        for extent in _extents(disk, call):
            try:
                with _mounted(disk, extent, place, writable=False, call=call):
                    roots += [extent] if any((place / name).is_file() for name in _RELEASES) else []
            except CommandFailed as error:
                refusal = error.message
        if not roots and refusal:
            raise FileFailure(f"no root in it can be mounted: {refusal}", _NO_LOOP)
        if len(roots) != 1:
            raise FileFailure(f"{len(roots)} of its partitions hold an os-release, where one should", _BY_HAND)
        with _mounted(disk, roots[0], place, writable=writable, call=call):
            yield place


def _extents(disk: Path, call: Run) -> list[tuple[int, int]]:
    """Where the partitions lie, in bytes: offset and size; a disk without a table is one file system."""
    listed = ""
    with suppress(CommandFailed):
        listed = call(["partx", "--show", "--noheadings", "--output", "START,SECTORS", str(disk)])
    rows = [line.split() for line in listed.splitlines()]
    extents = [
        (int(start) * SECTOR, int(count) * SECTOR) for start, count in rows if start.isdigit() and count.isdigit()
    ]
    return extents or [(0, disk.stat().st_size)]


@contextmanager
def _mounted(disk: Path, extent: tuple[int, int], place: Path, *, writable: bool, call: Run) -> Iterator[None]:
    # The image may be anybody's: nothing in it runs, no device of it opens and no set-user-id program counts while it is looked
    # at.
    options = f"loop,offset={extent[0]},sizelimit={extent[1]},nosuid,nodev,noexec,{'rw' if writable else 'ro'}"
    call(["mount", "-o", options, str(disk), str(place)])
    try:
        yield
    finally:
        call(["umount", str(place)])
