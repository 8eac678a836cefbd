"""Which pools a node is in, by what the control plane knows: the pool of its Machine before any label.

    members = MemberPools(pools, pools_of_nodes(machines), cluster)
    members.of(node).primary

Many may write labels of nodes: schedulers' helpers, feature discovery, the node itself. Where attestation is enforced they say
neither that a node left its pool nor that it came into one (`nodes.machine_membership`). So plans, the page, the choice of nodes
for a runtime and the lists of nodes without proof ask this, as the rollout does, and tell what it will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from fastness.domain.machineconfig.errors import SeveralPools
from fastness.domain.machineconfig.nodes import Membership, PoolSelectors, machine_membership
from fastness.domain.trustmodel import enforces
from fastness.model.objects import object_name

Object = Mapping[str, Any]


def pools_of_nodes(machines: Iterable[Object]) -> dict[str, str]:
    """The pool of the Machine of each node that has one."""
    statuses = (machine.get("status") or {} for machine in machines)
    return {str(each["nodeName"]): str(each.get("pool") or "") for each in statuses if each.get("nodeName")}


class MemberPools:
    """The pools of nodes, from their Machines and from the selectors of pools."""

    def __init__(self, pools: Iterable[Object], own: Mapping[str, str], cluster: Object | None) -> None:
        """`own` is the pool of the Machine of each node that has one."""
        self._selectors = PoolSelectors(pools)
        self._enforced = partial(enforces, cluster)
        self._own = own

    def of(self, node: Object) -> Membership:
        """The pools of a node; raises SeveralPools."""
        return machine_membership(node, self._selectors, self._own.get(object_name(node).name, ""), self._enforced)

    def claiming(self, node: Object) -> tuple[str, ...]:
        """The pools of a node, or all that claim it."""
        try:
            return self.of(node).pools
        except SeveralPools as error:
            return error.pools
