"""FastnessConfigs of Cluster API: each becomes a Secret with the pointer of its pool.

What is decided stands in `scaling/bootstrap`. The kinds of Cluster API may not be there, so its Cluster and Machine are asked for
and not watched. Configs count in `openshift-machine-api` alone: whoever could write one elsewhere could join any pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastness.kinds.cluster_api.bootstrap import FASTNESS_CONFIG
from fastness.kinds.cluster_api.owners import CLUSTERS, MACHINES
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import ObjectName, is_being_deleted, object_name
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.machineconfig.scaling import bootstrap
from fastness.machineconfig.scaling.bootstrap import Waits
from fastness.runtime.clock import Clock

CONFIGS = FASTNESS_CONFIG.resource
SECRETS = SECRET.resource
HERE = Scope(namespace=names.USER_DATA_NAMESPACE)
AGAIN_SECONDS = 5.0
_AS = WriteOptions(manager="bootstrap-configs")
_STATUS = WriteOptions(manager="bootstrap-configs", subresource="status")


class BootstrapConfigs:
    """Makes the data that Machines of Cluster API are created with."""

    name = "bootstrap-configs"
    writes: Sequence[Resource] = (CONFIGS, SECRETS)

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(CONFIGS, scope=HERE),
            Source(SECRETS, keys=self._of_user_data, scope=HERE),
        )
        self._cluster = cluster
        self._clock = clock
        self._pools: dict[ObjectName, str] = {}

    def _of_user_data(self, secret: Object) -> Iterable[ObjectName]:
        """The configs of the pool whose user-data changed."""
        name = object_name(secret).name
        if not name.endswith(names.USER_DATA_SUFFIX):
            return ()
        return [key for key, pool in self._pools.items() if pool == name.removesuffix(names.USER_DATA_SUFFIX)]

    async def reconcile(self, key: ObjectName) -> Done:
        """One step for one config."""
        config = await self._get(CONFIGS, key.name, key.namespace)
        if config is None or is_being_deleted(config):
            self._pools.pop(key, None)
            return GONE
        pool = self._pools[key] = str((config.get("spec") or {}).get("pool") or "")
        machine = await self._get(MACHINES, bootstrap.owner(config), key.namespace)
        cluster = await self._get(CLUSTERS, bootstrap.cluster_of(machine or {}), key.namespace)
        if bootstrap.is_paused(config, cluster):
            return Done(again_after=AGAIN_SECONDS)
        user_data = await self._get(SECRETS, f"{pool}{names.USER_DATA_SUFFIX}", key.namespace)
        outcome = bootstrap.pointer_for(config, machine, cluster, user_data)
        if isinstance(outcome, Waits):
            await self._report(config, outcome)
            return Done(again_after=AGAIN_SECONDS)
        created = machine is not None and bootstrap.is_created(machine)
        await self._keep(bootstrap.data_secret(config, bootstrap.cluster_of(machine or {}), outcome), created=created)
        await self._report(config, None)
        return Done(again_after=None if created else AGAIN_SECONDS)

    async def _keep(self, secret: JsonObject, *, created: bool) -> None:
        """Make the Secret, and keep it current until the machine was created with it."""
        place = object_name(secret)
        present = await self._get(SECRETS, place.name, place.namespace)
        if present is None:
            try:
                await self._cluster.create(SECRETS, secret, _AS)
            except AlreadyExists:
                return
        elif not created and present.get("data") != secret["data"]:
            patch = {"data": secret["data"]}
            await self._cluster.patch(SECRETS, place.name, patch, PatchType.MERGE, place.namespace, _AS)

    async def _report(self, config: JsonObject, waits: Waits | None) -> None:
        place, after = object_name(config), bootstrap.status(config, waits, self._clock.now())
        if after != config.get("status"):
            await self._cluster.patch(CONFIGS, place.name, {"status": after}, PatchType.MERGE, place.namespace, _STATUS)

    async def _get(self, resource: Resource, name: str, namespace: str) -> JsonObject | None:
        try:
            return await self._cluster.get(resource, name, namespace) if name else None
        except NotFound:
            return None
