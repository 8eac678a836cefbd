"""Rendered configs that nobody uses any more are deleted, all but the last five of each pool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastness.kinds.kind import Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, DeleteOptions
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.render.prune import in_use, is_rendered, prunable
from fastness.runtime.clock import Clock

CONFIGS = MACHINE_CONFIG.resource
ALL = ObjectName("", "*")


def _if_rendered(config: Object) -> Iterable[ObjectName]:
    return (ALL,) if is_rendered(config) else ()


class Pruning:
    """Deletes rendered configs that nobody uses."""

    name = "machine-config-pruning"
    writes: Sequence[Resource] = (CONFIGS,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        # Nodes and pools are read and do not trigger: a config that was let go of is noticed at the next look.
        self.sources: Sequence[Source] = (Source(CONFIGS, keys=_if_rendered, delay=timing.prune_every),)
        self._cluster = cluster
        self._timing = timing
        self._configs = informers.of(CONFIGS)
        self._pools = informers.of(MACHINE_CONFIG_POOL.resource)
        self._nodes = informers.of(NODE.resource)

    async def reconcile(self, key: ObjectName) -> Done:
        """Delete what may go."""
        await self._pools.synced()
        await self._nodes.synced()
        configs = {obj["metadata"]["name"]: obj for obj in self._configs.list()}
        for name in prunable(configs.values(), in_use(self._pools.list(), self._nodes.list())):
            try:
                await self._cluster.delete(CONFIGS, name, "", DeleteOptions(uid=configs[name]["metadata"]["uid"]))
            except (NotFound, Conflict):
                continue
        return Done(again_after=self._timing.prune_every)
