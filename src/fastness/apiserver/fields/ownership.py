"""Which fields an object has, in the two ways in which Kubernetes counts them.

`appeared` is for creates and updates: everything that was not there before, containers included, so that a manager also
owns the existence of a map. `fields_of` is for apply: the leaves that the configuration states, and containers only where
their existence is not implied by the type (an entry of a map, an item of a list, an empty or null value).

Both are one walk over object and schema that builds the fieldsV1 trie directly. What an API server fills in itself
(`STRIPPED`) belongs to nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastness.apiserver.fields.element import SELF
from fastness.apiserver.fields.fieldset import FieldSet, Trie, difference, without
from fastness.apiserver.fields.schema import ListType, MapType, Node, TypedSchema

_META: Final = frozenset(
    ("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
     "resourceVersion")
)  # fmt: skip
# Owned by somebody they would be conflicts at every apply: the server changes them with each write.
STRIPPED: Final = FieldSet.of(("apiVersion",), ("kind",), ("metadata",), *(("metadata", name) for name in _META))
NOTHING: Final = FieldSet()

_OF_STATUS: Final = FieldSet.of(("metadata",), ("spec",))
_STATUS: Final = FieldSet.of(("status",))


def reset_fields(subresource: str = "", *, has_status: bool = True) -> FieldSet:
    """Fields that a write through this door cannot change, and which its writer therefore never owns."""
    if subresource == "status":
        return _OF_STATUS
    return _STATUS if has_status and not subresource else NOTHING


def fields_of(obj: Mapping[str, Any], schema: TypedSchema, reset: FieldSet = NOTHING) -> FieldSet:
    """The fields that an applied configuration states, without those that the server fills in or the door resets."""
    stated = stated_fields(obj, schema.root) or {}
    return FieldSet(strip(without(stated, reset.trie) if reset else stated))


def strip(trie: Trie) -> Trie:
    """The trie without the fields that belong to nobody."""
    return difference(trie, STRIPPED.trie)


def created(obj: Mapping[str, Any], schema: TypedSchema, reset: FieldSet = NOTHING) -> Trie:
    """The fields of a new object that its creator owns, straight as fieldsV1; not for native kinds."""
    root = schema.root.map
    if root is None:
        return {}
    trie: Trie = {}
    for name in sorted(obj):
        if name == "metadata":
            meta = _created_metadata(obj[name], root.field(name))
            if meta:
                trie["f:metadata"] = meta
        elif name not in ("apiVersion", "kind"):
            trie[f"f:{name}"] = appeared(obj[name], root.field(name))
    return without(trie, reset.trie) if reset else trie


def _created_metadata(meta: Any, node: Node) -> Trie:
    entries = node.map
    if not isinstance(meta, dict) or entries is None:
        return {}
    return {f"f:{name}": appeared(meta[name], entries.field(name)) for name in sorted(meta) if name not in _META}


def appeared(value: Any, node: Node) -> Trie:
    """The trie of a value that was not there before: the place itself and all below it, down to leaves."""
    if isinstance(value, dict):
        entries = node.map
        if entries is None or entries.atomic or not value:
            return {}
        trie: Trie = {SELF: {}}
        field = entries.field
        for name in sorted(value):
            part = value[name]
            trie[f"f:{name}"] = appeared(part, field(name)) if part.__class__ in _CONTAINERS else {}
        return trie
    if isinstance(value, list):
        items = node.list
        if items is None or items.atomic or not value:
            return {}
        return {SELF: {}, **_appeared_items(value, items)}
    return {}


_CONTAINERS: Final[frozenset[Any]] = frozenset((dict, list))


def _appeared_items(values: list[Any], items: ListType) -> Trie:
    trie: Trie = {}
    for item in values:
        try:
            step = items.step(item)
        except ValueError:
            continue  # an item that cannot be named cannot be owned; validation answers for it
        trie[step] = {} if step in trie else appeared(item, items.element)
    return trie


def stated_fields(value: Any, node: Node) -> Trie | None:
    """The trie below a place, {} where the place itself is stated and nothing below it, None where nothing is."""
    if isinstance(value, dict) and node.map is not None:
        return {} if node.map.atomic else _stated_entries(value, node.map) or None
    if isinstance(value, list) and node.list is not None:
        return {} if node.list.atomic else _stated_items(value, node.list) or None
    if node.scalar:
        return {}
    shape = node.map or node.list
    return {} if shape is not None and shape.atomic else None


def _stated_entries(value: Mapping[str, Any], entries: MapType) -> Trie:
    trie: Trie = {}
    for name, part in value.items():
        below = stated_fields(part, entries.field(name))
        if part is None or part == {} or not entries.declares(name):
            trie[f"f:{name}"] = {SELF: {}, **below} if below else {}
        elif below is not None:
            trie[f"f:{name}"] = below
    return trie


def _stated_items(values: list[Any], items: ListType) -> Trie:
    trie: Trie = {}
    for item in values:
        try:
            step = items.step(item)
        except ValueError:
            continue
        if step in trie:
            trie[step] = {}
        else:
            below = stated_fields(item, items.element)
            trie[step] = {SELF: {}, **below} if below else {}
    return trie
