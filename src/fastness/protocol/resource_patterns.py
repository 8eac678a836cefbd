"""Patterns of resource paths, matched in linear time: what ResourceBindings open and what resource policies speak of.

    covers("pool/*/disk-*", ("pool", "worker", "disk-root"))

`*` stands for any characters within one segment, none too; there is no other wildcard. Pattern and path have the same number of
segments.

Doors match on their event loop, with patterns of whoever may write a binding or a policy. A regular expression tries every way to
divide a segment among the stars: `*a*a*a*a*a*b/t/g` held a broker for twelve seconds. Here each literal piece is looked for once,
as far left as it fits: a piece that fits further to the left never leaves less room for the rest, so nothing is tried twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache


def covers(pattern: str, path: Sequence[str]) -> bool:
    """Whether a pattern covers a path."""
    globs = _split(pattern)
    return len(globs) == len(path) and all(map(_fits, globs, path))


@lru_cache(maxsize=1024)
def _split(pattern: str) -> tuple[tuple[str, ...], ...]:
    """The literal pieces between the stars, for each segment."""
    return tuple(tuple(segment.split("*")) for segment in pattern.split("/"))


def _fits(pieces: tuple[str, ...], text: str) -> bool:
    first, *middle = pieces
    if not middle:
        return text == first
    last = middle.pop()
    end = len(text) - len(last)
    if not text.startswith(first) or not text.endswith(last) or len(first) > end:
        return False
    at = len(first)
    for piece in middle:
        place = text.find(piece, at, end)
        if place < 0:
            return False
        at = place + len(piece)
    return True
