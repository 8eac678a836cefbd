"""Which rendered configs a machine may fetch: those that it was assigned, and never what its node says about itself.

    change = assignment(machine, node, goal, served)        # what to write on the Machine before a Node is told to go to `goal`
    is_assigned(machine, target)                            # what doors ask about a machine that attested
    names_config(node, pool_of_node(node, selectors, confidential), rendered)   # and about a node that never did

**By its Machine.** `desiredConfig` is only ever a goal that the rollout chose. `currentConfig` is where the machine came from,
which only its node knows: what a node says counts when it is one of the configs that were written on the Machine before, or one
that its pool hands out to new machines. So a node never widens what its machine may read by writing annotations. The overlays
that go with a config are a digest, and follow the same rule; doors merge what is for the machine now, and compare.

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
from fastness.machineconfig.rollout.nodes import Goal, NodeFacts, rendered_pool
from fastness.pools.membership import PoolSelectors, SeveralPools, machine_membership

Object = Mapping[str, Any]


def is_assigned(machine: Machine, target: str) -> bool:
    """Whether a rendered config, with the overlays that the target names, is the machine's desired or current one."""
    status = machine.status
    assigned = (
        names.target_of(status.desired_config, status.desired_overlay),
        names.target_of(status.current_config, status.current_overlay),
    )
    # An empty name would equal the empty status of a Machine that nothing was assigned to.
    return bool(names.split_target(target)[0]) and target in assigned


def assignment(machine: Machine, node: NodeFacts, goal: Goal, served: Collection[str]) -> dict[str, str]:
    """The fields of the Machine that change when its node is told to go to a goal; empty when they say so already.

    What the node says that it has is a claim; `served` is what its pool gives to machines that boot.
    """
    status, claimed = machine.status, node.current
    # Empty names are taken out: a Machine that was assigned nothing must not make "" a config that somebody may claim.
    before = {status.desired_config, status.current_config, *served} - {""}
    # A node that claims a config which nobody gave it would otherwise read that config, of whatever pool, at the doors.
    current = claimed if claimed in before else status.current_config
    after = {"desiredConfig": goal.config, "currentConfig": current}
    stored = {"desiredConfig": status.desired_config, "currentConfig": status.current_config}
    change = {name: value for name, value in after.items() if value and stored[name] != value}
    overlay = goal.overlay(node)
    if overlay != status.desired_overlay:
        change["desiredOverlay"] = overlay
    # The same for overlays: a digest that nobody gave to this machine is none that it may ask for.
    if node.current_overlay in (status.desired_overlay, overlay) and node.current_overlay != status.current_overlay:
        change["currentOverlay"] = node.current_overlay
    return change


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
