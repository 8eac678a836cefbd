"""Shared informers: one per resource and scope, however many ask.

    async with Informers(cluster, clock=clock, entropy=entropy) as informers:
        nodes = informers.of(NODE, indexers={"pool": pool_of})
        await informers.synced()

An informer that is asked for before the block starts with it, one that is asked for inside starts at once; the end of the block
ends them all. One object that cannot be used ends none of them: `set_aside` names it.

Where nobody reads the whole of large objects in a scope, `trims` says what is held of them.

Objects of kinds that count in some namespaces only (`kube.places`) are given out from those alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Final

from fastness.kinds.kind import Resource
from fastness.kube.informers.cache import Indexer
from fastness.kube.informers.informer import Informer, Trim
from fastness.kube.informers.joined import JoinedInformer
from fastness.kube.informers.placed import scopes_of
from fastness.kube.places import AT_HOME, Places
from fastness.kube.port import EVERYWHERE, Cluster, Scope
from fastness.runtime.clock import Clock, Entropy

Trims = Mapping[tuple[Resource, Scope], Trim]
WHOLE: Final[Trims] = MappingProxyType({})
_Key = tuple[Resource, tuple[Scope, ...]]


class Informers:
    """Gives out informers and runs them."""

    def __init__(
        self, cluster: Cluster, *, clock: Clock, entropy: Entropy, places: Places = AT_HOME, trims: Trims = WHOLE
    ) -> None:
        self.places = places
        self._trims = trims
        self._cluster = cluster
        self._clock = clock
        self._entropy = entropy
        self._informers: dict[_Key, Informer] = {}
        self._tasks: dict[_Key, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    def of(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, indexers: Mapping[str, Indexer] | None = None
    ) -> Informer:
        """The informer of a resource in a scope, with these indexes too.

        Raises InformerError for two indexes of one name, and for a scope in which objects of the kind do not count.
        """
        key = (resource, scopes_of(self.places, resource, scope))
        informer = self._informers.get(key)
        if informer is None:
            informer = self._informers[key] = self._made(*key)
        for name, indexer in (indexers or {}).items():
            informer.add_index(name, indexer)
        self._start(key)
        return informer

    def _made(self, resource: Resource, scopes: Sequence[Scope]) -> Informer:
        parts = [self._part(resource, each) for each in scopes]
        return parts[0] if len(parts) == 1 else JoinedInformer(parts)

    def _part(self, resource: Resource, scope: Scope) -> Informer:
        trim = self._trims.get((resource, scope))
        return Informer(self._cluster, resource, scope, clock=self._clock, entropy=self._entropy, trim=trim)

    def watched(self) -> list[tuple[Resource, tuple[Scope, ...]]]:
        """What is followed, and where."""
        return [*self._informers]

    async def synced(self) -> None:
        """Wait until every informer that was asked for has its first state."""
        for informer in [*self._informers.values()]:
            await informer.synced()

    def unsynced(self) -> list[str]:
        """The resources whose first state is still missing, for readiness messages."""
        return sorted({each.resource.plural for each in self._informers.values() if not each.has_synced})

    def out_of_touch(self) -> str | None:
        """Which caches have had their first state and do not follow the cluster now, for readiness; None when none."""
        lost = (each for each in self._informers.values() if each.has_synced and not each.in_touch)
        names = sorted({each.resource.plural for each in lost})
        return f"out of touch with the API: nothing is heard of {', '.join(names)}" if names else None

    def set_aside(self) -> list[str]:
        """What the caches left out because it cannot be used: resource, name and reason, for people with the right to know."""
        return sorted(
            {
                f"{each.resource.plural} {'/'.join(filter(None, key))}: {reason}"
                for each in self._informers.values()
                for key, reason in each.aside.items()
            }
        )

    def unused(self) -> str | None:
        """How many objects of which resources are set aside, without names, for readiness; None when none."""
        aside = {(each.resource.plural, key) for each in self._informers.values() for key in each.aside}
        counts = Counter(plural for plural, _ in aside)
        counted = ", ".join(f"{count} of {plural}" for plural, count in sorted(counts.items()))
        return (
            f"objects that cannot be used are set aside: {counted}; the log and `fastness doctor` name them"
            if counts
            else None
        )

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

    def _start(self, key: _Key) -> None:
        if self._group is not None and key not in self._tasks:
            resource = self._informers[key].resource
            self._tasks[key] = self._group.create_task(self._informers[key].run(), name=f"informer {resource.plural}")
