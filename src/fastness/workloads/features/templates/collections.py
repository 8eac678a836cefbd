"""Sprig's functions on lists and dictionaries, on defaults, on types, and on JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.workloads.features.templates.calls import Function
from fastness.workloads.features.templates.numbers import to_int
from fastness.workloads.features.templates.show import float_text
from fastness.workloads.features.templates.texts import strings_of, strval
from fastness.workloads.features.templates.values import (
    MAX_DEPTH,
    Meter,
    TypedList,
    TypedMap,
    Version,
    elements_of,
    equal,
    failed,
    kind_of,
    raw,
    truth,
    type_of,
)


def empty(value: Any) -> bool:
    """Whether a value is nothing, zero, or has no elements."""
    return not truth(value)


def _default(meter: Meter, fallback: Any, *given: Any) -> Any:
    return fallback if not given or empty(given[0]) else given[0]


def _coalesce(meter: Meter, *values: Any) -> Any:
    return next((value for value in values if not empty(value)), None)


def _push(meter: Meter, elements: Any, value: Any) -> list[Any]:
    return [*elements_of(elements, "append"), value]


def _prepend(meter: Meter, elements: Any, value: Any) -> list[Any]:
    return [value, *elements_of(elements, "prepend")]


def _at(verb: str, place: int) -> Callable[[Meter, Any], Any]:
    return lambda meter, value: elements_of(value, verb)[place] if elements_of(value, verb) else None


def _without(meter: Meter, elements: Any, *left_out: Any) -> list[Any]:
    return [
        element for element in elements_of(elements, "without")
        if not any(equal(other, element, meter) for other in left_out)
    ]  # fmt: skip


def _uniq(meter: Meter, elements: Any) -> list[Any]:
    first: list[Any] = []
    for element in elements_of(elements, "uniq"):
        if not any(equal(element, other, meter) for other in first):
            first.append(element)
    return first


def _has(meter: Meter, value: Any, elements: Any) -> bool:
    if elements is None:
        return False
    return any(equal(value, element, meter) for element in elements_of(elements, "has"))


def _slice(meter: Meter, elements: Any, *places: Any) -> Any:
    given = elements_of(elements, "slice")
    if not given:
        return None
    start = to_int(places[0]) if places else 0
    end = to_int(places[1]) if len(places) > 1 else len(given)
    if not 0 <= start <= end <= len(given):
        raise failed("bad-index", f"there is no part from {start} to {end} in {len(given)} elements")
    part = given[start:end]
    return TypedList(part, of=given.of) if isinstance(given, TypedList) else part


def _concat(meter: Meter, *lists: Any) -> list[Any]:
    meter.room(sum(len(elements_of(elements, "concat")) for elements in lists))
    return [element for elements in lists for element in elements]


def _chunk(meter: Meter, size: int, elements: Any) -> TypedList:
    given = elements_of(elements, "chunk")
    if size < 1:
        raise failed("bad-argument", "a part has at least one element")
    return TypedList((list(given[at : at + size]) for at in range(0, len(given), size)), of="[]interface {}")


def _sorted(meter: Meter, value: Any) -> TypedList:
    meter.step(len(value) if isinstance(value, list) else 1)
    return TypedList(sorted(strings_of(value, meter), key=raw) if isinstance(value, list) else [strval(value, meter)])


def _dict(meter: Meter, *pairs: Any) -> dict[str, Any]:
    keys, values = pairs[::2], pairs[1::2]
    return {strval(key, meter): values[place] if place < len(values) else "" for place, key in enumerate(keys)}


def _set(meter: Meter, table: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    table[key] = value
    return table


def _unset(meter: Meter, table: dict[str, Any], key: str) -> dict[str, Any]:
    table.pop(key, None)
    return table


def _keys(meter: Meter, *tables: dict[str, Any]) -> TypedList:
    # Go has no order of keys. Labels must not change from one look to the next, so here they have one.
    return TypedList(key for table in tables for key in sorted(table, key=raw))


def _pick(meter: Meter, table: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: table[key] for key in keys if key in table}


def _omit(meter: Meter, table: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in keys}


def _merged(overwrite: bool) -> Callable[..., dict[str, Any]]:
    def merge(meter: Meter, target: dict[str, Any], *sources: dict[str, Any]) -> dict[str, Any]:
        for source in sources:
            _merge(meter, target, source, overwrite, 0)
        return target

    return merge


def _merge(meter: Meter, target: dict[str, Any], source: Mapping[str, Any], overwrite: bool, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise failed("too-deep", f"values lie inside each other more than {MAX_DEPTH} deep")
    for key, value in list(source.items()):
        meter.step()
        present = target.get(key)
        if type(present) is dict and type(value) is dict:
            _merge(meter, present, value, overwrite, depth + 1)
        elif key not in target or overwrite or empty(present):
            target[key] = value


def _dig(meter: Meter, *given: Any) -> Any:
    *keys, fallback, table = given if len(given) >= 3 else (None, None, None)
    for key in keys:
        if not isinstance(key, str) or type(table) is not dict:
            raise failed("bad-argument", "dig takes texts, a default and a dictionary")
        if key not in table:
            return fallback
        table = table[key]
    return table


def _copied(meter: Meter, value: Any, depth: int = 0) -> Any:
    meter.step()
    if depth > MAX_DEPTH:
        raise failed("too-deep", f"values lie inside each other more than {MAX_DEPTH} deep")
    if isinstance(value, list):
        parts = [_copied(meter, element, depth + 1) for element in value]
        return TypedList(parts, of=value.of) if isinstance(value, TypedList) else parts
    if isinstance(value, dict):
        entries = {key: _copied(meter, entry, depth + 1) for key, entry in value.items()}
        return TypedMap(entries, of=value.of) if isinstance(value, TypedMap) else entries
    return value


def _from_json(meter: Meter, text: str, *, strict: bool) -> Any:
    try:
        return _floats(json.decode(raw(text)), meter)
    except JsonError as error:
        if strict:
            raise failed("bad-json", f"this is no JSON: {error}") from error
        return None


def _floats(value: Any, meter: Meter) -> Any:
    """What JSON holds, with the types that Go gives it: every number is a float."""
    meter.step()
    if isinstance(value, dict):
        return {key: _floats(entry, meter) for key, entry in value.items()}
    if isinstance(value, list):
        return [_floats(entry, meter) for entry in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def _json_text(text: str, safe: bool) -> str:
    parts = []
    for letter in text:
        code = ord(letter)
        if letter in _ESCAPES:
            parts.append(_ESCAPES[letter])
        elif code < 32 or letter in "\u2028\u2029" or (safe and letter in "<>&"):
            parts.append(f"\\u{code:04x}")
        else:
            parts.append("\\ufffd" if 0xD800 <= code < 0xE000 else letter)
    return f'"{"".join(parts)}"'


class _Writer:
    """Values as JSON, as Go writes it: keys in order, and letters of HTML escaped if it is to be safe there."""

    def __init__(self, meter: Meter, *, safe: bool, pretty: bool) -> None:
        self._meter, self._safe, self._pretty = meter, safe, pretty

    def text(self, value: Any, depth: int = 0) -> str:
        """One value; raises BadTemplate for one that contains itself."""
        self._meter.step()
        if depth > MAX_DEPTH:
            raise failed("too-deep", f"values lie inside each other more than {MAX_DEPTH} deep")
        if isinstance(value, dict):
            colon = ": " if self._pretty else ":"
            keys = sorted(value, key=raw)
            parts = [f"{_json_text(key, self._safe)}{colon}{self.text(value[key], depth + 1)}" for key in keys]
            return self._block("{}", parts, depth)
        if isinstance(value, list):
            return self._block("[]", [self.text(element, depth + 1) for element in value], depth)
        return self._plain(value)

    def _plain(self, value: Any) -> str:
        if value is None:
            return "null"
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            if not math.isfinite(value):
                raise failed("bad-json", "JSON has no word for this number")
            return float_text(value, -6, 21).replace("e-0", "e-")
        if isinstance(value, int):
            return str(int(value))
        return _json_text(value.text if isinstance(value, Version) else value, self._safe)

    def _block(self, marks: str, parts: list[str], depth: int) -> str:
        self._meter.room(sum(map(len, parts)) + len(parts) * (depth + 1) * 2)
        if not parts or not self._pretty:
            return f"{marks[0]}{','.join(parts)}{marks[1]}"
        pad = "  " * (depth + 1)
        lines = ",\n".join(f"{pad}{part}" for part in parts)
        return f"{marks[0]}\n{lines}\n{'  ' * depth}{marks[1]}"


def _to_json(*, safe: bool = True, pretty: bool = False) -> Callable[[Meter, Any], str]:
    return lambda meter, value: _Writer(meter, safe=safe, pretty=pretty).text(value)


def _fail(meter: Meter, message: str) -> str:
    raise failed("failed", message[:256])


def _both(name: str, function: Function) -> dict[str, Function]:
    """A function and the one that says so when it fails: here they are the same."""
    return {name: function, f"must{name[0].upper()}{name[1:]}": function}


COLLECTIONS: Final[Mapping[str, Function]] = {
    "default": Function("vv*", _default), "empty": Function("v", lambda meter, value: empty(value)),
    "coalesce": Function("v*", _coalesce), "ternary": Function("vvb", lambda meter, yes, no, which: yes if which else no),
    "all": Function("v*", lambda meter, *values: not any(map(empty, values))),
    "any": Function("v*", lambda meter, *values: not all(map(empty, values))),
    "fail": Function("s", _fail),
    "list": Function("v*", lambda meter, *values: list(values)), "tuple": Function("v*", lambda meter, *values: list(values)),
    **_both("append", Function("vv", _push)), **_both("push", Function("vv", _push)),
    **_both("prepend", Function("vv", _prepend)),
    **_both("first", Function("v", _at("first", 0))), **_both("last", Function("v", _at("last", -1))),
    **_both("rest", Function("v", lambda meter, value: list(elements_of(value, "rest")[1:]))),
    **_both("initial", Function("v", lambda meter, value: list(elements_of(value, "initial")[:-1]))),
    **_both("reverse", Function("v", lambda meter, value: list(elements_of(value, "reverse")[::-1]))),
    **_both("compact", Function("v", lambda meter, value: [part for part in elements_of(value, "compact") if not empty(part)])),
    **_both("uniq", Function("v", _uniq)), **_both("without", Function("vv*", _without)), **_both("has", Function("vv", _has)),
    **_both("slice", Function("vv*", _slice)), **_both("chunk", Function("iv", _chunk)), "concat": Function("v*", _concat),
    "sortAlpha": Function("v", _sorted),
    "dict": Function("v*", _dict), "set": Function("msv", _set), "unset": Function("ms", _unset),
    "get": Function("ms", lambda meter, table, key: table.get(key, "")),
    "hasKey": Function("ms", lambda meter, table, key: key in table),
    "pluck": Function("sm*", lambda meter, key, *tables: [table[key] for table in tables if key in table]),
    "keys": Function("m*", _keys), "values": Function("m", lambda meter, table: [table[key] for key in sorted(table, key=raw)]),
    "pick": Function("ms*", _pick), "omit": Function("ms*", _omit), "dig": Function("v*", _dig),
    **_both("merge", Function("mm*", _merged(overwrite=False))),
    **_both("mergeOverwrite", Function("mm*", _merged(overwrite=True))),
    **_both("deepCopy", Function("v", _copied)), "deepEqual": Function("vv", lambda meter, a, b: equal(a, b, meter)),
    "fromJson": Function("s", lambda meter, text: _from_json(meter, text, strict=False)),
    "mustFromJson": Function("s", lambda meter, text: _from_json(meter, text, strict=True)),
    **_both("toJson", Function("v", _to_json())), **_both("toPrettyJson", Function("v", _to_json(pretty=True))),
    **_both("toRawJson", Function("v", _to_json(safe=False))),
    "typeOf": Function("v", lambda meter, value: type_of(value)), "kindOf": Function("v", lambda meter, value: kind_of(value)),
    "typeIs": Function("sv", lambda meter, name, value: name == type_of(value)),
    "typeIsLike": Function("sv", lambda meter, name, value: type_of(value) in (name, f"*{name}")),
    "kindIs": Function("sv", lambda meter, name, value: name == kind_of(value)),
}  # fmt: skip
