"""The functions that text/template itself has: index, len, comparisons, printing, escaping."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote_plus

from fastness.workloads.features.templates.calls import Function
from fastness.workloads.features.templates.show import NO_VALUE, formatted, joined
from fastness.workloads.features.templates.values import (
    ANYTHING,
    Meter,
    TypedMap,
    Uint8,
    failed,
    raw,
    truth,
    type_of,
    zero_of,
)

_HTML: Final = str.maketrans({"\0": "\ufffd", '"': "&#34;", "'": "&#39;", "&": "&amp;", "<": "&lt;", ">": "&gt;"})
_JS: Final = {"\\": "\\\\", "'": "\\'", '"': '\\"', "<": "\\u003C", ">": "\\u003E", "&": "\\u0026", "=": "\\u003D"}


def index(meter: Meter, value: Any, *keys: Any) -> Any:
    """What lies at a place; in a map, what is not there is the zero of its type."""
    if value is None:
        raise failed("bad-index", "nil has no elements")
    for key in keys:
        meter.step()
        if isinstance(value, dict):
            if not isinstance(key, str):
                raise failed("bad-index", f"a map is indexed with a text, not {type_of(key)}")
            value = value[key] if key in value else zero_of(value.of if isinstance(value, TypedMap) else ANYTHING)
        elif isinstance(value, list | str):
            value = _element(value, key)
        else:
            raise failed("bad-index", f"{type_of(value)} has no elements")
    return value


def _element(value: Any, key: Any) -> Any:
    elements = raw(value) if isinstance(value, str) else value
    if not isinstance(key, int) or isinstance(key, bool):
        raise failed("bad-index", f"a list is indexed with a number, not {type_of(key)}")
    if not 0 <= key < len(elements):
        raise failed("bad-index", f"there is no element {key}")
    return Uint8(elements[key]) if isinstance(value, str) else elements[key]


def length(meter: Meter, value: Any) -> int:
    """Elements of a list or map, bytes of a text."""
    if isinstance(value, str):
        return len(raw(value))
    if isinstance(value, list | dict):
        return len(value)
    raise failed("bad-argument", f"{type_of(value)} has no length")


def _basic(value: Any) -> str:
    """The kind by which values are compared; empty for those that have no order."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int"
    return {str: "string", float: "float"}.get(type(value), "")


def eq(meter: Meter, first: Any, *others: Any) -> bool:
    """Whether the first is equal to one of the others."""
    if not others:
        raise failed("bad-arguments", "eq needs something to compare with")
    return any(_same(first, other) for other in others)


def _same(first: Any, other: Any) -> bool:
    if _basic(first) != _basic(other):
        if first is None or other is None:
            return False
        raise failed("bad-comparison", f"{type_of(first)} and {type_of(other)} cannot be compared")
    if not _basic(first) and first is not None and other is not None:
        if isinstance(first, list | dict) or isinstance(other, list | dict):
            raise failed("bad-comparison", f"{type_of(first)} cannot be compared")
        return first is other
    return bool(first == other)


def lt(meter: Meter, first: Any, other: Any) -> bool:
    """Whether the first is less."""
    kind = _basic(first)
    if not kind or kind != _basic(other) or kind == "bool":
        raise failed("bad-comparison", f"{type_of(first)} and {type_of(other)} have no order")
    return raw(first) < raw(other) if kind == "string" else bool(first < other)


def _le(meter: Meter, first: Any, other: Any) -> bool:
    return lt(meter, first, other) or _same(first, other)


def _text(meter: Meter, *values: Any) -> str:
    """Arguments as the escaping functions read them."""
    if len(values) == 1 and isinstance(values[0], str):
        return values[0]
    return joined([NO_VALUE if value is None else value for value in values], meter)


def _js(meter: Meter, *values: Any) -> str:
    parts = []
    for letter in _text(meter, *values):
        control = ord(letter) < 32 or not letter.isprintable()
        parts.append(_JS.get(letter) or (f"\\u{ord(letter):04X}" if control else letter))
    return "".join(parts)


def _call(meter: Meter, *values: Any) -> Any:
    raise failed("bad-argument", "there are no functions among the values")


BUILTINS: Final[Mapping[str, Function]] = {
    "and": Function("vv*", lambda meter, *values: values[-1]),
    "or": Function("vv*", lambda meter, *values: values[-1]),
    "not": Function("v", lambda meter, value: not truth(value)),
    "index": Function("vv*", index),
    "len": Function("v", length),
    "eq": Function("vv*", eq),
    "ne": Function("vv", lambda meter, first, other: not _same(first, other)),
    "lt": Function("vv", lt),
    "le": Function("vv", _le),
    "gt": Function("vv", lambda meter, first, other: not _le(meter, first, other)),
    "ge": Function("vv", lambda meter, first, other: not lt(meter, first, other)),
    "print": Function("v*", lambda meter, *values: joined(values, meter)),
    "println": Function("v*", lambda meter, *values: _line(meter, values)),
    "printf": Function("sv*", lambda meter, form, *values: formatted(form, values, meter)),
    "html": Function("v*", lambda meter, *values: _text(meter, *values).translate(_HTML)),
    "js": Function("v*", _js),
    "urlquery": Function("v*", lambda meter, *values: quote_plus(raw(_text(meter, *values)))),
    "call": Function("vv*", _call),
}


def _line(meter: Meter, values: tuple[Any, ...]) -> str:
    return " ".join(joined([value], meter) for value in values) + "\n"
