"""Runs controllers: informers feed queues, workers empty them.

    async with Informers(cluster, clock=clock, entropy=entropy) as informers:
        await Runner([controller], informers, clock, entropy).run()     # until cancelled

Per controller there is one queue and a bounded number of workers. Work begins when everything that the controller reads has
been seen once. Every key is looked at again after `resync`, spread over time, so that a lost event costs minutes and not
for ever.

A reconcile that raises anything is logged with a correlation id, counted, and its key is put back with a growing delay:
this is the second of the two places with a broad `except`. `LostLease` is different: it ends the runner, because nothing
may be written any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastness.kinds.kind import JsonObject
from fastness.kube.controllers.controller import Controller, Source
from fastness.kube.controllers.leadership import LostLease
from fastness.kube.controllers.queue import QueueClosed, WorkQueue
from fastness.kube.controllers.reads import Changes
from fastness.kube.errors import Conflict
from fastness.kube.informers import Informers
from fastness.observe import logs, metrics
from fastness.runtime.clock import Clock, Entropy

WORKERS = 2
RESYNC_SECONDS = 600.0
# A key whose delay has grown to this met somebody else's write at every one of many looks.
SETTLING = 1.0
_log = logs.logger("controllers")
Feed = Callable[[Callable[[Any], None]], None]


@dataclass(slots=True)
class _Loop:
    """One controller with its queue."""

    controller: Controller
    queue: WorkQueue[Any]
    feed: Feed | None = None
    working: bool = field(default=False)


class Runner:
    """The life of some controllers."""

    def __init__(
        self,
        controllers: Sequence[Controller],
        informers: Informers,
        clock: Clock,
        entropy: Entropy,
        *,
        feeds: dict[str, Feed] | None = None,
        workers: int = WORKERS,
        resync: float = RESYNC_SECONDS,
    ) -> None:
        self.informers = informers
        self._clock = clock
        self._entropy = entropy
        self._workers = workers
        self._resync = resync
        self._changes = Changes()
        feeds = feeds or {}
        self._loops = [
            _Loop(controller, WorkQueue(clock, entropy), feeds.get(controller.name)) for controller in controllers
        ]

    @property
    def idle(self) -> bool:
        """Whether every controller works and none has anything to do; delayed keys do not count."""
        return all(loop.working and loop.queue.idle for loop in self._loops)

    def waiting_for(self) -> str | None:
        """What keeps controllers from working, for readiness; None when all work."""
        missing = [loop.controller.name for loop in self._loops if not loop.working]
        return f"not started: {', '.join(missing)}" if missing else None

    async def run(self) -> None:
        """Work until cancelled; raises LostLease when the lease is gone."""
        try:
            async with asyncio.TaskGroup() as tasks:
                for loop in self._loops:
                    tasks.create_task(self._run(loop), name=f"controller:{loop.controller.name}")
        except BaseExceptionGroup as group:
            lost = group.subgroup(LostLease)
            if lost is not None:
                raise _first(lost) from group
            raise

    async def _run(self, loop: _Loop) -> None:
        unsubscribe = [self._follow(loop, source) for source in loop.controller.sources]
        for source in loop.controller.sources:
            if not source.optional:
                await self.informers.of(source.resource, source.scope).synced()
        for key in getattr(loop.controller, "always", ()):
            loop.queue.add(key)
        if loop.feed is not None:
            loop.feed(loop.queue.add)
        loop.working = True
        _log.info("controller.started", controller=loop.controller.name)
        try:
            async with asyncio.TaskGroup() as tasks:
                for number in range(self._workers):
                    tasks.create_task(self._work(loop), name=f"worker:{loop.controller.name}:{number}")
        finally:
            loop.working = False
            loop.queue.close()
            for end in unsubscribe:
                end()
            _log.info("controller.stopped", controller=loop.controller.name)

    def _follow(self, loop: _Loop, source: Source) -> Callable[[], None]:
        """Put the keys that a change concerns into the queue, before and after the change."""
        informer = self.informers.of(source.resource, source.scope, indexers=source.indexes)

        def changed(old: JsonObject | None, new: JsonObject | None) -> None:
            if not self._changes.concern(source.reads, old, new, source.unread):
                return
            # The new one first: where the old one is hostile, its successor must not wait for the next resync.
            for obj in (new, old):
                if obj is not None:
                    for key in source.keys(obj):
                        loop.queue.add_after(key, source.delay)

        return informer.subscribe(changed)

    async def _work(self, loop: _Loop) -> None:
        while True:
            try:
                key = await loop.queue.next()
            except QueueClosed:
                return
            try:
                await self._reconcile(loop, key)
            finally:
                loop.queue.done(key)
                metrics.CONTROLLERS.queue(loop.controller.name, len(loop.queue), loop.queue.busy)

    async def _reconcile(self, loop: _Loop, key: Any) -> None:
        name, started = loop.controller.name, self._clock.monotonic()
        logs.begin_correlation(self._entropy.uid())
        try:
            done = await loop.controller.reconcile(key)
        except LostLease:
            raise
        except Exception as error:  # noqa: BLE001  # the supervisor of reconciles: log, count, try again later
            delay = loop.queue.retry(key)
            metrics.CONTROLLERS.done(name, "failed", self._clock.monotonic() - started)
            # Two loops that write one object meet now and then, and the next look settles it: nobody has to read of that, unless
            # it goes on and on.
            if not isinstance(error, Conflict) or delay >= SETTLING:
                _log.warning("controller.failed", controller=name, key=key, error=repr(error), again=f"{delay:.3f}s")
            return
        loop.queue.forget(key)
        metrics.CONTROLLERS.done(name, "ok", self._clock.monotonic() - started)
        if done.again_after is not None:
            loop.queue.add_after(key, done.again_after)
        elif done.resync:
            loop.queue.add_after(key, self._resync * (0.5 + self._entropy.fraction()))


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
