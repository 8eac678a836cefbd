"""The loops that make machines for machine sets, as a family: where another machine-api operator works, none of them starts.

Two that make machines for one set would each make all of them. A sign of another is a Deployment of its operator or of its
controllers in `openshift-machine-api` that wants at least one replica; scaled to zero it is retired on purpose. Sets and Machines
are no sign: they stay when an operator goes, and are what `--adopt` takes over.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from fastness.formats.words import counted
from fastness.kinds.kind import Resource
from fastness.kinds.kubernetes.native import DEPLOYMENT
from fastness.kinds.machineconfiguration.names import USER_DATA_NAMESPACE
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.fenced import FencedCluster, nobody_asks
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster
from fastness.machineconfig.loops.bare_metal import BareMetalMachines
from fastness.machineconfig.loops.bootstrap_configs import BootstrapConfigs
from fastness.machineconfig.loops.control_plane_sets import ControlPlaneSets
from fastness.machineconfig.loops.machine_sets import MachineSets
from fastness.machineconfig.scaling.providers import PROVIDERS
from fastness.runtime.clock import Clock

FAMILY: Final = "machine-api"
DEPLOYED: Final = ("machine-api-operator", "machine-api-controllers", "control-plane-machine-set-operator")


async def other_operator(cluster: Cluster) -> str | None:
    """What shows that another machine-api operator is active, or None; raises ApiError when it may not be asked."""
    for name in DEPLOYED:
        try:
            deployment = await cluster.get(DEPLOYMENT.resource, name, USER_DATA_NAMESPACE)
        except NotFound:
            continue
        given = (deployment.get("spec") or {}).get("replicas")
        replicas = 1 if given is None else int(given)
        if replicas > 0:
            return f"Deployment {USER_DATA_NAMESPACE}/{name} wants {counted(replicas, 'replica')}"
    return None


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
