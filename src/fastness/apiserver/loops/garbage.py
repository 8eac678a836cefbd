"""Garbage collection: what happens to objects when their owners go.

For one object at a time:

* Orphan (finalizer `orphan` on a deleted owner): its dependents lose the reference, then the owner goes.
* Foreground (finalizer `foregroundDeletion`): its dependents are deleted, and it goes when none is left that blocks it.
* Background: an object whose owners are all gone is deleted; references to owners that are gone are dropped when another stays.

An owner exists only if the object at its place has the uid that the reference names: a new object with an old name owns nothing.
Deletes carry the uid as a precondition, so that a replacement is never hit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from fastness.apiserver.loops.inventory import Inventory
from fastness.apiserver.store.records import Key
from fastness.kinds.kind import JsonObject, Resource
from fastness.kube.controllers.controller import GONE, Done, Source
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.port import Cluster, DeleteOptions, PatchType, Propagation, WriteOptions

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
EVERYTHING = Resource("*", "*", "*", "*", False)
_AS = WriteOptions(manager="garbage-collector")


class GarbageCollector:
    """Deletes what nobody owns any more."""

    name = "garbage-collector"
    sources: Sequence[Source] = ()
    writes: Sequence[Resource] = (EVERYTHING,)

    def __init__(self, cluster: Cluster, inventory: Inventory, unowned: Collection[tuple[str, str]]) -> None:
        self._cluster = cluster
        self._inventory = inventory
        self._unowned = unowned

    async def reconcile(self, key: Key) -> Done:
        """One step for one object."""
        obj = self._inventory.read(key)
        if obj is None:
            return GONE
        meta = obj["metadata"]
        finalizers = meta.get("finalizers") or ()
        if meta.get("deletionTimestamp") and ORPHAN in finalizers:
            await self._orphan(key, obj)
        elif meta.get("deletionTimestamp") and FOREGROUND in finalizers:
            await self._foreground(key, obj)
        elif meta.get("ownerReferences"):
            await self._judge(key, obj)
        return Done()

    async def _orphan(self, key: Key, obj: JsonObject) -> None:
        uid = obj["metadata"]["uid"]
        for dependent in self._inventory.dependents(uid):
            child = self._inventory.read(dependent)
            if child is not None:
                await self._keep_owners(dependent, child, lambda ref: ref["uid"] != uid)
        await self._drop_finalizer(key, obj, ORPHAN)

    async def _foreground(self, key: Key, obj: JsonObject) -> None:
        uid = obj["metadata"]["uid"]
        blocking = False
        for dependent in self._inventory.dependents(uid):
            child = self._inventory.read(dependent)
            if child is None:
                continue
            blocking |= any(ref["uid"] == uid and ref.get("blockOwnerDeletion") for ref in _owners(child))
            if not child["metadata"].get("deletionTimestamp"):
                await self._judge(dependent, child)
        if not blocking:
            await self._drop_finalizer(key, obj, FOREGROUND)

    async def _judge(self, key: Key, obj: JsonObject) -> None:
        """Delete an object that no owner holds; drop references to owners that are gone when one stays.

        Kinds that end only through their own path are left alone, whatever owners they got before that was refused.
        """
        # Trust rests on these: an owner that does not exist, named by somebody who may not delete, would have us delete a
        # quarantine.
        if (key.group, key.plural) in self._unowned:
            return
        solid: list[str] = []
        gone: list[str] = []
        for ref in _owners(obj):
            owner = self._owner(key, ref)
            (solid if owner is not None and not _leaving(owner) else gone).append(ref["uid"])
        if not gone or obj["metadata"].get("deletionTimestamp"):
            return
        if solid:
            await self._keep_owners(key, obj, lambda ref: ref["uid"] in solid)
            return
        waiting = any((owner := self._owner(key, ref)) is not None and _leaving(owner) for ref in _owners(obj))
        has_own = bool(self._inventory.dependents(obj["metadata"]["uid"]))
        await self._delete(key, obj, Propagation.FOREGROUND if waiting and has_own else Propagation.BACKGROUND)

    def _owner(self, key: Key, ref: JsonObject) -> JsonObject | None:
        place = self._inventory.owner_key(ref, key.namespace)
        owner = self._inventory.read(place) if place is not None else None
        # Whoever makes an object anew under the name of a deleted owner must not inherit what that one owned.
        return owner if owner is not None and owner["metadata"]["uid"] == ref["uid"] else None

    async def _keep_owners(self, key: Key, obj: JsonObject, keep: Callable[[JsonObject], bool]) -> None:
        references = [ref for ref in _owners(obj) if keep(ref)]
        meta = {"uid": obj["metadata"]["uid"], "ownerReferences": references or None}
        await self._patch(key, obj, meta)

    async def _drop_finalizer(self, key: Key, obj: JsonObject, finalizer: str) -> None:
        left = [entry for entry in obj["metadata"].get("finalizers") or () if entry != finalizer]
        await self._patch(key, obj, {"uid": obj["metadata"]["uid"], "finalizers": left or None})

    async def _patch(self, key: Key, obj: JsonObject, meta: JsonObject) -> None:
        resource = self._inventory.resource(key.group, key.plural)
        if resource is None:
            return
        # A list is replaced as a whole by a merge patch: without the version an owner that was added meanwhile would be lost.
        conditional = {**meta, "resourceVersion": obj["metadata"]["resourceVersion"]}
        try:
            await self._cluster.patch(
                resource, key.name, {"metadata": conditional}, PatchType.MERGE, key.namespace, _AS
            )
        except NotFound:
            return

    async def _delete(self, key: Key, obj: JsonObject, propagation: Propagation) -> None:
        resource = self._inventory.resource(key.group, key.plural)
        if resource is None:
            return
        # What was judged is this object; one that took its name since has owners of its own.
        options = DeleteOptions(uid=obj["metadata"]["uid"], propagation=propagation)
        try:
            await self._cluster.delete(resource, key.name, key.namespace, options)
        except (NotFound, Conflict):
            return


def _owners(obj: JsonObject) -> list[JsonObject]:
    return list(obj["metadata"].get("ownerReferences") or ())


def _leaving(owner: JsonObject) -> bool:
    """Whether an owner waits in the foreground for its dependents to go."""
    meta = owner["metadata"]
    return bool(meta.get("deletionTimestamp")) and FOREGROUND in (meta.get("finalizers") or ())
