"""How machines stand, asked from a command line: the function that every surface asks, with what a client can know.

The clock of a client is not that of the control plane. Where the control plane has said that a proof grew old, that is so,
whatever the time is here.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from fastness.attestation.status.cluster import StandingRules
from fastness.attestation.verdict.breakglass import listed_approvers
from fastness.attestation.verdict.machine_standing import PROOF_EXPIRED, MachineStanding, proof_ends
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kube.errors import Forbidden, NotFound
from fastness.kube.port import Cluster


async def confidential_cluster(cluster: Cluster) -> JsonObject | None:
    """The ConfidentialCluster, where there is one and the user may read it; raises ApiError."""
    try:
        return await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
    except (NotFound, Forbidden):
        return None


async def standings(cluster: Cluster, now: datetime | None = None) -> Callable[[Machine], MachineStanding]:
    """How each machine of a cluster stands; raises ApiError."""
    at = now or datetime.now(UTC)
    confidential = await confidential_cluster(cluster)
    rules = StandingRules.of(confidential, at, listed_approvers(confidential))

    def standing(machine: Machine) -> MachineStanding:
        told = any(one.type == "Attested" and one.reason == PROOF_EXPIRED for one in machine.status.conditions)
        ended = proof_ends(machine, rules.interval) if told else None
        return rules.standing(machine, max(at, ended) if ended is not None else at)

    return standing
