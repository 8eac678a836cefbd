"""Wanted and present objects compared: what is created, what is changed, what is kept and why.

A present object is right when it has what is wanted; whatever else is in it is its owner's. Lists are compared entry by entry,
because servers fill defaults into entries. `Keep` objects are only ever created: an operator that somebody subscribed to, a token
that is in use, a KataConfig that is installing are not ours to change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import object_name
from fastness.kinds.registry import all_kinds
from fastness.workloads.enable.inputs import Snapshot

Object = Mapping[str, Any]
Twin = Callable[[Snapshot, JsonObject], JsonObject | None]
MOST_FIELDS: Final = 8


class Action(StrEnum):
    """What happens to an object."""

    CREATE = "create"
    CHANGE = "change"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """One object: what happens to it, which fields differ, and a remark."""

    action: Action
    resource: Resource
    target: JsonObject
    fields: tuple[str, ...] = ()
    note: str = ""

    @property
    def named(self) -> str:
        """Kind, namespace and name."""
        place = object_name(self.target)
        return f"{self.resource.kind} {f'{place.namespace}/' if place.namespace else ''}{place.name}"

    @property
    def patch(self) -> JsonObject:
        """What is merged into the present object: everything that is ours, and nothing of its identity."""
        labels = self.target["metadata"].get("labels")
        return {**_body(self.target), **({"metadata": {"labels": labels}} if labels else {})}


def resource_of(obj: Object) -> Resource:
    """The coordinates of an object's kind; raises KeyError for one that nobody knows."""
    group, _, version = str(obj["apiVersion"]).rpartition("/")
    key = (group, version, str(obj["kind"]))
    return next(kind.resource for kind in all_kinds() if (kind.group, kind.version, kind.kind) == key)


def compared(snapshot: Snapshot, target: JsonObject, *, keep: bool = False, twin: Twin | None = None) -> ObjectChange:
    """What has to happen for an object to be there; `twin` finds one that does the same under another name."""
    resource, place = resource_of(target), object_name(target)
    present = snapshot.get(resource.plural, place.name, place.namespace)
    if present is None and twin is not None:
        other = twin(snapshot, target)
        if other is not None:
            return ObjectChange(Action.KEEP, resource, other, note="does it already")
    if present is None:
        return ObjectChange(Action.CREATE, resource, target)
    fields = () if keep else tuple(differences(_body(target), _body(present)))
    return ObjectChange(Action.CHANGE if fields else Action.KEEP, resource, target, fields[:MOST_FIELDS])


def differences(target: Any, present: Any, path: str = "") -> Iterator[str]:
    """The paths at which a present value lacks what is wanted."""
    if isinstance(target, Mapping) and isinstance(present, Mapping):
        for key, value in target.items():
            yield from differences(value, present.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(target, list) and isinstance(present, list) and len(target) == len(present):
        for index, (expected, other) in enumerate(zip(target, present, strict=True)):
            yield from differences(expected, other, f"{path}[{index}]")
    # A server drops what is empty: to lack it is to have it.
    elif target != present and not (present is None and target in ("", {}, [], False)):
        yield path


def _body(obj: Object) -> JsonObject:
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata", "status")}
