"""A MachineConfigNode for every node: who shall have what, in an object that the node itself may report to.

The spec follows the node's pool and target; the status is the agent's. It goes with its node, which owns it. A pool changes its
status all the time while it rolls out; all nodes are looked at only when a selector changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastness.cluster.clock import Clock
from fastness.cluster.errors import AlreadyExists, NotFound
from fastness.cluster.informers import Informers
from fastness.cluster.port import Cluster, PatchType, WriteOptions
from fastness.controllers.engine.controller import GONE, Done, Object, Source
from fastness.controllers.machineconfig.rollout import NODES, POOLS
from fastness.controllers.machineconfig.timing import FIELD, Timing
from fastness.domain.machineconfig.errors import SeveralPools
from fastness.domain.machineconfig.nodes import PoolSelectors
from fastness.model.kind import JsonObject, Resource
from fastness.model.machineconfiguration import names
from fastness.model.objects import ObjectName, annotations_of, object_name
from fastness.model.registry import find

MACHINE_CONFIG_NODES = find("machineconfiguration.openshift.io", "v1", "machineconfignodes").resource
_AS = WriteOptions(manager="machine-config-nodes")
EVERY = ObjectName("", "*")


def _every_node(_pool: Object) -> Iterable[ObjectName]:
    return (EVERY,)


class ConfigNodes:
    """Keeps one MachineConfigNode for each node."""

    name = "machine-config-nodes"
    writes: Sequence[Resource] = (MACHINE_CONFIG_NODES,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        self.sources: Sequence[Source] = (
            Source(NODES), Source(MACHINE_CONFIG_NODES), Source(POOLS, keys=_every_node, delay=timing.rollout_delay),
        )  # fmt: skip
        self._cluster = cluster
        self._nodes = informers.of(NODES)
        self._pools = informers.of(POOLS)
        self._known = informers.of(MACHINE_CONFIG_NODES)
        self._signature: object = None
        self._selectors = PoolSelectors(())

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring one, or all, in step with their nodes."""
        if key == EVERY:
            if self._selectors_changed():
                for each in self._nodes.list():
                    await self._sync(each)
            return Done()
        node = self._nodes.get("", key.name)
        if node is None:
            await self._drop(key.name)
            return GONE
        if self._signature is None:
            self._selectors_changed()
        await self._sync(node)
        return Done()

    async def _sync(self, node: JsonObject) -> None:
        name = object_name(node).name
        wanted = self._spec(node)
        known = self._known.get("", name)
        if known is None:
            await self._create(node, wanted)
        elif known.get("spec") != wanted:
            try:
                await self._cluster.patch(MACHINE_CONFIG_NODES, name, {"spec": wanted}, PatchType.MERGE, "", _AS)
            except NotFound:
                return

    def _selectors_changed(self) -> bool:
        """Use the selectors of the pools as they are; whether they are others than before."""
        pools = self._pools.list()
        selectors = ((object_name(pool).name, repr((pool.get("spec") or {}).get("nodeSelector"))) for pool in pools)
        signature = tuple(sorted(selectors))
        if signature == self._signature:
            return False
        self._signature, self._selectors = signature, PoolSelectors(pools)
        return True

    def _spec(self, node: JsonObject) -> JsonObject:
        try:
            pool = self._selectors.of(node).primary
        except SeveralPools:
            pool = ""
        notes = annotations_of(node)
        desired = notes.get(names.DESIRED_CONFIG) or notes.get(names.CURRENT_CONFIG) or names.NOT_YET_SET
        spec: JsonObject = {
            "node": {"name": object_name(node).name},
            "pool": {"name": pool or names.NOT_YET_SET},
            "configVersion": {"desired": desired},
        }
        if image := notes.get(names.DESIRED_IMAGE):
            spec["configImage"] = {"desiredImage": image}
        return spec

    async def _create(self, node: JsonObject, spec: JsonObject) -> None:
        meta = node["metadata"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": meta["name"], "uid": meta["uid"]}
        made = {
            "apiVersion": names.API_VERSION, "kind": "MachineConfigNode",
            "metadata": {"name": meta["name"], "ownerReferences": [owner]}, "spec": spec,
        }  # fmt: skip
        try:
            await self._cluster.create(MACHINE_CONFIG_NODES, made, _AS)
        except AlreadyExists:
            return

    async def _drop(self, name: str) -> None:
        if self._known.get("", name) is None:
            return
        try:
            await self._cluster.delete(MACHINE_CONFIG_NODES, name)
        except NotFound:
            return
