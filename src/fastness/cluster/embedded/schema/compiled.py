"""A schema that is ready to work: prune, default, validate.

`CompiledSchema` is what the REST engine holds for every kind and version. Rules:

* An object is never changed in place. `prune` and `default` return the object they were given when there is nothing to do, and
  otherwise a copy of just the path that changed.
* The root is a Kubernetes object: `apiVersion`, `kind` and `metadata` are known whether or not the schema says so, and what
  stands in the root's metadata is judged elsewhere.
* The order is that of an API server: `prune`, then `default`, then `validate`.
* Custom resources answer a wrong JSON type with 422 (`validate`); native kinds with 400 (`type_errors`), because there a typed
  decoder stands before validation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastness.cluster.errors import Cause


class CompiledSchema:
    """One structural schema of one kind and version, compiled once and used for every request."""

    def __init__(
        self,
        schema: Mapping[str, Any],
        *,
        resolve: Callable[[str], Mapping[str, Any]] | None = None,
        native: bool = False,
    ) -> None:
        """Compile `schema`; `resolve` maps a `$ref` to its schema, `native` selects the rules of typed kinds."""

    def prune(self, obj: Any) -> tuple[Any, list[str]]:
        """The object without the fields that the schema does not know, and the paths of those fields."""
        raise NotImplementedError

    def default(self, obj: Any) -> Any:
        """The object with every missing field that has a default."""
        raise NotImplementedError

    def validate(self, obj: Any, old: Any = None) -> list[Cause]:
        """Everything that is wrong with the object; with `old`, transition rules are judged as well."""
        raise NotImplementedError

    def type_errors(self, obj: Any) -> list[Cause]:
        """Values whose JSON type a typed decoder would refuse: the 400 of native kinds."""
        raise NotImplementedError
