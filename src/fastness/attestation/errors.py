"""What can be wrong with reference values.

    AttestationError        base; never raised itself
    └── BadValues           values that somebody offers cannot become reference values

What is wrong with evidence is data (`checks`), never an exception.
"""

from __future__ import annotations


class AttestationError(Exception):
    """A sentence, a stable code, and what to do."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint


class BadValues(AttestationError):
    """Values that cannot count."""
