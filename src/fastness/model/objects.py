"""Raw objects and how to look at them.

Objects stay JSON as they came (`JsonObject`), so that a field nobody here knows survives every read-modify-write. These
functions read the fields that every object has; `view` decodes a typed look at one object for a decision and is never written
back. Conditions are the one list that all statuses share, so their rule lives here: `lastTransitionTime` moves only when
`status` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import msgspec

from fastness.model.kind import JsonObject

V = TypeVar("V")


class View(msgspec.Struct, rename="camel", kw_only=True, frozen=True):
    """Base of typed views: camelCase names, unknown fields ignored."""


class ObjectName(NamedTuple):
    """Namespace (empty for cluster scope) and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def view(obj: Mapping[str, Any], to: type[V]) -> V:
    """Decode a typed look at `obj`; raises msgspec.ValidationError when a field has another type than the schema says."""
    return msgspec.convert(obj, type=to, strict=False)


def metadata(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata, empty when it is missing or null."""
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}


def object_name(obj: Mapping[str, Any]) -> ObjectName:
    """Namespace and name of an object."""
    meta = metadata(obj)
    return ObjectName(meta.get("namespace") or "", meta.get("name") or "")


def labels_of(obj: Mapping[str, Any]) -> Mapping[str, str]:
    """The labels, empty when there are none."""
    return metadata(obj).get("labels") or {}


def annotations_of(obj: Mapping[str, Any]) -> Mapping[str, str]:
    """The annotations, empty when there are none."""
    return metadata(obj).get("annotations") or {}


def is_being_deleted(obj: Mapping[str, Any]) -> bool:
    """Whether deletion was asked for and finalizers hold the object."""
    return bool(metadata(obj).get("deletionTimestamp"))


def rfc3339(moment: datetime) -> str:
    """A time as Kubernetes writes it: UTC, whole seconds, `Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(obj: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """The condition of that type in the status, if it is there."""
    status = obj.get("status")
    entries = status.get("conditions") if isinstance(status, dict) else None
    return next((entry for entry in entries or () if entry.get("type") == kind), None)


def with_condition(
    known: Sequence[Mapping[str, Any]],
    *,
    kind: str,
    status: str,
    reason: str,
    message: str,
    now: datetime,
    generation: int | None = None,
) -> list[JsonObject]:
    """The conditions with one set; the transition time is kept when the status does not change."""
    old = next((entry for entry in known if entry.get("type") == kind), None)
    unchanged = old is not None and old.get("status") == status
    since = old["lastTransitionTime"] if old is not None and unchanged and "lastTransitionTime" in old else rfc3339(now)
    new: JsonObject = {
        "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
        **({"observedGeneration": generation} if generation is not None else {}),
    }  # fmt: skip
    if old is None:
        return [*(dict(entry) for entry in known), new]
    return [new if entry is old else dict(entry) for entry in known]
