"""What can be wrong with policies and reference values.

    AttestationError        base; never raised itself
    ├── BadPolicy           a policy cannot be compiled, or is not one
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


class BadPolicy(AttestationError):
    """A policy that can never judge."""


class BadValues(AttestationError):
    """Values that cannot count."""
