"""One informer: a cache that follows a cluster.

The dance, so that nobody else has to know it:

1. Watch with initial state; collect until `Synced`, then make the cache equal to it in one step (`Cache.replace`).
2. Follow events. Bookmarks move the position, so that a quiet watch stays young.
3. A watch that ended or failed goes on from the position. `Expired`, or a kind that is not served, means step 1 again; so does a
   cluster that is younger than the position, because it is another one.
4. Failures wait longer each time, with jitter; an event that arrives resets the wait.
5. API servers send bookmarks once a minute. A watch that says nothing for longer hangs on a connection that is dead and does not
   know it: it is given up, and step 1 follows on another.

The age of a cache is how long ago the last word of the cluster came: an event, a bookmark, the end of the initial state. A cache
is in touch while its watch is open and its age is at most `SILENCE`; what is older may miss anything. Ages are measured by the
loop, as its timers are: they are about a connection, not about the time of day.

Rules for handlers: they run in the informer's task, after the cache has changed, with (old, new); they are plain functions that
must be quick, so there is no queue here that could grow. They say *that* an object changed, not how often: several changes may
arrive as one, and after a break only the last is seen.

One object costs itself alone. What cannot be read, what an indexer fails on and what a handler raises on is **set aside**: logged
by name, counted, shown by readiness, and everything else goes on. A cache keeps the last state of it that could be used, so that
nobody takes it for deleted; a `get` of one that was never usable raises Unavailable, because "not there" would be a lie that
decisions are built on. This is the third place with a broad `except`: whoever may write one object chooses what handlers meet.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from math import inf

from fastness.kinds.kind import JsonObject, Resource
from fastness.kube.errors import ApiError, Expired, NotFound, Unavailable
from fastness.kube.informers.cache import Cache, CacheChange, Indexer, IndexerFailed, Key, Objects, key_of
from fastness.kube.informers.placed import require_place
from fastness.kube.informers.set_aside import AsideObjects
from fastness.kube.port import EVERYWHERE, Cluster, Event, EventType, Scope
from fastness.kube.positions import require_same_past
from fastness.observe.logs import logger
from fastness.observe.metrics import DEFECTS, RELISTS
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.retries import Backoff

Handler = Callable[[JsonObject | None, JsonObject | None], None]
Trim = Callable[[JsonObject], JsonObject]
"""What a cache holds of an object: a copy with less in it. It must not raise, whatever the object is."""
# With jitter: an API server that comes back must not be met by every cache of every replica in one instant.
BACKOFF = Backoff(first=0.2, most=30.0)
# kube-apiserver sends a bookmark about once a minute to who asks for them; half as long again is a watch that hangs.
SILENCE = 90.0
PATIENCE = 75.0
"""Shorter than `SILENCE`: where only the connection is dead, nobody notices more than a list."""
_log = logger("informers")


class WatchSilent(Unavailable):
    """A watch hangs."""


class Informer:
    """The objects of one resource in one scope, kept up to date by `run`."""

    def __init__(
        self,
        cluster: Cluster,
        resource: Resource,
        scope: Scope = EVERYWHERE,
        *,
        clock: Clock,
        entropy: Entropy,
        indexers: Mapping[str, Indexer] | None = None,
        patience: float | None = None,
        trim: Trim | None = None,
    ) -> None:
        require_place(resource, scope)
        self.resource = resource
        self.scope = scope
        self._cluster = cluster
        self._clock = clock
        self._entropy = entropy
        self._cache = Cache(indexers)
        self._handlers: dict[object, Handler] = {}
        self._synced = asyncio.Event()
        self._watching = False
        self._position = ""
        self._failures = 0
        self._patience = PATIENCE if patience is None else patience
        self._heard: float | None = None
        self._stirred = 0.0
        self._aside = AsideObjects(resource)
        self._trim = trim

    def get(self, namespace: str, name: str) -> JsonObject | None:
        """One object as last seen, or None; raises Unavailable for one that is there and cannot be used."""
        key = Key(namespace, name)
        obj = self._cache.get(key)
        if obj is None and (reason := self._aside.reason(key)) is not None:
            raise Unavailable(f"{self.resource.kind} {namespace}/{name} is set aside: {reason}")
        return obj

    def list(self, namespace: str = "") -> Objects:
        """All objects as last seen, or those of a namespace, in order of namespace and name."""
        return self._cache.list(namespace)

    def by_index(self, name: str, value: str) -> Objects:
        """The objects for which an index has this value; raises InformerError for an unknown index."""
        return self._cache.by_index(name, value)

    def add_index(self, name: str, indexer: Indexer) -> None:
        """Keep an index from now on; raises InformerError when another one has the name."""
        for key, error in self._cache.add_index(name, indexer).items():
            self._aside.add(key, str(error))

    def subscribe(self, handler: Handler) -> Callable[[], None]:
        """Tell a handler every change from now on, starting with what is there; the result ends it."""
        token = object()
        # Entered before it is told what is there: both run on the loop, so no change falls between.
        self._handlers[token] = handler
        for obj in self._cache.list():
            self._tell(handler, CacheChange(None, obj))
        return lambda: self._handlers.pop(token, None) and None

    async def synced(self) -> None:
        """Wait until the cache has held the state of the cluster once."""
        await self._synced.wait()

    @property
    def has_synced(self) -> bool:
        """Whether the cache has held the state of the cluster once."""
        return self._synced.is_set()

    @property
    def in_touch(self) -> bool:
        """Whether the cache follows the cluster now; otherwise what it does not hold may be there all the same."""
        # All three: a watch that is open and silent may be a black hole, and a door that trusts it would miss a revocation.
        return self._watching and self.has_synced and self.age <= SILENCE

    @property
    def age(self) -> float:
        """Seconds since the last word of the cluster: what happened later may be missing."""
        return inf if self._heard is None else asyncio.get_running_loop().time() - self._heard

    @property
    def aside(self) -> Mapping[Key, str]:
        """The objects that are set aside, with the reason."""
        return self._aside.reasons

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        try:
            await self._run()
        finally:
            self._aside.clear()

    async def _run(self) -> None:
        while True:
            try:
                async with self._attended():
                    await (self._follow() if self._position else self._begin())
            # Without a pause: the connection was dead, the server may be well, and every second more is one in which doors stay
            # closed.
            except WatchSilent as error:
                self._again(error)
                continue
            # NotFound is a kind that is not served (yet): a definition may come later, and what was there before it went is gone.
            except (Expired, NotFound) as error:
                self._again(error)
            except ApiError as error:
                _log.warning("informer.interrupted", resource=self.resource.plural, reason=error.reason, error=error)
            await self._pause()

    def _again(self, error: ApiError) -> None:
        """Forget the position: the next round starts from the present state."""
        self._position = ""
        RELISTS.inc(self.resource.plural)
        _log.info("informer.relisted", resource=self.resource.plural, reason=error.reason, error=error)

    async def _pause(self) -> None:
        """Wait as long as the failures in a row ask for."""
        delay = BACKOFF.delay(self._failures, self._entropy.fraction())
        self._failures += 1
        await self._clock.sleep(delay)

    async def _begin(self) -> None:
        """Take the present state, then follow."""
        state: dict[Key, JsonObject] = {}
        unread: dict[Key, str] = {}
        async with self._cluster.watch(self.resource, self.scope, initial=True) as events:
            with self._touch():
                async for event in events:
                    self._stirred = asyncio.get_running_loop().time()
                    event = self._held_of(event)
                    if self._position:
                        self._take(event)
                    elif event.synced:
                        self._adopt(state, unread, event.resource_version)
                        state, unread = {}, {}
                    else:
                        _collect(state, unread, event)

    async def _follow(self) -> None:
        """Go on from the position."""
        page = await self._cluster.list(self.resource, self.scope, limit=1)
        require_same_past(page.resource_version, self._position)
        async with self._cluster.watch(self.resource, self.scope, since=self._position) as events:
            with self._touch():
                async for event in events:
                    self._stirred = asyncio.get_running_loop().time()
                    self._take(self._held_of(event))

    def _held_of(self, event: Event) -> Event:
        """The event with what is held of its object."""
        if self._trim is None or event.type is EventType.BOOKMARK or event.unreadable is not None:
            return event
        return replace(event, object=self._trim(event.object))

    @asynccontextmanager
    async def _attended(self) -> AsyncIterator[None]:
        """End the block when nothing came for too long; raises Silent."""
        loop = asyncio.get_running_loop()
        self._stirred = loop.time()
        timers: list[asyncio.TimerHandle] = []

        def look() -> None:
            due = self._stirred + self._patience
            # One timer that looks again, and not one for each event: under load a cache hears thousands of them in a second.
            if due > loop.time():
                timers[:] = [loop.call_at(due, look)]
            else:
                limit.reschedule(loop.time())

        try:
            async with asyncio.timeout(None) as limit:
                timers.append(loop.call_later(self._patience, look))
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise WatchSilent(f"the watch said nothing for {self._patience:.0f} seconds") from error
        finally:
            timers[0].cancel()

    @contextmanager
    def _touch(self) -> Iterator[None]:
        """A watch is open for the time of the block."""
        self._watching = True
        try:
            yield
        finally:
            self._watching = False

    def _adopt(self, state: Mapping[Key, JsonObject], unread: Mapping[Key, str], position: str) -> None:
        changes, failures = self._cache.replace(state, unread)
        self._position = position
        self._heard = asyncio.get_running_loop().time()
        self._failures = 0
        renewed = {key_of(change.new) for change in changes if change.new is not None}
        self._aside.keep_only((state.keys() - renewed) | unread.keys())
        for key, reason in (*unread.items(), *((key, str(error)) for key, error in failures.items())):
            self._aside.add(key, reason)
        for change in changes:
            self._announce(change)
        # Last: whoever waits for it must find the cache filled and every handler told.
        self._synced.set()

    def _take(self, event: Event) -> None:
        """One event of a running watch."""
        change: CacheChange | None = None
        if event.type is not EventType.BOOKMARK:
            change = self._changed(event)
        # After the cache has changed: a watch that is taken up again from here must not skip an object that was not taken.
        self._position = event.resource_version
        self._heard = self._stirred
        self._failures = 0
        if change is not None:
            self._announce(change)

    def _changed(self, event: Event) -> CacheChange | None:
        """What an event makes of the cache; nothing when its object cannot be used."""
        key = key_of(event.object)
        if event.unreadable is not None:
            self._aside.add(key, event.unreadable)
            return None
        if event.type is EventType.DELETED:
            self._aside.drop(key)
            return self._cache.remove(key)
        try:
            change = self._cache.put(event.object)
        except IndexerFailed as error:
            self._aside.add(key, str(error))
            return None
        self._aside.drop(key)
        return change

    def _announce(self, change: CacheChange) -> None:
        for handler in [*self._handlers.values()]:
            self._tell(handler, change)

    def _tell(self, handler: Handler, change: CacheChange) -> None:
        try:
            handler(change.old, change.new)
        except Exception as error:  # noqa: BLE001  # the supervisor of handlers: one object must not end what follows all of them
            DEFECTS.inc("handler")
            if change.new is not None:
                self._aside.add(key_of(change.new), f"a reader fails on it: {error!r}")


def _collect(state: dict[Key, JsonObject], unread: dict[Key, str], event: Event) -> None:
    """An event before the state is complete."""
    if event.type is EventType.BOOKMARK:
        return
    key = key_of(event.object)
    # An object may come twice while the state is collected, changed in between; the later word counts.
    state.pop(key, None)
    unread.pop(key, None)
    if event.unreadable is not None:
        unread[key] = event.unreadable
    elif event.type is not EventType.DELETED:
        state[key] = event.object
