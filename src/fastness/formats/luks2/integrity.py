"""The superblock of dm-integrity, where sectors carry tags: 64 bytes at the start of the data, in little-endian.

The kernel writes and reads it by itself and nothing authenticates it. We read it for one number, how many sectors are left for
data, and to refuse what we never made before the kernel is asked.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from fastness.formats.errors import Luks2Error

SUPERBLOCK_BYTES: Final = 4096
MAGIC: Final = b"integrt\0"
FIXED_PADDING: Final = 8
_LAYOUT: Final = struct.Struct("<8sBBHIQIB")


@dataclass(frozen=True, slots=True)
class Superblock:
    """What the kernel says about its own layout."""

    version: int
    tag_size: int
    provided_sectors: int
    flags: int
    block_sectors: int


def parse_superblock(data: bytes) -> Superblock:
    """The superblock out of the first bytes of a data area; raises Luks2Error."""
    if len(data) < _LAYOUT.size:
        raise Luks2Error("cut-off", "the superblock of dm-integrity is cut off")
    magic, version, _, tag_size, _, provided, flags, log2_block = _LAYOUT.unpack_from(data)
    if magic != MAGIC:
        raise Luks2Error("no-superblock", "there is no superblock of dm-integrity where the data begins")
    # A block has at most 4096 bytes; an unchecked exponent would be a number of 2^255 sectors.
    if not 1 <= version <= 5 or log2_block > 3:
        raise Luks2Error("wrong-version", f"the superblock of dm-integrity is of version {version}")
    return Superblock(version, tag_size, provided, flags, 1 << log2_block)
