"""Requests about access that cannot be understood.

    AccessError              code, hint, field
    ├── InvalidReview        a review body says too little or contradicts itself; `causes` name the fields
    ├── EmptyReview          a review without the one thing that it is about
    └── BadImpersonation     Impersonate-* headers that do not fit together

A refusal is not an error: it is a `Decision` or a `Refusal`.
"""

from __future__ import annotations

from fastness.runtime.errors import FastnessError


class AccessError(FastnessError):
    """Base of the package; `field` is the path of what is wrong, in Kubernetes' notation."""

    code = "access"
    hint = "See the message."

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class InvalidReview(AccessError):
    """A review body says too little, or contradicts itself; each cause is a field and what is wrong with it."""

    code = "invalid-review"
    hint = "Give a user or a group, and exactly one of resourceAttributes and nonResourceAttributes."

    def __init__(self, *causes: tuple[str, str]) -> None:
        texts = [f"{field}: {problem}" for field, problem in causes]
        super().__init__(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]", causes[0][0])
        self.causes = causes


class EmptyReview(AccessError):
    """A review without the one thing that it is about."""

    code = "empty-review"
    hint = "Name the namespace, or the token, that the review is about."


class BadImpersonation(AccessError):
    """Impersonate-* headers that do not fit together."""

    code = "bad-impersonation"
    hint = "Groups, uid and extra need Impersonate-User beside them."
