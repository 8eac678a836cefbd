"""A deleted CustomResourceDefinition takes its objects with it.

The finalizer that every definition gets keeps it until its last object is gone; objects that hold themselves by finalizers are
waited for.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastness.apiserver.loops.garbage import EVERYTHING
from fastness.apiserver.loops.inventory import Inventory
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.apiextensions import CUSTOM_RESOURCE_DEFINITION
from fastness.kinds.objects import ObjectName
from fastness.kube.controllers.controller import GONE, Done, Source
from fastness.kube.errors import ApiError, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions

DEFINITIONS = CUSTOM_RESOURCE_DEFINITION.resource
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
AGAIN_SECONDS = 0.5
PAGE = 500
_AS = WriteOptions(manager="definition-cleanup")


class DefinitionCleanup:
    """Deletes the objects of definitions that are being deleted."""

    name = "definition-cleanup"
    sources: Sequence[Source] = (Source(DEFINITIONS),)
    writes: Sequence[Resource] = (EVERYTHING,)

    def __init__(self, cluster: Cluster, inventory: Inventory) -> None:
        self._cluster = cluster
        self._inventory = inventory

    async def reconcile(self, key: ObjectName) -> Done:
        """Delete a page of objects, or let the definition go."""
        try:
            definition = await self._cluster.get(DEFINITIONS, key.name)
        except NotFound:
            return GONE
        meta = definition["metadata"]
        if not meta.get("deletionTimestamp") or FINALIZER not in (meta.get("finalizers") or ()):
            return Done()
        if await self._delete_objects(definition):
            return Done(again_after=AGAIN_SECONDS)
        left = [entry for entry in meta["finalizers"] if entry != FINALIZER]
        patch = {"metadata": {"resourceVersion": meta["resourceVersion"], "finalizers": left or None}}
        try:
            await self._cluster.patch(DEFINITIONS, key.name, patch, PatchType.MERGE, "", _AS)
        except NotFound:
            return GONE
        return Done()

    async def _delete_objects(self, definition: JsonObject) -> bool:
        """Ask for the deletion of what is there; whether something still is."""
        spec = definition["spec"]
        resource = self._inventory.resource(spec["group"], spec["names"]["plural"])
        if resource is None:
            return False
        page = await self._cluster.list(resource, limit=PAGE)
        for obj in page.items:
            meta = obj["metadata"]
            if meta.get("deletionTimestamp"):
                continue
            try:
                await self._cluster.delete(resource, meta["name"], meta.get("namespace", ""))
            except NotFound:
                continue
            except ApiError:
                return True
        # Asked again: a page was deleted, and finalizers may hold what is left.
        return bool((await self._cluster.list(resource, limit=1)).items)
