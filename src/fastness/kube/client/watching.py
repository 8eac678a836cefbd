"""Watches that outlive their connections.

An API server closes a watch after some minutes, and connections break. Both are normal, so the stream goes on from the last
version that it saw, bookmarks included, and the reader notices nothing. It ends with an error when that is not possible: the
version is too old (`Expired`), the server stays away (`Unavailable`), or the initial state was cut short, which cannot be resumed
without forgetting deletions. A watch without version or initial state has no position to go on from and ends with its connection.

Behind a connection that broke there may be another cluster: one that was made anew, or brought back from a backup. It is younger
than the position, and would say nothing until it is as old. So its present version is asked for first, and a younger one is
`Expired` as well.

One object that cannot be read is an event like any other, with the reason instead of its content: it ends no watch.

The initial state comes from the server (`sendInitialEvents`) where it knows how; otherwise from a list that is told as events.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import msgspec

from fastness.formats.json import cut
from fastness.kinds.kind import JsonObject, Resource
from fastness.kube.client.transport import Broken, Call, Transport
from fastness.kube.errors import ApiError, BadRequest, InternalError, Invalid, TooLarge, Unavailable, from_status
from fastness.kube.port import Event, EventType, Page
from fastness.kube.positions import require_same_past
from fastness.kube.readable import READABLE, identity_of, too_deep
from fastness.runtime.clock import Entropy

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
# As client-go's reflector: five to ten minutes. The grace is for a server that ends a little later than it was asked to.
SHORTEST = 300.0
GRACE = 30.0
BREAKS = 4
# Above what any object may have (READABLE, 8 MiB), with room for escapes.
MAX_LINE = 16 * 1024 * 1024


class Lines:
    """Splits the chunks of a stream, which end anywhere, into whole lines.

    A line longer than the limit is an error before it is held: a server cannot make us keep more than that.
    """

    __slots__ = ("_limit", "_parts", "_size")

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their ends and without empty ones; raises TooLarge."""
        first, *rest = chunk.split(b"\n")
        if not rest:
            self._keep(first)
            return []
        self._keep(first)
        lines = [b"".join(self._parts), *rest[:-1]]
        self._parts, self._size = [], 0
        self._keep(rest[-1])
        return [line for line in lines if line.strip()]

    @property
    def partial(self) -> bool:
        """Whether the stream stopped within a line."""
        return self._size > 0

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._limit:
            raise TooLarge(f"a watch event is larger than {self._limit} bytes")
        if part:
            self._parts.append(part)


class _Line(msgspec.Struct):
    type: str
    object: dict[str, Any]


_decoder = msgspec.json.Decoder(_Line)


def parse_event(line: bytes) -> Event:
    """One line of a watch; raises the ApiError that an ERROR event carries, InternalError for nonsense."""
    try:
        decoded, reason = _decoded(line)
        if decoded.type == "ERROR":
            raise _refused(decoded.object)
        kind = EventType(decoded.type)
        if reason is not None:  # of an object that is gone, its name is all that counts
            return Event(kind, identity_of(decoded.object), unreadable=None if kind is EventType.DELETED else reason)
        meta = decoded.object["metadata"]
        notes = (meta.get("annotations") or {}) if kind is EventType.BOOKMARK else {}
        synced = notes.get(INITIAL_EVENTS_END) == "true"
        # Read, so that an event without one fails here: taken as a position it would let the next watch begin anywhere.
        meta["resourceVersion"]
    except (msgspec.DecodeError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InternalError(f"the server sent what is not a watch event: {line[:200]!r}") from error
    return Event(kind, decoded.object, synced)


def _decoded(line: bytes) -> tuple[_Line, str | None]:
    """A line, and why its object cannot be read, if so; only the upper levels of it are there then."""
    try:
        decoded = _decoder.decode(line)
    except RecursionError:
        return _decoder.decode(cut(line, READABLE.max_depth)), f"it nests deeper than {READABLE.max_depth} levels"
    return decoded, too_deep(decoded.object)


def _refused(status: JsonObject) -> ApiError:
    code = status.get("code")
    return from_status(code if isinstance(code, int) else 500, status)


@dataclass(slots=True)
class Capabilities:
    """What the server turned out not to know."""

    initial_events: bool = True


@dataclass(slots=True)
class Watch:
    """One watch over as many connections as it takes; `version` is the position to go on from, empty if there is none."""

    transport: Transport
    resource: Resource
    path: str
    selectors: dict[str, str]
    entropy: Entropy
    capabilities: Capabilities
    list_all: Callable[[], Awaitable[Page]]
    newest: Callable[[], Awaitable[str]]
    version: str = ""

    async def events(self, *, initial: bool) -> AsyncGenerator[Event, None]:
        """The present state if asked for, then changes; raises ApiError."""
        if initial:
            async with aclosing(self._initial()) as events:
                async for event in events:
                    yield event
        fruitless, broke = 0, False
        while True:
            fruitless += 1
            try:
                if broke:
                    require_same_past(await self.newest(), self.version)
                broke = False
                async with aclosing(self._connection({})) as events:
                    async for event in events:
                        fruitless = 0
                        yield event
            except Broken:
                # Without a position there is nothing to go on from: what happened in the gap, deletions above all, would never
                # be told.
                if fruitless >= BREAKS or not self.version:
                    raise
                broke = True
            if not self.version:
                return
            if fruitless:
                await self.transport.pause(fruitless - 1)

    async def _initial(self) -> AsyncGenerator[Event, None]:
        """The present state, and what follows it on the same connection."""
        if self.capabilities.initial_events:
            begun = False
            try:
                parameters = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
                async with aclosing(self._connection(parameters)) as events:
                    async for event in events:
                        begun = True
                        yield event
            # An older server refuses the parameters; once events have come, the same answer is about something else.
            except (Invalid, BadRequest):
                if begun:
                    raise
            except Broken:
                if not self.version:
                    raise
            else:
                if not self.version:
                    raise Unavailable("the server closed the watch before the initial state was complete")
            if self.version:
                return
        async with aclosing(self._listed()) as events:
            async for event in events:
                yield event

    async def _listed(self) -> AsyncGenerator[Event, None]:
        """The present state from a list, told as events."""
        page = await self.list_all()
        # Only now: a selector that the server refuses in both ways says nothing about initial events.
        self.capabilities.initial_events = False
        for item in page.items:
            yield Event(EventType.ADDED, item)
        for name, reason in page.unreadable:
            yield Event(EventType.ADDED, name, unreadable=reason)
        self.version = page.resource_version
        mark = {"resourceVersion": page.resource_version, "annotations": {INITIAL_EVENTS_END: "true"}}
        end = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, "metadata": mark}
        yield Event(EventType.BOOKMARK, end, synced=True)

    async def _connection(self, extra: dict[str, str]) -> AsyncGenerator[Event, None]:
        """Events of one connection, until the server closes it."""
        # Watches that started together end at different times, as client-go has it.
        limit = SHORTEST * (1.0 + self.entropy.fraction())
        params = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(int(limit)), **extra}
        if self.version:
            params["resourceVersion"] = self.version
        call = Call("GET", self.path, {**self.selectors, **params}, patience=limit + GRACE)
        lines = Lines()
        async with self.transport.stream(call) as chunks:
            async for chunk in chunks:
                for line in lines.feed(chunk):
                    event = parse_event(line)
                    # Initial events carry the versions of old changes: only their end is a position.
                    if self.version or event.synced:
                        self.version = event.resource_version
                    yield event
