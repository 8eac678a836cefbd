"""What somebody must give before a part of the control plane can be started; each a sentence and a hint."""

from __future__ import annotations


class LackingError(Exception):
    """Base; never raised itself."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class LacksOption(LackingError):
    """The part was asked for without an option that it needs."""


class LacksCluster(LackingError):
    """Nothing says where the API server is."""
