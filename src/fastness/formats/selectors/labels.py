"""Label selectors as values: requirements, the selector they form, and the LabelSelector object of the API.

`requirement` is the only constructor that validates; the text form and the object form both go through it, so a selector that
exists is a selector that Kubernetes would accept.

Every selector obeys bounds. They are far above what a person or a controller writes, and low enough that matching a selector
against every object of a large list stays cheap.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from fastness.formats import names
from fastness.formats.errors import SelectorError

MAX_CHARS: Final = 65_536
MAX_REQUIREMENTS: Final = 1_000
MAX_VALUES: Final = 10_000

_FEWER: Final = "select by fewer conditions, or list everything and filter at the client"


def check_length(text: str) -> None:
    """Refuse a text that is longer than any sensible selector."""
    if len(text) > MAX_CHARS:
        raise SelectorError("selector-too-large", f"the selector is longer than {MAX_CHARS} characters", hint=_FEWER)


def too_many(path: str = "") -> SelectorError:
    """The error for too many requirements or values."""
    return SelectorError("selector-too-large", "the selector has too many requirements or values", path, _FEWER)


def short(text: str) -> str:
    """A quoted text for a message, cut when it is long."""
    return repr(text if len(text) <= 80 else text[:77] + "...")


_INT64: Final = re.compile(r"[+-]?[0-9]{1,19}\Z", re.ASCII)
_HINT: Final = "write conditions like 'a=b', 'a!=b', 'a in (b,c)', 'a' or '!a', joined by commas"
_KEY_HINT: Final = "a key is a name of up to 63 characters, with an optional 'example.com/' before it"
_VALUE_HINT: Final = "a value has up to 63 letters, digits, '-', '_' or '.'"


class Operator(StrEnum):
    """What a requirement asks of a label; the values are the words of the text form."""

    EQUALS = "="
    NOT_EQUALS = "!="
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"
    GREATER_THAN = ">"
    LESS_THAN = "<"


SET_OPERATORS: Final = (Operator.IN, Operator.NOT_IN)
_NUMERIC_OPERATORS: Final = (Operator.GREATER_THAN, Operator.LESS_THAN)
_OBJECT_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. Build it with `requirement`, which validates."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels satisfy this condition."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.EQUALS | Operator.IN:
                return value is not None and value in self.values
            case Operator.NOT_EQUALS | Operator.NOT_IN:
                return value is None or value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GREATER_THAN | Operator.LESS_THAN:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        number = _int64(value) if value is not None else None
        bound = _int64(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator is Operator.GREATER_THAN else number < bound

    def __str__(self) -> str:
        match self.operator:
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.IN | Operator.NOT_IN:
                return f"{self.key} {self.operator.value} ({','.join(self.values)})"
            case _:
                return f"{self.key}{self.operator.value}{self.values[0]}"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that all must hold; none select everything, unless `nothing` is set."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def everything(self) -> bool:
        """Whether every object matches."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        if self.nothing:
            return False
        for condition in self.requirements:  # noqa: SIM110 - a generator would cost an allocation per object
            if not condition.matches(labels):
                return False
        return True

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING: Final = LabelSelector()
NOTHING: Final = LabelSelector(nothing=True)


def requirement(key: str, operator: Operator, values: tuple[str, ...] = (), path: str = "") -> Requirement:
    """Validate one condition; raises `SelectorError` with the path of the wrong part."""
    for problem in names.qualified_name(key):
        raise SelectorError(
            "selector-key", f"{short(key)} is not a label key: {problem}", _join(path, "key"), _KEY_HINT
        )
    if operator in SET_OPERATORS:
        if not values:
            raise SelectorError(
                "selector-values", f"'{operator}' needs at least one value", _join(path, "values"), _HINT
            )
        values = tuple(sorted(set(values)))
    elif len(values) != (0 if operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST) else 1):
        raise SelectorError("selector-values", f"wrong number of values for '{operator}'", _join(path, "values"), _HINT)
    for index, value in enumerate(values):
        place = _join(path, f"values[{index}]")
        if operator in _NUMERIC_OPERATORS and _int64(value) is None:
            raise SelectorError("selector-values", f"'{operator}' compares integers, not {short(value)}", place, _HINT)
        for problem in names.label_value(value):
            raise SelectorError("selector-value", f"{short(value)} is not a label value: {problem}", place, _VALUE_HINT)
    return Requirement(key, operator, values)


def label_selector_from_object(value: Any, path: str = "") -> LabelSelector:
    """Read a LabelSelector object (`matchLabels`, `matchExpressions`); None selects nothing."""
    if value is None:
        return NOTHING
    labels = _member(value, "matchLabels", dict, path)
    expressions = _member(value, "matchExpressions", list, path)
    if len(labels) + len(expressions) > MAX_REQUIREMENTS:
        raise too_many(path)
    requirements: list[Requirement] = []
    for key, text in labels.items():
        place = _join(path, "matchLabels")
        if not isinstance(text, str):
            raise SelectorError("selector-type", f"the value of {short(str(key))} is not a string", place, _HINT)
        requirements.append(requirement(key, Operator.EQUALS, (text,), place))
    for index, expression in enumerate(expressions):
        requirements.append(_expression(expression, _join(path, f"matchExpressions[{index}]")))
    return all_of(requirements)


def _expression(value: Any, path: str) -> Requirement:
    key = _member(value, "key", str, path)
    word = _member(value, "operator", str, path)
    operator = _OBJECT_OPERATORS.get(word)
    if operator is None:
        allowed = ", ".join(_OBJECT_OPERATORS)
        raise SelectorError(
            "selector-operator", f"{short(word)} is not an operator", _join(path, "operator"), f"use one of {allowed}"
        )
    values = _member(value, "values", list, path)
    if len(values) > MAX_VALUES:
        raise too_many(path)
    if not all(isinstance(item, str) for item in values):
        raise SelectorError("selector-type", "values must be strings", _join(path, "values"), _HINT)
    return requirement(key, operator, tuple(values), path)


def _member(value: Any, name: str, kind: type, path: str) -> Any:
    if not isinstance(value, dict):
        raise SelectorError("selector-type", "must be an object", path, _HINT)
    member = value.get(name)
    if member is None:
        return kind()
    if not isinstance(member, kind):
        raise SelectorError("selector-type", f"must be of type {kind.__name__}", _join(path, name), _HINT)
    return member


def all_of(requirements: list[Requirement]) -> LabelSelector:
    """The selector of several requirements, in canonical order."""
    return LabelSelector(tuple(sorted(requirements, key=lambda condition: (condition.key, str(condition)))))


def _int64(value: str) -> int | None:
    if _INT64.match(value) is None:
        return None
    number = int(value)
    return number if -(2**63) <= number < 2**63 else None


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
