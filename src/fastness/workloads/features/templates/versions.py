"""Sprig's `semver` and `semverCompare`: versions, and conditions on them (`>=5.4, <6`, `^1.2`, `~1.2`, `1.x`, `1 - 2`, `a || b`).

A version that is a prerelease meets what names a prerelease alone. Numbers that are not written are wild: `>1.2` begins at 1.3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.workloads.features.templates.calls import Function
from fastness.workloads.features.templates.values import Meter, Version, failed

MAX_TEXT: Final = 256
_TAIL: Final = r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
_VERSION: Final = re.compile(rf"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?{_TAIL}\Z", re.A)
_ASKED: Final = re.compile(
    rf"\s*(=>|>=|<=|=<|~>|!=|[=><~^]?)\s*v?([0-9]+|[xX*])(?:\.([0-9]+|[xX*]))?(?:\.([0-9]+|[xX*]))?{_TAIL}", re.A
)
_RANGE: Final = re.compile(r"\s*(\S+)\s+-\s+(\S+)\s*", re.A)
_BETWEEN: Final = re.compile(r"\s*,\s*|\s+", re.A)
_WILD: Final = frozenset({None, "x", "X", "*"})
_MOST: Final = 2**64
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Number:
    """A version in parts."""

    major: int
    minor: int
    patch: int
    pre: str = ""
    metadata: str = ""

    @property
    def order(self) -> Key:
        """What versions are ordered by: a prerelease comes before its release, and numbers in it before words."""
        parts = [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in self.pre.split(".")]
        return self.major, self.minor, self.patch, (0, *parts) if self.pre else (1,)

    @property
    def text(self) -> str:
        pre, metadata = f"-{self.pre}" if self.pre else "", f"+{self.metadata}" if self.metadata else ""
        return f"{self.major}.{self.minor}.{self.patch}{pre}{metadata}"


@dataclass(frozen=True, slots=True)
class _Asked:
    """One condition; `given` says how many numbers it writes down, zero to three."""

    operator: str
    number: _Number
    given: int


def _number(text: str) -> _Number:
    match = _VERSION.match(text) if len(text) <= MAX_TEXT else None
    if match is None:
        raise failed("bad-version", f"{text[:80]!r} is no version")
    return _parts(match[1], match[2], match[3], match[4] or "", match[5] or "")


def _parts(major: str, minor: str | None, patch: str | None, pre: str, metadata: str) -> _Number:
    numbers = (int(major), int(minor or 0), int(patch or 0))
    if max(numbers) >= _MOST or any(part.isdecimal() and len(part) > 1 and part[0] == "0" for part in pre.split(".")):
        raise failed("bad-version", "a number of the version is none")
    return _Number(*numbers, pre=pre, metadata=metadata)


def _conditions(text: str) -> Iterator[_Asked]:
    """The conditions of one alternative; raises BadTemplate."""
    at = 0
    while True:
        match = _ASKED.match(text, at)
        if match is None:
            raise failed("bad-version", f"{text[:80]!r} is no condition on versions")
        written = match.groups()[1:4]
        given = next((place for place, part in enumerate(written) if part in _WILD), 3)
        major, minor, patch = (part if place < given and part else "0" for place, part in enumerate(written))
        yield _Asked(match[1], _parts(major, minor, patch, match[5] or "", match[6] or ""), given)
        at = match.end()
        if not text[at:].strip():
            return
        between = _BETWEEN.match(text, at)
        if between is None:
            raise failed("bad-version", f"{text[:80]!r} is no condition on versions")
        at = between.end()


def _compare(meter: Meter, constraint: str, version: str) -> bool:
    if len(constraint) > MAX_TEXT:
        raise failed("bad-version", f"a condition has at most {MAX_TEXT} characters")
    ranged = _RANGE.sub(lambda match: f">= {match[1]}, <= {match[2]} ", constraint)
    alternatives = [list(_conditions(part)) for part in ranged.split("||")]
    number = _number(version)
    return any(all(_meets(number, asked) for asked in alternative) for alternative in alternatives)


def _meets(number: _Number, asked: _Asked) -> bool:
    if number.pre and not asked.number.pre and (asked.operator != "!=" or asked.given < 3):
        return False
    return _OPERATORS[asked.operator](number, asked)


def _equal(number: _Number, asked: _Asked) -> bool:
    return _tilde(number, asked) if asked.given < 3 else number.order == asked.number.order


def _unequal(number: _Number, asked: _Asked) -> bool:
    if asked.given == 3:
        return number.order != asked.number.order
    if number.major != asked.number.major:
        return True
    if asked.given == 2 and number.minor != asked.number.minor:
        return True
    if asked.given == 2 and (number.pre or asked.number.pre):
        return number.pre != asked.number.pre
    return asked.given == 0 and number.order != asked.number.order and _loose(number, asked)


def _loose(number: _Number, asked: _Asked) -> bool:
    return (number.minor, number.patch) != (asked.number.minor, asked.number.patch)


def _greater(number: _Number, asked: _Asked) -> bool:
    if asked.given in (0, 3) or number.major != asked.number.major:
        return number.order > asked.number.order
    return asked.given == 2 and number.minor > asked.number.minor


def _not_greater(number: _Number, asked: _Asked) -> bool:
    if asked.given == 3:
        return number.order <= asked.number.order
    same = number.major == asked.number.major
    return number.major <= asked.number.major and not (same and number.minor > asked.number.minor and asked.given != 1)


def _tilde(number: _Number, asked: _Asked) -> bool:
    if number.order < asked.number.order:
        return False
    wanted = asked.number
    if not (wanted.major or wanted.minor or wanted.patch) and asked.given in (0, 3):
        return True
    return number.major == wanted.major and (number.minor == wanted.minor or asked.given == 1)


def _caret(number: _Number, asked: _Asked) -> bool:
    wanted = asked.number
    if number.order < wanted.order:
        return False
    if wanted.major or asked.given == 1:
        return number.major == wanted.major
    if number.major:
        return False
    if wanted.minor or asked.given == 2:
        return number.minor == wanted.minor
    return not number.minor and number.patch == wanted.patch


_OPERATORS: Final[Mapping[str, Callable[[_Number, _Asked], bool]]] = {
    "": _equal, "=": _equal, "!=": _unequal, ">": _greater, "<=": _not_greater, "=<": _not_greater, "~": _tilde, "~>": _tilde,
    "^": _caret, "<": lambda number, asked: number.order < asked.number.order,
    ">=": lambda number, asked: number.order >= asked.number.order,
    "=>": lambda number, asked: number.order >= asked.number.order,
}  # fmt: skip


def _semver(meter: Meter, text: str) -> Version:
    number = _number(text)
    fields = {
        "Major": number.major, "Minor": number.minor, "Patch": number.patch, "Prerelease": number.pre,
        "Metadata": number.metadata, "Original": text, "String": number.text,
    }  # fmt: skip
    return Version(fields, number.text)


VERSIONS: Final[Mapping[str, Function]] = {"semver": Function("s", _semver), "semverCompare": Function("ss", _compare)}
