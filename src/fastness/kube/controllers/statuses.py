"""Writes of statuses that several loops share: only over what was read.

A list of conditions is written as a whole. A loop that writes it from a cache, without a word about what it had read, drops the
condition that another loop wrote a moment ago, and nothing brings that back before the other one looks again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import metadata, object_name
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions

TRIES: Final = 5
Change = Callable[[JsonObject], JsonObject | None]
"""The members of the status that change for an object; None or nothing when it says them already."""


def conditions_by(conditions: Callable[[JsonObject], list[JsonObject]]) -> Change:
    """A change of the conditions alone: to what is made of the object, if that is something else."""

    def change(obj: JsonObject) -> JsonObject | None:
        made = conditions(obj)
        return {"conditions": made} if made != ((obj.get("status") or {}).get("conditions") or []) else None

    return change


async def write_status(
    cluster: Cluster, resource: Resource, obj: JsonObject, change: Change, options: WriteOptions
) -> JsonObject | None:
    """The object with what `change` makes of its status, or None when it is gone; raises ApiError.

    Where somebody else wrote in between, the object is read again and `change` is asked about that.
    """
    place = object_name(obj)
    for tries_left in reversed(range(TRIES)):
        members = change(obj)
        if not members:
            return obj
        patch = {"metadata": {"resourceVersion": metadata(obj).get("resourceVersion")}, "status": members}
        try:
            return await cluster.patch(resource, place.name, patch, PatchType.MERGE, place.namespace, options)
        except NotFound:
            return None
        except Conflict:
            if not tries_left:
                raise
        try:
            obj = await cluster.get(resource, place.name, place.namespace)
        except NotFound:
            return None
    return obj
