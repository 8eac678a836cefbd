"""Which families of loops somebody else may do the work of, and which must not start because somebody does.

Apart from `controllers`, which loads every loop: the command line names the families in its help.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final

from fastness.kube.port import Cluster
from fastness.machineconfig.loops import other_machine_api as machine_api
from fastness.machineconfig.loops import other_operators as machine_config
from fastness.workloads.loops import other_operators as workloads

FAMILIES: Final = (machine_config.FAMILY, machine_api.FAMILY, *workloads.DEPLOYMENTS_OF_OTHERS)


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
