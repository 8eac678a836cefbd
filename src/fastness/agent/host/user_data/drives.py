"""User-data on a disc or a disk that the host attached.

A file system of the host's is parsed by the kernel, as Ignition and cloud-init let it be; an image that does not want that is
built for a platform without drives. It is mounted read-only where nothing else looks, and only while one file is read.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from fastness.agent.host.errors import BadUserData, CommandFailed, UserDataFailure
from fastness.agent.host.process import run
from fastness.agent.host.user_data.files import bounded, read_below
from fastness.protocol.user_data import MAX_BYTES

LABELS: Final = Path("/dev/disk/by-label")
SECONDS: Final = 20.0
SERIAL: Final = "ignition"
_BLOCK: Final = 512
Mount = Callable[[Path, str], AbstractContextManager[Path]]


@contextmanager
def mounted(device: Path, kinds: str) -> Iterator[Path]:
    """The file system of a device for the time of the block; raises UserDataFailure."""
    with tempfile.TemporaryDirectory(prefix="fastness-drive-") as name:
        try:
            # The file system is the host's: no program, device or privilege of it may be used while it is there.
            options = "ro,nosuid,nodev,noexec"
            run(["mount", "-t", kinds, "-o", options, "--", str(device), name], seconds=SECONDS)
            try:
                yield Path(name)
            finally:
                run(["umount", "--", name], seconds=SECONDS)
        except CommandFailed as error:
            raise UserDataFailure(f"the drive {device} cannot be read: {error.message}") from error


@dataclass(frozen=True, slots=True)
class Drive:
    """A file on a drive: the first of these devices that exists."""

    name: str
    devices: tuple[Path, ...]
    file: tuple[str, ...]
    kinds: str = "iso9660,vfat"
    mount: Mount = mounted

    @classmethod
    def labelled(cls, name: str, label: str, file: tuple[str, ...], labels: Path = LABELS) -> Self:
        """A drive by the label of its file system, in either case: provisioners differ."""
        return cls(name, (labels / label, labels / label.upper()), file)

    @classmethod
    def azure(cls) -> Self:
        """The disc that Azure attaches for provisioning."""
        return cls("provisioning disc", (Path("/dev/sr0"),), ("CustomData.bin",), "udf")

    async def read(self) -> bytes | None:
        """What is in the file; raises UserDataFailure."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> bytes | None:
        device = next((path for path in self.devices if path.exists()), None)
        if device is None:
            return None
        with self.mount(device, self.kinds) as directory:
            return read_below(directory, self.file)


@dataclass(frozen=True, slots=True)
class SerialDisk:
    """A virtio disk whose serial number is `ignition`: its first bytes, up to the zeros that fill the last block."""

    name: str = "virtio disk"
    blocks: Path = Path("/sys/block")
    devices: Path = Path("/dev")

    async def read(self) -> bytes | None:
        """What is on the disk; raises UserDataFailure."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> bytes | None:
        disks = [path.parent.name for path in sorted(self.blocks.glob("*/serial")) if _text(path) == SERIAL]
        if not disks:
            return None
        # Which of two counts would be up to the order in which the kernel found them.
        if len(disks) > 1:
            raise BadUserData(f"{len(disks)} disks have the serial number {SERIAL}")
        try:
            descriptor = os.open(self.devices / disks[0], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as disk:
                return bounded(disk.read(MAX_BYTES + _BLOCK).rstrip(b"\0"), self.name)
        except OSError as error:
            raise UserDataFailure(f"{self.name}: {error.strerror}") from error


def _text(path: Path) -> str:
    try:
        return path.read_bytes()[:64].decode("ascii", "replace").strip()
    except OSError:
        return ""
