"""Numbers of things as people say them: `1 entry`, `2 entries`. One place, so that no message says `1 machines`.

counted(1, "machine")                            "1 machine"
counted(3, "entry", "entries")                   "3 entries"
counted(0, "machine is", "machines are")         "0 machines are"
"""

from __future__ import annotations


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun, and whatever follows that has a plural of its own; without one the noun gets an s."""
    return f"{number} {singular if number == 1 else plural or f'{singular}s'}"
