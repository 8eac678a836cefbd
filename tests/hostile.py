"""Objects that their author made to break whoever reads them.

For every kind, with every field that its schema has: the wrong type, nothing, a lot, odd letters. `hostile` gives whole objects;
what a real API server does not take of them is its business, what it takes must end nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastness.model.kind import JsonObject, Kind
from fastness.model.kubernetes import definitions


def nested(levels: int) -> Any:
    """An object of so many levels."""
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


VALUES: tuple[Any, ...] = (
    None, [], {}, "", "x", -1, 2**63 - 1, 1e308, True, [None], [[]], ["x", 7], {"a": None}, {"": {"": []}}, nested(60),
    "\x00\u202e\ufeff\U0001f512\u0000", "a" * 20_000, [{}] * 50,
)  # fmt: skip
_ODD_META: tuple[JsonObject, ...] = (
    {},
    {"labels": {"a": ""}, "annotations": {"\u202e": "\x00", "a/b": "{" * 5000}},
    {"ownerReferences": [{"apiVersion": "", "kind": "", "name": "", "uid": "x"}], "finalizers": ["example.com/x"]},
    {
        "generation": -1,
        "creationTimestamp": None,
        "deletionTimestamp": "never",
        "managedFields": [{"fieldsV1": {"f:": {}}}],
    },
)


def hostile(kind: Kind) -> Iterator[JsonObject]:
    """Objects of a kind without names, each wrong in its own way: all fields at once, at one of three depths."""
    fields = _properties(kind)
    base = {"apiVersion": kind.api_version, "kind": kind.kind}
    for meta in _ODD_META:
        yield {**base, "metadata": meta}
    for number, value in enumerate(VALUES, sum(kind.kind.encode())):
        yield {**base, "metadata": {}, **{name: _wrong(below, value, number % 3) for name, below in fields.items()}}


def _wrong(schema: Any, value: Any, depth: int) -> Any:
    """The value itself, or the structure that the schema asks for with the value in all of its members."""
    if depth == 0:
        return value
    inner = {name: _wrong(below, value, depth - 1) for name, below in _members(schema).items()}
    return [inner] if "items" in schema else inner


def _properties(kind: Kind) -> Mapping[str, Any]:
    schema = definitions.definition(kind.definition) if kind.native else kind.schema
    known = _members(schema)
    return {name: below for name, below in known.items() if name not in ("apiVersion", "kind", "metadata")} or {
        "spec": {}, "status": {},
    }  # fmt: skip


def _members(schema: Any) -> Mapping[str, Any]:
    """The properties of an object, or of the elements of a list; references of native kinds are followed."""
    for candidate in (schema, *(schema.get("allOf") or ())):
        if reference := candidate.get("$ref"):
            return _members(definitions.definition(reference.removeprefix(definitions.REFERENCE)) or {})
    items = schema.get("items")
    if isinstance(items, dict):
        return _members(items)
    known: Mapping[str, Any] = schema.get("properties") or {}
    return known
