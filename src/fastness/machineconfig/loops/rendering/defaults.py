"""What a cluster has if nobody made it: the pools `master` and `worker`, `arbiter` where one is, the settings of disruption.

Pools that are there keep their spec, whatever it says: only their labels are restored. The status of MachineConfiguration
shows the disruption policies that hold, defaults and users' own together, because the agents on nodes read them there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, is_being_deleted, labels_of
from fastness.kinds.openshift.config import INFRASTRUCTURE
from fastness.kinds.operator_openshift.machine_configuration import MACHINE_CONFIGURATION
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.rollout.disruption import policies_status
from fastness.runtime.clock import Clock

SETTINGS = MACHINE_CONFIGURATION.resource
CLUSTER = ObjectName("", "cluster")
_AS = WriteOptions(manager="machine-config-defaults")
_STATUS = WriteOptions(manager="machine-config-defaults", subresource="status")
BUILT_IN = (names.MASTER, names.WORKER)


def _cluster(_obj: Object) -> Iterable[ObjectName]:
    return (CLUSTER,)


class Defaults:
    """Keeps what every cluster has."""

    name = "machine-config-defaults"
    sources: Sequence[Source] = (
        Source(MACHINE_CONFIG_POOL.resource, keys=_cluster),
        Source(SETTINGS, keys=_cluster), Source(INFRASTRUCTURE.resource, keys=_cluster),
    )  # fmt: skip
    writes: Sequence[Resource] = (MACHINE_CONFIG_POOL.resource, SETTINGS)
    always = (CLUSTER,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        self._cluster = cluster

    async def reconcile(self, key: ObjectName) -> Done:
        """Create what is missing, restore what must be."""
        arbiter = (names.ARBITER,) if await self._has_arbiter() else ()
        for name in (*BUILT_IN, *arbiter):
            await self._pool(name)
        await self._settings()
        return Done()

    async def _has_arbiter(self) -> bool:
        try:
            infrastructure = await self._cluster.get(INFRASTRUCTURE.resource, CLUSTER.name)
        except NotFound:
            return False
        return bool((infrastructure.get("status") or {}).get("controlPlaneTopology") == names.HIGHLY_AVAILABLE_ARBITER)

    async def _pool(self, name: str) -> None:
        built_in = built_in_pool(name)
        try:
            pool = await self._cluster.get(MACHINE_CONFIG_POOL.resource, name)
        except NotFound:
            await self._create(MACHINE_CONFIG_POOL.resource, built_in)
            return
        missing = {key: "" for key in labels_of(built_in) if key not in labels_of(pool)}
        if missing and not is_being_deleted(pool):
            await self._cluster.patch(
                MACHINE_CONFIG_POOL.resource, name, {"metadata": {"labels": missing}}, PatchType.MERGE, "", _AS
            )

    async def _settings(self) -> None:
        try:
            settings = await self._cluster.get(SETTINGS, CLUSTER.name)
        except NotFound:
            spec = {"managementState": "Managed", "logLevel": "Normal", "operatorLogLevel": "Normal"}
            meta = {"name": CLUSTER.name}
            made = {
                "apiVersion": "operator.openshift.io/v1",
                "kind": "MachineConfiguration",
                "metadata": meta,
                "spec": spec,
            }
            await self._create(SETTINGS, made)
            settings = await self._cluster.get(SETTINGS, CLUSTER.name)
        policies = policies_status((settings.get("spec") or {}).get("nodeDisruptionPolicy"))
        status = {
            "observedGeneration": settings["metadata"].get("generation", 1),
            "nodeDisruptionPolicyStatus": {"clusterPolicies": policies},
        }
        before = settings.get("status") or {}
        if any(before.get(name) != value for name, value in status.items()):
            await self._cluster.patch(SETTINGS, CLUSTER.name, {"status": status}, PatchType.MERGE, "", _STATUS)

    async def _create(self, resource: Resource, obj: JsonObject) -> None:
        try:
            await self._cluster.create(resource, obj, _AS)
        except AlreadyExists:
            return


def built_in_pool(name: str) -> JsonObject:
    """A built-in pool as it is created."""
    labels = {names.BUILT_IN_LABEL: "", f"{names.POOL_LABEL_PREFIX}{name}": ""}
    if name in (names.MASTER, names.ARBITER):
        labels[names.REQUIRED_FOR_UPGRADE_LABEL] = ""
    return {
        "apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "metadata": {"name": name, "labels": labels},
        "spec": {
            "machineConfigSelector": {"matchLabels": {names.ROLE_LABEL: name}},
            "nodeSelector": {"matchLabels": {f"{names.NODE_ROLE_PREFIX}{name}": ""}},
            "paused": False,
        },
    }  # fmt: skip
