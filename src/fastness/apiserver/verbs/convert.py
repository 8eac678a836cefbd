"""Between the stored version of an object and the one that a client asked for.

Versions of one kind differ in `apiVersion` only (CRDs with conversion strategy None), so nearly always the stored bytes are the
answer. The one native exception are events: two groups, one collection, other field names.
"""

from __future__ import annotations

from collections.abc import Mapping

from fastness.apiserver import storable
from fastness.apiserver.catalog import Served
from fastness.apiserver.refusals import invalid, too_large
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import Cause
from fastness.kube.readable import READABLE

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
    obj = storable.read(body)
    if is_stored_form(served):
        return obj
    if served.kind.group == EVENTS_GROUP:
        # The new group leaves out what the old one writes as empty text.
        obj = {_EVENT_FIELDS.get(name, name): value for name, value in obj.items() if value != ""}
    obj["apiVersion"] = served.kind.api_version
    # A view may show the objects of another kind: a Project is a Namespace.
    obj["kind"] = served.kind.kind
    return obj


def require_storable_depth(served: Served, obj: JsonObject, *, leaving: bool = False) -> None:
    """Refuse an object that nests too deep to be read again; raises Invalid. `leaving`: it is being deleted.

    Apart from `to_storage`, which runs in the loop: the walk takes three times as long as the encoding. What admission rules
    patch afterwards has the same bound in `formats.patch`.
    """
    deepest = READABLE.max_depth if leaving else storable.MAX_DEPTH
    try:
        json.check_depth(obj, deepest)  # before the encoder, which has a bound of its own and a poorer message
    except JsonError as error:
        name = str(obj["metadata"].get("name") or "")
        text = f"Invalid value: nests deeper than {deepest} levels with the field ownership that the server adds"
        raise invalid(served, name, [Cause(json.deepest_path(obj, deepest), "FieldValueInvalid", text)]) from error


def to_storage(served: Served, obj: JsonObject, *, leaving: bool = False) -> bytes:
    """An object of a storable depth as it is stored; raises TooLarge. `leaving`: it is being deleted."""
    most = READABLE.max_bytes if leaving else storable.MAX_BYTES
    body = json.encode(_stored_form(served, obj))
    # What is being deleted may be larger: an object that grew past the bound must not be one that nobody can remove.
    if len(body) > most:
        raise too_large(served, str(obj["metadata"].get("name") or ""), len(body), most)
    return body


def _stored_form(served: Served, obj: JsonObject) -> JsonObject:
    if is_stored_form(served):
        return obj
    if served.kind.group == EVENTS_GROUP:
        return {**{_EVENT_FIELDS_BACK.get(name, name): value for name, value in obj.items()}, "apiVersion": "v1"}
    return {**obj, "apiVersion": served.storage_api_version}
