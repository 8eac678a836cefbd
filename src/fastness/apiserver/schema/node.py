"""The compiled form of a structural schema: a graph of nodes with what lies below each of them.

A `Node` is one place in a schema. It is built once, and answers in one attribute look-up what the walks need to know:

* which fields are known (`properties`), what any other key is (`extra`), what an array holds (`items`);
* whether anything below has a list with keys, an embedded resource or a rule, so that a walk skips the rest.

`$ref` is followed through `resolve`; a reference that is already being built is used again, so recursive schemas are cycles in
the graph. Typed kinds of Kubernetes (`native`) differ in three points: a schema without any structure holds any JSON, a default
that equals Go's zero value is no default, and keys of lists are judged by the kind's own validation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

Resolve = Callable[[str], Mapping[str, Any]]

MISSING: Final = object()
META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


class Node:
    """One place in a schema, with what lies below it."""

    __slots__ = (
        "closed_names",
        "default",
        "embedded",
        "extra",
        "has_embedded",
        "has_keyed_lists",
        "has_rules",
        "int_or_string",
        "items",
        "list_keys",
        "list_type",
        "map_type",
        "nullable",
        "preserve",
        "properties",
        "ref",
        "rules",
        "schema",
        "type",
        "with_default",
    )

    def __init__(self, schema: Mapping[str, Any], ref: str | None = None) -> None:
        self.schema = schema
        self.ref = ref
        self.type: str = schema.get("type") or ""
        self.nullable = bool(schema.get("nullable"))
        self.preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded = bool(schema.get("x-kubernetes-embedded-resource"))
        self.int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
        self.list_type: str = schema.get("x-kubernetes-list-type") or "atomic"
        self.list_keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self.map_type: str = schema.get("x-kubernetes-map-type") or "granular"
        self.rules: tuple[Mapping[str, Any], ...] = tuple(schema.get("x-kubernetes-validations") or ())
        self.default: Any = MISSING
        self.properties: dict[str, Node] = {}
        self.extra: Node | None = None
        self.items: Node | None = None
        self.with_default: tuple[tuple[str, Node], ...] = ()
        self.closed_names: frozenset[str] = frozenset()
        self.has_keyed_lists = self.has_embedded = self.has_rules = False

    def child(self, key: str) -> Node | None:
        """The node of the value under `key`, if the schema says anything about it."""
        return self.properties.get(key, self.extra)


CLOSED: Final = Node({})
"""What stands where a schema says nothing: every field below it is unknown."""


def build(schema: Mapping[str, Any], resolve: Resolve | None = None, *, native: bool = False) -> Node:
    """The graph of a whole object's schema; its root keeps `apiVersion`, `kind` and `metadata` whatever the schema says."""
    builder = _Builder(resolve, native)
    root = builder.node(schema)
    if root.type == "":
        root.type = "object"
    root.closed_names = frozenset(META_FIELDS - root.properties.keys()) if native else META_FIELDS
    builder.finish()
    return root


def build_part(schema: Mapping[str, Any]) -> Node:
    """The graph of a schema that is a part of another: nothing is known but what it says."""
    builder = _Builder(None, native=False)
    part = builder.node(schema)
    builder.finish()
    return part


class _Builder:
    def __init__(self, resolve: Resolve | None, native: bool) -> None:
        self._resolve = resolve
        self._native = native
        self._by_ref: dict[str, Node] = {}
        self._all: list[Node] = []

    def node(self, schema: Mapping[str, Any]) -> Node:
        ref = _reference(schema)
        if ref is None:
            return self._fill(Node(schema))
        shared = self._by_ref.get(ref)
        if shared is None:
            if self._resolve is None:
                raise ValueError(f"the schema refers to {ref}, and there is nothing to resolve it with")
            shared = self._by_ref[ref] = Node(self._resolve(ref), ref)
            self._fill(shared)
        if "default" not in schema or self._is_zero(schema["default"]):
            return shared
        return self._fill(Node({**shared.schema, "default": schema["default"]}))

    def _fill(self, node: Node) -> Node:
        self._all.append(node)
        schema = node.schema
        if "default" in schema and schema["default"] is not None and not self._is_zero(schema["default"]):
            node.default = schema["default"]
        node.properties = {name: self.node(below) for name, below in (schema.get("properties") or {}).items()}
        extra = schema.get("additionalProperties")
        if isinstance(extra, Mapping):
            node.extra = self.node(extra)
        elif extra:
            node.extra = CLOSED
        items = schema.get("items")
        if isinstance(items, Mapping):
            node.items = self.node(items)
        if self._native:
            self._loosen(node)
        node.with_default = tuple((k, v) for k, v in node.properties.items() if v.default is not MISSING)
        node.closed_names = META_FIELDS if node.embedded else frozenset()
        return node

    def _loosen(self, node: Node) -> None:
        if node.schema.get("format") == "int-or-string":
            node.int_or_string, node.type = True, ""
        structured = node.properties or node.items is not None or node.extra not in (None, CLOSED)
        if not structured and node.type in ("", "object"):
            node.preserve = True

    def _is_zero(self, value: Any) -> bool:
        return self._native and not value

    def finish(self) -> None:
        """Carry what nodes have to those above them, until nothing changes (references may form cycles)."""
        changed = True
        for node in self._all:
            node.has_keyed_lists = not self._native and node.list_type in ("set", "map")
            node.has_embedded = node.embedded
            node.has_rules = bool(node.rules)
        while changed:
            changed = False
            for node in reversed(self._all):
                for below in (*node.properties.values(), node.extra, node.items):
                    if below is not None and _absorb(node, below):
                        changed = True


_FLAGS: Final = ("has_keyed_lists", "has_embedded", "has_rules")


def _absorb(node: Node, below: Node) -> bool:
    changed = False
    for flag in _FLAGS:
        if getattr(below, flag) and not getattr(node, flag):
            setattr(node, flag, True)
            changed = True
    return changed


def _reference(schema: Mapping[str, Any]) -> str | None:
    """The `$ref` of a schema; Kubernetes wraps one that has a description or a default into `allOf` with one entry."""
    if "$ref" in schema:
        return str(schema["$ref"])
    wrapped = schema.get("allOf")
    if isinstance(wrapped, list) and len(wrapped) == 1 and "$ref" in wrapped[0] and "type" not in schema:
        return str(wrapped[0]["$ref"])
    return None
