"""The first 4096 bytes of a copy: magic, sequence number, checksum, identity.

    0 magic   6 version   8 size   16 sequence   24 label   72 checksum's name   104 salt   168 uuid   208 subsystem
    256 own offset   264 zero   448 checksum   512 zero

Numbers are big-endian. The SHA-256 covers the whole copy with its own field zero. It is no proof of anything: whoever writes the
disk computes it. It tells a copy that was cut off while it was written (`torn-copy`) from one that says something.
"""

from __future__ import annotations

import hashlib
import re
import struct
from dataclasses import dataclass
from typing import Final

from fastness.formats.errors import Luks2Error

COPY_BYTES: Final = 16384
BINARY_BYTES: Final = 4096
SALT_BYTES: Final = 64
MAGICS: Final = (b"LUKS\xba\xbe", b"SKUL\xba\xbe")
TORN: Final = "torn-copy"
_LAYOUT: Final = struct.Struct(">6sHQQ48s32s64s40s48sQ184s64s")
_CHECKSUM: Final = slice(448, 512)
_UUID: Final = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_TEXT: Final = re.compile(rb"[\x20-\x7e]*\Z")


@dataclass(frozen=True, slots=True)
class BinaryHeader:
    """Which copy of which header: its sequence number, the volume's identity, and a salt that makes copies differ."""

    sequence: int
    uuid: str
    salt: bytes
    label: str = ""
    subsystem: str = ""


def parse_binary(copy: bytes, position: int) -> BinaryHeader:
    """The binary part of a whole copy, the first (0) or the second (1); raises Luks2Error, `torn-copy` where it is damaged."""
    if len(copy) != COPY_BYTES:
        raise Luks2Error("cut-off", f"a copy of the header has {COPY_BYTES} bytes, not {len(copy)}")
    magic, version, size, sequence, label, name, salt, uuid, subsystem, offset, padding, checksum = _LAYOUT.unpack_from(
        copy
    )
    if magic != MAGICS[position]:
        raise Luks2Error(TORN, f"copy {position + 1} of the header does not begin as LUKS2 does")
    if version != 2:
        raise Luks2Error("wrong-version", f"copy {position + 1} of the header is of LUKS{version}, not LUKS2")
    # Before the checksum: a copy may claim 4 MiB, and hashing and reading those takes a tenth of a second.
    if size != COPY_BYTES:
        raise Luks2Error(
            "wrong-size", f"copy {position + 1} of the header claims {size} bytes; only {COPY_BYTES} are read"
        )
    if name != b"sha256".ljust(32, b"\0"):
        raise Luks2Error("wrong-checksum-name", f"copy {position + 1} of the header is not checked by SHA-256")
    if hashlib.sha256(copy[:448] + bytes(64) + copy[512:]).digest() != checksum[:32] or any(checksum[32:]):
        raise Luks2Error(TORN, f"the checksum of copy {position + 1} of the header is wrong")
    if offset != position * COPY_BYTES:
        raise Luks2Error("wrong-offset", f"copy {position + 1} of the header says that it lies at {offset}")
    if any(padding) or any(copy[_LAYOUT.size : BINARY_BYTES]):
        raise Luks2Error("trailing-bytes", f"copy {position + 1} of the header has bytes where zeros belong")
    if _UUID.match(uuid[:36]) is None or any(uuid[36:]):
        raise Luks2Error("wrong-uuid", f"the UUID of copy {position + 1} of the header is none")
    return BinaryHeader(sequence, uuid[:36].decode("ascii"), salt, _text(label, "label"), _text(subsystem, "subsystem"))


def _text(field: bytes, name: str) -> str:
    text, _, padding = field.partition(b"\0")
    if padding.strip(b"\0") or _TEXT.match(text) is None:
        raise Luks2Error("wrong-text", "is not a text with zeros behind it", name)
    return text.decode("ascii")


def encode_binary(header: BinaryHeader, position: int, json_area: bytes) -> bytes:
    """A whole copy with its checksum."""
    head = _LAYOUT.pack(
        MAGICS[position], 2, COPY_BYTES, header.sequence, header.label.encode("ascii"), b"sha256", header.salt,
        header.uuid.encode("ascii"), header.subsystem.encode("ascii"), position * COPY_BYTES, b"", b"",
    )  # fmt: skip
    copy = bytearray(head.ljust(BINARY_BYTES, b"\0") + json_area)
    copy[_CHECKSUM] = hashlib.sha256(copy).digest().ljust(64, b"\0")
    return bytes(copy)
