"""Nodes of confidential pools that never proved anything: what a cluster must name when it asks for attestation.

A cluster can be told to attest while nodes run that joined before. They belong to no Machine, so no count of machines shows them,
and nothing about them was ever verified. `never_attested` finds them by their pools; one that enrolled is in the pool of its
Machine, whatever its labels say.

* A node counts when its pool has the model ConfidentialCluster and the mode is Audit or Enforce.
* It has proved something when it is the node of a Machine that passed an appraisal once. How that Machine stands now is another
  question (`machine_standing`), which its own row answers.
* A node that two custom pools claim is counted if any of them is confidential: nobody gets out by a second label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fastness.kinds.fastness_dev.trust_model import Mode, TrustModel, mode_of, trust_model
from fastness.kinds.objects import object_name
from fastness.kinds.trusted_execution.machine import Machine
from fastness.pools.membership import MemberPools, SeveralPools

Object = Mapping[str, Any]
MOST_NAMED: Final = 10


def never_attested(
    cluster: Object | None, nodes: Iterable[Object], pools: Iterable[Object], machines: Iterable[Machine]
) -> tuple[str, ...]:
    """The nodes that should have attested and never did, by name; none while nobody asks for attestation."""
    if mode_of(cluster) is Mode.DISABLED:
        return ()
    statuses = [machine.status for machine in machines]
    proved = {status.node_name for status in statuses if status.last_attested}
    members = MemberPools(pools, {status.node_name: status.pool for status in statuses if status.node_name}, cluster)
    candidates = [node for node in nodes if object_name(node).name not in proved]
    return tuple(sorted(object_name(node).name for node in candidates if _confidential(cluster, node, members)))


def named(nodes: Sequence[str]) -> str:
    """The names for a sentence, as many as one reads."""
    more = f" and {len(nodes) - MOST_NAMED} more" if len(nodes) > MOST_NAMED else ""
    return f"{', '.join(nodes[:MOST_NAMED])}{more}"


def _confidential(cluster: Object | None, node: Object, members: MemberPools) -> bool:
    try:
        primary = members.of(node).primary
        claimed: tuple[str, ...] = (primary,) if primary else ()
    except SeveralPools as error:
        claimed = error.pools
    return any(trust_model(cluster, pool) is TrustModel.CONFIDENTIAL_CLUSTER for pool in claimed)
