"""The pod of the runtime's DaemonSets: follows its node, and makes one step (`agent.kata.step`) whenever something changed.

* A step is done in a thread, because packages take minutes; the label is written when it ended.
* "Installed" is said only when the node is ready again after its container runtime was restarted; one that stays away failed.
* A step that failed rests before it is tried again. An API that does not answer is asked again; nothing is done twice,
  because every step looks first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.agent.host.errors import DriverError
from fastness.agent.kata.step import StepReport
from fastness.kinds.kata import names
from fastness.kinds.kata.names import InstallState
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.resources import NODES
from fastness.kinds.objects import labels_of
from fastness.kube.errors import ApiError, NotFound
from fastness.kube.informers.informer import Informer
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.observe.logs import logger
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.tasks import news_or_time, uninterrupted

Step = Callable[[Mapping[str, Any]], StepReport | None]
_FAILED: Final = (InstallState.FAILED, InstallState.FAILED_TO_UNINSTALL)
_AS: Final = WriteOptions(manager="kata-install")
_log = logger("agent")


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds: after a restart, for a node to be ready, after a failure, and between looks when nothing happens."""

    settle: float = 15.0
    ready: float = 300.0
    failed: float = 60.0
    resync: float = 300.0


class KataPod:
    """Follows one node."""

    def __init__(
        self, cluster: Cluster, node: str, step: Step, clock: Clock, entropy: Entropy, waits: Waits = Waits()  # noqa: B008
    ) -> None:  # fmt: skip
        self._cluster = cluster
        self._name = node
        self._step = step
        self._clock = clock
        self._waits = waits
        self._changed = asyncio.Event()
        scope = Scope(fields=f"metadata.name={node}")
        self._informer = Informer(cluster, NODES, scope, clock=clock, entropy=entropy)

    async def run(self) -> None:
        """Follow the node until cancelled."""
        self._informer.subscribe(lambda _old, _new: self._changed.set())
        async with asyncio.TaskGroup() as group:
            task = group.create_task(self._informer.run())
            try:
                await self._informer.synced()
                while True:
                    self._changed.clear()
                    await self._look()
                    await news_or_time(self._changed, self._clock, self._waits.resync)
            finally:
                task.cancel()

    async def _look(self) -> None:
        node = self._informer.get("", self._name)
        if node is None:
            return
        if labels_of(node).get(names.STATE_LABEL) in _FAILED:
            await self._clock.sleep(self._waits.failed)
        try:
            report = await uninterrupted(lambda: self._step(node))
            if report is not None:
                await self._tell(node, await self._well(report))
        except NotFound:
            return
        except (ApiError, DriverError) as error:
            _log.warning("agent.interrupted", node=self._name, reason=error.code, error=error)
            await self._clock.sleep(self._waits.failed)
            self._changed.set()

    async def _tell(self, node: JsonObject, report: StepReport) -> None:
        await self._cluster.patch(NODES, self._name, report.patch(node), PatchType.MERGE, options=_AS)

    async def _well(self, report: StepReport) -> StepReport:
        """What is said when the node had time to come back."""
        node = self._informer.get("", self._name) or {}
        if (
            report.state is not InstallState.INSTALLED
            or labels_of(node).get(names.STATE_LABEL) != InstallState.INSTALLING
        ):
            return report
        await self._clock.sleep(self._waits.settle)
        end = self._clock.monotonic() + self._waits.ready
        while not _is_ready(self._informer.get("", self._name) or {}):
            left = end - self._clock.monotonic()
            if left <= 0:
                return StepReport(
                    InstallState.FAILED, "the node did not become ready again after its container runtime was restarted"
                )
            self._changed.clear()
            await news_or_time(self._changed, self._clock, left)
        return report


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)
