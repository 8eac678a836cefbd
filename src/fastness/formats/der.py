"""Just enough DER to read the vendors' certificate extensions: definite lengths, single-byte tags, no recursion.

X.509 itself is read by the cryptography library; what vendors put inside their own extensions is not, and is small:
sequences of object identifiers with integers, octet strings and booleans. The two writers make keys out of what TPMs say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fastness.formats.cursor import Cursor, EvidenceError

BOOLEAN: Final = 0x01
INTEGER: Final = 0x02
BIT_STRING: Final = 0x03
OCTETS: Final = 0x04
NULL: Final = 0x05
OID: Final = 0x06
ENUMERATED: Final = 0x0A
IA5: Final = 0x16
SEQUENCE: Final = 0x30
_MAX_LENGTH_BYTES: Final = 3


def elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each element in turn; raises EvidenceError."""
    cursor = Cursor(data, "a certificate extension", "big")
    while cursor.left:
        yield cursor.u8("tag"), cursor.take(_length(cursor), "content")


def only(data: bytes, tag: int) -> bytes:
    """The content of the one element there is, of this tag; raises EvidenceError."""
    members = list(elements(data))
    if len(members) != 1 or members[0][0] != tag:
        raise EvidenceError("bad-extension", f"a certificate extension does not hold one element of tag {tag:#04x}")
    return members[0][1]


def number(content: bytes) -> int:
    """A non-negative INTEGER or ENUMERATED of at most eight bytes; raises EvidenceError."""
    if not 1 <= len(content) <= 9 or content[0] & 0x80:
        raise EvidenceError("bad-extension", "a certificate extension holds a number that is negative or too large")
    return int.from_bytes(content, "big")


def dotted(content: bytes) -> str:
    """An OBJECT IDENTIFIER in dotted form; raises EvidenceError."""
    if not 1 <= len(content) <= 64 or content[-1] & 0x80:
        raise EvidenceError("bad-extension", "a certificate extension holds a damaged object identifier")
    parts, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            parts.append(value)
            value = 0
    first = min(parts[0] // 40, 2)
    return ".".join(map(str, [first, parts[0] - 40 * first, *parts[1:]]))


def _length(cursor: Cursor) -> int:
    first = cursor.u8("length")
    if first < 0x80:
        return first
    count = first & 0x7F
    if not 1 <= count <= _MAX_LENGTH_BYTES:
        raise EvidenceError("bad-extension", "a certificate extension has an element of indefinite or absurd length")
    return int.from_bytes(cursor.take(count, "length"), "big")


def encoded(tag: int, content: bytes) -> bytes:
    """One element."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def unsigned(magnitude: bytes) -> bytes:
    """An INTEGER that is not negative, from its big-endian bytes."""
    digits = magnitude.lstrip(b"\0") or b"\0"
    return encoded(INTEGER, b"\0" + digits if digits[0] & 0x80 else digits)
