"""Which rendered configs a node gets that never attested: those that its Node names, of the pool that it is in.

    problem = withheld(node, selectors, confidential, pool, rendered)     # None: it may have the config

The controllers write the desired config on the Node, and its agent writes the current one. On a Kubernetes that we do not run a
kubelet can write both. So the names alone open nothing: the config must be one of the pool that the node is in by its labels,
which Kubernetes keeps kubelets from choosing, and that pool must be one without attestation. Whatever a node writes about itself,
no configuration of a confidential pool is among what it gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from fastness.kinds.fastness_dev.trust_model import TrustModel, enforces, trust_model
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of
from fastness.machineconfig.rollout.nodes import rendered_pool
from fastness.pools.membership import PoolSelectors, SeveralPools, machine_membership

Object = Mapping[str, Any]


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
