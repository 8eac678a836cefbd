"""Pinned images: which sets each node is to have, noted on its Node, and what its pool reports about them.

A node has the sets of all its pools, by its Machine where attestation is enforced. What is noted are names and generations: a
set that changes gives another note, which is what the agent waits for. A node that no pool ever gave a set is left alone; one
that had some is told that there are none any more.

A set that a pool lists and that does not exist degrades the pool, and so does a node that cannot pull or pin. Nothing else waits
for that: rollouts go on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.node import MACHINE_CONFIG_NODE
from fastness.kinds.machineconfiguration.pinned_images import PINNED_IMAGE_SET
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, annotations_of, is_being_deleted, object_name
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.controllers.statuses import Change, write_status
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.loops.updates.holds import Proofs
from fastness.machineconfig.rollout.pinned_sets import (
    NodePins,
    by_name,
    failure_of,
    generations,
    listed_sets,
    name_of,
    note_of,
    pool_pins,
    read_note,
)
from fastness.pools.membership import PoolSelectors, SeveralPools, machine_membership
from fastness.runtime.clock import Clock

NODES, POOLS, SETS = NODE.resource, MACHINE_CONFIG_POOL.resource, PINNED_IMAGE_SET.resource
CONFIG_NODES = MACHINE_CONFIG_NODE.resource
ALL = ObjectName("", "*")
_AS = WriteOptions(manager="machine-config-pins")
_STATUS = WriteOptions(manager="machine-config-pins", subresource="status")


def _everything(_obj: Object) -> Iterable[ObjectName]:
    return (ALL,)


def _report(sets: dict[str, Object], nodes: list[NodePins], now: datetime, pool: JsonObject) -> JsonObject | None:
    """What a pool has to say of its pinned images, unless it says so already."""
    report = pool_pins(pool, sets, nodes, now)
    status = pool.get("status") or {}
    same = report is None or all((status.get(field) or []) == value for field, value in report.items())
    return None if same else report


class PinnedImages:
    """Keeps the notes of nodes and the reports of pools."""

    name = "machine-config-pins"
    writes: Sequence[Resource] = (NODES, POOLS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        kinds = (POOLS, SETS, NODES, CONFIG_NODES, MACHINE.resource, CONFIDENTIAL_CLUSTER.resource)
        # All of them for one key and after a moment: nodes and their reports change all the time, and one look takes in many.
        self.sources: Sequence[Source] = tuple(
            Source(kind, keys=_everything, delay=timing.rollout_delay) for kind in kinds
        )
        self._cluster = cluster
        self._clock = clock
        self._proofs = Proofs(informers, clock)
        self._pools, self._sets, self._nodes = (informers.of(kind) for kind in (POOLS, SETS, NODES))
        self._config_nodes = informers.of(CONFIG_NODES)
        self._idle = False

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring all notes and reports in step."""
        pools, sets = by_name(self._pools.list()), by_name(self._sets.list())
        # Most clusters pin nothing: their nodes are not walked for every heartbeat.
        idle = not any(map(listed_sets, pools.values()))
        if idle and self._idle:
            return Done()
        selectors = PoolSelectors(pools.values())
        for node in self._nodes.list():
            await self._note(node, self._asked(node, selectors, pools, sets))
        members: dict[str, list[NodePins]] = {}
        for config_node in self._config_nodes.list():
            name = object_name(config_node).name
            noted = annotations_of(self._nodes.get("", name) or {}).get(names.PINNED_IMAGE_SETS, "")
            members.setdefault(name_of(config_node), []).append(NodePins(name, read_note(noted), config_node))
        told = True
        for name, pool in pools.items():
            if not is_being_deleted(pool):
                told &= await self._tell(dict(pool), partial(_report, sets, members.get(name, []), self._clock.now()))
        nodes = [node for nodes in members.values() for node in nodes]
        self._idle = idle and told and not any(node.asked or failure_of(node) for node in nodes)
        return Done()

    def _asked(
        self, node: JsonObject, selectors: PoolSelectors, pools: dict[str, Object], sets: dict[str, Object]
    ) -> str | None:
        """What a node is to have; None where nobody can say, because several pools claim it."""
        name = object_name(node).name
        try:
            membership = machine_membership(node, selectors, self._proofs.pool(name), self._proofs.enforces)
        except SeveralPools:
            return None
        return note_of(generations((pools[pool] for pool in membership.pools if pool in pools), sets))

    async def _note(self, node: JsonObject, asked: str | None) -> None:
        noted = annotations_of(node).get(names.PINNED_IMAGE_SETS)
        if asked is None or asked == noted or (not asked and noted is None):
            return
        patch = {"metadata": {"annotations": {names.PINNED_IMAGE_SETS: asked}}}
        with suppress(NotFound):
            await self._cluster.patch(NODES, object_name(node).name, patch, PatchType.MERGE, "", _AS)

    async def _tell(self, pool: JsonObject, change: Change) -> bool:
        """Whether the pool says it already; what is written now is looked at once more."""
        if not change(pool):
            return True
        await write_status(self._cluster, POOLS, pool, change, _STATUS)
        return False
