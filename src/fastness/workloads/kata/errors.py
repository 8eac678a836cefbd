"""Why an installation does not go on.

KataError
└── Refused      nothing is changed; the reason goes into the condition, word for word
"""

from __future__ import annotations

from fastness.runtime.errors import FastnessError


class KataError(FastnessError):
    """Base of what this package raises."""

    code = "kata"


class Refused(KataError):
    """The installation must not go on as it is asked for: `reason` is one word for the condition."""

    code = "kata-refused"

    def __init__(
        self, reason: str, message: str, hint: str, *, again: float | None = None, exact: bool = False
    ) -> None:
        super().__init__(message, hint)
        self.reason, self.again = reason, again
        self._exact = exact

    @property
    def sentence(self) -> str:
        """The message of the condition: with the hint behind it, except where the exact words are an interface (`exact`)."""
        return self.message if self._exact or not self.hint else f"{self.message}; {self.hint}"
