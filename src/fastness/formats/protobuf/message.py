"""Decoding one message with the tables: wire fields in, the JSON form out.

- A field that appears twice although it holds one value is refused. Protobuf would merge the two, no client sends that, and
  two readers that disagree about the winner are how checks are walked around.
- A field that the table does not know is reported by path and skipped, like an unknown JSON field.
- Depth and the number of values are bounded: two bytes on the wire can make a whole empty object in memory.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from fastness.formats.errors import ProtobufError
from fastness.formats.protobuf import schema, special
from fastness.formats.protobuf.wire import LENGTH, VARINT, Value, damaged, read_fields, read_varint, signed

MAX_DEPTH: Final = 50
MAX_VALUES: Final = 100_000
MAX_REPORTED: Final = 100


@dataclass(slots=True)
class MessageReader:
    """Decodes messages and remembers what it has used up and what it did not know."""

    unknown_fields: list[str] = field(default_factory=list)
    values: int = 0

    def read(self, name: str, data: memoryview, path: str = "", depth: int = 1) -> dict[str, Any]:
        """The JSON form of message `name`."""
        if depth > MAX_DEPTH:
            raise ProtobufError("protobuf-too-deep", "the message nests too deep", path, "flatten the object")
        result: dict[str, Any] = {}
        fields = schema.message(name)
        self._read_into(result, fields, data, path, depth)
        for declared in fields.values():
            if declared.shape == "list" and declared.keep_zero:
                result.setdefault(declared.name, [])
        return result

    def _read_into(
        self, result: dict[str, Any], fields: dict[int, schema.Field], data: memoryview, path: str, depth: int
    ) -> None:
        numbers: set[int] = set()
        for number, wire_type, value in read_fields(data):
            self._charge(path)
            declared = fields.get(number)
            if declared is None:
                self._report(f"{path}.<{number}>" if path else f"<{number}>")
                continue
            here = path if declared.inline else f"{path}.{declared.name}" if path else declared.name
            if declared.shape == "one" and number in numbers:
                raise ProtobufError("protobuf-repeated-field", "the field stands twice", here, "send each field once")
            numbers.add(number)
            if declared.inline:
                members = schema.message(declared.type)
                self._read_into(result, members, _length_value(value, wire_type, here), here, depth)
            else:
                self._member(result, declared, wire_type, value, here, depth)

    def _member(
        self, result: dict[str, Any], declared: schema.Field, wire_type: int, value: Value, path: str, depth: int
    ) -> None:
        if declared.shape == "map":
            key, item = self._map_entry(declared, _length_value(value, wire_type, path), path, depth)
            result.setdefault(declared.name, {})[key] = item
        elif declared.shape == "list":
            items = result.setdefault(declared.name, [])
            if declared.type == "int" and wire_type == LENGTH:
                items.extend(self._packed(_length_value(value, wire_type, path), path))
            else:
                items.append(self._value(declared.type, wire_type, value, f"{path}[{len(items)}]", depth))
        else:
            item = self._value(declared.type, wire_type, value, path, depth)
            # Only plain values are hidden when zero; an empty object is written, as Kubernetes does.
            if item is not None and (declared.keep_zero or declared.type not in schema.SCALARS or item):
                result[declared.name] = item

    def _value(self, type_: str, wire_type: int, value: Value, path: str, depth: int) -> Any:
        if type_ in ("int", "bool"):
            if wire_type != VARINT or not isinstance(value, int):
                raise damaged(f"wire type {wire_type} does not fit", path)
            return signed(value) if type_ == "int" else value != 0
        content = _length_value(value, wire_type, path)
        if type_ == "string":
            return special.text(content)
        if type_ == "bytes":
            return special.base64_text(content)
        convert = special.CONVERTERS.get(type_)
        return convert(content) if convert is not None else self.read(type_, content, path, depth + 1)

    def _map_entry(self, declared: schema.Field, data: memoryview, path: str, depth: int) -> tuple[str, Any]:
        """A map is a list of messages `{1: key, 2: value}`; a missing half is its zero value."""
        key, item = "", None
        for number, wire_type, value in read_fields(data):
            self._charge(path)
            if number == 1:
                key = special.text(_length_value(value, wire_type, path))
            elif number == 2:
                item = self._value(declared.type, wire_type, value, f"{path}[{key[:80]}]", depth)
        return key, _zero(declared.type) if item is None else item

    def _packed(self, data: memoryview, path: str) -> list[int]:
        numbers: list[int] = []
        position = 0
        while position < len(data):
            self._charge(path)
            number, position = read_varint(data, position)
            numbers.append(signed(number))
        return numbers

    def _charge(self, path: str) -> None:
        self.values += 1
        if self.values > MAX_VALUES:
            raise ProtobufError("protobuf-too-many-values", "the message has too many values", path, "send less")

    def _report(self, path: str) -> None:
        if len(self.unknown_fields) < MAX_REPORTED:
            self.unknown_fields.append(path)


def _zero(type_: str) -> Any:
    """The value of a map entry that came without one."""
    match type_:
        case "string" | "bytes":
            return ""
        case "strings":
            return []
        case "quantity":
            return "0"
        case "time" | "microtime":
            return None
        case _:
            return {}


def _length_value(value: Value, wire_type: int, path: str) -> memoryview:
    if wire_type != LENGTH or not isinstance(value, memoryview):
        raise damaged(f"wire type {wire_type} does not fit", path)
    return value
