"""The protobuf wire format: varints, tags, lengths. Nothing here knows what a field means.

`read_fields` splits one message into `(number, wire type, value)`; a varint is an unsigned integer, everything with a length a
`memoryview` slice of the input, so nesting copies nothing.

- A varint has at most ten bytes and 64 bits; anything longer is refused, not cut.
- A length never reaches beyond its message. Field number 0 and the group wire types are refused: Kubernetes uses neither.
"""

from collections.abc import Iterator
from typing import Final

from fastness.formats.errors import ProtobufError

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
FIXED32: Final = 5

Value = int | memoryview

_HINT: Final = "the message is damaged; send it again, or send JSON"
_MAX_FIELD_NUMBER: Final = 2**29 - 1


def read_fields(data: memoryview) -> Iterator[tuple[int, int, Value]]:
    """Split a message into its fields; raises `ProtobufError` where it is damaged."""
    position, end = 0, len(data)
    while position < end:
        tag, position = read_varint(data, position)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number <= _MAX_FIELD_NUMBER:
            raise damaged(f"{number} is not a field number")
        if wire_type == VARINT:
            varint, position = read_varint(data, position)
            yield number, wire_type, varint
            continue
        if wire_type == LENGTH:
            length, position = read_varint(data, position)
        elif wire_type in (FIXED64, FIXED32):
            length = 8 if wire_type == FIXED64 else 4
        else:
            raise damaged(f"wire type {wire_type} is not used by Kubernetes")
        if length > end - position:
            raise damaged(f"field {number} is longer than its message")
        yield number, wire_type, data[position : position + length]
        position += length


def read_varint(data: memoryview, position: int) -> tuple[int, int]:
    """Read one varint of up to 64 bits; returns it and the position behind it."""
    result = shift = 0
    for index in range(position, min(position + 10, len(data))):
        byte = data[index]
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            if result >= 2**64:
                raise damaged("a varint has more than 64 bits")
            return result, index + 1
        shift += 7
    raise damaged("a varint does not end")


def signed(value: int) -> int:
    """The signed integer that a 64-bit varint stands for."""
    return value - 2**64 if value >= 2**63 else value


def damaged(message: str, path: str = "") -> ProtobufError:
    """The error for bytes that no protobuf encoder writes."""
    return ProtobufError("protobuf-damaged", message, path, _HINT)
