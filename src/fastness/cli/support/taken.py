"""What was taken out of a bundle, so that whoever reads it knows that something stood there, and where.

list(taken_out(before, after))     # paths of an object at which another text stands than before, or none
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fastness.cli.support.shapes import REDACTED, without_keys


@dataclass(frozen=True, slots=True)
class Taken:
    """Something that was taken out: of which file, of which object in it, at which path or how often."""

    file: str
    what: str
    path: str


def taken_out(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """The paths at which something is missing or replaced. Keys that look like keys are not spelled out here either."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key, value in before.items():
            shown = without_keys(str(key))
            yield from taken_out(value, after.get(key, after.get(shown)), f"{path}.{shown}".lstrip("."))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for place, (value, shown) in enumerate(zip(before, after, strict=True)):
            yield from taken_out(value, shown, f"{path}[{place}]")
    elif before != after:
        yield path


def taken_from_text(before: str, after: str) -> str:
    """How often something was taken out of a text; empty when nothing was."""
    times = after.count(REDACTED) - before.count(REDACTED)
    return f"{times} times" if times > 0 else ""
