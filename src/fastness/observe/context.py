"""The correlation id: one value that follows a request through logs, audit lines and the objects it causes."""

from __future__ import annotations

from contextvars import ContextVar

_correlation: ContextVar[str] = ContextVar("correlation", default="")


def begin(value: str) -> str:
    """Use this id from here on, in this task and what it starts."""
    _correlation.set(value)
    return value


def current() -> str:
    """The id of what is being done now; empty outside of any request or reconcile."""
    return _correlation.get()
