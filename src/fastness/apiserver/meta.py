"""Metadata: the part that every object has, and the server's own fields in it.

Three things happen to metadata, in this order:

* `read` decodes what a client sent: wrong types are a 400 as in Kubernetes, unknown fields are dropped and reported.
* `validate` checks names, labels, annotations, owners and finalizers and gives causes for a 422.
* `for_create` and `for_update` put the server's fields in place: uid, creationTimestamp, generation, deletionTimestamp and
  resourceVersion are never taken from a client.

Nothing here knows a kind: the rule for names comes in as a function of `formats/names`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fastness.formats import names
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339
from fastness.kube.errors import BadRequest, Cause

# TotalAnnotationSizeLimitB of apimachinery. Below: five characters, and names of at most 63, as its name generator makes them.
MAX_ANNOTATIONS = 256 * 1024
RANDOM_SUFFIX = 5
MAX_GENERATED = 63
# Without vowels and look-alikes, as in apimachinery's rand: no words, and nothing that is misread from a terminal.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

_STRINGS = frozenset({"name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"})
_TIMES = frozenset({"creationTimestamp", "deletionTimestamp"})
_INTEGERS = frozenset({"generation", "deletionGracePeriodSeconds"})
_MAPS = frozenset({"labels", "annotations"})
_LISTS = frozenset({"ownerReferences", "finalizers", "managedFields"})
_LEFT_OUT = frozenset(
    {"labels", "annotations", "ownerReferences", "finalizers", "name", "generateName", "namespace", "selfLink"}
)
_OWNER = {"apiVersion": str, "kind": str, "name": str, "uid": str, "controller": bool, "blockOwnerDeletion": bool}
_SERVERS_OWN = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink")


def read(obj: Mapping[str, Any]) -> tuple[JsonObject, list[str]]:
    """The metadata that a client sent and the unknown fields dropped from it; raises BadRequest for wrong types."""
    sent = obj.get("metadata")
    if sent is None:
        return {}, []
    if not isinstance(sent, dict):
        raise _wrong_type("metadata", "an object", sent)
    meta: JsonObject = {}
    unknown: list[str] = []
    for field, value in sent.items():
        if value is None or (not value and field in _LEFT_OUT):
            continue
        if field in _STRINGS or field in _TIMES:
            if not isinstance(value, str):
                raise _wrong_type(f"metadata.{field}", "a string", value)
        elif field in _MAPS:
            value = _string_map(field, value)
        elif field in _LISTS:
            value = _list(field, value, unknown)
        elif field in _INTEGERS:
            # In Python a bool is an int; in JSON `generation: true` is a wrong type.
            if isinstance(value, bool) or not isinstance(value, int):
                raise _wrong_type(f"metadata.{field}", "an integer", value)
        else:
            unknown.append(f"metadata.{field}")
            continue
        meta[field] = value
    return meta, unknown


def _wrong_type(path: str, expected: str, value: Any) -> BadRequest:
    actual = "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else f"{value!r:.60}"
    return BadRequest(f"{path}: must be {expected}, is {actual}")


def _string_map(field: str, value: Any) -> Any:
    if not isinstance(value, dict):
        raise _wrong_type(f"metadata.{field}", "an object", value)
    for key, entry in value.items():
        if not isinstance(entry, str):
            if entry is None:
                return {k: "" if e is None else e for k, e in value.items()}
            raise _wrong_type(f"metadata.{field}[{key}]", "a string", entry)
    return value


def _list(field: str, value: Any, unknown: list[str]) -> Any:
    if not isinstance(value, list):
        raise _wrong_type(f"metadata.{field}", "a list", value)
    if field == "finalizers":
        for index, entry in enumerate(value):
            if not isinstance(entry, str):
                raise _wrong_type(f"metadata.finalizers[{index}]", "a string", entry)
        return value
    for index, entry in enumerate(value):
        if not isinstance(entry, dict):
            raise _wrong_type(f"metadata.{field}[{index}]", "an object", entry)
        if field == "ownerReferences":
            _check_owner_types(index, entry, unknown)
    return value


def _check_owner_types(index: int, entry: JsonObject, unknown: list[str]) -> None:
    for name, value in list(entry.items()):
        path = f"metadata.ownerReferences[{index}].{name}"
        if name not in _OWNER:
            unknown.append(path)
            del entry[name]
        elif value is not None and not isinstance(value, _OWNER[name]):
            raise _wrong_type(path, "a boolean" if _OWNER[name] is bool else "a string", value)


def validate(
    meta: Mapping[str, Any], name_rule: names.Validator, *, namespaced: bool, bare_finalizers: bool = True
) -> list[Cause]:
    """Everything wrong with the metadata of an object that is about to be stored."""
    causes: list[Cause] = []
    if generate := meta.get("generateName"):
        problems = names.generate_prefix(name_rule, generate)
        causes += [_invalid("metadata.generateName", generate, problem) for problem in problems]
    if name := meta.get("name"):
        causes += [_invalid("metadata.name", name, problem) for problem in name_rule(name)]
    elif not generate:
        causes.append(Cause("metadata.name", "FieldValueRequired", "Required value: name or generateName is required"))
    if not namespaced and meta.get("namespace"):
        causes.append(Cause("metadata.namespace", "FieldValueForbidden", "Forbidden: not allowed on this type"))
    causes += _validate_maps(meta)
    causes += _validate_finalizers(meta.get("finalizers") or (), bare=bare_finalizers)
    causes += _validate_owners(meta.get("ownerReferences") or ())
    return causes


def _invalid(path: str, value: Any, problem: str) -> Cause:
    return Cause(path, "FieldValueInvalid", f"Invalid value: {str(value)[:120]!r}: {problem}")


def _validate_maps(meta: Mapping[str, Any]) -> list[Cause]:
    causes: list[Cause] = []
    for key, value in (meta.get("labels") or {}).items():
        causes += [_invalid("metadata.labels", key, problem) for problem in names.qualified_name(key)]
        causes += [_invalid("metadata.labels", value, problem) for problem in names.label_value(value)]
    size = 0
    for key, value in (meta.get("annotations") or {}).items():
        causes += [_invalid("metadata.annotations", key, problem) for problem in names.qualified_name(key.lower())]
        size += len(key) + len(value)
    if size > MAX_ANNOTATIONS:
        causes.append(
            Cause(
                "metadata.annotations", "FieldValueTooLong", f"Too long: may not be more than {MAX_ANNOTATIONS} bytes"
            )
        )
    return causes


def _validate_finalizers(finalizers: Any, *, bare: bool) -> list[Cause]:
    causes: list[Cause] = []
    for index, finalizer in enumerate(finalizers):
        causes += [_invalid("metadata.finalizers", finalizer, problem) for problem in names.qualified_name(finalizer)]
        if not bare and "/" not in finalizer and finalizer not in ("orphan", "foregroundDeletion", "kubernetes"):
            text = "name is neither a standard finalizer name nor qualified"
            causes.append(_invalid(f"metadata.finalizers[{index}]", finalizer, text))
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        causes.append(_invalid("metadata.finalizers", finalizers, "orphan and foregroundDeletion exclude each other"))
    return causes


def _validate_owners(owners: Any) -> list[Cause]:
    causes: list[Cause] = []
    controllers = 0
    path = "metadata.ownerReferences"  # without an index: that is how Kubernetes names these fields
    for owner in owners:
        causes += [
            _invalid(f"{path}.{field}", owner.get(field, ""), "must not be empty")
            for field in ("apiVersion", "kind", "name", "uid")
            if not owner.get(field)
        ]
        version = owner.get("apiVersion") or ""
        if version.count("/") > 1 or version.endswith("/"):
            causes.append(_invalid(f"{path}.apiVersion", version, "is not <group>/<version>"))
        # BannedOwners of apimachinery: events expire, and the collector would take what they own along.
        if owner.get("kind") == "Event" and version in ("v1", "events.k8s.io/v1"):
            causes.append(_invalid(path, owner, "an event cannot be an owner"))
        controllers += bool(owner.get("controller"))
    if controllers > 1:
        causes.append(
            _invalid("metadata.ownerReferences", controllers, "only one reference can have controller = true")
        )
    return causes


def stated(meta: JsonObject) -> JsonObject:
    """The metadata without the fields that are never a client's to state."""
    return {key: value for key, value in meta.items() if key not in _SERVERS_OWN}


def for_create(meta: JsonObject, *, uid: str, now: datetime, generation: bool) -> JsonObject:
    """The metadata of a new object: what the client may say, and the server's own fields."""
    fresh: JsonObject = stated(meta)
    fresh["uid"] = uid
    fresh["creationTimestamp"] = rfc3339(now)
    if generation:
        fresh["generation"] = 1
    return fresh


def for_update(meta: JsonObject, old: Mapping[str, Any]) -> JsonObject:
    """The metadata of a changed object: the server's own fields stay as they were."""
    new: JsonObject = stated(meta)
    for field in _SERVERS_OWN:
        if field in old:
            new[field] = old[field]
    if "generateName" in old and "generateName" not in new:
        new["generateName"] = old["generateName"]
    return new


def generated_name(prefix: str, entropy: bytes) -> str:
    """A name from a prefix: five characters that spell no words."""
    suffix = "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in entropy[:RANDOM_SUFFIX])
    return prefix[: MAX_GENERATED - RANDOM_SUFFIX] + suffix
