"""Peace between `kubectl apply` and `kubectl apply --server-side`.

The older, client-side apply writes what it applied into an annotation and owns its fields as an update. When the same person
goes over to server-side apply, that record says which fields were theirs all along: conflicts on them are none, as long as
the object still has the recorded value. Afterwards the annotation follows each server-side apply, so that going back works
too. All of this is for the manager `kubectl` alone, as in Kubernetes; anybody else opts out by having another name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from fastness.apiserver.fields.compare import compare
from fastness.apiserver.fields.fieldset import FieldSet, difference
from fastness.apiserver.fields.ownership import NOTHING, stated_fields
from fastness.apiserver.fields.schema import TypedSchema
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of

KUBECTL: Final = "kubectl"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
MAX_ANNOTATIONS: Final = 256 * 1024


def recorded(live: Mapping[str, Any], api_version: str, schema: TypedSchema) -> FieldSet:
    """Fields that client-side apply recorded and that still have the recorded value."""
    record = _record(live)
    # An annotation is anybody's to write: a record of another version names fields that may mean something else here.
    if record is None or record.get("apiVersion") != api_version:
        return NOTHING
    change = compare(record, live, schema)
    fields = stated_fields(record, schema.root) or {}
    for differing in change:
        # Only while the value is still the recorded one: whoever changed it since owns it, and the annotation must not take it
        # back.
        fields = difference(fields, differing or {})
    return FieldSet(fields)


def follow(obj: JsonObject, config: Mapping[str, Any]) -> None:
    """Bring the annotation of a merged object, if it has one, up to the configuration; drop it when it grows too large."""
    annotations = annotations_of(obj)
    if not annotations.get(LAST_APPLIED):
        return
    others = {name: text for name, text in annotations.items() if name != LAST_APPLIED}
    text = _text(config)
    size = sum(len(name.encode()) + len(str(value).encode()) for name, value in others.items())
    fits = size + len(LAST_APPLIED) + len(text.encode()) <= MAX_ANNOTATIONS
    obj["metadata"]["annotations"] = {**others, LAST_APPLIED: text} if fits else others


def _record(live: Mapping[str, Any]) -> JsonObject | None:
    try:
        record = orjson.loads(annotations_of(live).get(LAST_APPLIED) or "null")
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None


def _text(config: Mapping[str, Any]) -> str:
    annotations = annotations_of(config)
    if LAST_APPLIED in annotations:
        others = {name: text for name, text in annotations.items() if name != LAST_APPLIED}
        config = {**config, "metadata": {**config["metadata"], "annotations": others}}
    text = orjson.dumps(dict(config), option=orjson.OPT_SORT_KEYS).decode()
    for mark in "<>&":
        # Go's encoder escapes these three, so this is byte for byte what kubectl writes.
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text + "\n"
