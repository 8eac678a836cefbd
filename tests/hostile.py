"""Objects that their author made to break whoever reads them.

For every kind, with every field that its schema has: the wrong type, nothing, a lot, odd letters. `hostile` gives whole objects;
what a real API server does not take of them is its business, what it takes must end nobody. `permitted` gives those of which it
takes most: what the schema asks for is there, and as odd as it allows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from fastness.kinds.kind import JsonObject, Kind
from fastness.kinds.kubernetes import definitions


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
    members = _members(schema)
    return {name: below for name, below in members.items() if name not in ("apiVersion", "kind", "metadata")} or {
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
    properties: Mapping[str, Any] = schema.get("properties") or {}
    return properties


ODD_TEXTS = (
    "",
    "x",
    "\u202e\ufeff\U0001f512",
    "a" * 3000,
    "../../etc/passwd",
    "{{.}}",
    "-1",
    "null",
    "<script>",
    "%s%n",
)
# What patterns of schemas ask for, one of each; of these the first that a pattern takes stands for it.
LIKELY = (
    "a", "0", "1h", "worker", "0" * 64, "sha256:" + "0" * 64, "https://a", "a/b", "a@sha256:" + "0" * 64, "A" * 43 + "=",
    "1.2", "v1", "10.0.0.0/8", "50%", "quay.io/a/b@sha256:" + "0" * 64, "a.b/c", "w+00000000+AAAA", "2026-11-17",
)  # fmt: skip
TIMES = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-11-17T00:00:00Z")


def permitted(kind: Kind, source: Random) -> JsonObject:
    """An object of a kind as odd as its schema allows: required fields, some of the others, extreme values everywhere."""
    fields = {name: _odd(below, source, 7) for name, below in _properties(kind).items()}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}, **fields}


def _odd(schema: Any, source: Random, depth: int) -> Any:
    if isinstance(schema.get("enum"), list):
        return source.choice(schema["enum"])
    if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
        return source.choice([0, 2**31 - 1, "100%", "0"])
    resolved = _resolved(schema)
    match resolved.get("type"):
        case "string":
            return _odd_text(resolved, source)
        case "integer" | "number":
            most = 2**31 - 1 if resolved.get("format") == "int32" else 2**53
            return source.choice([resolved.get("minimum", 0), resolved.get("maximum", most)])
        case "boolean":
            return source.random() < 0.5
        case "array":
            least, most = resolved.get("minItems", 0), min(resolved.get("maxItems", 3), 3)
            count = source.randint(least, max(least, most)) if depth > 0 else least
            return [_odd(resolved.get("items") or {}, source, depth - 1) for _ in range(count)]
    return _odd_object(resolved, source, depth)


def _odd_object(schema: Any, source: Random, depth: int) -> Any:
    required = set(schema.get("required") or ())
    properties: Mapping[str, Any] = schema.get("properties") or {}
    if not properties and not schema.get("additionalProperties"):
        return source.choice([{}, nested(40), {"": []}, {"a": None}])
    more = schema.get("additionalProperties")
    entries = {"a": _odd(more, source, depth - 1)} if isinstance(more, dict) and source.random() < 0.5 else {}
    chosen = (name for name in properties if name in required or (depth > 0 and source.random() < 0.6))
    return {**entries, **{name: _odd(properties[name], source, depth - 1) for name in chosen}}


def _odd_text(schema: Any, source: Random) -> str:
    if schema.get("format") == "date-time":
        return source.choice(TIMES)
    if schema.get("format") == "byte":
        return source.choice(["", "AAAA"])
    least, most = schema.get("minLength", 0), schema.get("maxLength", 10_000)
    texts = (*ODD_TEXTS, *LIKELY) if "pattern" not in schema else (*LIKELY, *ODD_TEXTS)
    fitting = [each for each in texts if least <= len(each) <= most and re.search(schema.get("pattern", ""), each)]
    return source.choice(fitting) if fitting else "a"


def _resolved(schema: Any) -> Any:
    """A schema with its reference followed."""
    for candidate in (schema, *(schema.get("allOf") or ())):
        if reference := candidate.get("$ref"):
            return _resolved(definitions.definition(reference.removeprefix(definitions.REFERENCE)) or {})
    return schema
