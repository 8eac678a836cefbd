"""The loop: follow the note on the Node, begin anew when it changes, look again after a while.

    note changes ──▶ what goes on is cancelled ──▶ sets are read ──▶ images are pulled, verified, pinned ──▶ told
                       too slow, or it failed ──▶ told, and tried again after a pause

It runs beside the loop that follows configs, and neither waits for the other. What goes wrong here degrades the condition about
pinned images and nothing else: a node without an image that somebody wanted early still runs its config.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from fastness.agent.apply.pins import plan
from fastness.agent.apply.pins.plan import Pace, PinSet
from fastness.agent.apply.pins.ports import ContainerImages
from fastness.agent.apply.pins.prefetch import Prefetch
from fastness.agent.apply.pins.report import PinReports
from fastness.agent.apply.report import Persistent
from fastness.agent.errors import AgentError, PinsRefused
from fastness.agent.host.errors import DriverError
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.resources import NODES
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pinned_images import PINNED_IMAGE_SET
from fastness.kinds.objects import annotations_of
from fastness.kube.errors import ApiError, NotFound
from fastness.kube.port import Cluster
from fastness.machineconfig.rollout.pinned_sets import read_note
from fastness.observe.logs import logger
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.tasks import news_or_time

_log = logger("agent")


class PinnedImages:
    """Keeps the images of one node pinned."""

    def __init__(
        self, cluster: Cluster, images: Callable[[], ContainerImages | None], node: str, clock: Clock, entropy: Entropy,
        pace: Pace = Pace(),  # noqa: B008
    ) -> None:  # fmt: skip
        """`images` gives the container runtime of the machine, None while there is none."""
        self._cluster = cluster
        self._runtime = images
        self._node = node
        self._clock = clock
        self._entropy = entropy
        self._pace = pace
        self._persistent = Persistent(clock)
        self._reports = PinReports(cluster, node, clock)
        self._changed = asyncio.Event()
        self._note: str | None = None
        self._failures = 0
        self._absent: Callable[[], frozenset[str]] = frozenset

    def noticed(self, node: JsonObject | None) -> None:
        """The Node of this machine is so now."""
        note = annotations_of(node or {}).get(names.PINNED_IMAGE_SETS) if node else None
        if note != self._note:
            self._note = note
            self._failures = 0
            self._changed.set()

    async def run(self) -> None:
        """Do all of it until cancelled."""
        while True:
            self._changed.clear()
            pause = await self._round() if self._note is not None else self._pace.resync
            if not self._changed.is_set():
                await news_or_time(self._changed, self._clock, pause)

    async def _round(self) -> float:
        """One attempt, unless the note changes meanwhile or it takes too long; how long to wait after it."""
        sets: list[PinSet] = []
        self._absent = frozenset
        work = asyncio.ensure_future(self._work(sets))
        slow = asyncio.ensure_future(self._clock.sleep(self._pace.timeout))
        news = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait((work, slow, news), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, slow, news):
                task.cancel()
            await asyncio.wait((work, slow, news))
        if self._changed.is_set():
            return 0.0
        try:
            if work.cancelled():
                raise PinsRefused(f"images were not there within {self._pace.timeout:.0f} seconds")
            work.result()
        except (AgentError, DriverError) as error:
            return await self._failed(sets, error)
        except ApiError as error:
            _log.warning("agent.interrupted", node=self._node, reason=error.reason, error=error)
            return self._after_failure()
        self._failures = 0
        return self._pace.resync

    async def _work(self, sets: list[PinSet]) -> None:
        """Read the sets that the note names, and have their images pinned; raises AgentError, DriverError, ApiError."""
        sets += await self._sets()
        images = plan.images_of(sets)
        runtime = self._runtime()
        if runtime is None:
            if images:
                raise PinsRefused("there is no container runtime that images could be pinned in")
            await self._reports.done(sets)
            return
        prefetch = Prefetch(runtime, self._clock, self._entropy, self._pace)
        self._absent = lambda: prefetch.absent
        if not await prefetch.settled(images):
            if images:
                await self._reports.begun(sets)
            node = await self._persistent.ask(lambda: self._cluster.get(NODES, self._node))
            await prefetch.run(node, images)
        else:
            await runtime.pin(images)  # others, of sets that are gone, are let go
        await self._reports.done(sets)

    async def _sets(self) -> list[PinSet]:
        sets = []
        for name in sorted(read_note(self._note or "")):
            try:
                sets.append(plan.read_set(await self._persistent.ask(lambda name=name: self._get(name))))  # type: ignore[misc]
            except NotFound as error:
                raise PinsRefused(f"PinnedImageSet {name} does not exist any more") from error
        return sets

    async def _get(self, name: str) -> JsonObject:
        return await self._cluster.get(PINNED_IMAGE_SET.resource, name)

    async def _failed(self, sets: Sequence[PinSet], error: AgentError | DriverError) -> float:
        _log.warning("agent.unpinned", node=self._node, code=error.code, error=error.message)
        with suppress(ApiError):
            await self._reports.failed(sets, error.message, self._absent())
        return self._after_failure()

    def _after_failure(self) -> float:
        self._failures += 1
        return self._pace.again.delay(self._failures - 1, self._entropy.fraction())
