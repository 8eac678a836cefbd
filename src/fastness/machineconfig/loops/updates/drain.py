"""Drains: nodes ask by annotation, this loop cordons and empties them, and puts them back to work.

The handshake has two annotations: the node writes `desiredDrain` (`drain-<config>` or `uncordon-<config>`), and when that
is done the same text appears in `lastAppliedDrain`. Rules:

* Evictions go through the API, so that disruption budgets hold; pods of DaemonSets and mirror pods stay.
* A drain that does not come to an end is tried again, more slowly after ten minutes, and an event says what blocks it.
* A node that somebody uncordons in the middle is cordoned again; completion is not recorded for a node that is schedulable.
* A drain counts while its config is the node's desired one. What is written rests on the node as it was read (its
  resourceVersion): a config that is withdrawn at the same moment makes a conflict, not a cordon outside the budget.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE, POD
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import ObjectName, metadata, object_name
from fastness.kube.controllers.controller import GONE, Done, Source
from fastness.kube.controllers.reads import fields
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.eviction import evict_all, pods_to_go
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.rollout.nodes import drain_pending
from fastness.runtime.clock import Clock

_AS = WriteOptions(manager="machine-config-drain")
_READS = fields("spec.unschedulable", annotations=(names.DESIRED_DRAIN, names.LAST_APPLIED_DRAIN, names.DESIRED_CONFIG))


class Drains:
    """Carries out what nodes ask for."""

    name = "machine-config-drain"
    writes: Sequence[Resource] = (NODE.resource, POD.resource, EVENTS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        self.sources: Sequence[Source] = (Source(NODE.resource, delay=timing.drain_delay, reads=_READS),)
        self._cluster = cluster
        self._clock = clock
        self._timing = timing
        self._recorder = Recorder(cluster, self.name, clock)
        self._since: dict[str, float] = {}

    async def reconcile(self, key: ObjectName) -> Done:
        """One step for one node."""
        try:
            node = await self._cluster.get(NODE.resource, key.name)
        except NotFound:
            self._since.pop(key.name, None)
            return GONE
        request = drain_pending(node)
        if not request:
            self._since.pop(key.name, None)
            return Done()
        try:
            if names.drain_verb(request) == names.UNCORDON:
                return await self._put_back(node, request)
            return await self._drain(node, request) if names.drain_verb(request) == names.DRAIN else Done()
        except Conflict:  # somebody wrote to the node since it was read: look again
            return Done(again_after=self._timing.evict_retry)

    async def _drain(self, node: JsonObject, request: str) -> Done:
        name = object_name(node).name
        self._since.setdefault(name, self._clock.monotonic())
        # Before the first eviction: the scheduler would put the replacement onto the node that is being emptied.
        await self._cordon(node)
        blocked = await evict_all(self._cluster, name)
        left = await pods_to_go(self._cluster, name)
        if not left:
            # Read again: the evictions took time, in which somebody may have uncordoned the node or withdrawn the config.
            return await self._finish(await self._cluster.get(NODE.resource, name), request)
        if not blocked:
            return Done(again_after=self._timing.evict_retry)
        return await self._wait(node, blocked)

    async def _wait(self, node: JsonObject, blocked: list[str]) -> Done:
        """Say what blocks a drain, and when it is tried again."""
        passed = self._clock.monotonic() - self._since[object_name(node).name]
        what = "; ".join(blocked[:5])
        if passed > self._timing.drain_failed_after:
            await self._recorder.warning(node, names.Event.DRAIN_FAILED, f"draining fails since {passed:.0f} s: {what}")
        elif passed > self._timing.drain_slow_after:
            await self._recorder.warning(node, names.Event.DRAIN_THRESHOLD_EXCEEDED, f"draining takes long: {what}")
        else:
            await self._recorder.warning(node, names.Event.DRAIN, f"waiting: {what}")
        slow = passed > self._timing.drain_slow_after
        retry = self._timing.drain_slow_retry if slow else min(self._timing.evict_retry, self._timing.drain_retry)
        return Done(again_after=retry)

    async def _cordon(self, node: JsonObject) -> None:
        """Have no new pods come, before the first one goes."""
        if (node.get("spec") or {}).get("unschedulable"):
            return
        await self._patch(node, {"spec": {"unschedulable": True}})
        await self._recorder.normal(node, names.Event.CORDON, "the node takes no new pods")

    async def _put_back(self, node: JsonObject, request: str) -> Done:
        """Uncordon a node and record it, in one write; a request that changed meanwhile is another key's business."""
        patch: JsonObject = {"metadata": {"annotations": {names.LAST_APPLIED_DRAIN: request}}}
        cordoned = bool((node.get("spec") or {}).get("unschedulable"))
        if cordoned:
            patch["spec"] = {"unschedulable": None}
        await self._patch(node, patch)
        self._since.pop(object_name(node).name, None)
        if cordoned:
            await self._recorder.normal(node, names.Event.UNCORDON, "the node takes pods again")
        return Done()

    async def _finish(self, node: JsonObject, request: str) -> Done:
        """Record that a drain is carried out, unless the node changed its mind or was uncordoned in between."""
        still_pending = drain_pending(node) == request
        schedulable = not (node.get("spec") or {}).get("unschedulable")
        if not still_pending or schedulable:
            return Done(again_after=self._timing.evict_retry)
        await self._patch(node, {"metadata": {"annotations": {names.LAST_APPLIED_DRAIN: request}}})
        self._since.pop(object_name(node).name, None)
        await self._recorder.normal(node, names.Event.DRAIN, "the node is empty")
        return Done()

    async def _patch(self, node: JsonObject, change: JsonObject) -> None:
        """Write to a node if it is still as it was read; raises Conflict."""
        # Conditional on what was read: a config that is withdrawn meanwhile must end in a conflict and not in a cordon.
        version = {"resourceVersion": metadata(node)["resourceVersion"]}
        patch = {**change, "metadata": {**change.get("metadata", {}), **version}}
        await self._cluster.patch(NODE.resource, object_name(node).name, patch, PatchType.MERGE, "", _AS)
