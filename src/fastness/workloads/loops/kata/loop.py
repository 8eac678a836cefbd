"""The loop of KataConfig: look, plan, act, tell.

    KataConfig, gates, nodes, pools ─ look ─ plan ─┬─ act: machine config and pool, or DaemonSets; labels; runtime classes
                                                   └─ tell: the status, in the words of the manual

* There is one key: there is one KataConfig. Should there be two, the oldest counts and the others are told so.
* The status is told after the actions, so that what it says is there; before the finalizer goes, because nothing can be told
  then.
* Which version of the operator was there is written down even when there is no KataConfig: the next one must know.
* What somebody else changed in between makes a write fail, and the next look starts from what is there then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.objects import ObjectName, condition, object_name
from fastness.kube.controllers.controller import Done, Source
from fastness.kube.errors import ApiError, Conflict, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.observe import metrics
from fastness.runtime.clock import Clock
from fastness.workloads.admission.kata import DUPLICATE
from fastness.workloads.kata import status
from fastness.workloads.kata.inputs import LetGo
from fastness.workloads.kata.plan import plan
from fastness.workloads.kata.status import KataCondition, Status, status_patch
from fastness.workloads.loops.kata.act import Act
from fastness.workloads.loops.kata.look import INSTALLATION, KATA_CONFIGS, MADE, NAMESPACES, Look, NodeNews, sources
from fastness.workloads.loops.kata.remote_pods import RemotePods

SETTLE_SECONDS: Final = 1.0
CONFLICT_SECONDS: Final = 0.2
_STATUS: Final = WriteOptions(manager="kata-config", subresource="status")


class KataConfigs:
    """Keeps the runtime where the KataConfig wants it."""

    name = "kata-config"
    writes: Sequence[Resource] = (
        KATA_CONFIGS,
        NODE.resource,
        EVENTS,
        NAMESPACES,
        *(resource for resource, _ in MADE.values()),
    )
    always = (INSTALLATION,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        # Simulated clusters live faster, and this loop with them.
        self._pace = timing.rollout_delay / FIELD.rollout_delay
        self.sources: Sequence[Source] = sources(SETTLE_SECONDS * self._pace, NodeNews(informers))
        self._cluster = cluster
        self._clock = clock
        self._look = Look(cluster, informers, clock)
        self._act = Act(cluster, informers)
        self._remote = RemotePods(informers)
        self._recorder = Recorder(cluster, self.name, clock)

    async def reconcile(self, key: ObjectName) -> Done:
        """Look at the cluster, plan, act, and write the status."""
        configs = self._look.configs()
        first = configs[0] if configs else None
        for other in configs[1:]:
            await self._tell(other, Status(KataCondition(False, "Duplicate", DUPLICATE), None))
        if first is None and not self._look.has_classes() and not self._look.operator().unrecorded:
            return Done()
        inputs = await self._look.inputs(first)
        step = plan(inputs)
        # Our finalizer goes after the status is written: without it there may be no object to write to.
        final = [
            action for action in step.actions if isinstance(action, LetGo) and action.ref.kind == KATA_CONFIGS.kind
        ]
        try:
            await self._act.do(first or {}, [action for action in step.actions if action not in final])
            if first is not None and step.status is not None:
                await self._tell(first, step.status)
            await self._act.do(first or {}, final)
        except Conflict:
            return Done(again_after=CONFLICT_SECONDS)
        except ApiError as error:
            if first is not None:
                await self._recorder.warning(first, "Interrupted", f"{error.message}; it is tried again")
            raise
        return Done(again_after=None if step.again is None else step.again * self._pace)

    async def _tell(self, config: JsonObject, report: Status) -> None:
        lists = report.lists
        if lists is not None:
            everywhere = lists.node_count > 0 and len(lists.of("installed")) == lists.node_count
            metrics.KATA_INSTALLED.set(int(everywhere and not report.in_progress.status))
        patch = status_patch(config, report, self._clock.now())
        if patch is None:
            return
        name = object_name(config).name
        try:
            await self._cluster.patch(KATA_CONFIGS, name, {"status": patch}, PatchType.MERGE, options=_STATUS)
        except NotFound:
            return
        progress, before = report.in_progress, condition(config, status.IN_PROGRESS) or {}
        if progress.reason and (progress.reason, progress.message) != (before.get("reason"), before.get("message")):
            tell = self._recorder.normal if progress.status and progress.reason != "Failed" else self._recorder.warning
            await tell(config, progress.reason, progress.message)
        held, before = (report.more or {}).get(status.REMOVAL_HELD), condition(config, status.REMOVAL_HELD) or {}
        if held is not None and (held.reason, held.message) != (before.get("reason"), before.get("message")):
            await self._recorder.warning(config, held.reason, held.message)
