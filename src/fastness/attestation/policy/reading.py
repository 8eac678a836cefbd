"""What a policy reads, found out from its text, so that it is handed nothing else.

The engine's time grows with everything that it is given: whole claims and the values of a hundred images cost 7 ms, the few that
the built-in policies look at cost a twentieth of that. What is left out must not change an answer, so the text is read
conservatively:

* Every `input` must begin a written-out path (`input.tpm.pcr04`, `input["az-snp-vtpm"].tpm`). The part of the claims below each
  path is kept whole. Any other use of the word, in a string or a comment too, keeps everything.
* Every `query_reference_value` must be called with a written-out name; otherwise all names are kept.
* Where a name is used only as `<path> in query_reference_value("name")`, of its values those are kept that occur in the claims.
  The others cannot be equal to what stands on the left.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from fastness.attestation.values.values import ReferenceValues, comparable
from fastness.formats import json

QUERY: Final = "query_reference_value"
_PATH: Final = r'input(?:\.[A-Za-z_][A-Za-z0-9_]*|\["[^"\\\n]+"\])+'
_STEP: Final = re.compile(r'\.([A-Za-z_][A-Za-z0-9_]*)|\["([^"\\\n]+)"\]')
_INPUT: Final = re.compile(r"(?<![A-Za-z0-9_.])input(?![A-Za-z0-9_])")
_PATHS: Final = re.compile(rf"(?<![A-Za-z0-9_.]){_PATH}")
_CALL: Final = re.compile(rf'(?<![A-Za-z0-9_.]){QUERY}\("([^"\\\n]+)"\)')
# Operators on the left would make another value of what the path holds: `lower(input.a) in …`, `input.a + 1 in …`.
_MEMBER: Final = re.compile(
    rf'(?:^|[{{;]|\bif\b)[ \t]*(?:not[ \t]+)?{_PATH}[ \t]+in[ \t]+{QUERY}\("([^"\\\n]+)"\)', re.MULTILINE
)
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """Paths of the input and names of values that a policy asks for; None stands for all.

    `members` are the names of which only the values that occur in the input matter.
    """

    paths: frozenset[Path] | None
    names: frozenset[str] | None
    members: frozenset[str] = frozenset()

    def of_input(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """The part of the claims that the policy reads."""
        if self.paths is None:
            return document
        part: dict[str, Any] = {}
        for path in self.paths:
            _keep(document, path, part)
        return part

    def of_values(self, book: ReferenceValues, part: Mapping[str, Any]) -> Mapping[str, Any]:
        """The values that the policy asks for, where `shown` is the part of the claims that it reads."""
        if self.names is None:
            return book.document
        scalars = _scalars(part) if self.members else {}
        values: dict[str, Any] = {}
        for name in self.names:
            if name not in book.document:
                continue
            listed = book.listed.get(name)
            if name in self.members and listed is not None:
                values[name] = [value for tag, value in scalars.items() if tag in listed]
            else:
                values[name] = book.document[name]
        return values


@lru_cache(maxsize=64)
def reading_of(text: str) -> Reading:
    """What the policy with this text reads. Total."""
    whole = _PATHS.findall(text)
    paths = None
    if len(_INPUT.findall(text)) == len(whole):
        paths = frozenset(tuple(first or second for first, second in _STEP.findall(path)) for path in whole)
    called = _CALL.findall(text)
    if text.count(QUERY) != len(called):
        return Reading(paths, None)
    members: set[str] = set()
    if paths is not None:
        # Counted once: a text has room for ten thousand calls, and comparing each with each took the doors seconds.
        times, as_members = Counter(called), Counter(_MEMBER.findall(text))
        members = {name for name, count in times.items() if as_members[name] == count}
    return Reading(paths, frozenset(called), frozenset(members))


def _keep(value: Mapping[str, Any], path: Path, target: dict[str, Any]) -> None:
    """Copy what stands at a path; a part that was kept whole stays whole."""
    name, rest = path[0], path[1:]
    if name not in value:
        return
    part = value[name]
    if not rest or not isinstance(part, dict):
        target[name] = part
        return
    present = target.get(name)
    if present is part:
        return
    below: dict[str, Any] = target.setdefault(name, {})
    _keep(part, rest, below)


def _scalars(value: Any) -> dict[Hashable, Any]:
    """Every value that is neither an object nor a list, by what makes two of them equal."""
    scalars: dict[Hashable, Any] = {}
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
        else:
            scalars[comparable(part)] = part
    return scalars


@dataclass(frozen=True, slots=True)
class PolicyView:
    """What a policy for evidence is shown: its part of the claims and of the values, which have a digest if it may want any."""

    input: Mapping[str, Any]
    values: Mapping[str, Any]
    digest: str = ""
    whole: bool = False

    @property
    def key(self) -> bytes | None:
        """What makes two questions the same; None when all was shown, since then no two are."""
        return None if self.whole else json.canonical([self.input, self.values])


def view_for(reading: Reading, document: Mapping[str, Any], book: ReferenceValues) -> PolicyView:
    """What a policy that reads so is shown of claims and values."""
    part = reading.of_input(document)
    whole = reading.paths is None or reading.names is None
    return PolicyView(part, reading.of_values(book, part), book.digest if reading.names is None else "", whole)
