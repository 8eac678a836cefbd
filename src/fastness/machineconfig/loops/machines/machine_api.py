"""The loops that make machines for machine sets, as a family; `other_machine_api` says where none of them starts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from fastness.kinds.kind import Resource
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.fenced import FencedCluster, nobody_asks
from fastness.kube.port import Cluster
from fastness.machineconfig.loops.machines.bare_metal import BareMetalMachines
from fastness.machineconfig.loops.machines.bootstrap_configs import BootstrapConfigs
from fastness.machineconfig.loops.machines.control_plane_sets import ControlPlaneSets
from fastness.machineconfig.loops.machines.machine_sets import MachineSets
from fastness.machineconfig.scaling.providers import PROVIDERS
from fastness.runtime.clock import Clock


def machine_api_loops(
    cluster: Cluster,
    clock: Clock,
    *,
    providers: Collection[str] = PROVIDERS,
    may_write: Callable[[], None] = nobody_asks,
) -> list[Controller]:
    """Every loop, each behind its declaration of writes and the lease; `providers` are those that make machines here."""

    def fenced(name: str, writes: Sequence[Resource]) -> FencedCluster:
        return FencedCluster(cluster, name, writes, may_write)

    sets = fenced(MachineSets.name, MachineSets.writes)
    hosts = fenced(BareMetalMachines.name, BareMetalMachines.writes)
    bootstrap = fenced(BootstrapConfigs.name, BootstrapConfigs.writes)
    control_plane = fenced(ControlPlaneSets.name, ControlPlaneSets.writes)
    return [
        MachineSets(sets, clock, providers),
        ControlPlaneSets(control_plane, clock, providers),
        BareMetalMachines(hosts, clock),
        BootstrapConfigs(bootstrap, clock),
    ]
