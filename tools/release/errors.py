"""What can go wrong with an image or a release."""

from __future__ import annotations


class ReleaseError(Exception):
    """Something that a release needs is missing, changed or refused; `code` is stable, `hint` says what to do."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.args[0]} ({self.code})\n{self.hint}"
