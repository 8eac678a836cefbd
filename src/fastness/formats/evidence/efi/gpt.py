"""The partition table of a disk (GPT, UEFI 2.10 §5.3), and what firmware measures of it.

Firmware measures the table of the disk that it boots from as one event (`UEFI_GPT_DATA`, TCG PC Client firmware profile): the
header, the number of entries that are used, and those. Free entries and the content of partitions are not in it.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Final

from fastness.formats.errors import ImageError

SECTOR: Final = 512
HEADER: Final = 92
ENTRY: Final = 128
MAX_ENTRIES: Final = 1024
"""What has to be read from the beginning of a disk: protective record, header, and as many entries as are taken."""
BEGINNING: Final = 2 * SECTOR + MAX_ENTRIES * ENTRY
_MAGIC: Final = b"EFI PART"


@dataclass(frozen=True, slots=True)
class Gpt:
    """A table: its header as it stands on the disk, and the entries that are used, in order."""

    header: bytes
    used: tuple[bytes, ...]

    @property
    def measured(self) -> bytes:
        """What firmware hashes."""
        return self.header + struct.pack("<Q", len(self.used)) + b"".join(self.used)


def parse_gpt(beginning: bytes) -> Gpt:
    """The table at the beginning of a disk with sectors of 512 bytes; raises ImageError."""
    header = beginning[SECTOR : SECTOR + HEADER]
    if len(header) < HEADER or header[:8] != _MAGIC:
        raise ImageError("no-gpt", "the disk has no GUID partition table", hint="Measure it as a disk without one.")
    size, checksum = struct.unpack_from("<II", header, 12)
    first, count, entry, entries_sum = struct.unpack_from("<QIII", header, 72)
    # Other sizes are allowed by the standard; what firmware takes of them was never compared with a boot.
    if size != HEADER or entry != ENTRY or not 0 < count <= MAX_ENTRIES:
        raise ImageError("odd-gpt", f"the table has a header of {size} bytes and {count} entries of {entry}")
    if zlib.crc32(header[:16] + bytes(4) + header[20:]) != checksum:
        raise ImageError("damaged-gpt", "the header of the table is damaged", hint="Repair the disk with `sgdisk -v`.")
    table = beginning[first * SECTOR : first * SECTOR + count * ENTRY]
    if len(table) < count * ENTRY or zlib.crc32(table) != entries_sum:
        raise ImageError("damaged-gpt", "the entries of the table are damaged, or were not all given")
    entries = [table[at : at + ENTRY] for at in range(0, len(table), ENTRY)]
    return Gpt(header, tuple(each for each in entries if any(each[:16])))
