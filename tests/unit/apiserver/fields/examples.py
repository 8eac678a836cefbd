"""A kind with every sort of place, and short names for what tests say often."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from fastness.apiserver.fields import NOTHING, Applied, FieldSet, TypedSchema, Writer, apply, track_update
from fastness.kinds import schema as s

JsonObject = dict[str, Any]

VERSION = "example.dev/v1"
SPEC = s.obj(
    {
        "replicas": s.integer(),
        "image": s.string(),
        "args": s.array(s.string()),
        "tags": s.list_set(s.string()),
        "ports": s.list_map(
            s.obj({"port": s.integer(), "protocol": s.string(default="TCP"), "name": s.string()}), ("port", "protocol")
        ),
        "labels": s.mapping(s.string()),
        "selector": s.mapping(s.string(), **{"x-kubernetes-map-type": "atomic"}),
        "nested": s.obj({"a": s.string(), "deep": s.obj({"b": s.string()})}),
        "free": s.anything(),
    }
)
STATUS = s.obj({"ready": s.integer(), "conditions": s.conditions()})
SCHEMA = TypedSchema(s.obj({"spec": SPEC, "status": STATUS}), api_versions=frozenset({VERSION}))
FREE = TypedSchema()


def widget(spec: JsonObject | None = None, **parts: Any) -> JsonObject:
    """A widget as a client writes it."""
    head = {"apiVersion": VERSION, "kind": "Widget", "metadata": {"name": "w", **parts.pop("metadata", {})}}
    return {**head, **({} if spec is None else {"spec": spec}), **parts}


def writer(manager: str, at: int = 0, subresource: str = "", version: str = VERSION) -> Writer:
    """A writer at a minute past noon."""
    return Writer(manager, version, f"2026-01-01T12:{at:02}:00Z", subresource)


def stored(obj: JsonObject, managed: list[JsonObject], uid: str = "u1") -> JsonObject:
    """The object as the store has it after a write."""
    meta = {**obj["metadata"], "uid": uid}
    meta.pop("managedFields", None)
    return {**obj, "metadata": {**meta, **({"managedFields": managed} if managed else {})}}


def created(
    obj: JsonObject, manager: str = "maker", schema: TypedSchema = SCHEMA, reset: FieldSet = NOTHING
) -> JsonObject:
    """The stored object after a create."""
    return stored(obj, track_update(None, obj, writer(manager), schema, reset))


def updated(live: JsonObject, manager: str, at: int = 1, schema: TypedSchema = SCHEMA, **parts: Any) -> JsonObject:
    """The stored object after an update that replaces top-level parts."""
    new = {**deepcopy(live), **parts}
    return stored(new, track_update(live, new, writer(manager, at), schema))


def applied(live: JsonObject | None, config: JsonObject, manager: str, at: int = 1, **options: Any) -> Applied:
    """What an apply gives, as stored."""
    done = apply(live, config, writer(manager, at), options.pop("schema", SCHEMA), **options)
    return done._replace(obj=stored(done.obj, done.managed))


def owned(obj: JsonObject, manager: str, subresource: str = "") -> JsonObject | None:
    """The fieldsV1 of a manager's line."""
    for line in obj["metadata"].get("managedFields", []):
        if line["manager"] == manager and line.get("subresource", "") == subresource:
            fields: JsonObject = line["fieldsV1"]
            return fields
    return None
