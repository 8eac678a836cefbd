"""Machines of Metal3: each takes a BareMetalHost, follows it until it is a node, and gives it back.

What is written on a host is decided in `scaling/metal3`; the operator of that project does the rest. A Machine that waits says
for what; one whose host has an error shows it in its operator's words, and waits too, because that operator tries again by
itself. A Machine fails for two reasons: nothing could ever become it, or its host was taken away from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE, POD
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import (
    ObjectName,
    annotations_of,
    is_being_deleted,
    metadata,
    object_name,
    with_condition,
)
from fastness.kinds.openshift.machines import BARE_METAL_HOST, FINALIZER, MACHINE_OF_NODE, PROVIDER_MACHINE
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import Conflict, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.machineconfig.loops.machines.machine_ends import forget_node, holds_up, let_go
from fastness.machineconfig.scaling import metal3
from fastness.machineconfig.scaling.machines import FAILED, provider_of, status
from fastness.machineconfig.scaling.providers import METAL3
from fastness.machineconfig.scaling.sets import Refused
from fastness.runtime.clock import Clock

MACHINES = PROVIDER_MACHINE.resource
HOSTS = BARE_METAL_HOST.resource
HERE = Scope(namespace=names.USER_DATA_NAMESPACE)
WAIT_SECONDS = 5.0
HOST_READY = "HostReady"
_LOST = "its host was deleted, or taken by somebody else"
_AS = WriteOptions(manager="bare-metal-machines")
_STATUS = WriteOptions(manager="bare-metal-machines", subresource="status")


class BareMetalMachines:
    """Takes hosts for Machines and gives them back."""

    name = "bare-metal-machines"
    writes: Sequence[Resource] = (MACHINES, HOSTS, NODE.resource, POD.resource, EVENTS)

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self.sources: Sequence[Source] = (
            Source(MACHINES, scope=HERE),
            Source(HOSTS, keys=self._concerned, scope=HERE),
            Source(NODE.resource, keys=self._of_node),
        )
        self._cluster = cluster
        self._clock = clock
        self._recorder = Recorder(cluster, self.name, clock)
        self._waiting: set[ObjectName] = set()
        self._expected: set[ObjectName] = set()

    def _concerned(self, host: Object) -> Iterable[ObjectName]:
        """The Machine that has a host, and those that wait for one."""
        reference = (host.get("spec") or {}).get("consumerRef") or {}
        consumer = ObjectName(str(reference.get("namespace") or ""), str(reference.get("name") or ""))
        return {*self._waiting, *((consumer,) if consumer.name else ())}

    def _of_node(self, node: Object) -> Iterable[ObjectName]:
        """The Machine that a Node is, and those whose hosts have not become a node yet."""
        namespace, slash, name = annotations_of(node).get(MACHINE_OF_NODE, "").partition("/")
        return {*self._expected, *((ObjectName(namespace, name),) if slash else ())}

    async def reconcile(self, key: ObjectName) -> Done:
        """One step for one Machine."""
        try:
            machine = await self._cluster.get(MACHINES, key.name, key.namespace)
        except NotFound:
            self._forget(key)
            return GONE
        if provider_of(machine) != METAL3:
            return Done()
        hosts = (await self._cluster.list(HOSTS, Scope(namespace=key.namespace))).items
        host = metal3.own_host(machine, hosts)
        try:
            if is_being_deleted(machine):
                return await self._end(machine, _mutable(host))
            return await self._follow(machine, hosts, _mutable(host))
        except Conflict:  # somebody wrote the host first: look again
            return Done(again_after=0.0)

    async def _follow(self, machine: JsonObject, hosts: Sequence[JsonObject], host: JsonObject | None) -> Done:
        key, had = object_name(machine), metal3.HOST_OF_MACHINE in annotations_of(machine)
        problem = metal3.wrong(machine)
        if host is None and not had:
            if problem is not None:
                await self._refuse(machine, problem)
                return Done()
            chosen = metal3.choose(machine, hosts)
            if chosen is None:
                self._waiting.add(key)
                await self._report(machine, None, None, metal3.scarcity(machine, hosts))
                return Done()
            host = await self._claim(machine, chosen)
        self._waiting.discard(key)
        if host is None:
            await self._report(machine, None, None, _LOST, lost=True)
            return Done()
        if not had:
            await self._name_host(machine, host)
        if not metal3.is_asked(host) and not _was_provisioned(machine) and metal3.held(host) is None:
            host = await self._claim(machine, host)
        node = await self._node(machine, host)
        await self._report(machine, host, node, metal3.held(host) or metal3.trouble(host))
        return Done() if node is not None or not metal3.is_provisioned(host) else Done(again_after=WAIT_SECONDS)

    async def _claim(self, machine: JsonObject, host: Object) -> JsonObject:
        """Take a host, in one write; raises Conflict when somebody was first."""
        place = object_name(host)
        taken = await self._cluster.patch(
            HOSTS, place.name, metal3.claim(machine, host), PatchType.MERGE, place.namespace, _AS
        )
        await self._recorder.normal(machine, names.Event.HOST_TAKEN, f"host {place.name} becomes this machine")
        return taken

    async def _name_host(self, machine: JsonObject, host: JsonObject) -> None:
        place, named = object_name(machine), object_name(host)
        note = {"metadata": {"annotations": {metal3.HOST_OF_MACHINE: f"{named.namespace}/{named.name}"}}}
        await self._cluster.patch(MACHINES, place.name, note, PatchType.MERGE, place.namespace, _AS)

    async def _node(self, machine: JsonObject, host: JsonObject) -> JsonObject | None:
        """The Node that the host became; it has the provider's name for it, and names its Machine, from then on."""
        key = object_name(machine)
        found = (
            metal3.node_of(host, (await self._cluster.list(NODE.resource)).items)
            if metal3.is_provisioned(host)
            else None
        )
        (self._expected.discard if found is not None or not metal3.is_provisioned(host) else self._expected.add)(key)
        if found is None:
            return None
        patch: JsonObject = {}
        if not (found.get("spec") or {}).get("providerID"):
            patch["spec"] = {"providerID": metal3.provider_id(host)}
        if annotations_of(found).get(MACHINE_OF_NODE) != f"{key.namespace}/{key.name}":
            patch["metadata"] = {"annotations": {MACHINE_OF_NODE: f"{key.namespace}/{key.name}"}}
        name = object_name(found).name
        return await self._cluster.patch(NODE.resource, name, patch, PatchType.MERGE, "", _AS) if patch else dict(found)

    async def _became(self, machine: JsonObject) -> JsonObject | None:
        """The Node that a Machine says it became, if it is still that one: a name may be somebody else's by now."""
        name = str(((machine.get("status") or {}).get("nodeRef") or {}).get("name") or "")
        try:
            node = await self._cluster.get(NODE.resource, name) if name else None
        except NotFound:
            return None
        own = (machine.get("spec") or {}).get("providerID")
        return node if node is not None and (node.get("spec") or {}).get("providerID") == own else None

    async def _refuse(self, machine: JsonObject, problem: Refused) -> None:
        """A Machine that nothing can become: it fails, with what to correct."""
        after = {"phase": FAILED, "errorReason": "InvalidConfiguration", "errorMessage": str(problem)}
        await self._write_status(machine, after)

    async def _report(
        self, machine: JsonObject, host: JsonObject | None, node: JsonObject | None, trouble: str, *, lost: bool = False
    ) -> None:
        place = object_name(machine)
        provisioned = host is not None and metal3.is_provisioned(host)
        if (
            host is not None
            and provisioned
            and (machine.get("spec") or {}).get("providerID") != metal3.provider_id(host)
        ):
            patch: JsonObject = {"spec": {"providerID": metal3.provider_id(host)}}
            await self._cluster.patch(MACHINES, place.name, patch, PatchType.MERGE, place.namespace, _AS)
        # A host that is emptied or still written is no machine yet; one that was there and is gone does not come back.
        after = status(machine, exists=provisioned, node=node, lost_words=_LOST)
        if not lost and not provisioned and after["phase"] == FAILED:
            after = {
                **after,
                "phase": (machine.get("status") or {}).get("phase"),
                "errorReason": None,
                "errorMessage": None,
            }
        if lost and not is_being_deleted(machine):
            after |= {"phase": FAILED, "errorReason": "MachineLost", "errorMessage": f"{_LOST}: delete this Machine"}
        reason = "AsExpected" if not trouble else "HostMissing" if host is None else "HostTrouble"
        conditions = with_condition(
            (machine.get("status") or {}).get("conditions") or [], kind=HOST_READY,
            status="True" if provisioned and not trouble else "False",
            reason=reason if trouble or provisioned else "Provisioning",
            message=(trouble or _state_text(host))[:1024], now=self._clock.now(),
        )  # fmt: skip
        located = metal3.addresses(host) if host is not None and provisioned else None
        await self._write_status(machine, {**after, "addresses": located or None, "conditions": conditions})

    async def _write_status(self, machine: JsonObject, after: JsonObject) -> None:
        place, before = object_name(machine), machine.get("status") or {}
        if any(before.get(member) != value for member, value in after.items()):
            patch = {"status": after}
            await self._cluster.patch(MACHINES, place.name, patch, PatchType.MERGE, place.namespace, _STATUS)

    async def _end(self, machine: JsonObject, host: JsonObject | None) -> Done:
        """Empty the node, then the host, then let the object go; hooks of others hold each step."""
        if FINALIZER not in (metadata(machine).get("finalizers") or ()):
            return GONE
        key = object_name(machine)
        node = await self._became(machine)
        waiting = await holds_up(self._cluster, machine, node, _AS)
        if not waiting and host is not None:
            waiting = await self._give_back(host)
        if waiting:
            await self._report(machine, host, node, "; ".join(waiting[:5]))
            await self._recorder.normal(machine, names.Event.DELETION_WAITS, f"waiting for {'; '.join(waiting[:5])}")
            return Done(again_after=WAIT_SECONDS)
        await forget_node(self._cluster, node)
        await let_go(self._cluster, machine, _AS)
        self._forget(key)
        return GONE

    async def _give_back(self, host: JsonObject) -> list[str]:
        """Ask for a host to be emptied, and leave it when it is; what is waited for until then."""
        place = object_name(host)
        if (why := metal3.held(host)) is not None:
            return [why]
        if (patch := metal3.release(host)) is not None:
            host = await self._cluster.patch(HOSTS, place.name, patch, PatchType.MERGE, place.namespace, _AS)
        if not metal3.is_released(host):
            return [f"host {place.name}, {_state_text(host)}"]
        left: JsonObject = {"spec": {"consumerRef": None}}
        await self._cluster.patch(HOSTS, place.name, left, PatchType.MERGE, place.namespace, _AS)
        return []

    def _forget(self, key: ObjectName) -> None:
        self._waiting.discard(key)
        self._expected.discard(key)


def _mutable(host: Mapping[str, Any] | None) -> JsonObject | None:
    return dict(host) if host is not None else None


def _was_provisioned(machine: Object) -> bool:
    return bool((machine.get("spec") or {}).get("providerID"))


def _state_text(host: Object | None) -> str:
    state = (((host or {}).get("status") or {}).get("provisioning") or {}).get("state") or "unknown"
    return f"the host is in state {state}"
