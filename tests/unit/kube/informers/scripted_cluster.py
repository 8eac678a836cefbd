"""A scripted cluster for informers: one kind, a history, and every way in which a watch can go wrong.

It keeps the rules of the `Cluster` port: a watch delivers every change after its version once and in order, a version before the
compaction expires, an initial state ends with `Synced`. What is free is when things happen: connections end or break between any
two events, requests fail, history disappears, bookmarks come or do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastness.kinds.kind import JsonObject, Resource
from fastness.kube.errors import ApiError, Expired
from fastness.kube.port import EVERYWHERE, Event, EventType, Page, Scope

THING = Resource("", "v1", "pods", "Pod", namespaced=True)  # a kind that is read in every namespace


class ScriptedCluster:
    """Objects of one kind with a history."""

    def __init__(self) -> None:
        self.version = 0
        self.compacted = 0
        self.objects: dict[str, JsonObject] = {}
        self.unread: dict[str, JsonObject] = {}
        self.history: list[Event] = []
        self.failures: list[ApiError] = []
        self.generation = 0
        self.break_with: ApiError | None = None
        self.opened: list[tuple[str, bool]] = []
        self._changed = asyncio.Event()
        self.deaf = False
        self.held = False
        self._hold: tuple[int, asyncio.Event] | None = None

    def hold_after(self, count: int) -> asyncio.Event:
        """Stop the next initial state after so many objects, until the event is set."""
        self._hold = count, asyncio.Event()
        return self._hold[1]

    def put(self, name: str, value: int = 0, **meta: Any) -> JsonObject:
        """Create or change an object."""
        self.version += 1
        previous = self.objects.get(name)
        uid = previous["metadata"]["uid"] if previous else f"uid-{self.version}"
        meta = {"namespace": "n", "name": name, "uid": uid, "resourceVersion": str(self.version), **meta}
        obj = {"kind": "Thing", "metadata": meta, "value": value}
        self.objects[name] = obj
        self._record(Event(EventType.MODIFIED if previous else EventType.ADDED, obj))
        return obj

    def remove(self, name: str) -> None:
        """Delete an object."""
        gone = self.objects.pop(name, None)
        if gone is not None:
            self.version += 1
            last = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self.version)}}
            self._record(Event(EventType.DELETED, last))

    async def list(self, _resource: Resource, _scope: Scope = EVERYWHERE, *, limit: int = 0) -> Page:
        """The first objects, at the version of now."""
        return Page([*self.objects.values()][: limit or None], str(self.version))

    def begin_anew(self) -> None:
        """Another cluster is behind the same address: younger, and without anything."""
        self.version, self.compacted = 0, 0
        self.objects, self.history = {}, []

    def replace(self, name: str, value: int) -> None:
        """Delete an object and create another of that name."""
        self.remove(name)
        self.put(name, value)

    def expire(self) -> None:
        """Forget the history and tell everybody."""
        self.compact()
        self.disconnect(Expired("gone"))

    def bookmark(self) -> None:
        """Tell watchers how far the history has gone."""
        self.version += 1
        self._record(self._mark(synced=False))

    def disconnect(self, error: ApiError | None = None) -> None:
        """End all connections: cleanly, or with an error."""
        self.generation += 1
        self.break_with = error
        self._wake()

    def compact(self) -> None:
        """Forget the history."""
        self.compacted = self.version

    def fail_next(self, *errors: ApiError) -> None:
        """Refuse the next requests."""
        self.failures.extend(errors)

    @asynccontextmanager
    async def watch(
        self, resource: Resource, scope: Scope = EVERYWHERE, *, since: str = "", initial: bool = False
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """The watch of the port."""
        self.opened.append((since, initial))
        events = self._events(since, initial)
        try:
            yield events
        finally:
            await events.aclose()  # type: ignore[attr-defined]  # an async generator

    async def _events(self, since: str, initial: bool) -> AsyncIterator[Event]:
        generation = self.generation
        if self.failures:
            raise self.failures.pop(0)
        position = int(since or 0)
        if initial:
            position, state = self.version, [*self.objects.values()]
            mark = self._mark(synced=True)
            for number, obj in enumerate(state, 1):
                await self._step(generation)
                if self.generation != generation:
                    return
                yield self._as_read(Event(EventType.ADDED, obj))
                if self._hold is not None and self._hold[0] == number:
                    self.held = True
                    await self._hold[1].wait()
            await self._step(generation)
            if self.generation != generation:
                return
            yield mark
        while True:
            await self._step(generation)
            if self.generation != generation:
                return
            if position < self.compacted:
                raise Expired(f"too old resource version: {position}")
            later = [event for event in self.history if int(event.resource_version) > position]
            if later and not self.deaf:
                position = int(later[0].resource_version)
                yield self._as_read(later[0])
            else:
                await self._changed.wait()

    def _as_read(self, event: Event) -> Event:
        """The event as an adapter gives it that cannot read the objects in `unread`."""
        meta = event.object["metadata"]
        if event.type is EventType.BOOKMARK or meta["name"] not in self.unread:
            return event
        named = {key: meta[key] for key in ("namespace", "name", "uid", "resourceVersion")}
        return Event(event.type, {"metadata": named}, unreadable="too deep")

    async def _step(self, generation: int) -> None:
        """A moment in which anything may happen."""
        await asyncio.sleep(0)
        if self.generation != generation and self.break_with is not None:
            raise self.break_with

    def _mark(self, *, synced: bool) -> Event:
        body = {"kind": "Thing", "metadata": {"resourceVersion": str(self.version)}}
        return Event(EventType.BOOKMARK, body, synced)

    def _record(self, event: Event) -> None:
        self.history.append(event)
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
