"""The ControlPlaneMachineSet: one Machine of the control plane is replaced at a time, and the next waits for its Node.

What comes next is decided in `scaling/control_plane`. A set that is not Active, whose provider nobody here can write for, or that
asks for something that cannot be done, is only reported on, and its conditions say why. Machines of clouds are written here and
made by the controllers of their provider; where the operator of that project follows the set as well, it is left alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import ObjectName, condition, object_name
from fastness.kinds.openshift.config import INFRASTRUCTURE
from fastness.kinds.openshift.machines import CONTROL_PLANE_MACHINE_SET
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.events import EVENTS
from fastness.machineconfig.loops.machines.followed_sets import HERE, MACHINES, SETTLE_SECONDS, FollowedSets
from fastness.machineconfig.loops.machines.other_machine_api import CONTROL_PLANE_OPERATOR, wants_replicas
from fastness.machineconfig.scaling import control_plane
from fastness.machineconfig.scaling.control_plane import ControlPlanePlan
from fastness.machineconfig.scaling.failure_domains import WRITABLE
from fastness.machineconfig.scaling.machines import provider_of
from fastness.machineconfig.scaling.providers import unmanaged
from fastness.machineconfig.scaling.sets import acts

SETS = CONTROL_PLANE_MACHINE_SET.resource
KEY = ObjectName(names.USER_DATA_NAMESPACE, control_plane.NAME)
ACTIVE = "Active"


def _the_set(_obj: Object) -> Iterable[ObjectName]:
    return (KEY,)


class ControlPlaneSets(FollowedSets):
    """Keeps the Machines of the control plane in the shape that their set asks for."""

    name = "control-plane-machine-sets"
    kind = SETS
    sources: Sequence[Source] = (
        Source(SETS, scope=HERE),
        Source(MACHINES, keys=_the_set, scope=HERE, delay=SETTLE_SECONDS),
        Source(NODE.resource, keys=_the_set, delay=SETTLE_SECONDS),
        Source(INFRASTRUCTURE.resource, keys=_the_set, delay=SETTLE_SECONDS),
    )
    writes: Sequence[Resource] = (SETS, MACHINES, EVENTS)

    async def _step(self, machine_set: JsonObject) -> Done:
        machines, nodes = await self._beside(machine_set)
        ready = {name for name, node in nodes.items() if (condition(node, "Ready") or {}).get("status") == "True"}
        rival = await self._rival(machine_set)
        await self._carry_out(
            machine_set, self._decided(machine_set, machines, ready, await self._infrastructure(), rival)
        )
        return Done()

    async def _infrastructure(self) -> JsonObject:
        try:
            return await self._cluster.get(INFRASTRUCTURE.resource, "cluster")
        except NotFound:
            return {}

    async def _rival(self, machine_set: JsonObject) -> str | None:
        """Who else follows sets of clouds: adopting the other operator's machines does not switch off this one."""
        if provider_of(control_plane.template_of(machine_set)) not in WRITABLE:
            return None
        return await wants_replicas(self._cluster, CONTROL_PLANE_OPERATOR)

    def _decided(
        self, machine_set: JsonObject, machines: Sequence[JsonObject], ready: Collection[str],
        infrastructure: JsonObject, rival: str | None,
    ) -> ControlPlanePlan:  # fmt: skip
        now, known = self._clock.now(), ready.__contains__
        wrong = control_plane.refused(machine_set, infrastructure)
        providers = {*self._providers, *WRITABLE}
        why_not = str(wrong) if wrong else unmanaged(control_plane.template_of(machine_set), providers)
        if why_not is not None:
            status = control_plane.degraded_status(machine_set, machines, known, now, infrastructure, why_not)
            return ControlPlanePlan(status=status)
        state = (machine_set.get("spec") or {}).get("state") or "Inactive"
        if state != ACTIVE or not acts(machine_set) or rival:
            why = f"spec.state is {state}: nothing is made or deleted" if not rival else f"left to another: {rival}"
            status = control_plane.idle_status(machine_set, machines, known, now, infrastructure, why)
            return ControlPlanePlan(status=status)
        return control_plane.plan(machine_set, machines, known, now, infrastructure)

    async def _carry_out(self, machine_set: JsonObject, decided: ControlPlanePlan) -> None:
        if decided.create is not None:
            name = object_name(decided.create).name
            try:
                await self._cluster.create(MACHINES, decided.create, self._as)
                await self._recorder.normal(machine_set, names.Event.REPLACEMENT, f"{name} is made")
            except AlreadyExists:
                pass  # this step was taken before the cache knew
        if decided.delete and await self._gone(decided.delete, object_name(machine_set).namespace):
            text = f"{decided.delete} was replaced and goes"
            await self._recorder.normal(machine_set, names.Event.REPLACEMENT, text)
        await self._report(machine_set, decided.status)
