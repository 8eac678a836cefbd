"""The steps of a compiled path: functions from the values found so far to the values found next.

A step never raises anything but `Mismatch`, which says that the path does not fit this object; `run` turns it into nothing found.
`MAX_VISITS` bounds the values that a step may produce or visit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

Step = Callable[[list[Any]], list[Any]]
MAX_VISITS: Final = 20_000


class Mismatch(Exception):
    """The path does not fit this object; never leaves the module."""


def run(steps: Sequence[Step], item: Any, quiet: bool = False) -> list[Any]:
    values = [item]
    try:
        for step in steps:
            values = step(values)
            if len(values) > MAX_VISITS:
                raise Mismatch
    except Mismatch:
        if not quiet:
            raise
        return []
    return values


def run_all(steps: Sequence[Step], values: list[Any]) -> list[Any]:
    for step in steps:
        values = step(values)
    return values


def pick(name: str) -> Step:
    return lambda values: [value[name] for value in values if type(value) is dict and name in value]


def index(at: int) -> Step:
    def step(values: list[Any]) -> list[Any]:
        elements = []
        for value in _lists(values):
            if not -len(value) <= at < len(value):
                raise Mismatch
            elements.append(value[at])
        return elements

    return step


def span(start: int, stop: int | None, stride: int) -> Step:
    def step(values: list[Any]) -> list[Any]:
        elements: list[Any] = []
        for value in _lists(values):
            size = len(value)
            low = start + size if start < 0 else start
            high = size if stop is None else stop + size if stop < 0 else stop
            if low == high:
                continue
            if not (0 <= low < size and 0 <= high <= size and low <= high):
                raise Mismatch
            elements += value[low:high:stride]
        return elements

    return step


def _lists(values: list[Any]) -> Iterator[list[Any]]:
    for value in values:
        if isinstance(value, list):
            yield value
        elif value is not None:
            raise Mismatch


def children(values: list[Any]) -> list[Any]:
    members: list[Any] = []
    for value in values:
        members += _inside(value)
        if len(members) > MAX_VISITS:
            raise Mismatch
    return members


def descend(values: list[Any]) -> list[Any]:
    descendants: list[Any] = []
    waiting = list(reversed(values))
    visits = 0
    while waiting:
        visits += 1
        if visits > MAX_VISITS:
            raise Mismatch
        value = waiting.pop()
        inside = _inside(value)
        if inside:
            descendants.append(value)
            waiting += reversed(inside)
    return descendants


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [value[key] for key in sorted(value)]
    return value if isinstance(value, list) else []


def having(name: str, expected: str) -> Step:
    """`[?(@.name=="wanted")]`, which nearly every filter is, without the detour over operands."""

    def step(values: list[Any]) -> list[Any]:
        matches = []
        for value in lists_only(values):
            for item in value:
                if type(item) is dict and name in item:
                    text = item[name]
                    if text == expected:
                        matches.append(item)
                    elif type(text) is not str:
                        raise Mismatch
        return matches

    return step


def first_having(value: Any, name: str, expected: str, field: str, default: Any) -> Any:
    """`[?(@.name=="wanted")].field` in one loop: the column that shows a condition."""
    if type(value) is not list:
        return default
    result = default
    for item in value:
        if type(item) is dict and name in item:
            text = item[name]
            if type(text) is not str:
                return default
            if text == expected and result is default and field in item:
                result = item[field]
    return result


def lists_only(values: list[Any]) -> Iterator[list[Any]]:
    for value in values:
        if not isinstance(value, list):
            raise Mismatch
        yield value


def comparable(left: Any, right: Any) -> bool:
    if type(left) is not type(right) or not isinstance(left, str | int | float | bool):
        raise Mismatch
    return True


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def check(left: Any, right: Any) -> bool:
        if isinstance(left, bool):
            raise Mismatch
        return compare(left, right)

    return check


COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda left, right: bool(left == right),
    "!=": lambda left, right: bool(left != right),
    "<": _ordered(lambda left, right: bool(left < right)),
    "<=": _ordered(lambda left, right: bool(left <= right)),
    ">": _ordered(lambda left, right: bool(left > right)),
    ">=": _ordered(lambda left, right: bool(left >= right)),
}
