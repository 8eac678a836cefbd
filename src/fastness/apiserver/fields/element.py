"""One step of a field path, in the form that managedFields stores.

    f:name          a field of a struct, or a key of a map
    k:{"a":"b"}     the item of an associative list with those key fields; names sorted, no spaces
    v:"x"           the item of a set with that value
    i:0             the item of a list at that place
    .               in a set: the path up to here is itself a member

Steps are compared as strings everywhere, so their JSON is canonical: key names are sorted, a number that is whole is written
without a fraction, and `<`, `>`, `&` are escaped, because that is how Go writes them and fieldsV1 is compared byte by byte.
The order of steps is that of Kubernetes: fields by name, then keyed items, then values, then places; numbers by size.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import orjson

SELF = "."


def keyed(keys: Mapping[str, Any]) -> str:
    """The step to the item of an associative list that has these key fields."""
    if len(keys) == 1:
        ((name, value),) = keys.items()
        if type(value) is str and value.isalnum() and value.isascii():
            return f'k:{{"{name}":"{value}"}}'
    return "k:" + canonical({name: keys[name] for name in sorted(keys)})


def valued(value: Any) -> str:
    """The step to the item of a set that has this value."""
    if type(value) is str and value.isalnum() and value.isascii():
        return f'v:"{value}"'
    return "v:" + canonical(value)


def canonical(value: Any) -> str:
    """JSON as Go writes it, the same for values that Kubernetes holds equal."""
    text = orjson.dumps(_whole(value)).decode()
    if "<" in text or ">" in text or "&" in text or "\u2028" in text or "\u2029" in text:
        for mark in "<>&\u2028\u2029":
            text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def normal(step: str) -> str | None:
    """The canonical form of a stored step; None for a kind of step that a later version may know. Raises ValueError."""
    mark = step[:2]
    if mark == "f:":
        return step
    if mark == "k:":
        keys = json.loads(step[2:])
        if not isinstance(keys, dict) or not keys:
            raise ValueError(f"not the key fields of a list item: {step}")
        return keyed(keys)
    if mark == "v:":
        return valued(json.loads(step[2:]))
    if mark == "i:":
        return f"i:{int(step[2:])}"
    if len(step) < 2 or step[1] != ":":
        raise ValueError(f"not a step of a field path: {step}")
    return None


def describe_step(step: str) -> str:
    """The step as people read it in a conflict: `.name`, `[name="x"]`, `[="x"]`, `[0]`."""
    mark, body = step[:2], step[2:]
    if mark == "f:":
        return f".{body}"
    if mark == "k:":
        keys = json.loads(body)
        return "[" + ",".join(f"{name}={_quoted(value)}" for name, value in keys.items()) + "]"
    if mark == "v:":
        return f"[={_quoted(json.loads(body))}]"
    return f"[{body}]"


def in_order(steps: Iterable[str]) -> list[str]:
    """Steps in the order in which fieldsV1 lists them."""
    ordered = sorted(steps)
    if not ordered or ordered[-1] < "g":
        return ordered
    return sorted(ordered, key=_rank)


@lru_cache(maxsize=4096)
def _rank(step: str) -> tuple[Any, ...]:
    mark, body = step[:2], step[2:]
    if step == SELF:
        return (0,)
    if mark == "f:":
        return (1, body)
    if mark == "k:":
        return (2, tuple((name, _size(value)) for name, value in json.loads(body).items()))
    if mark == "v:":
        return (3, _size(json.loads(body)))
    return (4, int(body))


def _size(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, (int, float)):
        return (0, value)
    if isinstance(value, str):
        return (1, value)
    return (3, json.dumps(value, sort_keys=True))


def _whole(value: Any) -> Any:
    # Beyond that a double does not hold every whole number, and two different ones would be one step.
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(part) for name, part in value.items()}
    return value


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
