"""The labels of a node that booted straight into a custom pool.

A machine that was created with the user-data of a custom pool has that pool's config from its first boot, but nobody gave its
node the labels by which the pool finds it: it would be taken for a worker and lose the config again. So it gets them here, once:
an annotation remembers it, and a label that somebody takes away later stays away. Until then the rollout leaves the node alone.
A selector that does not say plainly which labels it wants is left to its author.
"""

from __future__ import annotations

from collections.abc import Sequence

from fastness.kinds.kind import Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName
from fastness.kube.controllers.controller import GONE, Done, Source
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.rollout.nodes import first_pool, selector_labels
from fastness.runtime.clock import Clock

_AS = WriteOptions(manager="machine-config-first-labels")


class FirstLabels:
    """Labels nodes that booted straight into a custom pool."""

    name = "machine-config-first-labels"
    sources: Sequence[Source] = (Source(NODE.resource),)
    writes: Sequence[Resource] = (NODE.resource,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        self._cluster = cluster
        self._nodes = informers.of(NODE.resource)
        self._pools = informers.of(MACHINE_CONFIG_POOL.resource)

    async def reconcile(self, key: ObjectName) -> Done:
        """Label one node, if it is such a one and was not labelled before."""
        await self._pools.synced()
        node = self._nodes.get("", key.name)
        if node is None:
            return GONE
        pool = self._pools.get("", first_pool(node))
        labels = selector_labels(pool) if pool is not None else None
        if labels:
            patch = {"metadata": {"labels": labels, "annotations": {names.CUSTOM_POOL_LABELS_APPLIED: ""}}}
            await self._cluster.patch(NODE.resource, key.name, patch, PatchType.MERGE, "", _AS)
        return Done()
