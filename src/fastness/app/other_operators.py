"""Which families of loops somebody else may do the work of, and which must not start because somebody does.

Apart from `controllers`, which loads every loop: the command line names the families in its help.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final

from fastness.kinds.crd.sets import set_of
from fastness.kube.port import Cluster
from fastness.machineconfig.loops import other_operators as machine_config
from fastness.machineconfig.loops.machines import other_machine_api as machine_api
from fastness.workloads.loops import other_operators as workloads

FAMILIES: Final = (machine_config.FAMILY, machine_api.FAMILY, *workloads.DEPLOYMENTS_OF_OTHERS)

NEEDS: Final[Mapping[str, tuple[str, ...]]] = {
    machine_config.FAMILY: ("machineconfiguration.openshift.io", "operator.openshift.io"),
    machine_api.FAMILY: ("machine.openshift.io", "metal3.io"),
    workloads.FEATURES: ("nfd.openshift.io",),
    workloads.KATA: ("kataconfiguration.openshift.io",),
    workloads.OPERATORS: ("operators.coreos.com",),
}
"""The groups that each family writes: without their definitions it has nothing to do."""


def left_out(absent: Collection[str]) -> dict[str, str]:
    """The families that do not start because definitions of these groups are not installed, with the sets that have them."""
    lacking = {family: [group for group in groups if group in absent] for family, groups in NEEDS.items()}
    return {family: ",".join(dict.fromkeys(map(set_of, groups))) for family, groups in lacking.items() if groups}


async def held_back(cluster: Cluster, adopted: Collection[str], now: datetime) -> dict[str, str]:
    """The families that must not start because another operator is active, with the sign of it; adopted ones may."""
    signs: dict[str, str | None] = {}
    if machine_config.FAMILY not in adopted:
        signs[machine_config.FAMILY] = await machine_config.other_operator(cluster, now)
    if machine_api.FAMILY not in adopted:
        signs[machine_api.FAMILY] = await machine_api.other_operator(cluster)
    for family in workloads.DEPLOYMENTS_OF_OTHERS:
        if family not in adopted:
            signs[family] = await workloads.other_operator(cluster, family)
    return {family: sign for family, sign in signs.items() if sign}
