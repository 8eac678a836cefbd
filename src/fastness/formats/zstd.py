"""Where a zstd frame ends (RFC 8878, section 3.1.1), without unpacking it.

In an initial file system something else may follow a frame: zeros, or the next archive. Programs that unpack frames take that for
damage, so the frame is cut out first. Python has no zstd before 3.14; unpacking is a program's (`agent.host.image.unzstd`).
"""

from __future__ import annotations

from typing import Final

from fastness.formats.errors import FormatError

MAGIC: Final = b"\x28\xb5\x2f\xfd"
_DICTIONARY_ID: Final = (0, 1, 2, 4)
_CONTENT_SIZE: Final = (0, 2, 4, 8)
_RLE, _RESERVED = 1, 3
_BLOCK_HEADER: Final = 3
_CHECKSUM: Final = 4
_HINT: Final = "Give the data as it was packed; it may be cut off."


class ZstdError(FormatError):
    """The bytes are no whole frame."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message, "", _HINT)


def frame_length(data: bytes) -> int:
    """How many bytes the frame at the beginning has; raises ZstdError."""
    if not data.startswith(MAGIC):
        raise ZstdError("not-zstd", "the data does not begin with a zstd frame")
    place, checksum = _header(data)
    while True:
        if place + _BLOCK_HEADER > len(data):
            raise ZstdError("zstd-cut-off", "the zstd frame is cut off")
        header = int.from_bytes(data[place : place + _BLOCK_HEADER], "little")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if kind == _RESERVED:
            raise ZstdError("zstd-damaged", f"the block at byte {place} is of no kind that exists")
        # A block of one repeated byte says how often, and holds the byte once (section 3.1.1.2.3).
        place += _BLOCK_HEADER + (1 if kind == _RLE else size)
        if last:
            break
    if place + checksum > len(data):
        raise ZstdError("zstd-cut-off", "the zstd frame is cut off")
    return place + checksum


def _header(data: bytes) -> tuple[int, int]:
    """Where the first block begins, and how long the checksum behind the last one is (section 3.1.1.1)."""
    if len(data) <= len(MAGIC):
        raise ZstdError("zstd-cut-off", "the zstd frame is cut off")
    descriptor = data[len(MAGIC)]
    single_segment = descriptor >> 5 & 1
    window = 0 if single_segment else 1
    content_size = _CONTENT_SIZE[descriptor >> 6] or single_segment
    place = len(MAGIC) + 1 + window + _DICTIONARY_ID[descriptor & 3] + content_size
    return place, _CHECKSUM if descriptor >> 2 & 1 else 0
