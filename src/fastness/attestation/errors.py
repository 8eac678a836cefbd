"""What can be wrong with reference values.

    AttestationError        base; never raised itself
    └── BadValues           values that somebody offers cannot become reference values

What is wrong with evidence is data (`checks`), never an exception.
"""

from __future__ import annotations

from fastness.runtime.errors import CodedError


class AttestationError(CodedError):
    """A sentence, a stable code, and what to do."""


class BadValues(AttestationError):
    """Values that somebody offers and that cannot become reference values."""
