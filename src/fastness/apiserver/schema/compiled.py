"""A schema that is ready to work: prune, default, validate.

`CompiledSchema` is what the REST engine holds for every kind and version. Rules:

* An object is never changed in place. `prune` and `default` return the object they were given when there is nothing to do, and
  otherwise a copy of just the path that changed.
* The root is a Kubernetes object: `apiVersion`, `kind` and `metadata` are known whether or not the schema says so, and what
  stands in the root's metadata is judged elsewhere.
* The order is that of an API server: `prune`, then `default`, then `validate`.
* Custom resources answer a wrong JSON type with 422 (`validate`); native kinds with 400 (`type_errors`), because there a typed
  decoder stands before validation.

Validation asks the fast acceptor first and walks only what it refuses; rules run on objects whose structure is sound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

from fastness.apiserver.schema import causes, validation
from fastness.apiserver.schema.accept import acceptor
from fastness.apiserver.schema.cel.rules import Rules
from fastness.apiserver.schema.defaulting import apply_defaults
from fastness.apiserver.schema.embedded import embedded_problems, undecodable
from fastness.apiserver.schema.lists import duplicates
from fastness.apiserver.schema.node import MISSING, build
from fastness.apiserver.schema.pruning import prune
from fastness.apiserver.schema.types import type_errors
from fastness.kube.errors import Cause

_BLOCKING: Final = frozenset({
    causes.NOT_SUPPORTED, causes.REQUIRED, causes.TOO_LONG, causes.TOO_MANY, causes.TYPE_INVALID,
})  # fmt: skip
_UNCHECKED: Final = Cause(
    causes.NOWHERE,
    causes.INVALID,
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)


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
        self._native = native
        self._root = build(schema, resolve, native=native)

    @cached_property
    def _accepts(self) -> Callable[[Any], bool]:
        return acceptor(self._root)

    @cached_property
    def _rules(self) -> Rules:
        return Rules(self._root)

    def prune(self, obj: Any) -> tuple[Any, list[str]]:
        """The object without the fields that the schema does not know, and the sorted paths of those fields."""
        return prune(self._root, obj)

    def default(self, obj: Any) -> Any:
        """The object with every missing field that has a default, and without nulls that stand for "not set"."""
        return apply_defaults(self._root, obj)

    def validate(self, obj: Any, old: Any = None) -> list[Cause]:
        """Everything that is wrong with the object; with `old`, transition rules are judged as well."""
        before = MISSING if old is None else old
        causes = [] if self._accepts(obj) else validation.problems(self._root, obj, before)
        if self._root.has_embedded:
            causes += embedded_problems(self._root, obj)
        if self._root.has_keyed_lists:
            doubled = duplicates(self._root, obj)
            if doubled and (old is None or not duplicates(self._root, old)):
                causes += doubled
        if self._root.has_rules:
            if any(cause.reason in _BLOCKING for cause in causes):
                causes.append(_UNCHECKED)
            else:
                causes += self._rules.broken(obj, before)
        return causes

    def type_errors(self, obj: Any) -> list[Cause]:
        """Values whose JSON type a typed decoder would refuse: the 400 of native kinds.

        Of a custom resource only the identity of embedded resources is decoded, and answers 400 in the same way.
        """
        if not self._native:
            return undecodable(self._root, obj) if self._root.has_embedded else []
        return [] if self._accepts(obj) else type_errors(self._root, obj)
