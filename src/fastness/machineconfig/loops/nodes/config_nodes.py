"""A MachineConfigNode for every node: who shall have what, in an object that the node itself may report to.

The spec follows the node's pool (where attestation is enforced, its Machine's) and target; the status is the agent's. It goes
with its node, which owns it. A pool changes its status all the time while it rolls out; all nodes are looked at only when a
selector changed, or the cluster asks for something else.

What a node booted is kept in order on its MachineConfigNode (`rollout/image_queue.py`), when the node says that it is well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.node import MACHINE_CONFIG_NODE
from fastness.kinds.machineconfiguration.os_build import MACHINE_OS_BUILD
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.machineconfiguration.references import is_digested
from fastness.kinds.objects import ObjectName, annotations_of, object_name, rfc3339
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.controllers.reads import fields
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.loops.updates.holds import Proofs, node_name_of
from fastness.machineconfig.rollout.image_queue import booted, queue_of
from fastness.pools.membership import PoolSelectors, SeveralPools, machine_membership
from fastness.runtime.clock import Clock

MACHINE_CONFIG_NODES = MACHINE_CONFIG_NODE.resource
_AS = WriteOptions(manager="machine-config-nodes")
EVERY = ObjectName("", "*")
_READS = fields(
    "metadata.labels",
    annotations=(names.DESIRED_CONFIG, names.CURRENT_CONFIG, names.DESIRED_IMAGE, names.BOOTED_IMAGE, names.STATE),
)

_OF_CONFIG_NODE = fields("spec", annotations=(names.IMAGE_QUEUE,))


def _every_node(_pool: Object) -> Iterable[ObjectName]:
    return (EVERY,)


def _nobody(_build: Object) -> Iterable[ObjectName]:
    """A build alone changes nothing here: it is asked for when a node boots its image."""
    return ()


class ConfigNodes:
    """Keeps one MachineConfigNode for each node."""

    name = "machine-config-nodes"
    writes: Sequence[Resource] = (MACHINE_CONFIG_NODES,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        self.sources: Sequence[Source] = (
            Source(NODE.resource, reads=_READS), Source(MACHINE_CONFIG_NODES, reads=_OF_CONFIG_NODE),
            Source(MACHINE_CONFIG_POOL.resource, keys=_every_node, delay=timing.rollout_delay),
            Source(MACHINE_OS_BUILD.resource, keys=_nobody),
            Source(MACHINE.resource, keys=self._if_moved), Source(CONFIDENTIAL_CLUSTER.resource, keys=self._if_asked),
        )  # fmt: skip
        self._proofs = Proofs(informers, clock)
        self._places: dict[str, str] = {}
        self._demands: object = None
        self._cluster = cluster
        self._clock = clock
        self._builds = informers.of(MACHINE_OS_BUILD.resource)
        self._nodes = informers.of(NODE.resource)
        self._pools = informers.of(MACHINE_CONFIG_POOL.resource)
        self._config_nodes = informers.of(MACHINE_CONFIG_NODES)
        self._signature: object = None
        self._selectors = PoolSelectors(())

    def _if_moved(self, machine: Object) -> Iterable[ObjectName]:
        """The node of a Machine that came to a pool; everything else about a Machine changes nothing here."""
        node, pool = node_name_of(dict(machine)), str((machine.get("status") or {}).get("pool") or "")
        if not node or self._places.get(node) == pool:
            return ()
        self._places[node] = pool
        return (ObjectName("", node),)

    def _if_asked(self, _cluster: Object) -> Iterable[ObjectName]:
        asks = self._proofs.asks()
        changed, self._demands = asks != self._demands, asks
        return (EVERY,) if changed else ()

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring one, or all, in step with their nodes."""
        if key == EVERY:
            if self._selectors_changed():
                for each in self._nodes.list():
                    await self._sync(each)
            return Done()
        node = self._nodes.get("", key.name)
        if node is None:
            self._places.pop(key.name, None)
            await self._drop(key.name)
            return GONE
        if self._signature is None:
            self._selectors_changed()
        await self._sync(node)
        return Done()

    async def _sync(self, node: JsonObject) -> None:
        name = object_name(node).name
        spec = self._spec(node)
        present = self._config_nodes.get("", name)
        if present is None:
            await self._create(node, spec)
            return
        await self._queue(node, present)
        if present.get("spec") != spec:
            try:
                # Merging alone would keep an image that is no longer wanted.
                patch = {"spec": {"configImage": None, **spec}}
                await self._cluster.patch(MACHINE_CONFIG_NODES, name, patch, PatchType.MERGE, "", _AS)
            except NotFound:
                return

    async def _queue(self, node: JsonObject, present: JsonObject) -> None:
        """Keep what the node booted, if that is news."""
        boot = booted(node, self._pools.list(), self._builds.list(), rfc3339(self._clock.now()))
        queue = queue_of(present)
        longer = queue.after(boot) if boot is not None else queue
        if longer is queue:
            return
        # With the version that was read: a cache that is behind must not cut off what is there already.
        version = present["metadata"]["resourceVersion"]
        notes = {names.IMAGE_QUEUE: longer.text()}
        patch = {"metadata": {"annotations": notes, "resourceVersion": version}}
        try:
            await self._cluster.patch(MACHINE_CONFIG_NODES, object_name(node).name, patch, PatchType.MERGE, "", _AS)
        except NotFound:
            return

    def _selectors_changed(self) -> bool:
        """Use the selectors of the pools as they are; whether they, or what the cluster asks for, are others than before."""
        pools = self._pools.list()
        selectors = ((object_name(pool).name, repr((pool.get("spec") or {}).get("nodeSelector"))) for pool in pools)
        signature = (tuple(sorted(selectors)), self._proofs.asks())
        if signature == self._signature:
            return False
        self._signature, self._selectors = signature, PoolSelectors(pools)
        return True

    def _spec(self, node: JsonObject) -> JsonObject:
        try:
            own = self._proofs.pool(object_name(node).name)
            pool = machine_membership(node, self._selectors, own, self._proofs.enforces).primary
        except SeveralPools:
            pool = ""
        notes = annotations_of(node)
        desired = notes.get(names.DESIRED_CONFIG) or notes.get(names.CURRENT_CONFIG) or names.NOT_YET_SET
        spec: JsonObject = {
            "node": {"name": object_name(node).name},
            "pool": {"name": pool or names.NOT_YET_SET},
            "configVersion": {"desired": desired},
        }
        # What the field would refuse is left out: a node with an image on `localhost:5000` still has its other facts to tell.
        if is_digested(image := notes.get(names.DESIRED_IMAGE, "")):
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
        if self._config_nodes.get("", name) is None:
            return
        try:
            await self._cluster.delete(MACHINE_CONFIG_NODES, name)
        except NotFound:
            return
