"""The envelope around every protobuf body: `k8s\\0` and a `runtime.Unknown` message.

Unknown: 1 typeMeta {1 apiVersion, 2 kind}, 2 raw (the object), 3 contentEncoding, 4 contentType. The last two are empty in
practice; anything else means bytes that these tables cannot read.
"""

from dataclasses import dataclass
from typing import Any, Final

from fastness.formats.errors import ProtobufError
from fastness.formats.protobuf import special
from fastness.formats.protobuf.kinds import message_of
from fastness.formats.protobuf.message import MessageReader
from fastness.formats.protobuf.wire import LENGTH, damaged, read_fields

MAGIC: Final = b"k8s\x00"
MAX_BYTES: Final = 3 * 1024 * 1024

_CONTENT_TYPES: Final = ("", "application/vnd.kubernetes.protobuf")


@dataclass(frozen=True, slots=True)
class ProtobufObject:
    """An object in JSON form, and the paths of fields that the tables do not know."""

    api_version: str
    kind: str
    value: dict[str, Any]
    unknown_fields: tuple[str, ...]


def decode_object(data: bytes) -> ProtobufObject:
    """Decode a request body of type `application/vnd.kubernetes.protobuf`; raises `ProtobufError`."""
    if len(data) > MAX_BYTES:
        raise ProtobufError(
            "protobuf-too-large",
            f"the body has {len(data)} bytes, the limit is {MAX_BYTES}",
            hint="send a smaller object",
        )
    if not data.startswith(MAGIC):
        raise ProtobufError(
            "protobuf-no-envelope", "the body does not start with the Kubernetes envelope", hint="check Content-Type"
        )
    envelope = _text_and_bytes(memoryview(data)[len(MAGIC) :], (1, 2, 3, 4))
    types = _text_and_bytes(envelope.get(1, memoryview(b"")), (1, 2))
    api_version, kind = (special.text(types.get(number, memoryview(b""))) for number in (1, 2))
    encoding, content_type = (special.text(envelope.get(number, memoryview(b""))) for number in (3, 4))
    if encoding or content_type not in _CONTENT_TYPES:
        raise ProtobufError(
            "protobuf-content-type", "the envelope holds something other than plain protobuf", hint="send it unencoded"
        )
    reader = MessageReader()
    value = reader.read(message_of(api_version, kind), envelope.get(2, memoryview(b"")))
    return ProtobufObject(
        api_version, kind, {"apiVersion": api_version, "kind": kind, **value}, tuple(reader.unknown_fields)
    )


def _text_and_bytes(data: memoryview, numbers: tuple[int, ...]) -> dict[int, memoryview]:
    members: dict[int, memoryview] = {}
    for number, wire_type, value in read_fields(data):
        if number not in numbers:
            continue
        if wire_type != LENGTH or not isinstance(value, memoryview) or number in members:
            raise damaged(f"field {number} of the envelope is not what it should be")
        members[number] = value
    return members
