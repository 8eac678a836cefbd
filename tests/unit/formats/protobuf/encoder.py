"""An independent protobuf encoder for the tests: it writes what a test spells out and knows no tables."""

from collections.abc import Iterable


def varint(value: int) -> bytes:
    """A varint; negative numbers in ten bytes, as protobuf writes them."""
    value &= 2**64 - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """An integer or boolean field."""
    return varint(field << 3) + varint(value)


def block(field: int, content: bytes | str | Iterable[bytes]) -> bytes:
    """A field with a length: text, bytes, or a message given as its parts."""
    if isinstance(content, str):
        content = content.encode()
    elif not isinstance(content, bytes):
        content = b"".join(content)
    return varint(field << 3 | 2) + varint(len(content)) + content


def envelope(api_version: str, kind: str, raw: bytes, *rest: bytes) -> bytes:
    """A whole request body."""
    return b"k8s\0" + block(1, [block(1, api_version), block(2, kind)]) + block(2, raw) + b"".join(rest)
