"""MachineSets: as many Machines as each asks for, made a few at a time and taken away in its order.

Who makes the machines is a provider: virtual ones where a simulation runs beside the control plane (`sim/provider`), hosts of
Metal3 everywhere (`bare_metal.py`). A set whose template names another provider is left to the controllers of that one, and its
condition `Managed` says so.

How many replicas are ready is said by their Nodes. Those write a heartbeat every few seconds, so a set is looked at again only
for a Node that comes or goes, or whose readiness is not the one that the set last counted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import ObjectName, condition, metadata, object_name
from fastness.kinds.openshift.machines import MACHINE_SET
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.controllers.reads import NOTHING, fields
from fastness.kube.events import EVENTS
from fastness.kube.port import Cluster, PatchType
from fastness.machineconfig.loops.machines.followed_sets import HERE, MACHINES, SETTLE_SECONDS, FollowedSets
from fastness.machineconfig.scaling.providers import managed_condition, unmanaged
from fastness.machineconfig.scaling.sets import NodeState, Refused, SetPlan, acts, new_machine, owner_reference, plan
from fastness.runtime.clock import Clock

SETS = MACHINE_SET.resource
# Availability comes with time alone, after minReadySeconds.
LOOK_AGAIN_SECONDS = 5.0


def _own_set(machine: Object) -> Iterable[ObjectName]:
    owners = metadata(machine).get("ownerReferences") or ()
    return [
        ObjectName(object_name(machine).namespace, str(owner["name"]))
        for owner in owners
        if owner.get("controller") and owner.get("kind") == MACHINE_SET.kind
    ]


class Counted(NamedTuple):
    """A Node as a set last counted it."""

    machine_set: ObjectName
    ready: bool


class MachineSets(FollowedSets):
    """Keeps the Machines of every set whose provider is one of ours."""

    name = "machine-sets"
    kind = SETS
    writes: Sequence[Resource] = (SETS, MACHINES, EVENTS)

    def __init__(self, cluster: Cluster, clock: Clock, providers: Collection[str]) -> None:
        super().__init__(cluster, clock, providers)
        self._counted: dict[str, Counted] = {}
        # What the watch said last of each Node, whether a set has it or not.
        self._heard: dict[str, bool] = {}
        self.sources: Sequence[Source] = (
            Source(SETS, scope=HERE),
            Source(MACHINES, keys=_own_set, scope=HERE, delay=SETTLE_SECONDS),
            Source(NODE.resource, keys=self._set_of, delay=SETTLE_SECONDS, reads=NOTHING),
            Source(NODE.resource, keys=self._set_to_count, delay=SETTLE_SECONDS, reads=fields("status.conditions")),
        )

    def _set_of(self, node: Object) -> Iterable[ObjectName]:
        """The set of a Node that came or went."""
        counted = self._counted.get(object_name(node).name)
        return () if counted is None else (counted.machine_set,)

    def _set_to_count(self, node: Object) -> Iterable[ObjectName]:
        """The set that counted a Node otherwise than it says now."""
        name, ready = object_name(node).name, _is_ready(node)
        self._heard[name] = ready
        counted = self._counted.get(name)
        return () if counted is None or counted.ready == ready else (counted.machine_set,)

    def _count(self, machine_set: JsonObject, machines: Iterable[JsonObject], nodes: Mapping[str, JsonObject]) -> bool:
        """Remember what a set is told of its Nodes; whether the watch has said the same."""
        key = object_name(machine_set)
        for name in [name for name, counted in self._counted.items() if counted.machine_set == key]:
            del self._counted[name]
        mine = {_node_of(machine) for machine in machines if key in _own_set(machine)} - {""}
        ready = {name: name in nodes and _is_ready(nodes[name]) for name in mine}
        self._counted |= {name: Counted(key, value) for name, value in ready.items()}
        return all(self._heard.get(name, value) == value for name, value in ready.items())

    async def _step(self, machine_set: JsonObject) -> Done:
        if not acts(machine_set) or not await self._is_ours(machine_set):
            return Done()
        machines, nodes = await self._beside(machine_set)
        heard = self._count(machine_set, machines, nodes)
        decided = plan(machine_set, machines, lambda name: _state(nodes.get(name)), self._clock.now())
        if isinstance(decided, Refused):
            await self._recorder.warning(machine_set, names.Event.SET_REFUSED, str(decided))
            return Done()
        await self._carry_out(machine_set, decided)
        unavailable = decided.status["readyReplicas"] - decided.status["availableReplicas"]
        return Done(again_after=LOOK_AGAIN_SECONDS) if unavailable or decided.create or not heard else Done()

    async def _is_ours(self, machine_set: JsonObject) -> bool:
        why_not = unmanaged((machine_set.get("spec") or {}).get("template") or {}, self._providers)
        conditions = managed_condition(machine_set, why_not, self._clock.now())
        if conditions != ((machine_set.get("status") or {}).get("conditions") or []):
            await self._report(machine_set, {"conditions": conditions})
            if why_not is not None:
                await self._recorder.normal(machine_set, names.Event.SET_LEFT_ALONE, why_not)
        return why_not is None

    async def _carry_out(self, machine_set: JsonObject, decided: SetPlan) -> None:
        namespace = object_name(machine_set).namespace
        for name in decided.adopt:
            owner = {"metadata": {"ownerReferences": [owner_reference(machine_set)]}}
            await self._cluster.patch(MACHINES, name, owner, PatchType.MERGE, namespace, self._as)
        for _ in range(decided.create):
            await self._cluster.create(MACHINES, new_machine(machine_set), self._as)
        for name in decided.delete:
            await self._gone(name, namespace)
        await self._report(machine_set, decided.status)


def _node_of(machine: Object) -> str:
    return str(((machine.get("status") or {}).get("nodeRef") or {}).get("name") or "")


def _is_ready(node: Object) -> bool:
    return (condition(node, "Ready") or {}).get("status") == "True"


def _state(node: JsonObject | None) -> NodeState | None:
    if node is None:
        return None
    ready = condition(node, "Ready") or {}
    since = datetime.fromisoformat(str(ready.get("lastTransitionTime") or metadata(node)["creationTimestamp"]))
    return NodeState(_is_ready(node), since)
