"""What loops of both kinds of sets have in common: the set is read anew, its Machines and all Nodes beside it, and its status is
written where it differs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import ClassVar

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import ObjectName, object_name
from fastness.kinds.openshift.machines import PROVIDER_MACHINE
from fastness.kube.controllers.controller import GONE, Done
from fastness.kube.errors import NotFound
from fastness.kube.events import Recorder
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.runtime.clock import Clock

MACHINES = PROVIDER_MACHINE.resource
HERE = Scope(namespace=names.USER_DATA_NAMESPACE)
SETTLE_SECONDS = 0.2


class FollowedSets(ABC):
    """A loop over sets of one kind, one step at a time; `providers` are those whose machines are made here."""

    name: ClassVar[str]
    kind: ClassVar[Resource]

    def __init__(self, cluster: Cluster, clock: Clock, providers: Collection[str]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._providers = providers
        self._recorder = Recorder(cluster, self.name, clock)
        self._as = WriteOptions(manager=self.name)

    async def reconcile(self, key: ObjectName) -> Done:
        """One step for one set."""
        try:
            machine_set = await self._cluster.get(self.kind, key.name, key.namespace)
        except NotFound:
            return GONE
        return await self._step(machine_set)

    @abstractmethod
    async def _step(self, machine_set: JsonObject) -> Done:
        """What comes next for a set that is there."""

    async def _beside(self, machine_set: JsonObject) -> tuple[list[JsonObject], dict[str, JsonObject]]:
        """The Machines in the namespace of a set, and all Nodes by name."""
        machines = (await self._cluster.list(MACHINES, Scope(namespace=object_name(machine_set).namespace))).items
        nodes = (await self._cluster.list(NODE.resource)).items
        return machines, {object_name(node).name: node for node in nodes}

    async def _gone(self, machine: str, namespace: str) -> bool:
        """Delete a Machine; False when somebody else has."""
        try:
            await self._cluster.delete(MACHINES, machine, namespace)
        except NotFound:
            return False
        return True

    async def _report(self, machine_set: JsonObject, status: JsonObject) -> None:
        """Write the members of a status that differ from what stands there."""
        before, place = machine_set.get("status") or {}, object_name(machine_set)
        if any(before.get(member) != value for member, value in status.items()):
            options = WriteOptions(manager=self.name, subresource="status")
            patch = {"status": status}
            await self._cluster.patch(self.kind, place.name, patch, PatchType.MERGE, place.namespace, options)
