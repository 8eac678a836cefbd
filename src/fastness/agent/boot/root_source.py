"""What a new root volume is filled with: a tree that the boot measured, and no other.

    source = RootSource()
    source.check()                 # before anything is formatted; raises DiskRefused
    source.fill(directory)         # once, in the boot that makes the volume; raises CommandFailed

A root volume starts empty, and the system that boots from it has to come from somewhere. Bytes of a disk would do as well, and
would be the host's: encrypting them afterwards keeps nobody out who is in already. So the tree is either a part of the initial
file system, which is measured with the image, or on a device of dm-verity, whose hash the measured command line names
(docs/adr/0071). An image that brings neither has no root volume.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from fastness.agent.boot.volumes import DiskRefused
from fastness.agent.disks.errors import DiskError
from fastness.agent.disks.ports import DeviceMapper

PLACE: Final = Path("/usr/lib/fastness/root")
SYSTEM_DEVICES: Final = Path("/sys/dev/block")
_HINT: Final = (
    "Build the image with the root in its initial file system, or on a disk that dm-verity seals, at /usr/lib/fastness/root; "
    "or give the pool the volume var."
)


class RootSource:
    """The tree of one image, for its root volumes."""

    def __init__(
        self, mapper: DeviceMapper, program: Callable[[Sequence[str]], str], place: Path = PLACE,
        devices: Path = SYSTEM_DEVICES, initial: Path = Path("/"),
    ) -> None:  # fmt: skip
        self._mapper = mapper
        self._program = program
        self._place = place
        self._devices = devices
        self._initial = initial

    def check(self) -> None:
        """Raises DiskRefused where there is no tree, or one that its host could have changed."""
        try:
            empty = not any(self._place.iterdir())
            device = os.stat(self._place).st_dev
            own = os.stat(self._initial).st_dev
        except OSError as error:
            raise _refused(f"{self._place}: {error.strerror}") from error
        if empty:
            raise _refused(f"{self._place} is empty")
        # Without a major number it lies in memory: the initial file system itself. One that is on a disk is a running system.
        measured = os.major(device) == 0 and device == own
        if not measured and not self._sealed(device):
            raise _refused(f"{self._place} is on a device that nothing seals: its host could have written it")

    def fill(self, directory: Path) -> None:
        """Copy the tree, with owners, modes and links; raises CommandFailed."""
        self._program(["cp", "-a", f"{self._place}/.", str(directory)])

    def _sealed(self, device: int) -> bool:
        """Whether the kernel compares every block of a device with a hash."""
        try:
            name = (self._devices / f"{os.major(device)}:{os.minor(device)}" / "dm" / "name").read_text("ascii")
            table = self._mapper.table(name.strip())
        except (OSError, ValueError, DiskError):
            return False
        return [target.kind for target in table] == ["verity"]


def _refused(message: str) -> DiskRefused:
    return DiskRefused("root-without-source", f"nothing measured to fill volume root with: {message}", _HINT)
