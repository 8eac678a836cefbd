"""User-data in an init-data document, on the block device by which hosts hand such documents to guests.

    "initdata"   length of the gzip data, 8 bytes, little endian   gzip data of the TOML   zeros up to 512

The device has no name: it is the virtio or SCSI disk that begins with the eight letters. Its bytes are unpacked here, within
bounds; no file system is parsed. Nothing here looks at the processor's field: the document is sent with the evidence, and whoever
verifies that compares both.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.agent.host.errors import BadUserData, UserDataFailure
from fastness.formats.initdata import InitData, InitDataError, parse_init_data, unpack_init_data
from fastness.protocol.user_data import ENTRY, MAX_BYTES

MAGIC: Final = b"initdata"
# The user-data of any platform with the lines around it; written as one quoted text of TOML it may be twice as long.
MAX_DOCUMENT: Final = 3 * MAX_BYTES
_LENGTH: Final = 8
_KINDS: Final = ("vd*", "sd*")


@dataclass(frozen=True, slots=True)
class InitDataDisk:
    """The disk that begins with the letters `initdata`."""

    name: str = "init-data disk"
    blocks: Path = Path("/sys/block")
    devices: Path = Path("/dev")

    async def read(self) -> InitData | None:
        """The document; None where there is none or it is not for a machine; raises UserDataFailure."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> InitData | None:
        disks = sorted(path.name for kind in _KINDS for path in self.blocks.glob(kind))
        marked = [name for name in disks if self._begin(name, len(MAGIC)) == MAGIC]
        if not marked:
            return None
        if len(marked) > 1:
            raise BadUserData(f"{len(marked)} disks begin as init-data does")
        content = self._begin(marked[0], len(MAGIC) + _LENGTH + MAX_DOCUMENT)
        if content[: len(MAGIC)] != MAGIC:
            raise UserDataFailure(f"the {self.name} cannot be read")
        return self._document(content[len(MAGIC) :])

    def _document(self, content: bytes) -> InitData | None:
        length, packed = int.from_bytes(content[:_LENGTH], "little"), content[_LENGTH:]
        if length > len(packed):
            raise BadUserData(f"the {self.name} has less than it says, or more than {MAX_DOCUMENT} bytes")
        try:
            # Unpacked within a bound: a few kilobytes of gzip may hold gigabytes, and the machine has no swap yet.
            document = parse_init_data(unpack_init_data(packed[:length], MAX_DOCUMENT).decode())
        except UnicodeDecodeError as error:
            raise BadUserData("the init-data is not UTF-8") from error
        except InitDataError as error:
            # The text may be the ticket: what the parser quotes of it stays away from the console.
            raise BadUserData(f"the init-data cannot be read ({error.code})", error.hint) from error
        return document if ENTRY in document.data else None

    def _begin(self, disk: str, count: int) -> bytes:
        """The first bytes of a disk; none of one that cannot be read, as a drive without a medium."""
        try:
            descriptor = os.open(self.devices / disk, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                return file.read(count)
        except OSError:
            return b""
