"""What ownership must know of a type: where an object may be divided between managers.

A `Node` answers for one place of an object which of three shapes a value may take there:

- `map`: struct or map. Granular (fields are owned one by one) unless `x-kubernetes-map-type: atomic`.
- `list`: atomic (owned as a whole) unless `x-kubernetes-list-type` says `set` (items owned by value) or `map` (items owned
  by their key fields). Native definitions may say the same with `x-kubernetes-patch-strategy: merge`.
- `scalar`.

A place without a type may take all three. A place with nothing said at all is *deduced*: maps are granular, lists are
atomic, at every depth. Unknown fields exist where `x-kubernetes-preserve-unknown-fields` stands above them, or where a
struct declares no fields; elsewhere a struct has no `element`, and an undeclared field in an applied configuration is an
error. In stored objects it is treated as deduced, so that nothing is lost.

Nodes are compiled when a walk first reaches them and kept: definitions may refer to themselves, and nobody pays for the
thousands of nodes of a pod template that a small object never touches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, NoReturn

from fastness.apiserver.fields.element import keyed, valued

RawNode = Mapping[str, Any]
Lookup = Callable[[str], RawNode]


class Node:
    """The shapes that a value may take at one place."""

    __slots__ = ("list", "map", "scalar")

    def __init__(self, scalar: str = "", items: ListType | None = None, entries: MapType | None = None) -> None:
        self.scalar = scalar
        self.list = items
        self.map = entries


class MapType:
    """A struct, a map, or both: declared fields, and the type of all others."""

    def __init__(self, raw: RawNode, compiler: Compiler) -> None:
        self.atomic = raw.get("x-kubernetes-map-type") == "atomic"
        self._declared: Mapping[str, RawNode] = raw.get("properties") or {}
        self._required = raw.get("required") or ()
        self._compiler = compiler
        self._fields: dict[str, Node] = {}

    @cached_property
    def element(self) -> Node | None:
        """The type of undeclared fields; None where they must not exist."""
        return None

    def declares(self, name: str) -> bool:
        """Whether the type names this field."""
        return name in self._declared

    def field(self, name: str) -> Node:
        """The type of a field; a field that must not exist is deduced."""
        compiled = self._fields.get(name)
        if compiled is not None:
            return compiled
        declared = self._declared.get(name)
        if declared is None:
            return self.element or DEDUCED
        node = self._fields[name] = self._compiler.node(declared)
        return node

    def default(self, name: str) -> Any:
        """The default of a declared field, None when there is none."""
        declared = self._declared.get(name)
        return None if declared is None else declared.get("default")

    @cached_property
    def implied(self) -> dict[str, Any]:
        """Fields that an object of a native kind has even when nobody wrote them, with their empty value."""
        if not self._compiler.native:
            return {}
        structs: dict[str, Any] = {name: {} for name, raw in self._declared.items() if raw.get("default") == {}}
        required = {name: self._declared.get(name, {}) for name in self._required}
        containers = {name: None for name, raw in required.items() if raw.get("type") in ("array", "object")}
        return {**structs, **containers}


class _OpenMap(MapType):
    """A map whose undeclared fields have a type."""

    def __init__(self, raw: RawNode, compiler: Compiler, extra: RawNode | None) -> None:
        super().__init__(raw, compiler)
        self._extra = extra

    @cached_property
    def element(self) -> Node | None:
        return DEDUCED if self._extra is None else self._compiler.node(self._extra)


class ListType:
    """A list: atomic, a set (no keys), or items told apart by key fields."""

    def __init__(self, items: RawNode | None, compiler: Compiler, atomic: bool, keys: tuple[str, ...] = ()) -> None:
        self.atomic = atomic
        self.keys = keys
        self._items = items
        self._compiler = compiler

    @cached_property
    def element(self) -> Node:
        """The type of the items."""
        return UNTYPED if self._items is None else self._compiler.node(self._items)

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Defaults of key fields that have one."""
        entries = self.element.map
        by_key = {key: entries.default(key) for key in self.keys} if entries is not None else {}
        return {key: value for key, value in by_key.items() if value is not None}

    def step(self, item: Any) -> str:
        """The step to an item of a set or keyed list; raises ValueError for an item that has no place in it."""
        if self.keys:
            return self._key_step(item)
        if isinstance(item, dict):
            raise ValueError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise ValueError("not supported: associative list with lists as elements")
        if item is None:
            raise ValueError("associative list without keys has an element that's an explicit null")
        return valued(item)

    def _key_step(self, item: Any) -> str:
        if not isinstance(item, dict):
            shape = "a null element" if item is None else "non-map elements"
            raise ValueError(f"associative list with keys may not have {shape}")
        values = {key: item[key] for key in self.keys if key in item}
        if len(values) < len(self.keys):
            values = {**{key: value for key, value in self.defaults.items() if key not in values}, **values}
        if not values:
            names = " ".join(f'"{key}"' for key in self.keys)
            raise ValueError(
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        return keyed(values)


class Compiler:
    """Turns raw schema nodes into `Node`s; `preserve` is inherited from above, as Kubernetes does."""

    __slots__ = ("_lookup", "_memo", "_preserve", "_preserving", "native")

    def __init__(self, lookup: Lookup, *, preserve: bool = False, native: bool = False) -> None:
        self.native = native
        self._lookup = lookup
        self._preserve = preserve
        self._memo: dict[tuple[str, str], Node] = {}
        self._preserving: Compiler | None = None

    def node(self, raw: RawNode) -> Node:
        """The shapes of one raw node, references followed."""
        reference = _reference(raw)
        if reference is None:
            return self._inline(raw)
        key = (reference, str(raw.get("x-kubernetes-map-type", "")))
        compiled = self._memo.get(key)
        if compiled is None:
            compiled = self._memo[key] = self._referred(*key)
        return compiled

    def _referred(self, reference: str, map_type: str) -> Node:
        name = reference.rsplit("/", 1)[-1]
        # Quantities and raw extensions are structs in Go and a number, a string or anything in JSON: their definitions do not
        # say so.
        if name.endswith(".resource.Quantity"):
            return SCALAR
        if name.endswith(".runtime.RawExtension"):
            return UNTYPED
        target = self._lookup(name)
        # A reference is a type of its own: what the place that names it preserves says nothing about what is inside.
        outside = Compiler(self._lookup, native=self.native) if self._preserve else self
        return outside.node({**target, "x-kubernetes-map-type": map_type} if map_type else target)

    def _inline(self, raw: RawNode) -> Node:
        below = self._below(raw)
        kind = raw.get("type")
        if raw.get("x-kubernetes-int-or-string"):
            return SCALAR
        if kind == "object":
            return Node(entries=below._map(raw))
        if kind == "array":
            return Node(items=below._list(raw))
        if kind is None:
            return Node("untyped", below._list(raw), below._map(raw))
        return Node(
            _SCALARS.get(str(kind), "untyped") if not raw.get("format") else _formatted(str(kind), raw["format"])
        )

    def _below(self, raw: RawNode) -> Compiler:
        if self._preserve or raw.get("x-kubernetes-preserve-unknown-fields") is not True:
            return self
        if self._preserving is None:
            self._preserving = Compiler(self._lookup, preserve=True, native=self.native)
        return self._preserving

    def _map(self, raw: RawNode) -> MapType:
        if raw.get("x-kubernetes-embedded-resource"):
            raw = {**raw, "properties": {**(raw.get("properties") or {}), **_HEAD}}
        extra = raw.get("additionalProperties")
        if isinstance(extra, Mapping):
            return _OpenMap(raw, self, extra)
        if extra or (extra is None and (self._preserve or not raw.get("properties"))):
            return _OpenMap(raw, self, None)
        return MapType(raw, self)

    def _list(self, raw: RawNode) -> ListType:
        items = raw.get("items")
        kind = raw.get("x-kubernetes-list-type")
        if kind == "set":
            return ListType(items, self, False)
        if kind == "map":
            return ListType(items, self, False, tuple(raw.get("x-kubernetes-list-map-keys") or ()))
        # Older native definitions know strategic merge alone; kube-apiserver derives list types from it in the same way.
        if kind is None and str(raw.get("x-kubernetes-patch-strategy", "")).startswith("merge"):
            key = raw.get("x-kubernetes-patch-merge-key")
            return ListType(items, self, False, (str(key),) if key else ())
        return ListType(items, self, True)


class TypedSchema:
    """The type of one kind: the root node, compiled as walks reach it.

    `schema` is the structural schema of the kind, or a native definition whose `$ref`s `lookup` resolves by their last part.
    `api_versions` are the versions in which the kind is served: ownership recorded under another one is forgotten; none given,
    every version is believed. `native` kinds live as structs in a real API server, which have all their parts from the start:
    nobody owns the mere existence of a Deployment's `spec`.
    """

    __slots__ = ("api_versions", "native", "root")

    def __init__(
        self,
        schema: RawNode | None = None,
        lookup: Lookup | None = None,
        *,
        api_versions: frozenset[str] = frozenset(),
        native: bool = False,
    ) -> None:
        raw = dict(schema or ())
        if not raw.get("properties"):
            raw.setdefault("x-kubernetes-preserve-unknown-fields", True)
        raw["type"] = "object"
        raw["properties"] = {**(raw.get("properties") or {}), **_HEAD}
        self.root: Final = Compiler(lookup or _no_references, native=native).node(raw)
        self.api_versions: Final = api_versions
        self.native: Final = native


def _reference(raw: RawNode) -> str | None:
    reference = raw.get("$ref")
    if reference is None:
        every = raw.get("allOf")
        if isinstance(every, list) and len(every) == 1 and isinstance(every[0], Mapping):
            reference = every[0].get("$ref")
    return reference if isinstance(reference, str) else None


def _formatted(kind: str, form: str) -> str:
    return "untyped" if kind == "string" and form != "byte" else _SCALARS.get(kind, "untyped")


def _no_references(name: str) -> NoReturn:
    raise LookupError(f"the schema refers to {name}, and no definitions were given")


_SCALARS: Final = {"string": "string", "integer": "numeric", "number": "numeric", "boolean": "boolean"}
_STRING: Final[RawNode] = {"type": "string"}
_PLAIN: Final = Compiler(_no_references)

SCALAR: Final = Node("untyped")
UNTYPED: Final = Node(
    "untyped", ListType(None, _PLAIN, True), _OpenMap({"x-kubernetes-map-type": "atomic"}, _PLAIN, None)
)
DEDUCED: Final = Node("untyped", ListType(None, _PLAIN, True), _OpenMap({}, _PLAIN, None))

OBJECT_META: Final[RawNode] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(
            ("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "clusterName"), _STRING
        ),
        "creationTimestamp": {"type": "string", "format": "date-time"},
        "deletionTimestamp": {"type": "string", "format": "date-time"},
        "generation": {"type": "integer"},
        "deletionGracePeriodSeconds": {"type": "integer"},
        "labels": {"type": "object", "additionalProperties": _STRING},
        "annotations": {"type": "object", "additionalProperties": _STRING},
        "finalizers": {"type": "array", "items": _STRING, "x-kubernetes-list-type": "set"},
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "items": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {
                    **dict.fromkeys(("apiVersion", "kind", "name", "uid"), _STRING),
                    **{name: {"type": "boolean"} for name in ("controller", "blockOwnerDeletion")},
                },
            },
        },
        "managedFields": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object"}},
    },
}

_HEAD: Final[RawNode] = {"apiVersion": _STRING, "kind": _STRING, "metadata": OBJECT_META}
