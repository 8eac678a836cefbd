"""Writing DER: the few element types that certificates and the vendors' extensions are made of.

`formats.der` reads what is written here, and has the one rule for tags and lengths. Each type is small enough to be checked by
eye against X.690.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from fastness.formats.der import encoded


def sequence(*parts: bytes) -> bytes:
    """SEQUENCE."""
    return encoded(0x30, b"".join(parts))


def collection(*parts: bytes) -> bytes:
    """SET of parts in the given order; the caller has one, or sorts."""
    return encoded(0x31, b"".join(parts))


def tagged(number: int, *parts: bytes) -> bytes:
    """A context-specific constructed element: explicit tagging."""
    return encoded(0xA0 | number, b"".join(parts))


def integer(value: int, tag: int = 0x02) -> bytes:
    """A non-negative INTEGER; ENUMERATED with tag 10."""
    return encoded(tag, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def boolean(value: bool) -> bytes:
    """BOOLEAN."""
    return encoded(0x01, b"\xff" if value else b"\x00")


def null() -> bytes:
    """NULL."""
    return encoded(0x05, b"")


def octets(value: bytes) -> bytes:
    """OCTET STRING."""
    return encoded(0x04, value)


def bits(value: bytes, unused: int = 0) -> bytes:
    """BIT STRING."""
    return encoded(0x03, bytes((unused,)) + value)


def utf8(text: str) -> bytes:
    """UTF8String."""
    return encoded(0x0C, text.encode())


def ia5(text: str) -> bytes:
    """IA5String."""
    return encoded(0x16, text.encode("ascii"))


@lru_cache(maxsize=256)
def oid(dotted: str) -> bytes:
    """OBJECT IDENTIFIER."""
    first, second, *rest = map(int, dotted.split("."))
    out = b""
    for part in (40 * first + second, *rest):
        piece, left = [part & 0x7F], part >> 7
        while left:
            piece.insert(0, left & 0x7F | 0x80)
            left >>= 7
        out += bytes(piece)
    return encoded(0x06, out)


def instant(at: datetime) -> bytes:
    """A time as X.509 writes it: two digits of the year until 2049, four from then on."""
    if at.year < 2050:
        return encoded(0x17, f"{at:%y%m%d%H%M%SZ}".encode())
    return encoded(0x18, f"{at:%Y%m%d%H%M%SZ}".encode())
