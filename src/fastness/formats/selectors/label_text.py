"""The text form of label selectors, as in `kubectl -l` and the `labelSelector` query parameter.

A flat grammar: requirements joined by commas, each a key, an operator and its values. Tokens are found by one regular
expression; the parser below never recurses and never looks back.
"""

import re
from typing import Final

from fastness.formats.errors import SelectorError
from fastness.formats.selectors.labels import (
    EVERYTHING,
    MAX_REQUIREMENTS,
    MAX_VALUES,
    SET_OPERATORS,
    LabelSelector,
    Operator,
    Requirement,
    all_of,
    check_length,
    requirement,
    short,
    too_many,
)

_TOKEN: Final = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>])|([^ \t\r\n=!(),<>]+))?")
_HINT: Final = "write conditions like 'a=b', 'a!=b', 'a in (b,c)', 'a' or '!a', joined by commas"


def parse_label_selector(text: str) -> LabelSelector:
    """Parse the text form, as in the `labelSelector` query parameter."""
    check_length(text)
    return _LabelParser(text).parse() if text else EVERYTHING


class _LabelParser:
    """One pass over the tokens: requirement, comma, requirement, end."""

    def __init__(self, text: str) -> None:
        # Each token is (kind, text): kind is the symbol itself, "name", or "end".
        self._tokens: list[tuple[str, str]] = []
        position = 0
        while (match := _TOKEN.match(text, position)) is not None and match.lastindex is not None:
            symbol, name = match.groups()
            self._tokens.append((symbol, symbol) if symbol else ("name", name))
            position = match.end()
        self._tokens.append(("end", ""))
        self._position = 0

    def parse(self) -> LabelSelector:
        requirements: list[Requirement] = []
        while self._peek() != "end":
            requirements.append(self._requirement())
            if len(requirements) > MAX_REQUIREMENTS:
                raise too_many()
            if self._peek() == "end":
                break
            self._expect(",", "a comma or the end")
            if self._peek() not in ("name", "!"):
                raise self._unexpected("a key")
        return all_of(requirements)

    def _peek(self) -> str:
        return self._tokens[self._position][0]

    def _take(self) -> tuple[str, str]:
        token = self._tokens[self._position]
        self._position += 1
        return token

    def _unexpected(self, expected: str) -> SelectorError:
        kind, text = self._tokens[self._position]
        actual = "the end" if kind == "end" else short(text)
        return SelectorError("selector-syntax", f"expected {expected} and found {actual}", hint=_HINT)

    def _expect(self, kind: str, expected: str) -> str:
        if self._peek() != kind:
            raise self._unexpected(expected)
        return self._take()[1]

    def _requirement(self) -> Requirement:
        if self._peek() == "!":
            self._take()
            key = self._expect("name", "a key")
            if self._peek() not in (",", "end"):
                raise self._unexpected("a comma or the end")
            return requirement(key, Operator.DOES_NOT_EXIST)
        key = self._expect("name", "a key")
        if self._peek() in (",", "end"):
            return requirement(key, Operator.EXISTS)
        operator = self._operator()
        if operator in SET_OPERATORS:
            return requirement(key, operator, self._value_list())
        value = "" if self._peek() in (",", "end") else self._expect("name", "a value")
        return requirement(key, operator, (value,))

    def _operator(self) -> Operator:
        kind, text = self._tokens[self._position]
        operator = {"=": "=", "==": "=", "!=": "!=", ">": ">", "<": "<"}.get(kind)
        if operator is None and kind == "name" and text in SET_OPERATORS:
            operator = text
        if operator is None:
            raise self._unexpected("an operator")
        self._take()
        return Operator(operator)

    def _value_list(self) -> tuple[str, ...]:
        """Values between parentheses; a missing one between commas is the empty string."""
        self._expect("(", "'('")
        values: set[str] = set()
        while True:
            values.add(self._take()[1] if self._peek() == "name" else "")
            if len(values) > MAX_VALUES:
                raise too_many()
            if self._peek() == ")":
                self._take()
                return tuple(values)
            self._expect(",", "',' or ')'")
