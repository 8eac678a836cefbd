"""Messages whose JSON form is not an object: times, quantities, int-or-string, raw JSON, lists of text.

Each function takes the bytes of the message and returns its JSON form; None means "leave the field out" (a zero time).
"""

import binascii
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fastness.formats import json as strict_json
from fastness.formats.errors import JsonError, QuantityError
from fastness.formats.protobuf.wire import LENGTH, VARINT, damaged, read_fields, signed
from fastness.formats.quantity import parse_quantity

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# The years 1 to 9999: what RFC 3339 can write.
_FIRST_SECOND: Final = -62_135_596_800
_LAST_SECOND: Final = 253_402_300_799


def text(data: memoryview) -> str:
    """UTF-8 text; JSON can hold nothing else."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise damaged("text is not UTF-8") from error


def base64_text(data: memoryview) -> str:
    """The JSON form of bytes."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def _members(data: memoryview, kinds: dict[int, int]) -> dict[int, Any]:
    """The fields of a small message: the last of each counts, and unknown ones are skipped as protobuf asks."""
    members: dict[int, Any] = {}
    for number, wire_type, value in read_fields(data):
        if number in kinds:
            if wire_type != kinds[number]:
                raise damaged(f"field {number} has wire type {wire_type}")
            members[number] = value
    return members


def _moment(data: memoryview) -> datetime | None:
    if not data:
        return None
    members = _members(data, {1: VARINT, 2: VARINT})
    seconds, nanos = signed(members.get(1, 0)), signed(members.get(2, 0))
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND or not 0 <= nanos < 10**9:
        raise damaged("a time is out of range")
    return _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)


def _time(data: memoryview) -> str | None:
    moment = _moment(data)
    return None if moment is None else moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def _microtime(data: memoryview) -> str | None:
    moment = _moment(data)
    return None if moment is None else moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _quantity(data: memoryview) -> str:
    written = text(_members(data, {1: LENGTH}).get(1, memoryview(b"0")))
    try:
        return str(parse_quantity(written or "0"))
    except QuantityError as error:
        raise damaged(error.message) from error


def _int_or_string(data: memoryview) -> int | str:
    members = _members(data, {1: VARINT, 2: VARINT, 3: LENGTH})
    if members.get(1, 0) == 1:
        return text(members.get(3, memoryview(b"")))
    return signed(members.get(2, 0))


def _raw_json(data: memoryview) -> Any:
    raw = _members(data, {1: LENGTH}).get(1)
    if raw is None or not raw:
        return None
    try:
        return strict_json.decode(bytes(raw))
    except JsonError as error:
        raise damaged(f"embedded JSON: {error.message}") from error


def _strings(data: memoryview) -> list[str]:
    items: list[str] = []
    for number, wire_type, value in read_fields(data):
        if number == 1:
            if wire_type != LENGTH or not isinstance(value, memoryview):
                raise damaged(f"field {number} has wire type {wire_type}")
            items.append(text(value))
    return items


CONVERTERS: Final[dict[str, Callable[[memoryview], Any]]] = {
    "time": _time,
    "microtime": _microtime,
    "quantity": _quantity,
    "intorstring": _int_or_string,
    "rawjson": _raw_json,
    "strings": _strings,
}
