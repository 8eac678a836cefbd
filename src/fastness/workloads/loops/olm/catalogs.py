"""The catalogs that Subscriptions name: they are there, and say that they can be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from fastness.kinds.kind import Resource
from fastness.kinds.kubernetes.core import NAMESPACE
from fastness.kinds.objects import ObjectName, is_being_deleted, object_name, rfc3339
from fastness.kinds.openshift.operators import CATALOG_SOURCE
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.runtime.clock import Clock
from fastness.workloads.olm import catalog

NAMESPACES: Final = NAMESPACE.resource
SOURCES: Final = CATALOG_SOURCE.resource
ALL: Final = ObjectName("", "*")
READY: Final = "READY"
LATER: Final = 5.0
_AS: Final = WriteOptions(manager="operator-catalogs")
_STATUS: Final = WriteOptions(manager="operator-catalogs", subresource="status")


def _ours(obj: Object) -> Iterable[ObjectName]:
    place = object_name(obj)
    return (ALL,) if catalog.MARKETPLACE in (place.namespace, place.name) else ()


class Catalogs:
    """Keeps the CatalogSources whose packages this control plane offers."""

    name = "operator-catalogs"
    sources: Sequence[Source] = (Source(SOURCES, keys=_ours), Source(NAMESPACES, keys=_ours))
    writes: Sequence[Resource] = (NAMESPACES, SOURCES)
    always = (ALL,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    async def reconcile(self, key: ObjectName) -> Done:
        """Create what is missing; say that it is ready."""
        if not await self._namespace():
            return Done(again_after=LATER)
        for source in catalog.SOURCES:
            await self._source(source)
        return Done()

    async def _namespace(self) -> bool:
        """Whether things can be made there; a namespace that is going is waited for."""
        try:
            return not is_being_deleted(await self._cluster.get(NAMESPACES, catalog.MARKETPLACE))
        except NotFound:
            made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": catalog.MARKETPLACE}}
            with suppress(AlreadyExists):
                await self._cluster.create(NAMESPACES, made, _AS)
            return True

    async def _source(self, source: catalog.Source) -> None:
        try:
            present = await self._cluster.get(SOURCES, source.name, catalog.MARKETPLACE)
        except NotFound:
            try:
                present = await self._cluster.create(SOURCES, catalog.catalog_source(source), _AS)
            except (AlreadyExists, NotFound):
                return
        state = ((present.get("status") or {}).get("connectionState") or {}).get("lastObservedState")
        if state != READY and not is_being_deleted(present):
            connection = {"lastObservedState": READY, "lastConnect": rfc3339(self._clock.now())}
            patch = {"status": {"connectionState": connection}}
            with suppress(NotFound):
                await self._cluster.patch(SOURCES, source.name, patch, PatchType.MERGE, catalog.MARKETPLACE, _STATUS)
