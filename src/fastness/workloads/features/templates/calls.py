"""Functions with the types of what they take, as Go checks them before a call.

s string   i int   f float64   b bool   v anything   m map[string]interface{}   * behind the last: any number of it
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from fastness.workloads.features.templates.values import TypedMap, failed, type_of


class _Missing:
    """Nothing came out of a pipeline yet, which is not the same as nil."""


MISSING: Final = _Missing()
_NAMES: Final = {"s": "string", "i": "int", "f": "float64", "b": "bool", "m": "map[string]interface {}"}
_TYPES: Final = {"s": str, "i": int, "f": float, "b": bool}


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its types, and what it does with a meter and its arguments."""

    takes: str
    call: Callable[..., Any]

    @property
    def _open(self) -> bool:
        return self.takes.endswith("*")

    def demand(self, name: str, count: int) -> None:
        """Raise BadTemplate for a number of arguments that the function does not take."""
        fixed = len(self.takes) - 2 if self._open else len(self.takes)
        if count < fixed or (count > fixed and not self._open):
            least = "at least " if self._open else ""
            raise failed("bad-arguments", f"{name} takes {least}{fixed} arguments, not {count}")

    def type_at(self, place: int) -> str:
        """The type of one argument."""
        last = len(self.takes) - (2 if self._open else 1)
        return self.takes[min(place, last)]


def literal(value: str | bool | int | float, kind: str) -> Any:
    """A literal where a type is wanted: a whole number may be written either way; raises BadTemplate."""
    if kind == "v":
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if kind == "f":
            return float(value)
        if kind == "i" and value == int(value):
            return int(value)
    elif type(value) is _TYPES.get(kind):
        return value
    raise failed("bad-argument", f"{value!r} is no {_NAMES[kind]}")


def converted(value: Any, kind: str, name: str) -> Any:
    """A value where a type is wanted: nothing is converted, as in Go; raises BadTemplate."""
    if kind == "v":
        return value
    if kind == "m":
        if value is None:
            return {}
        if isinstance(value, dict) and not isinstance(value, TypedMap):
            return value
    elif type(value) is _TYPES[kind]:
        return value
    raise failed("bad-argument", f"{name or 'an argument'} wants {_NAMES[kind]}, not {type_of(value)}")
