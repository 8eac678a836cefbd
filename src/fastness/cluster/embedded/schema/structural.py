"""What an API server refuses in the schema of a CustomResourceDefinition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastness.cluster.errors import Cause


def structural_problems(schema: Mapping[str, Any]) -> list[Cause]:
    """Everything that makes the schema unfit for a CRD; fields are relative to `openAPIV3Schema`."""
    raise NotImplementedError
