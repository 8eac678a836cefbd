"""The in-process adapter of the `Cluster` port.

Controllers in the same process as the embedded API talk to it directly: no HTTP, no TLS, the same pipeline. They act as a
user, so admission and audit see who writes; authorization is not asked, because code in this process could read the store
anyway.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastness.apiserver import storable, subresources
from fastness.apiserver.call import Call
from fastness.apiserver.catalog import Served
from fastness.apiserver.engine import EmbeddedApi
from fastness.apiserver.large_objects import HeavyWork
from fastness.apiserver.refusals import no_such_resource
from fastness.apiserver.verbs import selection
from fastness.apiserver.verbs.convert import inward
from fastness.apiserver.verbs.deletes import deleted_status
from fastness.apiserver.verbs.reads import ListQuery
from fastness.apiserver.verbs.watches import INITIAL_EVENTS_END, Item, WatchQuery
from fastness.formats import json
from fastness.kinds.kind import JsonObject, Resource
from fastness.kube.access import User
from fastness.kube.port import (
    DELETE,
    EVERYWHERE,
    WRITE,
    DeleteOptions,
    Event,
    EventType,
    Page,
    PatchType,
    Scope,
    WriteOptions,
)
from fastness.observe import logs

CONTROL_PLANE = User("system:fastness", ("system:masters", "system:authenticated"))
BOOKMARK_SECONDS = 60.0


class LocalCluster:
    """The embedded API as controllers in this process see it."""

    def __init__(self, api: EmbeddedApi, user: User = CONTROL_PLANE) -> None:
        self._api = api
        self._user = user
        self._reading = HeavyWork(most=0)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> JsonObject:
        """One object; raises NotFound."""
        return await self._read(self._api.get(self._served(resource), namespace, name))

    async def list(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, limit: int = 0, token: str = "", version: str = ""
    ) -> Page:
        """Objects in order of namespace and name."""
        served = self._served(resource)
        listed = self._api.list(served, _selection(served, scope), ListQuery(limit, token, version))
        items = [inward(served, body) for body in listed.bodies]
        return Page(items, str(listed.revision), listed.token, listed.remaining)

    @asynccontextmanager
    async def watch(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, since: str = "", initial: bool = False
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Changes after a version, or the present state and then changes."""
        served = self._served(resource)
        query = WatchQuery(
            since, bookmarks=True, initial=True if initial else None, match="NotOlderThan" if initial else ""
        )
        stream = self._api.watch(served, _selection(served, scope), query)

        async def events() -> AsyncIterator[Event]:
            while not stream.closed:
                items = await stream.next_items(BOOKMARK_SECONDS)
                for item in items:
                    yield await self._reading.run(len(item.body), partial(_event, item))
                if not items and not stream.closed:
                    yield _event(stream.bookmark())

        running = events()
        try:
            yield running
        finally:
            stream.close()
            await running.aclose()  # type: ignore[attr-defined]  # an async generator

    async def create(self, resource: Resource, obj: JsonObject, options: WriteOptions = WRITE) -> JsonObject:
        """A new object in the namespace that it names."""
        served = self._served(resource)
        namespace = (obj.get("metadata") or {}).get("namespace") or ""
        done = await self._api.create(self._call(options, obj), served, namespace, obj)
        return await self._read(done.body)

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
        served = self._served(resource)
        if options.subresource and options.subresource not in served.kind.subresources:
            raise no_such_resource()
        call = self._call(options, patch)
        done = await self._api.patch(call, served, namespace, name, kind, patch, options.subresource)
        return await self._read(done.body)

    async def delete(
        self, resource: Resource, name: str, namespace: str = "", options: DeleteOptions = DELETE
    ) -> JsonObject:
        """Ask for deletion."""
        served = self._served(resource)
        call = self._call(WriteOptions(dry_run=options.dry_run))
        done = await self._api.delete(call, served, namespace, name, options)
        status = deleted_status(served, done.body) if done.deleted else None
        return status if status is not None else await self._read(done.body)

    async def connect(
        self, resource: Resource, name: str, namespace: str, subresource: str, body: JsonObject
    ) -> JsonObject:
        """POST to `eviction` or `binding` of a pod, PUT to `finalize` of a namespace."""
        served, call = self._served(resource), self._call(WRITE)
        match (served.kind.kind, subresource):
            case ("Pod", "eviction"):
                return await subresources.evict(self._api, call, namespace, name, body)
            case ("Pod", "binding"):
                return await subresources.bind(self._api, call, namespace, name, body)
            case ("Namespace", "finalize"):
                edit = subresources.only(served, subresource, body)
                return await self._read((await self._api.change(call, served, "", name, edit, subresource)).body)
        raise no_such_resource()

    def _served(self, resource: Resource) -> Served:
        return self._api.served(resource.group, resource.version, resource.plural)

    async def _read(self, body: bytes) -> JsonObject:
        return await self._reading.run(len(body), partial(storable.read, body))

    def _call(self, options: WriteOptions, body: Any = None) -> Call:
        return Call(
            self._user,
            manager=options.manager,
            dry_run=options.dry_run,
            force=options.force,
            correlation=logs.current_correlation(),
            size=len(json.encode(body)),
        )


def _selection(served: Served, scope: Scope) -> selection.Selection:
    return selection.parse(served.kind, scope.namespace, scope.labels, scope.fields)


def _event(item: Item) -> Event:
    obj = storable.read(item.body)
    notes = obj["metadata"].get("annotations") or {}
    return Event(item.type, obj, item.type is EventType.BOOKMARK and INITIAL_EVENTS_END in notes)
