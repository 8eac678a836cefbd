"""Raw objects and how to look at them.

Objects stay JSON as they came (`JsonObject`), so that a field nobody here knows survives every read-modify-write. These
functions read the fields that every object has; `view` decodes a typed look at one object for a decision and is never written
back. Conditions are the one list that all statuses share, so their rule lives here: `lastTransitionTime` moves only when
`status` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, dataclass_transform

import msgspec

from fastness.kinds.kind import JsonObject

V = TypeVar("V")


if TYPE_CHECKING:
    # Type checkers do not see that subclasses of a frozen Struct are frozen too; this says the same in their words.
    @dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
    class View:
        """Base of typed views: camelCase names, unknown fields ignored, values never change."""

        def __init_subclass__(cls, *, kw_only: bool = True) -> None: ...

else:

    class View(msgspec.Struct, rename="camel", kw_only=True, frozen=True):
        """Base of typed views: camelCase names, unknown fields ignored, values never change."""


class OwnerReference(View):
    """Who an object belongs to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Metadata(View):
    """The metadata that decisions look at."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages the object, if it has one."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class Condition(View):
    """One condition of a status."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int | None = None


class LabelRequirement(View):
    """One requirement of a label selector."""

    key: str
    operator: str
    values: tuple[str, ...] | None = None


class LabelSelector(View):
    """A label selector as objects carry it; `formats.selectors` evaluates it."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[LabelRequirement, ...] = ()


def holds(conditions: Sequence[Condition], kind: str) -> bool:
    """Whether the condition of that type is there with status True."""
    return any(entry.type == kind and entry.status == "True" for entry in conditions)


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
    meta = obj.get("metadata")
    return meta if isinstance(meta, dict) else {}


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
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    # strftime costs ten times as much, and every write is stamped twice.
    return f"{moment.isoformat(timespec='seconds')[:19]}Z"


def condition(obj: Mapping[str, Any], kind: str) -> Mapping[str, Any] | None:
    """The condition of that type in the status, if it is there."""
    status = obj.get("status")
    entries = status.get("conditions") if isinstance(status, dict) else None
    return next((entry for entry in entries or () if entry.get("type") == kind), None)


def with_condition(
    conditions: Sequence[Mapping[str, Any]],
    *,
    kind: str,
    status: str,
    reason: str,
    message: str,
    now: datetime,
    generation: int | None = None,
) -> list[JsonObject]:
    """The conditions with one set; unknown fields stay, and the transition time does while the status is the same."""
    old = next((entry for entry in conditions if entry.get("type") == kind), None)
    unchanged = old is not None and old.get("status") == status
    since = old["lastTransitionTime"] if old is not None and unchanged and "lastTransitionTime" in old else rfc3339(now)
    unknown = {key: value for key, value in (old or {}).items() if key != "observedGeneration"}
    new: JsonObject = {
        **unknown, "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
        **({"observedGeneration": generation} if generation is not None else {}),
    }  # fmt: skip
    if old is None:
        return [*(dict(entry) for entry in conditions), new]
    return [new if entry is old else dict(entry) for entry in conditions]
