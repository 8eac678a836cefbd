"""The labels of a node that nobody else could give it: those of its pool.

A machine that was created with the user-data of a custom pool has that pool's config from its first boot, but nobody gave its
node the labels by which the pool finds it: it would be taken for a worker and lose the config again. And the kubelet of plain
Kubernetes may give its node no role at all. So a node gets them here, once: an annotation remembers it, and a label that somebody
takes away later stays away. Until then the rollout leaves a node of a custom pool alone. The pool is that of its Machine, or of
the token that it joined with, whatever the node says. Of one that came by neither, and whom somebody else let in, it is that of
the config which the node says it booted with. A selector that does not say plainly which labels it wants is left to its author.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastness.enrolment.live.joined_nodes import (
    BY_NODE,
    CONFIG_MAPS,
    INDEXES,
    JOINED,
    joined_informer,
    joined_node,
    nodes_of,
)
from fastness.kinds.kind import Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, labels_of
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.controllers.reads import fields
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.rollout.nodes import first_pool, selector_labels, unlabelled_pool
from fastness.pools.membership import pools_of_nodes
from fastness.runtime.clock import Clock

_AS = WriteOptions(manager="machine-config-first-labels")
_BY_NODE = "first-labels-node"
_READS = fields("metadata.labels", annotations=(names.CUSTOM_POOL_LABELS_APPLIED, names.FIRST_PIVOT_CONFIG))


def _node_of(machine: Object) -> list[str]:
    return list(pools_of_nodes([machine]))


def _its_node(machine: Object) -> Iterable[ObjectName]:
    return [ObjectName("", name) for name in _node_of(machine)]


def _joined(record: Object) -> Iterable[ObjectName]:
    return [ObjectName("", name) for name in nodes_of(record)]


class FirstLabels:
    """Labels nodes that nobody else could label."""

    name = "machine-config-first-labels"
    sources: Sequence[Source] = (
        Source(NODE.resource, reads=_READS),
        Source(MACHINE.resource, keys=_its_node, reads=fields("status.nodeName", "status.pool")),
        Source(CONFIG_MAPS, keys=_joined, scope=JOINED, indexes=INDEXES),
    )
    writes: Sequence[Resource] = (NODE.resource,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock, timing: Timing = FIELD) -> None:
        self._cluster = cluster
        self._nodes = informers.of(NODE.resource)
        self._pools = informers.of(MACHINE_CONFIG_POOL.resource)
        self._machines = informers.of(MACHINE.resource, indexers={_BY_NODE: _node_of})
        self._joined = joined_informer(informers)

    async def reconcile(self, key: ObjectName) -> Done:
        """Label one node, if it is such a one and was not labelled before."""
        await self._pools.synced()
        node = self._nodes.get("", key.name)
        if node is None:
            return GONE
        await self._joined.synced()
        own = pools_of_nodes(self._machines.by_index(_BY_NODE, key.name)).get(key.name, "") or self._pool_of_token(
            key.name
        )
        pool = self._pools.get("", unlabelled_pool(node, own))
        labels = selector_labels(pool) if pool is not None else None
        # Nodes of a custom pool are also noted where they have them: that lets the rollout go on.
        if labels and (first_pool(node) or not labels.items() <= labels_of(node).items()):
            patch = {"metadata": {"labels": labels, "annotations": {names.CUSTOM_POOL_LABELS_APPLIED: ""}}}
            await self._cluster.patch(NODE.resource, key.name, patch, PatchType.MERGE, "", _AS)
        return Done()

    def _pool_of_token(self, node: str) -> str:
        """The pool of the token that a node joined with; empty when it came otherwise."""
        joined = [joined_node(record) for record in self._joined.by_index(BY_NODE, node)]
        return next((entry.pool for entry in joined if entry is not None), "")
