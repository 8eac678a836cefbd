"""How a confidential cluster stands, as its status tells it.

Counts come from the standings of the Machines (`machine_standing`), values from published sets, the freshness of documents from
what doors tell. Nodes that never attested have no Machine to be counted by, so they are counted and named beside them.

* Only Proved counts as attested; a machine that an override let in is counted apart.
* `Enforcing` is not True while there is a way in without proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fastness.attestation.status.collateral import Freshness
from fastness.attestation.status.unproved_nodes import named
from fastness.attestation.values.measured import COMPARED
from fastness.attestation.values.tuples import uncovered
from fastness.attestation.values.values import ReferenceValues
from fastness.attestation.verdict.breakglass import Override, live_override
from fastness.attestation.verdict.machine_standing import MachineStanding, State, counted_states, machine_standing
from fastness.formats import words
from fastness.formats.errors import DurationError
from fastness.formats.quantity import duration
from fastness.kinds.fastness_dev.cluster import ConfidentialCluster
from fastness.kinds.fastness_dev.trust_model import Mode, mode_of
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import Machine

Object = Mapping[str, Any]
DEFAULT_INTERVAL = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many machines stand how."""

    enrolled: int = 0
    attested: int = 0
    pending: int = 0
    refused: int = 0
    revoked: int = 0
    stale: int = 0
    overridden: int = 0

    def to_json(self) -> dict[str, int]:
        """As the status has them."""
        return {
            "enrolled": self.enrolled, "attested": self.attested, "pending": self.pending, "refused": self.refused,
            "revoked": self.revoked, "stale": self.stale, "overridden": self.overridden,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClusterCondition:
    """One condition; None is unknown."""

    kind: str
    status: bool | None
    reason: str
    message: str


def interval_of(cluster: Object | None) -> timedelta:
    """How often machines attest again."""
    try:
        return duration(view(cluster or {}, ConfidentialCluster).spec.attestation.reattest_interval, "interval")
    except DurationError:
        return DEFAULT_INTERVAL


@dataclass(frozen=True, slots=True)
class StandingRules:
    """What the standing of every machine of a cluster depends on beside the machine and the time."""

    interval: timedelta
    override: Override | None

    @classmethod
    def of(cls, cluster: Object | None, now: datetime, approvers: Mapping[str, str]) -> StandingRules:
        """The rules of a ConfidentialCluster at a time, with the approvers who count."""
        return cls(interval_of(cluster), live_override(cluster, now, approvers))

    def standing(self, machine: Machine, now: datetime) -> MachineStanding:
        """How a machine stands."""
        return machine_standing(machine, now, self.interval, self.override)


def counted(standings: Iterable[MachineStanding]) -> Counts:
    """The counts over all machines. A stale machine is refused as well: the columns must not lose it."""
    by = counted_states(standings)
    return Counts(
        enrolled=sum(by.values()),
        attested=by[State.PROVED],
        pending=by[State.WAITING],
        refused=by[State.REFUSED] + by[State.STALE],
        revoked=by[State.REVOKED],
        stale=by[State.STALE],
        overridden=by[State.OVERRIDDEN],
    )


def conditions_of(
    cluster: Object,
    accepted: Iterable[str],
    book: ReferenceValues,
    counts: Counts,
    collateral: Freshness,
    override: Override | None = None,
    unproved: Sequence[str] = (),
) -> list[ClusterCondition]:
    """What the cluster says about itself; `override` counts now, `unproved` are nodes that never attested."""  # fmt: skip
    mode = mode_of(cluster)
    published = [tee for tee in accepted if not uncovered(tee, book.tuples(tee))]
    partly = [
        tee for tee in accepted if any(book.query(compared.name) for compared in COMPARED[tee]) and tee not in published
    ]
    values = bool(published) and not partly
    missing = ", ".join(partly) or "every kind of evidence"
    return [
        _enforcing(mode, override, unproved),
        ClusterCondition(
            "ValuesReady", values, "Published" if values else "Incomplete",
            f"values are published for {', '.join(published)}" if values else f"values are missing for {missing}",
        ),
        ClusterCondition("CollateralFresh", collateral.status, collateral.reason, collateral.message),
        _degraded(counts, unproved),
        ClusterCondition(
            "Ready", mode is Mode.DISABLED or values, "AsAsked" if mode is Mode.DISABLED or values else "ValuesMissing",
            "machines can attest" if values else "nobody asks for attestation" if mode is Mode.DISABLED
            else "no machine can attest before values are published: fastness image approve",
        ),
    ]  # fmt: skip


def _enforcing(mode: Mode, override: Override | None, unproved: Sequence[str]) -> ClusterCondition:
    """Whether nothing is released without proof; an override is a way around that, so while it counts the answer is no."""
    if mode is not Mode.ENFORCE:
        return ClusterCondition("Enforcing", False, str(mode), f"the mode is {mode}: attestation is not demanded")
    if override is not None:
        message = f"an override lets machines in without proof: {override.line}; everybody else has to attest"
        return ClusterCondition("Enforcing", False, "Overridden", message)
    message = "nothing is released without attestation"
    if unproved:
        message += f"; {words.counted(len(unproved), 'node runs', 'nodes run')} that never attested: {named(unproved)}"
    return ClusterCondition("Enforcing", True, str(mode), message)


def _degraded(counts: Counts, unproved: Sequence[str]) -> ClusterCondition:
    """Whether anything runs, or wants to, that did not prove itself."""
    reasons = []
    if counts.refused:
        of = f"refused or stale: {counts.refused} of {words.counted(counts.enrolled, 'machine')}"
        reasons.append(("MachinesRefused", f"{of}; see `fastness machine list`"))
    if unproved:
        reasons.append(
            ("NodesNeverAttested", f"{words.counted(len(unproved), 'node')} never attested: {named(unproved)}")
        )
    if counts.overridden:
        of = f"let in by an override without proof: {counts.overridden} of {words.counted(counts.enrolled, 'machine')}"
        reasons.append(("MachinesOverridden", of))
    if not reasons:
        return ClusterCondition("Degraded", False, "AllGood", "no machine is refused, and no node runs without proof")
    return ClusterCondition("Degraded", True, reasons[0][0], "; ".join(message for _, message in reasons))
