"""One expression against one element.

An element is absent, a flag (present without a value) or an attribute (present with a text). The operators are a closed table;
each says how many values it takes and when it holds.

* `""`, Exists and DoesNotExist refuse values whether or not the element exists.
* All others answer False for an absent element and for a flag, and complain about their values only when they meet a text.
* Numbers are 64-bit integers in decimal; with `type: version` they are major[.minor[.patch]], whatever follows is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from fastness.workloads.features.errors import BadExpression
from fastness.workloads.features.regexps import matcher

VERSION_TYPE: Final = "version"
ANY: Final = ""
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,19}\Z", re.ASCII)
_VERSION: Final = re.compile(
    r"v?([0-9]{1,18})(?:\.([0-9]{1,18}))?(?:\.([0-9]{1,18}))?(?:[^0-9.].*)?\Z", re.ASCII | re.DOTALL
)
Order = int | tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Expression:
    """An operator, its values, and how values compare."""

    op: str
    values: tuple[str, ...] = ()
    type: str = ""

    def __str__(self) -> str:
        kind = f" ({self.type})" if self.type else ""
        values = f" [{', '.join(self.values)}]" if self.values else ""
        return f"{self.op or 'any'}{values}{kind}"


def holds(expression: Expression, present: bool, value: str | None) -> bool:
    """Whether an expression holds for an element; `value` is None for a flag. Raises BadExpression."""
    op = expression.op
    if op in _BY_PRESENCE:
        if expression.values:
            raise _wrong(expression, f"{op or 'an empty operator'} takes no values")
        return _BY_PRESENCE[op](present)
    compare = _BY_VALUE.get(op)
    if compare is None:
        raise BadExpression("unknown-operator", f"there is no operator {op!r}", f"The operators are {_NAMES}.")
    if not present or value is None:
        return False
    return compare(expression, value)


def problem(expression: Expression) -> BadExpression | None:
    """What is wrong with an expression whatever it meets, or None."""
    try:
        if expression.op in _NUMERIC:
            _bounds(expression, _NUMERIC[expression.op])
        else:
            holds(expression, True, "")
    except BadExpression as error:
        return error
    return None


_BY_PRESENCE: Final[dict[str, Callable[[bool], bool]]] = {
    ANY: lambda present: True,
    "Exists": lambda present: present,
    "DoesNotExist": lambda present: not present,
}


def _wrong(expression: Expression, message: str) -> BadExpression:
    return BadExpression("bad-values", f"{message}, not {list(expression.values)}", "Correct the values of the rule.")


def _some(expression: Expression) -> tuple[str, ...]:
    if not expression.values:
        raise _wrong(expression, f"{expression.op} takes at least one value")
    return expression.values


def _none(expression: Expression, value: str, expected: str) -> bool:
    if expression.values:
        raise _wrong(expression, f"{expression.op} takes no values")
    return value == expected


@lru_cache(maxsize=4096)
def _bounds(expression: Expression, count: int) -> tuple[Any, ...]:
    if len(expression.values) != count:
        raise _wrong(expression, f"{expression.op} takes {count} value{'s' if count > 1 else ''}")
    bounds = tuple(_order(expression, value) for value in expression.values)
    if count == 2 and bounds[0] >= bounds[1]:  # type: ignore[operator]  # both have the type that the expression names
        raise _wrong(expression, f"the first value of {expression.op} is smaller than the second")
    return bounds


def _order(expression: Expression, text: str) -> Order:
    if expression.type == VERSION_TYPE:
        return _version(text)
    if expression.type:
        raise BadExpression(
            "unknown-type", f"values cannot be compared as {expression.type!r}", "Leave type out, or write version."
        )
    # The range of Go's int64, so that a rule means here what it means upstream.
    if _NUMBER.match(text) is None or not -(2**63) <= int(text) < 2**63:
        raise BadExpression("not-a-number", f"{text!r} is not an integer", "Compare numbers, or use another operator.")
    return int(text)


def _version(text: str) -> tuple[int, int, int]:
    match = _VERSION.match(text)
    if match is None:
        raise BadExpression("not-a-version", f"{text!r} is not a version", "A version is major[.minor[.patch]].")
    return int(match[1]), int(match[2] or 0), int(match[3] or 0)


def _compared(count: int, test: Callable[..., bool]) -> Callable[[Expression, str], bool]:
    def compare(expression: Expression, value: str) -> bool:
        bounds = _bounds(expression, count)
        return test(_order(expression, value), *bounds)

    return compare


_BY_VALUE: Final[dict[str, Callable[[Expression, str], bool]]] = {
    "In": lambda expression, value: value in _some(expression),
    "NotIn": lambda expression, value: value not in _some(expression),
    "InRegexp": lambda expression, value: True in [matcher(pattern)(value) for pattern in _some(expression)],
    "Gt": _compared(1, lambda value, low: value > low),
    "Ge": _compared(1, lambda value, low: value >= low),
    "Lt": _compared(1, lambda value, high: value < high),
    "Le": _compared(1, lambda value, high: value <= high),
    "GtLt": _compared(2, lambda value, low, high: low < value < high),
    "GeLe": _compared(2, lambda value, low, high: low <= value <= high),
    "IsTrue": lambda expression, value: _none(expression, value, "true"),
    "IsFalse": lambda expression, value: _none(expression, value, "false"),
}
_NUMERIC: Final = {"Gt": 1, "Ge": 1, "Lt": 1, "Le": 1, "GtLt": 2, "GeLe": 2}
_NAMES: Final = ", ".join([*list(_BY_PRESENCE)[1:], *_BY_VALUE])
