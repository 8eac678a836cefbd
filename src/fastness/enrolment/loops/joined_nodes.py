"""Nodes that came by the token of a pool: their Node is noted when it comes, and their name is set free when it goes.

no Node yet           the name is held until the certificate ends that it was given: whoever has that could still come
the Node is there     its uid is noted
the Node was deleted  somebody took the machine out: the name is free, and what registers again under it is a stranger
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fastness.enrolment.live.joined_nodes import (
    BY_NODE,
    CONFIG_MAPS,
    INDEXES,
    JOINED,
    JoinedNodes,
    joined_informer,
    joined_node,
)
from fastness.kinds.kind import Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.objects import ObjectName, metadata, object_name
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.controllers.reads import NOTHING
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.runtime.clock import Clock

AGAIN_SECONDS: Final = 1.0


class JoinedNodeController:
    """Follows the Nodes of machines that came by a token."""

    name = "joined-nodes"
    writes: Sequence[Resource] = (CONFIG_MAPS,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(CONFIG_MAPS, scope=JOINED, indexes=INDEXES),
            Source(NODE.resource, keys=self._of_node, reads=NOTHING),
        )
        self._cluster = cluster
        self._clock = clock
        self._records = joined_informer(informers)
        self._joined = JoinedNodes(cluster)

    def _of_node(self, node: Object) -> Iterable[ObjectName]:
        return [object_name(record) for record in self._records.by_index(BY_NODE, object_name(node).name)]

    async def reconcile(self, key: ObjectName) -> Done:
        """One node."""
        try:
            record = await self._cluster.get(CONFIG_MAPS, key.name, key.namespace)
        except NotFound:
            return GONE
        joined = joined_node(record)
        if joined is None:
            return Done()
        uid = await self._uid(joined.node)
        left = (joined.ends - self._clock.now()).total_seconds()
        try:
            if uid == joined.uid:
                if uid or left > 0:
                    return Done(again_after=None if uid else left)
                await self._joined.forget(record)
            elif joined.uid:
                await self._joined.forget(record)
            else:
                await self._joined.change(record, {"uid": uid})
        except (Conflict, NotFound):
            return Done(again_after=AGAIN_SECONDS)
        return Done()

    async def _uid(self, node: str) -> str:
        """The uid of the Node of a name; empty when there is none."""
        try:
            return str(metadata(await self._cluster.get(NODE.resource, node))["uid"])
        except NotFound:
            return ""
