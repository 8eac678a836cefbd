"""Name every difference between two normal answers, and judge them by the list of what is allowed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

ABSENT = "<absent>"
WIDTH = 76


@dataclass(frozen=True)
class Difference:
    """One place where two answers differ."""

    step: str
    path: str
    embedded: Any
    real: Any

    def __str__(self) -> str:
        return f"{self.step}: {self.path}: embedded {_short(self.embedded)}, real {_short(self.real)}"


@dataclass(frozen=True)
class Allowed:
    """A difference that stands, by patterns of step and path, with the reason why."""

    steps: tuple[str, ...]
    paths: tuple[str, ...]
    reason: str

    def covers(self, difference: Difference) -> bool:
        """Whether this entry is about that difference."""
        return any(fnmatchcase(difference.step, step) for step in self.steps) and any(
            fnmatchcase(difference.path, path) for path in self.paths
        )


def differences(step: str, embedded: Any, real: Any, path: str = "") -> Iterator[Difference]:
    """All differences, outermost first."""
    if isinstance(embedded, dict) and isinstance(real, dict):
        for key in [*real, *(key for key in embedded if key not in real)]:
            below = f"{path}.{key}" if path else key
            yield from differences(step, embedded.get(key, ABSENT), real.get(key, ABSENT), below)
    elif isinstance(embedded, list) and isinstance(real, list) and len(embedded) == len(real):
        for index, (left, right) in enumerate(zip(embedded, real, strict=True)):
            yield from differences(step, left, right, f"{path}.{index}")
    elif type(embedded) is not type(real) or embedded != real:
        yield Difference(step, path, embedded, real)


def stale(occurring: Sequence[Difference], allowed: Sequence[Allowed]) -> list[str]:
    """Patterns of steps and paths that no difference needs any more."""
    patterns = [
        (f"{pattern} ({entry.reason})", single)
        for entry in allowed
        for pattern, single in (
            *((step, Allowed((step,), entry.paths, "")) for step in entry.steps),
            *((path, Allowed(entry.steps, (path,), "")) for path in entry.paths),
        )
    ]
    return [name for name, single in patterns if not any(single.covers(each) for each in occurring)]


def unexplained(occurring: Iterable[Difference], allowed: Sequence[Allowed]) -> list[Difference]:
    """The differences that no entry covers."""
    return [each for each in occurring if not any(entry.covers(each) for entry in allowed)]


def side_by_side(embedded: Any, real: Any) -> str:
    """Two answers in two columns."""
    left, right = (json.dumps(each, indent=1, sort_keys=True).splitlines() for each in (embedded, real))
    rows = max(len(left), len(right))
    padded = zip(left + [""] * (rows - len(left)), right + [""] * (rows - len(right)), strict=True)
    lines = [f"{a[:WIDTH]:{WIDTH}} {'|' if a == b else '≠'} {b[:WIDTH]}" for a, b in padded]
    return "\n".join([f"{'embedded':{WIDTH}} | real", *lines[:120]])


def _short(value: Any) -> str:
    text = value if value == ABSENT else json.dumps(value, sort_keys=True)
    return text if len(text) < 160 else text[:157] + "…"
