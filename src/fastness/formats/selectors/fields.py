"""Field selectors, as in `kubectl --field-selector` and the `fieldSelector` query parameter.

Comparisons joined by commas. In a value a backslash stands before each comma, equals sign and backslash; names of fields
have no escapes. Which fields a kind has is decided by the caller.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fastness.formats.errors import SelectorError
from fastness.formats.selectors.labels import MAX_REQUIREMENTS, check_length, short, too_many

_HINT: Final = "write conditions like 'metadata.name=x', joined by commas, with '\\' before ',', '=' and '\\' in values"


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One comparison of a field with a text."""

    field: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.field}{'!=' if self.negated else '='}{_escape(self.value)}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Comparisons that all must hold; none select everything."""

    terms: tuple[FieldTerm, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that are asked for, for the registry to accept or refuse."""
        return tuple(term.field for term in self.terms)

    def matches(self, fields: Mapping[str, str]) -> bool:
        """Whether an object with these field values is selected; a missing field is the empty string."""
        for term in self.terms:  # noqa: SIM110 - a generator would cost an allocation per object
            if (fields.get(term.field, "") == term.value) is term.negated:
                return False
        return True

    def exact(self, field: str) -> str | None:
        """The one value that `field` must have, when the selector pins it."""
        return next((term.value for term in self.terms if term.field == field and not term.negated), None)

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


def parse_field_selector(text: str) -> FieldSelector:
    """Parse the text form, as in the `fieldSelector` query parameter."""
    check_length(text)
    parts = sorted(part for part in _split_terms(text) if part)
    if len(parts) > MAX_REQUIREMENTS:
        raise too_many()
    terms = (_field_term(part) for part in parts)
    # A bare '=' compares nothing with nothing; Kubernetes drops it.
    return FieldSelector(tuple(term for term in terms if term.field or term.value))


def _split_terms(text: str) -> list[str]:
    if "\\" not in text:
        return text.split(",")
    return [match.group(1) for match in re.finditer(r"((?:\\.|[^\\,])*\\?)(?:,|\Z)", text, re.DOTALL)]


def _field_term(part: str) -> FieldTerm:
    match = re.search(r"!=|==|=", part)
    if match is None:
        raise SelectorError("selector-syntax", f"{short(part)} has no '=' or '!='", hint=_HINT)
    return FieldTerm(part[: match.start()], _unescape(part[match.end() :]), match.group() == "!=")


def _escape(value: str) -> str:
    return re.sub(r"([\\,=])", r"\\\1", value)


def _unescape(value: str) -> str:
    if re.fullmatch(r"(?:[^\\,=]|\\[\\,=])*", value, re.DOTALL) is None:
        raise SelectorError("selector-escape", f"{short(value)} has an unescaped or unknown character", hint=_HINT)
    return re.sub(r"\\(.)", r"\1", value)
