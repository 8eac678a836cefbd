"""Shared informers: one per resource and scope, however many ask.

    async with Informers(cluster, clock=clock, entropy=entropy) as informers:
        nodes = informers.of(NODE, indexers={"pool": pool_of})
        await informers.synced()

An informer that is asked for before the block starts with it, one that is asked for inside starts at once; the end of the block
ends them all. An informer that fails has met a defect in a handler and takes the block down with it, as a task group does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType

from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.informers.cache import Indexer
from fastness.cluster.informers.informer import Informer
from fastness.cluster.port import EVERYWHERE, Cluster, Scope
from fastness.model.kind import Resource


class Informers:
    """Gives out informers and runs them."""

    def __init__(self, cluster: Cluster, *, clock: Clock, entropy: Entropy) -> None:
        self._cluster = cluster
        self._clock = clock
        self._entropy = entropy
        self._informers: dict[tuple[Resource, Scope], Informer] = {}
        self._tasks: dict[tuple[Resource, Scope], asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    def of(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, indexers: Mapping[str, Indexer] | None = None
    ) -> Informer:
        """The informer of a resource in a scope, with these indexes too; raises InformerError for two of one name."""
        key = (resource, scope)
        informer = self._informers.get(key)
        if informer is None:
            informer = Informer(self._cluster, resource, scope, clock=self._clock, entropy=self._entropy)
            self._informers[key] = informer
        for name, indexer in (indexers or {}).items():
            informer.add_index(name, indexer)
        self._start(key)
        return informer

    async def synced(self) -> None:
        """Wait until every informer that was asked for has its first state."""
        for informer in [*self._informers.values()]:
            await informer.synced()

    def unsynced(self) -> list[str]:
        """The resources whose first state is still missing, for readiness messages."""
        return sorted({each.resource.plural for each in self._informers.values() if not each.has_synced})

    def out_of_touch(self) -> str:
        """Which caches have had their first state and do not follow the cluster now, for readiness; empty when none."""
        lost = (each for each in self._informers.values() if each.has_synced and not each.in_touch)
        names = sorted({each.resource.plural for each in lost})
        return f"out of touch with the API: nothing is heard of {', '.join(names)}" if names else ""

    async def __aenter__(self) -> Informers:
        self._group = await asyncio.TaskGroup().__aenter__()
        for key in self._informers:
            self._start(key)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        group, self._group = self._group, None
        for task in self._tasks.values():
            task.cancel()
        self._tasks = {}
        if group is not None:
            await group.__aexit__(kind, error, trace)

    def _start(self, key: tuple[Resource, Scope]) -> None:
        if self._group is not None and key not in self._tasks:
            resource = self._informers[key].resource
            self._tasks[key] = self._group.create_task(self._informers[key].run(), name=f"informer {resource.plural}")
