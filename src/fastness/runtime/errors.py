"""The one base of our errors: a sentence, a stable code, and what to do about it.

    FastnessError        the code belongs to the class
    └── CodedError       the code is given with each: packages that tell many cases of one kind apart

Every package draws its own tree over one of the two. Not under it are `kube.errors.ApiError`, whose code is the HTTP status of a
Kubernetes `Status`, and refusals that travel to a caller (`code`, `detail`): nobody there reads a hint, and none must leak.
"""

from __future__ import annotations


class FastnessError(Exception):
    """A `message` for people, a stable `code` for programs, and a `hint` that tells the operator what to do.

    A class sets `code`, and a `hint` that fits most cases; who raises it may know a better one.
    """

    code: str
    hint: str = ""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        if hint:
            self.hint = hint


class CodedError(FastnessError):
    """An error whose class stands for many codes."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.code = code
