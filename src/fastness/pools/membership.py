"""Which pools a node is in, by what the control plane knows: the pool of its Machine before any label.

    members = MemberPools(pools, pools_of_nodes(machines), cluster)
    members.of(node).primary

Many may write labels of nodes: schedulers' helpers, feature discovery, the node itself. Where attestation is enforced they say
neither that a node left its pool nor that it came into one (`machine_membership`). So plans, the page, the choice of nodes
for a runtime and the lists of nodes without proof ask this, as the rollout does, and tell what it will do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import Any, NamedTuple

from fastness.formats.errors import SelectorError
from fastness.formats.selectors import LabelSelector, label_selector_from_object
from fastness.kinds.fastness_dev.trust_model import enforces
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import labels_of, object_name
from fastness.runtime.errors import FastnessError

Object = Mapping[str, Any]


class SeveralPools(FastnessError):
    """More than one custom pool selects a node; `pools` names them."""

    code = "several-pools"

    def __init__(self, message: str, hint: str = "", pools: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint)
        self.pools = pools


class Membership(NamedTuple):
    """The pools of a node: only the first counts it. `alert` marks a control-plane node that a custom pool claims too."""

    pools: tuple[str, ...] = ()
    alert: bool = False

    @property
    def primary(self) -> str:
        """The pool that counts the node, empty for none."""
        return self.pools[0] if self.pools else ""


class PoolSelectors:
    """The node selectors of all pools, compiled once; asked for every node."""

    def __init__(self, pools: Iterable[Object]) -> None:
        self._pools = [
            (object_name(pool).name, selector) for pool in pools if (selector := _node_selector(pool)) is not None
        ]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The pools that select nodes at all."""
        return tuple(name for name, _ in self._pools)

    def of(self, node: Object) -> Membership:
        """The pools of a node; raises SeveralPools."""
        labels = labels_of(node)
        # Its files and units are not what a MachineConfig speaks of: another operator looks after it.
        if labels.get(names.OS_LABEL) == "windows":
            return Membership()
        matched = [name for name, selector in self._pools if selector.matches(labels)]
        custom = sorted(name for name in matched if name not in (names.MASTER, names.WORKER))
        if len(custom) > 1:
            raise SeveralPools(
                f"node {object_name(node).name} belongs to {len(custom)} custom pools: {', '.join(custom)}",
                "remove the label of all but one of them from the node",
                tuple(custom),
            )
        if names.MASTER in matched:
            return Membership((names.MASTER,), alert=bool(custom))
        worker = [names.WORKER] if names.WORKER in matched else []
        return Membership((*custom, *worker))


def membership(node: Object, pools: Iterable[Object]) -> Membership:
    """The pools of one node by its labels; raises SeveralPools."""
    return PoolSelectors(pools).of(node)


def machine_membership(node: Object, selectors: PoolSelectors, own: str, enforced: Callable[[str], bool]) -> Membership:
    """The pools of a node whose Machine belongs to the pool `own`, empty for none; raises SeveralPools.

    Where attestation is enforced the Machine decides: with a label, which many may write, a node would be given the files of a
    pool that its machine never proved itself for. That holds for the way out of such a pool and for the way into one.
    """
    # The way out: a label must not take a machine from under the pool that it is attested for.
    if own and enforced(own):
        return Membership((own,))
    try:
        labelled = selectors.of(node)
    except SeveralPools as error:
        if own and any(enforced(pool) for pool in error.pools):
            return Membership((own,))
        raise
    # The way in: a label must not bring it the files of a pool that it never proved itself for.
    return Membership((own,)) if own and labelled.primary and enforced(labelled.primary) else labelled


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


def selects_all(pool: Object) -> bool:
    """Whether the node selector is there and empty: a mistake that would take every node, so it takes none."""
    selector = (pool.get("spec") or {}).get("nodeSelector")
    return isinstance(selector, Mapping) and not selector.get("matchLabels") and not selector.get("matchExpressions")


def _node_selector(pool: Object) -> LabelSelector | None:
    if selects_all(pool):
        return None
    try:
        return label_selector_from_object((pool.get("spec") or {}).get("nodeSelector"))
    except SelectorError:
        return None
