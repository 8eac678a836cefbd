"""Messages between two processes over a pipe: four bytes of length, most significant first, and that many bytes."""

from __future__ import annotations

import struct
from typing import Final

HEAD: Final = 4
MAX_FRAME: Final = 32 * 1024**2
_LENGTH: Final = struct.Struct(">I")


def framed(message: bytes) -> bytes:
    """A message with its length; raises ValueError for one that is too long."""
    if len(message) > MAX_FRAME:
        raise ValueError("the message is too long")
    return _LENGTH.pack(len(message)) + message


def frame_length(head: bytes) -> int:
    """The length of the message that follows a head; raises ValueError for one that is too long."""
    (length,) = _LENGTH.unpack(head)
    if length > MAX_FRAME:
        raise ValueError("the message is too long")
    return int(length)
