"""A cluster that does not serve every kind: one that nobody defined reads as a kind without objects.

    served = ServedKinds(cluster, clock, absent)
    async with Informers(served, …): ...          its caches of absent kinds are empty, and in touch

* On somebody's Kubernetes only our own definitions are certain (`kinds.crd.sets`). Who reads the others must not wait for them
  for ever, nor take a door out of service because of them.
* Definitions may come later. Whoever follows an absent kind asks for it once a minute; from the first answer on it is read like
  any other, and `came` says that something did: controllers that were left out can start.
* A definition that goes while we run is the business of informers, which wait: what was there may still count.
* Writes are passed on: the API server says itself that it does not serve the kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from fastness.kinds.kind import JsonObject, Resource
from fastness.kube.errors import ApiError, NotFound
from fastness.kube.port import (
    DELETE,
    EVERYWHERE,
    WRITE,
    Cluster,
    DeleteOptions,
    Event,
    EventType,
    Page,
    PatchType,
    Scope,
    WriteOptions,
)
from fastness.runtime.clock import Clock

# As often as an API server sends bookmarks: a cache that hears less takes its watch for dead.
LOOK_SECONDS: Final = 60.0
_NOWHERE: Final = "not-served"


class ServedKinds:
    """Passes everything on but reads of kinds that are not served."""

    def __init__(self, cluster: Cluster, clock: Clock, absent: Collection[Resource]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._absent = {(resource.group, resource.plural): resource for resource in absent}
        self.came = asyncio.Event()

    @property
    def absent_groups(self) -> frozenset[str]:
        """The groups of which at least one kind is not served."""
        return frozenset(group for group, _ in self._absent)

    async def look(self) -> None:
        """Ask for every absent kind once: whether somebody installed it."""
        for resource in tuple(self._absent.values()):
            await self._is_served(resource)

    async def follow(self) -> None:
        """Ask again and again, until cancelled."""
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            await self.look()

    async def _is_served(self, resource: Resource, scope: Scope = EVERYWHERE) -> bool:
        key = resource.group, resource.plural
        if key not in self._absent:
            return True
        try:
            await self._cluster.list(resource, scope, limit=1)
        except ApiError:  # not served, not for us to read, or nobody answers: none of them says that it came
            return False
        # Several may have asked at once: whoever follows it, and the one who looks after all of them.
        if self._absent.pop(key, None) is not None:
            self.came.set()
        return True

    def _lacks(self, resource: Resource) -> bool:
        return (resource.group, resource.plural) in self._absent

    async def get(self, resource: Resource, name: str, namespace: str = "") -> JsonObject:
        """One object; raises NotFound."""
        if self._lacks(resource):
            raise NotFound(f"{resource.plural}.{resource.group} is not served here", kind=resource.kind, name=name)
        return await self._cluster.get(resource, name, namespace)

    async def list(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, limit: int = 0, token: str = "", version: str = ""
    ) -> Page:
        """Objects; none of a kind that is not served."""
        if self._lacks(resource):
            return Page([], _NOWHERE)
        return await self._cluster.list(resource, scope, limit=limit, token=token, version=version)

    def watch(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, since: str = "", initial: bool = False
    ) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Changes; a kind that is not served has none, until it is."""
        if self._lacks(resource):
            return self._nothing(resource, scope, initial)
        # A position of before the kind was served is none: the state has to be taken anew.
        if since == _NOWHERE:
            return self._cluster.watch(resource, scope, initial=True)
        return self._cluster.watch(resource, scope, since=since, initial=initial)

    @asynccontextmanager
    async def _nothing(self, resource: Resource, scope: Scope, initial: bool) -> AsyncIterator[AsyncIterator[Event]]:
        yield self._silence(resource, scope, initial)

    async def _silence(self, resource: Resource, scope: Scope, initial: bool) -> AsyncIterator[Event]:
        word = {"kind": resource.kind, "metadata": {"resourceVersion": _NOWHERE}}
        if initial:
            yield Event(EventType.BOOKMARK, word, synced=True)
        while not await self._is_served(resource, scope):
            yield Event(EventType.BOOKMARK, word)
            await self._clock.sleep(LOOK_SECONDS)

    async def create(self, resource: Resource, obj: JsonObject, options: WriteOptions = WRITE) -> JsonObject:
        """A new object."""
        return await self._cluster.create(resource, obj, options)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        kind: PatchType,
        namespace: str = "",
        options: WriteOptions = WRITE,
    ) -> JsonObject:
        """Change fields."""
        return await self._cluster.patch(resource, name, patch, kind, namespace, options)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", options: DeleteOptions = DELETE
    ) -> JsonObject:
        """Ask for deletion."""
        return await self._cluster.delete(resource, name, namespace, options)

    async def connect(
        self, resource: Resource, name: str, namespace: str, subresource: str, body: JsonObject
    ) -> JsonObject:
        """POST to a subresource."""
        return await self._cluster.connect(resource, name, namespace, subresource, body)
