"""Both copies of a header: read from the same bytes, written one by one.

A copy whose magic or checksum is wrong was torn by a power cut, or never written: it counts as absent, and the other one speaks
alone. A copy that is whole and says something wrong is never absent: the header is refused. Otherwise a host would break one
copy to be believed in the other, which is how other readers come to open a second copy that nobody looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastness.formats.errors import Luks2Error
from fastness.formats.luks2.binary import BINARY_BYTES, COPY_BYTES, TORN, BinaryHeader, encode_binary, parse_binary
from fastness.formats.luks2.metadata import Metadata, encode_metadata, parse_metadata

HEADER_BYTES: Final = 2 * COPY_BYTES


@dataclass(frozen=True, slots=True)
class HeaderCopy:
    """One whole copy."""

    binary: BinaryHeader
    metadata: Metadata


@dataclass(frozen=True, slots=True)
class Header:
    """The copies of a header; None where one is torn. At least one is there."""

    copies: tuple[HeaderCopy | None, HeaderCopy | None]

    @property
    def whole(self) -> tuple[HeaderCopy, ...]:
        """The copies that are there, the newest first; of two that are equally new the first."""
        present = [copy for copy in self.copies if copy is not None]
        return tuple(sorted(present, key=lambda copy: -copy.binary.sequence))

    @property
    def newest(self) -> int:
        """The position of the copy that counts."""
        return self.copies.index(self.whole[0])


def parse_header(data: bytes) -> Header:
    """Both copies out of the first 32 KiB of a disk; raises Luks2Error."""
    if len(data) != HEADER_BYTES:
        raise Luks2Error("cut-off", f"a header has {HEADER_BYTES} bytes, not {len(data)}")
    torn: list[Luks2Error] = []
    first, second = (_copy(data, position, torn) for position in (0, 1))
    if first is None and second is None:
        raise torn[0]
    return Header((first, second))


def _copy(data: bytes, position: int, torn: list[Luks2Error]) -> HeaderCopy | None:
    copy = data[position * COPY_BYTES : (position + 1) * COPY_BYTES]
    try:
        binary = parse_binary(copy, position)
    except Luks2Error as error:
        if error.code != TORN:
            raise
        torn.append(error)
        return None
    return HeaderCopy(binary, parse_metadata(copy[BINARY_BYTES:]))


def encode_copy(copy: HeaderCopy, position: int) -> bytes:
    """One copy as it is written at `position * COPY_BYTES`; raises Luks2Error where its JSON does not fit."""
    return encode_binary(copy.binary, position, encode_metadata(copy.metadata))
