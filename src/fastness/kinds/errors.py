"""What can be wrong with kinds and definitions.

ModelError              base; `code` is stable, `hint` tells the reader what to do
├── UnknownKind         nobody registered a kind under that name
├── DuplicateKind       two entries claim the same name: a defect that shows at start
└── BadDefinition       a CustomResourceDefinition that cannot become kinds; `path` names the field
"""

from __future__ import annotations

from fastness.runtime.errors import FastnessError


class ModelError(FastnessError):
    """Base of the errors of this package."""

    code = "model"


class UnknownKind(ModelError):
    """Nobody registered a kind under that name."""

    code = "unknown-kind"


class DuplicateKind(ModelError):
    """Two entries claim the same name."""

    code = "duplicate-kind"


class BadDefinition(ModelError):
    """A CustomResourceDefinition that cannot become kinds."""

    code = "bad-definition"

    def __init__(self, path: str, message: str, hint: str = "") -> None:
        super().__init__(f"{path}: {message}", hint)
        self.path = path
