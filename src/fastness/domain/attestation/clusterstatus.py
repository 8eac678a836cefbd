"""How a confidential cluster stands, as its status tells it.

Counts come from the Machines, values from published sets, the freshness of documents from what doors tell. A machine counts as
attested while its last proof is younger than twice the interval at which machines attest again: one missed round is noticed, and
nothing stale is shown as good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fastness.domain.attestation.collateralstate import Freshness
from fastness.domain.attestation.measured import COMPARED
from fastness.domain.attestation.membership import Membership, membership_of
from fastness.domain.attestation.tuples import uncovered
from fastness.domain.attestation.values import ValueBook
from fastness.domain.machineconfig.errors import BadPolicy
from fastness.domain.machineconfig.waves import duration
from fastness.domain.trustmodel import Mode, mode_of
from fastness.model.fastness_dev.cluster import ConfidentialCluster
from fastness.model.objects import holds, view
from fastness.model.trusted_execution.machine import Machine

Object = Mapping[str, Any]
ROUNDS = 2
DEFAULT_INTERVAL = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many machines stand how."""

    enrolled: int = 0
    attested: int = 0
    pending: int = 0
    refused: int = 0
    revoked: int = 0

    def to_json(self) -> dict[str, int]:
        """As the status has them."""
        return {
            "enrolled": self.enrolled, "attested": self.attested, "pending": self.pending, "refused": self.refused,
            "revoked": self.revoked,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Said:
    """One condition; None is unknown."""

    kind: str
    status: bool | None
    reason: str
    message: str


def interval_of(cluster: Object | None) -> timedelta:
    """How often machines attest again."""
    try:
        return duration(view(cluster or {}, ConfidentialCluster).spec.attestation.reattest_interval, "interval")
    except BadPolicy:
        return DEFAULT_INTERVAL


def proof_ends(machine: Machine, interval: timedelta) -> datetime | None:
    """When the last proof of a machine grows old: by the interval that it was told, else by that of now; None without one."""
    if machine.status.last_attested is None:
        return None
    if machine.status.attested_until is not None:
        return datetime.fromisoformat(machine.status.attested_until)
    return datetime.fromisoformat(machine.status.last_attested) + interval * ROUNDS


def standing_of(machine: Machine, now: datetime, interval: timedelta) -> str:
    """attested, pending, refused or revoked."""
    membership = membership_of(machine)
    if membership in (Membership.REVOKED, Membership.QUARANTINED):
        return "revoked"
    if membership is Membership.PENDING or not machine.status.last_verdict:
        return "pending"
    ends = proof_ends(machine, interval)
    fresh = ends is not None and now < ends
    return "attested" if fresh and holds(machine.status.conditions, "Attested") else "refused"


def counted(machines: Iterable[Machine], now: datetime, interval: timedelta) -> Counts:
    """The counts over all machines."""
    found = {"attested": 0, "pending": 0, "refused": 0, "revoked": 0}
    total = 0
    for one in machines:
        total += 1
        found[standing_of(one, now, interval)] += 1
    return Counts(total, found["attested"], found["pending"], found["refused"], found["revoked"])


def conditions_of(
    cluster: Object, accepted: Iterable[str], book: ValueBook, counts: Counts, collateral: Freshness
) -> list[Said]:
    """What the cluster says about itself."""
    mode = mode_of(cluster)
    enforcing = mode is Mode.ENFORCE
    published = [tee for tee in accepted if not uncovered(tee, book.tuples(tee))]
    partly = [tee for tee in accepted if any(book.query(one.name) for one in COMPARED[tee]) and tee not in published]
    values = bool(published) and not partly
    missing = ", ".join(partly) or "every kind of evidence"
    degraded = counts.refused > 0
    return [
        Said(
            "Enforcing", enforcing, str(mode),
            "nothing is released without attestation" if enforcing else f"the mode is {mode}: attestation is not demanded",
        ),
        Said(
            "ValuesReady", values, "Published" if values else "Incomplete",
            f"values are published for {', '.join(published)}" if values else f"values are missing for {missing}",
        ),
        Said("CollateralFresh", collateral.status, collateral.reason, collateral.message),
        Said(
            "Degraded", degraded, "MachinesRefused" if degraded else "AllGood",
            f"{counts.refused} of {counts.enrolled} machines are refused or stale; see `fastness machine list`"
            if degraded
            else "no machine is refused",
        ),
        Said(
            "Ready", mode is Mode.DISABLED or values, "AsAsked" if mode is Mode.DISABLED or values else "ValuesMissing",
            "machines can attest" if values else "nobody asks for attestation" if mode is Mode.DISABLED
            else "no machine can attest before values are published: fastness image approve",
        ),
    ]  # fmt: skip
