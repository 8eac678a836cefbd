"""Which rendered configs a machine may fetch: those that it was assigned, and never what its node says about itself.

    change = assignment(machine, claimed, goal, served)     # what to write on the Machine before a Node is told to go to `goal`
    is_assigned(machine, rendered)                          # what doors ask about a machine that attested
    problem = withheld(node, selectors, confidential, pool, rendered)     # and about a node that never did; None: it may have it

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
from typing import Any, NamedTuple

from fastness.kinds.fastness_dev.trust_model import TrustModel, enforces, trust_model
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of
from fastness.kinds.trusted_execution.machine import Machine
from fastness.machineconfig.rollout.nodes import rendered_pool
from fastness.pools.membership import PoolSelectors, SeveralPools, machine_membership

Object = Mapping[str, Any]


def is_assigned(machine: Machine, rendered: str) -> bool:
    """Whether a rendered config is the machine's desired or current one."""
    return bool(rendered) and rendered in (machine.status.desired_config, machine.status.current_config)


def assignment(machine: Machine, claimed: str, goal: str, served: Collection[str]) -> dict[str, str]:
    """The fields of the Machine that change when its node is told to go to a goal; empty when they say so already.

    `claimed` is what the node says that it has, `served` what its pool gives to machines that boot.
    """
    status = machine.status
    before = {status.desired_config, status.current_config, *served} - {""}
    current = claimed if claimed in before else status.current_config
    wanted = {"desiredConfig": goal, "currentConfig": current}
    known = {"desiredConfig": status.desired_config, "currentConfig": status.current_config}
    return {name: value for name, value in wanted.items() if value and known[name] != value}


class Withheld(NamedTuple):
    """Why a node does not get a config: a code, and words for its operator."""

    code: str
    detail: str


ATTESTED_ONLY = Withheld("attestation-required", "machines of this pool fetch from gate or broker, attested")
NOT_ASSIGNED = Withheld("not-assigned", "this is neither the desired nor the current config of the node")
WRONG_POOL = Withheld("wrong-pool", "the node of this certificate is in another pool")


def withheld(
    node: Object,
    selectors: PoolSelectors,
    confidential: Object | None,
    pool: str,
    rendered: str,
    machine_pool: str = "",
) -> Withheld | None:
    """Why a node may not have a rendered config that it asks for under a pool; None when it may.

    `machine_pool` is the pool of the Machine that is the node, if it has one.
    """
    if trust_model(confidential, pool) is TrustModel.CONFIDENTIAL_CLUSTER:
        return ATTESTED_ONLY
    try:
        own = machine_membership(node, selectors, machine_pool, partial(enforces, confidential)).primary
    except SeveralPools:
        own = ""
    if not own or own != pool:
        return WRONG_POOL
    notes = annotations_of(node)
    named = (notes.get(names.DESIRED_CONFIG), notes.get(names.CURRENT_CONFIG))
    return None if rendered in named and rendered_pool(rendered) == pool else NOT_ASSIGNED
