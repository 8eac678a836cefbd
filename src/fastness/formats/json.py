"""JSON as the Kubernetes API reads it: strict, bounded, and cheap for the small objects that make up nearly all traffic.

- UTF-8 only; no NaN, no infinity, no byte order mark, nothing after the document.
- An integer outside 64 bits signed becomes a float, as in Kubernetes' own decoder; a float that overflows is an error.
- Size is checked before the first byte is read; depth is checked before anything here or above recurses.
- A repeated key is legal JSON (the last one wins) but a mistake. `decode_reporting_duplicates` returns the field paths
  that a client asked about with `fieldValidation=Strict` or `Warn`, in Kubernetes' notation (`spec.items[2].name`).

Looking for repeated keys costs almost nothing when there are none. Outside strings, JSON has one colon per key. Decoding
drops the losers of a repeated key, so encoding the decoded value gives fewer colons than the input had; colons inside
strings are on both sides. Two `bytes.count` and one encode, all in C, therefore decide the question exactly, provided
no colon was written as an escape (`\u003a`), which is looked for too. Only a suspicious document takes the slow walk.

Values go on to admission and the store; `encode` and `canonical` are the way back to bytes.

Decoders recurse, so a text of a thousand levels gives no value at all, not even the name of the object in it. `cut` replaces
every container below a level by a string (`CUT`) without recursing, in one pass over strings and brackets; what is left decodes.
It does not check the text: that is for the decoder that reads the result.
"""

from __future__ import annotations

import json as stdlib_json
import re
from dataclasses import dataclass
from typing import Any, Final

import orjson

from fastness.formats.errors import JsonError

_INT64_MIN: Final = -(2**63)
_INT64_MAX: Final = 2**63 - 1
_COUNT_BYTES: Final = 8192
_ESCAPED_COLON: Final = re.compile(rb"\\u003[aA]")


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """Bounds of one document. The size is that of a Kubernetes request body."""

    max_bytes: int = 3 * 1024 * 1024
    max_depth: int = 100
    max_reported_duplicates: int = 100


DEFAULT_LIMITS: Final = JsonLimits()


def decode(data: bytes, limits: JsonLimits = DEFAULT_LIMITS) -> Any:
    """Return the JSON value in `data`; of a repeated key the last value counts."""
    return _decode(data, limits)[0]


def decode_reporting_duplicates(data: bytes, limits: JsonLimits = DEFAULT_LIMITS) -> tuple[Any, list[str]]:
    """Return the value and the field path of every repeated key, in the order of the document."""
    value, again = _decode(data, limits)
    # Most clients send compact JSON, which comes out as it went in. Counting is for the others; it costs 0.6 ns a byte.
    if again == data or (again.count(b":") == data.count(b":") and not _has_escaped_colon(data)):
        return value, []
    return value, _duplicate_paths(data, limits)


def _has_escaped_colon(data: bytes) -> bool:
    return b"\\" in data and _ESCAPED_COLON.search(data) is not None


def _decode(data: bytes, limits: JsonLimits) -> tuple[Any, bytes]:
    """The value, and its compact encoding: a by-product of the check for large integers, about a fifth of the cost."""
    _check_size(data, limits)
    value = _load(data, limits)
    try:
        return value, orjson.dumps(value, option=orjson.OPT_STRICT_INTEGER)
    except TypeError:  # an integer beyond 53 bits; cheaper to find this way than by searching the text
        value = _fit_integers(value)
        return value, orjson.dumps(value)


def _check_size(data: bytes, limits: JsonLimits) -> None:
    if len(data) > limits.max_bytes:
        raise JsonError(
            "json-too-large",
            f"the document has {len(data)} bytes, the limit is {limits.max_bytes}",
            hint="send a smaller document",
        )


def _load(data: bytes, limits: JsonLimits) -> Any:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise _syntax_error(error, limits) from error
    # A container costs at least one opening bracket, so few brackets prove a shallow document without a walk. In a large
    # document counting costs as much as walking.
    if len(data) > _COUNT_BYTES or data.count(b"{") + data.count(b"[") > limits.max_depth:
        check_depth(value, limits.max_depth)
    return value


def decode_encoded(data: bytes, limits: JsonLimits) -> Any:
    """Return the value of a document that `encode` made: as `decode`, without the second look at its integers."""
    _check_size(data, limits)
    return _load(data, limits)


def encode(value: Any) -> bytes:
    """Encode compactly, keys in the order of the value."""
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise _not_json(error) from error


def canonical(value: Any) -> bytes:
    """Encode compactly with sorted keys: equal values give equal bytes."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise _not_json(error) from error


def check_depth(value: Any, max_depth: int) -> None:
    """Raise `JsonError` when containers nest deeper than `max_depth`; walks level by level, never recurses."""
    level = [value] if type(value) is dict or type(value) is list else []
    for _ in range(max_depth):
        if not level:
            return
        level = [
            child
            for container in level
            for child in (container.values() if type(container) is dict else container)
            if type(child) is dict or type(child) is list
        ]
    if level:
        raise _too_deep(max_depth)


def deepest_path(value: Any, levels: int) -> str:
    """The field path of the first container that lies `levels` deep, in Kubernetes' notation; empty when there is none."""
    pending: list[tuple[Any, _Place | None]] = [(value, None)]
    while pending:
        container, place = pending.pop()
        depth = 1 if place is None else place.depth + 1
        if depth > levels:
            return place.path() if place is not None else ""
        members = container.items() if type(container) is dict else enumerate(container)
        pending.extend(
            (child, _Place(place, step, depth)) for step, child in members if type(child) is dict or type(child) is list
        )
    return ""


def _too_deep(max_depth: int) -> JsonError:
    return JsonError("json-too-deep", f"the document nests deeper than {max_depth} levels", hint="flatten the document")


def _syntax_error(error: orjson.JSONDecodeError, limits: JsonLimits) -> JsonError:
    if "depth limit" in error.msg or "recursion" in error.msg.lower():
        return _too_deep(limits.max_depth)
    return JsonError(
        "json-syntax",
        f"not valid JSON at line {error.lineno} column {error.colno}: {error.msg}",
        hint="check the document with a JSON linter",
    )


def _not_json(error: TypeError) -> JsonError:
    return JsonError("json-unencodable", f"the value has no JSON form: {error}", hint="use JSON types only")


def _fit_integers(value: Any) -> Any:
    """Turn integers outside int64 into floats, in place; the value was just decoded and nobody else holds it."""
    root = [value]
    pending: list[Any] = [root]
    while pending:
        container = pending.pop()
        for key, item in container.items() if type(container) is dict else enumerate(container):
            if type(item) is int and not _INT64_MIN <= item <= _INT64_MAX:
                container[key] = float(item)
            elif type(item) is dict or type(item) is list:
                pending.append(item)
    return root[0]


class _Pairs(list[tuple[str, Any]]):
    """The members of an object as they stood in the text, repeated keys included."""


_NESTED: Final = (_Pairs, list)
_MAX_STEP_CHARS: Final = 256


@dataclass(frozen=True, slots=True)
class _Place:
    """A place in the document, linked to its parent: a path is spelled out only when it is reported."""

    parent: _Place | None
    step: str | int
    depth: int

    def path(self) -> str:
        steps: list[str] = []
        place: _Place | None = self
        while place is not None:
            steps.append(f"[{place.step}]" if isinstance(place.step, int) else f".{place.step[:_MAX_STEP_CHARS]}")
            place = place.parent
        return "".join(reversed(steps)).removeprefix(".")


def _duplicate_paths(data: bytes, limits: JsonLimits) -> list[str]:
    """Decode once more, keeping every member, and walk to the repeated keys. The text is known to be valid JSON."""
    try:
        document = stdlib_json.loads(data, object_pairs_hook=_Pairs, parse_int=str, parse_float=str)
    except RecursionError as error:
        raise _too_deep(limits.max_depth) from error
    paths: list[str] = []
    pending: list[tuple[Any, _Place | None]] = [(document, None)]
    while pending and len(paths) < limits.max_reported_duplicates:
        container, place = pending.pop()
        depth = 1 if place is None else place.depth + 1
        if depth > limits.max_depth and isinstance(container, list):
            raise _too_deep(limits.max_depth)
        if isinstance(container, _Pairs):
            paths.extend(_repeated(container, place))
            members: list[tuple[str | int, Any]] = list(container)
        else:
            members = list(enumerate(container)) if isinstance(container, list) else []
        pending.extend(
            (child, _Place(place, step, depth)) for step, child in reversed(members) if type(child) in _NESTED
        )
    return paths[: limits.max_reported_duplicates]


def _repeated(members: _Pairs, place: _Place | None) -> list[str]:
    names: set[str] = set()
    paths: list[str] = []
    for key, _ in members:
        if key in names:
            paths.append(_Place(place, key, 0).path())
        names.add(key)
    return paths


CUT: Final = b'"\\u0000cut: nested too deep"'
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]', re.DOTALL)
_OPEN: Final = frozenset(b"[{")
_QUOTE: Final = ord('"')


def cut(text: bytes, levels: int) -> bytes:
    """The text with every container that lies deeper than `levels` replaced by `CUT`."""
    parts: list[bytes] = []
    depth = resume = 0
    for token in _TOKEN.finditer(text):
        first = text[token.start()]
        if first == _QUOTE:
            continue
        if first in _OPEN:
            depth += 1
            if depth == levels + 1:
                parts += (text[resume : token.start()], CUT)
        else:
            if depth == levels + 1:
                resume = token.end()
            depth -= 1
    return b"".join((*parts, text[resume:])) if depth <= levels else b"".join(parts)
