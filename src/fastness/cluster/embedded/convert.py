"""Between the stored version of an object and the one that a client asked for.

Versions of one kind differ in `apiVersion` only (CRDs with conversion strategy None), so nearly always the stored bytes are the
answer. The one native exception are events: two groups, one collection, other field names.
"""

from __future__ import annotations

from collections.abc import Mapping

from fastness.cluster.embedded.catalog import Served
from fastness.formats import json
from fastness.model.kind import JsonObject

EVENTS_GROUP = "events.k8s.io"
# core/v1 name -> events.k8s.io/v1 name
_EVENT_FIELDS: Mapping[str, str] = {
    "involvedObject": "regarding", "message": "note", "reportingComponent": "reportingController",
    "source": "deprecatedSource", "count": "deprecatedCount", "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
}  # fmt: skip
_EVENT_FIELDS_BACK = {new: old for old, new in _EVENT_FIELDS.items()}


def is_stored_form(served: Served) -> bool:
    """Whether the stored bytes are the answer."""
    return served.storage_version == served.kind.version and served.storage_key[0] == served.kind.group


def outward(served: Served, body: bytes) -> bytes:
    """Stored bytes in the version that was asked for."""
    return body if is_stored_form(served) else json.encode(inward(served, body))


def inward(served: Served, body: bytes) -> JsonObject:
    """The stored object, decoded, in the version that was asked for."""
    obj: JsonObject = json.decode(body)
    if is_stored_form(served):
        return obj
    if served.kind.group == EVENTS_GROUP:
        # The new group leaves out what the old one writes as empty text.
        obj = {_EVENT_FIELDS.get(name, name): value for name, value in obj.items() if value != ""}
    obj["apiVersion"] = served.kind.api_version
    # A view may show the objects of another kind: a Project is a Namespace.
    obj["kind"] = served.kind.kind
    return obj


def to_storage(served: Served, obj: JsonObject) -> bytes:
    """An object as it is stored."""
    if is_stored_form(served):
        return json.encode(obj)
    if served.kind.group == EVENTS_GROUP:
        obj = {_EVENT_FIELDS_BACK.get(name, name): value for name, value in obj.items()}
        return json.encode({**obj, "apiVersion": "v1"})
    return json.encode({**obj, "apiVersion": served.storage_api_version})
