"""What can be wrong with rules and features.

    FeatureError            base; never raised itself
    ├── BadFeatures         what claims to be the features of a node is not
    ├── BadRule             a rule has the wrong shape
    ├── BadExpression       an operator, its values or the value that it met
    └── BadTemplate         a template, or what came out of it

An error inside one rule never stops the others: it becomes part of that rule's outcome.
"""

from __future__ import annotations

from fastness.runtime.errors import CodedError


class FeatureError(CodedError):
    """A sentence, a stable code, where, and what to do."""

    def __init__(self, code: str, message: str, hint: str = "", path: str = "") -> None:
        super().__init__(code, message, hint)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class BadFeatures(FeatureError):
    """What claims to be the features of a node, and is not."""


class BadRule(FeatureError):
    """A rule that has the wrong shape."""


class BadExpression(FeatureError):
    """An expression that cannot be answered."""


class BadTemplate(FeatureError):
    """A template that cannot be read or run."""
