"""The Machines of a cluster: find one by the name that a person gives, write a decision on it, say how each stands.

How a machine stands is the function that every surface asks, with what a client can know. The clock of a client is not that of
the control plane: where the control plane has said that a proof grew old, that is so, whatever the time is here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from fastness.attestation.status.cluster import StandingRules
from fastness.attestation.verdict.breakglass import listed_approvers
from fastness.attestation.verdict.machine_standing import PROOF_EXPIRED, MachineStanding, proof_ends
from fastness.cli.errors import CliError, Exit
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kube.errors import Forbidden, NotFound
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions

MOST_NAMED = 5


async def all_machines(cluster: Cluster) -> list[JsonObject]:
    """Every Machine of the cluster; raises ApiError."""
    return (await cluster.list(MACHINE.resource, Scope(NAMESPACE))).items


async def machine_named(cluster: Cluster, name: str) -> JsonObject:
    """The Machine that a name means; raises CliError, ApiError."""
    return named_among(await all_machines(cluster), name)


def named_among(machines: Sequence[JsonObject], name: str) -> JsonObject:
    """The machine that a name, or the beginning of one, means; raises CliError for none and for several."""
    exact = [machine for machine in machines if name in _names(machine)]
    # A whole name wins over a beginning: else `worker-1` could not be said where there is a worker-10.
    matches = exact or [machine for machine in machines if any(other.startswith(name) for other in _names(machine))]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise CliError(f"there is no machine {name}", "See `fastness machine list`.", Exit.NO)
    several = ", ".join(sorted(machine["metadata"]["name"] for machine in matches)[:MOST_NAMED])
    raise CliError(f"{name} means several machines: {several}", "Give more of the name.", Exit.USAGE)


def _names(machine: JsonObject) -> tuple[str, ...]:
    meta, status = machine["metadata"], machine.get("status") or {}
    key = status.get("keyThumbprint", "")
    return (
        meta["name"], meta["name"].removeprefix("machine-"), key, key.removeprefix("sha256:"), status.get("nodeName", ""),
        machine["spec"]["id"], meta["uid"],
    )  # fmt: skip


async def patch_machine(cluster: Cluster, machine: JsonObject, patch: JsonObject) -> None:
    """Write what a person decided on a Machine; raises ApiError."""
    meta, options = machine["metadata"], WriteOptions(manager="fastness-cli")
    await cluster.patch(MACHINE.resource, meta["name"], patch, PatchType.MERGE, meta["namespace"], options)


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
        expired = any(
            condition.type == "Attested" and condition.reason == PROOF_EXPIRED
            for condition in machine.status.conditions
        )
        ended = proof_ends(machine, rules.interval) if expired else None
        return rules.standing(machine, max(at, ended) if ended is not None else at)

    return standing
