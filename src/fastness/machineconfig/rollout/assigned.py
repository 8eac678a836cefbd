"""Which rendered configs a machine may fetch: those that it was assigned, and never what its node says about itself.

    change = assignment(machine, claimed, goal, served)     # what to write on the Machine before a Node is told to go to `goal`
    is_assigned(machine, rendered)                          # what doors ask about a machine that attested
    names_config(node, pool_of_node(node, selectors, confidential), rendered)   # and about a node that never did

**By its Machine.** `desiredConfig` is only ever a goal that the rollout chose. `currentConfig` is where the machine came from,
which only its node knows: what a node says counts when it is one of the configs that were written on the Machine before, or one
that its pool hands out to new machines. So a node never widens what its machine may read by writing annotations.

**By its Node**, where there is no proof. The controllers write the desired config on the Node, and its agent writes the current
one. On a Kubernetes that we do not run a kubelet can write both. So the names alone open nothing: the config must be one of the
pool that the node is in by its labels, which Kubernetes keeps kubelets from choosing, and that pool must be one without
attestation. Whatever a node writes about itself, no configuration of a confidential pool is among what it gets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from fastness.kinds.fastness_dev.trust_model import enforces
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of
from fastness.kinds.trusted_execution.machine import Machine
from fastness.machineconfig.rollout.nodes import rendered_pool
from fastness.pools.membership import PoolSelectors, SeveralPools, machine_membership

Object = Mapping[str, Any]


def is_assigned(machine: Machine, rendered: str) -> bool:
    """Whether a rendered config is the machine's desired or current one."""
    # An empty name would equal the empty status of a Machine that nothing was assigned to.
    return bool(rendered) and rendered in (machine.status.desired_config, machine.status.current_config)


def assignment(machine: Machine, claimed: str, goal: str, served: Collection[str]) -> dict[str, str]:
    """The fields of the Machine that change when its node is told to go to a goal; empty when they say so already.

    `claimed` is what the node says that it has, `served` what its pool gives to machines that boot.
    """
    status = machine.status
    # Empty names are taken out: a Machine that was assigned nothing must not make "" a config that somebody may claim.
    before = {status.desired_config, status.current_config, *served} - {""}
    # A node that claims a config which nobody gave it would otherwise read that config, of whatever pool, at the doors.
    current = claimed if claimed in before else status.current_config
    after = {"desiredConfig": goal, "currentConfig": current}
    stored = {"desiredConfig": status.desired_config, "currentConfig": status.current_config}
    return {name: value for name, value in after.items() if value and stored[name] != value}


def pool_of_node(node: Object, selectors: PoolSelectors, confidential: Object | None, machine_pool: str = "") -> str:
    """The one pool that a node is in, empty when there is none or more than one.

    `machine_pool` is the pool of the Machine that is the node, if it has one.
    """
    try:
        return machine_membership(node, selectors, machine_pool, partial(enforces, confidential)).primary
    # Two pools with two configs: choosing one would let whoever can add a label choose too.
    except SeveralPools:
        return ""


def names_config(node: Object, pool: str, rendered: str) -> bool:
    """Whether a rendered config is of the pool, and the desired or the current one of the node."""
    notes = annotations_of(node)
    named = (notes.get(names.DESIRED_CONFIG), notes.get(names.CURRENT_CONFIG))
    # Both: the annotations are the kubelet's to write, the pool is not; NodeRestriction keeps a kubelet from giving itself the
    # labels of a role (KEP-279).
    return rendered in named and rendered_pool(rendered) == pool
