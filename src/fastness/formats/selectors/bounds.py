"""Bounds that every selector obeys, and the errors for going beyond them.

They are far above what a person or a controller writes, and low enough that matching a selector against every object of a
large list stays cheap.
"""

from typing import Final

from fastness.formats.errors import SelectorError

MAX_CHARS: Final = 65_536
MAX_REQUIREMENTS: Final = 1_000
MAX_VALUES: Final = 10_000

_HINT: Final = "select by fewer conditions, or list everything and filter at the client"


def check_length(text: str) -> None:
    """Refuse a text that is longer than any sensible selector."""
    if len(text) > MAX_CHARS:
        raise SelectorError("selector-too-large", f"the selector is longer than {MAX_CHARS} characters", hint=_HINT)


def too_many(path: str = "") -> SelectorError:
    """The error for too many requirements or values."""
    return SelectorError("selector-too-large", "the selector has too many requirements or values", path, _HINT)


def short(text: str) -> str:
    """A quoted text for a message, cut when it is long."""
    return repr(text if len(text) <= 80 else text[:77] + "...")
