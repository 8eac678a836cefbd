"""The ControlPlaneMachineSet: one Machine of the control plane is replaced at a time, and the next waits for its Node.

What comes next is decided in `scaling/control_plane`. A set that is not Active, whose provider makes no machines here, or that
asks for something that cannot be done, is only reported on, and its conditions say why.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import ObjectName, condition, object_name
from fastness.kinds.openshift.machines import CONTROL_PLANE_MACHINE_SET, PROVIDER_MACHINE
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.machineconfig.scaling import control_plane
from fastness.machineconfig.scaling.control_plane import ControlPlanePlan
from fastness.machineconfig.scaling.providers import unmanaged
from fastness.machineconfig.scaling.sets import acts
from fastness.runtime.clock import Clock

SETS = CONTROL_PLANE_MACHINE_SET.resource
MACHINES = PROVIDER_MACHINE.resource
HERE = Scope(namespace=names.USER_DATA_NAMESPACE)
KEY = ObjectName(names.USER_DATA_NAMESPACE, control_plane.NAME)
ACTIVE = "Active"
SETTLE_SECONDS = 0.2
_AS = WriteOptions(manager="control-plane-machine-sets")
_STATUS = WriteOptions(manager="control-plane-machine-sets", subresource="status")


def _the_set(_obj: Object) -> Iterable[ObjectName]:
    return (KEY,)


class ControlPlaneSets:
    """Keeps the Machines of the control plane in the shape that their set asks for."""

    name = "control-plane-machine-sets"
    sources: Sequence[Source] = (
        Source(SETS, scope=HERE),
        Source(MACHINES, keys=_the_set, scope=HERE, delay=SETTLE_SECONDS),
        Source(NODE.resource, keys=_the_set, delay=SETTLE_SECONDS),
    )
    writes: Sequence[Resource] = (SETS, MACHINES, EVENTS)

    def __init__(self, cluster: Cluster, clock: Clock, providers: Collection[str]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._providers = providers
        self._recorder = Recorder(cluster, self.name, clock)

    async def reconcile(self, key: ObjectName) -> Done:
        """One step for the set."""
        try:
            machine_set = await self._cluster.get(SETS, key.name, key.namespace)
        except NotFound:
            return GONE
        machines = (await self._cluster.list(MACHINES, Scope(namespace=key.namespace))).items
        nodes = (await self._cluster.list(NODE.resource)).items
        ready = {object_name(node).name for node in nodes if (condition(node, "Ready") or {}).get("status") == "True"}
        await self._carry_out(machine_set, self._decided(machine_set, machines, ready))
        return Done()

    def _decided(
        self, machine_set: JsonObject, machines: Sequence[JsonObject], ready: Collection[str]
    ) -> ControlPlanePlan:
        now, known = self._clock.now(), ready.__contains__
        wrong = control_plane.refused(machine_set)
        why_not = str(wrong) if wrong else unmanaged(control_plane.template_of(machine_set), self._providers)
        if why_not is not None:
            return ControlPlanePlan(status=control_plane.degraded_status(machine_set, machines, known, now, why_not))
        state = (machine_set.get("spec") or {}).get("state") or "Inactive"
        if state != ACTIVE or not acts(machine_set):
            why = f"spec.state is {state}: nothing is made or deleted"
            return ControlPlanePlan(status=control_plane.idle_status(machine_set, machines, known, now, why))
        return control_plane.plan(machine_set, machines, known, now)

    async def _carry_out(self, machine_set: JsonObject, decided: ControlPlanePlan) -> None:
        place, before = object_name(machine_set), machine_set.get("status") or {}
        if decided.create is not None:
            name = object_name(decided.create).name
            try:
                await self._cluster.create(MACHINES, decided.create, _AS)
                await self._recorder.normal(machine_set, names.Event.REPLACEMENT, f"{name} is made")
            except AlreadyExists:
                pass  # this step was taken before the cache knew
        if decided.delete:
            try:
                await self._cluster.delete(MACHINES, decided.delete, place.namespace)
                await self._recorder.normal(
                    machine_set, names.Event.REPLACEMENT, f"{decided.delete} was replaced and goes"
                )
            except NotFound:
                pass
        if any(before.get(member) != value for member, value in decided.status.items()):
            patch = {"status": decided.status}
            await self._cluster.patch(SETS, place.name, patch, PatchType.MERGE, place.namespace, _STATUS)
