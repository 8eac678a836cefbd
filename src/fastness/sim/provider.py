"""The provider of virtual machines: one for each Machine object that asks for one, ended when the object goes.

    spec.providerSpec.value   {"apiVersion": "fastness.dev/v1alpha1", "kind": "VirtualMachineProviderSpec",
                               "userDataSecret": {"name": "worker-user-data-managed"}, "tee": "snp"}

A Machine becomes a virtual machine that boots with exactly the Secret that it names: with a wrong one it never gets in. Which
virtual machine is whose stands in the inventory, so a restart in the middle makes none twice. A Machine that goes is emptied
first, through the API, so that disruption budgets hold; then it is switched off and thrown away, with its Node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE, POD
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import ObjectName, is_being_deleted, metadata, object_name
from fastness.kinds.openshift.machines import FINALIZER, MACHINE_OF_NODE, PROVIDER_MACHINE
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import NotFound, Unavailable
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.machineconfig.loops.machines.machine_ends import holds_up, let_go
from fastness.machineconfig.scaling.machines import (
    pool_of_user_data,
    provider_of,
    secret_of,
    status,
    tee_of,
)
from fastness.machineconfig.scaling.providers import VIRTUAL
from fastness.runtime.clock import Clock
from fastness.sim.errors import NotPossible
from fastness.sim.inventory import Spec
from fastness.sim.simulation import Simulation

MACHINES = PROVIDER_MACHINE.resource
HERE = Scope(namespace=names.USER_DATA_NAMESPACE)
WAIT_SECONDS = 1.0
_AS = WriteOptions(manager="virtual-machine-provider")
_STATUS = WriteOptions(manager="virtual-machine-provider", subresource="status")


def _machine_of_node(node: Object) -> Iterable[ObjectName]:
    text = (metadata(node).get("annotations") or {}).get(MACHINE_OF_NODE, "")
    namespace, slash, name = text.partition("/")
    return (ObjectName(namespace, name),) if slash else ()


class VirtualMachineProvider:
    """Makes and ends virtual machines for Machine objects."""

    name = "virtual-machine-provider"
    sources: Sequence[Source] = (Source(MACHINES, scope=HERE), Source(NODE.resource, keys=_machine_of_node))
    writes: Sequence[Resource] = (MACHINES, NODE.resource, POD.resource, EVENTS)

    def __init__(self, cluster: Cluster, simulation: Simulation, clock: Clock) -> None:
        self._cluster = cluster
        self._simulation = simulation
        self._recorder = Recorder(cluster, self.name, clock)

    async def reconcile(self, key: ObjectName) -> Done:
        """One step for one Machine."""
        try:
            machine = await self._cluster.get(MACHINES, key.name, key.namespace)
        except NotFound:
            return GONE
        if provider_of(machine) != VIRTUAL:
            return Done()
        try:
            return await (self._end(machine) if is_being_deleted(machine) else self._make(machine))
        except Unavailable:  # the simulation is not open yet
            return Done(again_after=WAIT_SECONDS)
        except NotPossible as error:
            await self._recorder.warning(machine, "FailedCreate", error.message)
            return Done(again_after=60 * WAIT_SECONDS)

    async def _make(self, machine: JsonObject) -> Done:
        spec = self._simulation.of_machine(_place(machine))
        reached = (machine.get("status") or {}).get("phase", "")
        if spec is None and reached in ("", "Provisioning"):
            secret = secret_of(machine)
            if not secret:
                text = (
                    "spec.providerSpec.value.userDataSecret.name is missing: a machine without user-data knows no door"
                )
                await self._recorder.warning(machine, "FailedCreate", text)
                return Done()
            pool = pool_of_user_data(secret)
            spec = await self._simulation.provide(_place(machine), tee_of(machine), pool, secret)
            await self._recorder.normal(
                machine, "Created", f"virtual machine {spec.name} boots with {secret} (simulated)"
            )
        node = await self._node(machine, spec)
        await self._report(machine, spec, node)
        return Done() if node is not None or spec is None else Done(again_after=WAIT_SECONDS)

    async def _node(self, machine: JsonObject, spec: Spec | None) -> JsonObject | None:
        """The Node that the machine became, which names its Machine from then on."""
        name = self._simulation.node_of(spec.name) if spec is not None else ""
        if not name:
            return None
        try:
            node = await self._cluster.get(NODE.resource, name)
        except NotFound:
            return None
        if (metadata(node).get("annotations") or {}).get(MACHINE_OF_NODE) != _place(machine):
            patch = {"metadata": {"annotations": {MACHINE_OF_NODE: _place(machine)}}}
            node = await self._cluster.patch(NODE.resource, name, patch, PatchType.MERGE, "", _AS)
        return node

    async def _report(self, machine: JsonObject, spec: Spec | None, node: JsonObject | None) -> None:
        place = object_name(machine)
        provider_id = spec.provider_id if spec is not None else None
        if provider_id and (machine.get("spec") or {}).get("providerID") != provider_id:
            patch: JsonObject = {"spec": {"providerID": provider_id}}
            await self._cluster.patch(MACHINES, place.name, patch, PatchType.MERGE, place.namespace, _AS)
        after = status(machine, exists=spec is not None, node=node, lost_words="the virtual machine is gone")
        before = machine.get("status") or {}
        if any(before.get(member) != value for member, value in after.items()):
            await self._cluster.patch(
                MACHINES, place.name, {"status": after}, PatchType.MERGE, place.namespace, _STATUS
            )

    async def _end(self, machine: JsonObject) -> Done:
        """Empty the node, throw the machine away, let the object go; hooks of others hold each step."""
        if FINALIZER not in (metadata(machine).get("finalizers") or ()):
            return GONE
        spec = self._simulation.of_machine(_place(machine))
        node = await self._node(machine, spec)
        await self._report(machine, spec, node)
        waiting = await holds_up(self._cluster, machine, node, _AS)
        if waiting:
            await self._recorder.normal(machine, "DeletionWaits", f"waiting for {'; '.join(waiting[:5])}")
            return Done(again_after=WAIT_SECONDS)
        if spec is not None:
            await self._simulation.remove(spec.name)
        await let_go(self._cluster, machine, _AS)
        return GONE


def _place(machine: Object) -> str:
    place = object_name(machine)
    return f"{place.namespace}/{place.name}"
