"""Values of a template, as Go sees them: what type each has, whether it counts as true, how much may be made of them.

| Go | here |
| --- | --- |
| string | str; bytes that are no UTF-8 are lone surrogates |
| bool, nil | bool, None |
| int, int64, uint8, float64 | int, `Int64`, `Uint8`, float |
| []interface{}, map[string]interface{} | list, dict |
| other slices and maps | `TypedList`, `TypedMap`, with the type of their elements |

Types show: a function that takes an int refuses an int64, and a function that takes a dictionary refuses a matched element, which
is a map of texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastness.workloads.features.errors import BadTemplate

MAX_STEPS: Final = 200_000
MAX_VALUE: Final = 64 * 1024
MAX_DEPTH: Final = 40
ANYTHING: Final = "interface {}"
HINT: Final = "Compare with Go's text/template and sprig; `fastness features test` shows what a rule makes of a node."


class Int64(int):
    """What sprig's arithmetic returns."""


class Uint8(int):
    """One byte of a text."""


class TypedList(list[Any]):
    """A slice whose elements have one type."""

    def __init__(self, elements: Any = (), of: str = "string") -> None:
        super().__init__(elements)
        self.of = of


class TypedMap(dict[str, Any]):
    """A map from texts to values of one type."""

    def __init__(self, entries: Any = (), of: str = "string") -> None:
        super().__init__(entries)
        self.of = of


class Version:
    """A semantic version, as sprig's `semver` returns it."""

    def __init__(self, fields: Mapping[str, Any], text: str) -> None:
        self.fields = fields
        self.text = text


def failed(code: str, message: str) -> BadTemplate:
    """The error about a template that cannot be run."""
    return BadTemplate(code, message, HINT)


class Meter:
    """How much one run may do: whoever may write rules must not hold up the control plane, nor fill its memory."""

    def __init__(self) -> None:
        self._steps = 0
        self._size = 0
        self.parts: list[str] = []

    def step(self, count: int = 1) -> None:
        """Count work; raises BadTemplate."""
        self._steps += count
        if self._steps > MAX_STEPS:
            raise failed("too-many-steps", f"the template takes more than {MAX_STEPS} steps")

    def room(self, size: int) -> None:
        """Count a value of some size before it is made; raises BadTemplate."""
        if size > MAX_VALUE:
            raise failed("result-too-large", f"a value has more than {MAX_VALUE} characters or elements")
        self.step(1 + size // 64)

    def write(self, text: str) -> None:
        """Add to the output; raises BadTemplate."""
        self._size += len(text)
        if self._size > MAX_VALUE:
            raise failed("result-too-large", f"the result has more than {MAX_VALUE} characters")
        self.parts.append(text)


_TYPES: Final[Mapping[type, str]] = {
    str: "string", bool: "bool", int: "int", Int64: "int64", Uint8: "uint8", float: "float64", list: "[]interface {}",
    dict: "map[string]interface {}", Version: "*semver.Version", type(None): "<nil>",
}  # fmt: skip
_KINDS: Final[Mapping[type, str]] = {
    list: "slice", TypedList: "slice", dict: "map", TypedMap: "map", Version: "ptr", type(None): "invalid",
}  # fmt: skip


def type_of(value: Any) -> str:
    """The name of a value's type in Go."""
    if isinstance(value, TypedList):
        return f"[]{value.of}"
    if isinstance(value, TypedMap):
        return f"map[string]{value.of}"
    return _TYPES[type(value)]


def kind_of(value: Any) -> str:
    """The name of a value's kind in Go."""
    return _KINDS.get(type(value)) or _TYPES[type(value)]


def truth(value: Any) -> bool:
    """Whether a value counts as true: empty texts, lists and maps, zero and nil do not."""
    return True if isinstance(value, Version) else bool(value)


def zero_of(name: str) -> Any:
    """What an element of some type is that is not there."""
    if name == "string":
        return ""
    if name.startswith("[]"):
        return TypedList(of=name[2:])
    if name.startswith("map[string]"):
        return TypedMap(of=name.removeprefix("map[string]"))
    return None


def size_of(value: Any) -> int:
    """Characters of a text, elements of a list or map, one for anything else."""
    return len(value) if isinstance(value, str | list | dict) else 1


def raw(text: str) -> bytes:
    """The bytes of a text."""
    return text.encode("utf-8", "surrogateescape")


def cooked(content: bytes) -> str:
    """The text of some bytes."""
    return content.decode("utf-8", "surrogateescape")


def elements_of(value: Any, verb: str) -> list[Any]:
    """The elements of a list; raises BadTemplate."""
    if not isinstance(value, list):
        raise failed("not-a-list", f"{verb} needs a list, not {type_of(value)}")
    return value


def equal(first: Any, second: Any, meter: Meter, depth: int = 0) -> bool:
    """Whether two values are the same to the last element, their types included; raises BadTemplate."""
    meter.step()
    if depth > MAX_DEPTH:
        raise failed("too-deep", f"values lie inside each other more than {MAX_DEPTH} deep")
    if type_of(first) != type_of(second):
        return False
    if isinstance(first, list):
        return len(first) == len(second) and all(
            equal(one, other, meter, depth + 1) for one, other in zip(first, second, strict=True)
        )
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(equal(first[key], second[key], meter, depth + 1) for key in first)
    return bool(first == second) if not isinstance(first, Version) else first.text == second.text
