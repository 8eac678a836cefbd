"""What a cluster must say of its own verifier: that it still verifies, and that nobody holds an override over it.

A verifier that no longer verifies looks like peace: no refusals, no errors, machines that grow old one by one. So the absence of
good proofs is an alarm of its own. It compares the newest success of all machines with the interval at which they should come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from fastness.attestation.status.cluster import ClusterCondition
from fastness.attestation.status.unproved_nodes import named
from fastness.attestation.verdict.breakglass import BadOverride, agreed_override
from fastness.formats.words import counted
from fastness.kinds.fastness_dev.trust_model import Mode, mode_of
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of

Object = Mapping[str, Any]
SILENT_ROUNDS: Final = 3


def newest_success(machines: Iterable[Machine]) -> datetime | None:
    """When any machine last passed an appraisal; what an override lets in does not move that time."""
    # Times of one form in UTC: as texts they sort as they follow one another.
    last = max((machine.status.last_attested or "" for machine in machines), default="")
    return datetime.fromisoformat(last) if last else None


def verifying(
    cluster: Object, machines: Collection[Machine], now: datetime, interval: timedelta, unproved: Sequence[str] = ()
) -> ClusterCondition:
    """Whether proofs still come in, while there is somebody who should bring them; `unproved` nodes never did."""
    waiting = [machine for machine in machines if membership_of(machine) is Membership.APPROVED]
    if mode_of(cluster) is Mode.DISABLED:
        return ClusterCondition("Verifying", True, "NobodyToVerify", "no machine is expected to attest")
    if unproved:
        running = counted(len(unproved), "node runs", "nodes run")
        message = f"{running} that never attested: {named(unproved)}; see `fastness attest explain`"
        return ClusterCondition("Verifying", False, "NodesNeverAttested", message)
    if not waiting:
        return ClusterCondition(
            "Verifying", True, "NobodyToVerify", "no machine is enrolled, and no node of a confidential pool runs"
        )
    last = newest_success(machines)
    # A cluster that never verified anybody is given as long as one that stopped.
    since = last or min(
        datetime.fromisoformat(machine.metadata.creation_timestamp or now.isoformat()) for machine in waiting
    )
    if now - since < interval * SILENT_ROUNDS:
        return ClusterCondition("Verifying", True, "ProofsComeIn", "machines attest")
    what = f"since {last:%Y-%m-%dT%H:%M:%SZ}" if last else "ever"
    return ClusterCondition(
        "Verifying", False, "NothingVerified",
        f"none of {counted(len(waiting), 'machine')} has passed an appraisal {what}: look at the broker, the policies and "
        "the values",
    )  # fmt: skip


def override_said(cluster: Object, now: datetime, approvers: Mapping[str, str]) -> ClusterCondition:
    """Whether attestation is overridden, and by whom."""
    try:
        override = agreed_override(cluster, approvers)
    except BadOverride as error:
        return ClusterCondition(
            "Overridden", False, "NotAgreed", f"the override counts for nothing: {error} ({error.code})"
        )
    if override is None:
        return ClusterCondition("Overridden", False, "NoOverride", "attestation decides")
    if not override.live(now):
        return ClusterCondition("Overridden", False, "Expired", f"the override has ended: {override.line}")
    return ClusterCondition("Overridden", True, "BreakGlass", f"{override.line}: {override.reason}"[:1024])


def approvers_said(pending: str) -> ClusterCondition:
    """Whether other people are about to count as approvers; `pending` says who and from when."""
    if pending:
        return ClusterCondition("ApproversPending", True, "Announced", pending)
    return ClusterCondition("ApproversPending", False, "NoChange", "nobody is about to become an approver of overrides")
