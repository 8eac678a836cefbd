"""What a person decides about a machine on the page: approve, quarantine, release.

The same one field that `fastness machine` and kubectl change, `spec.approval`, written as the user who asks and only after the
API's authorizer allowed that user to patch this machine. The write is conditional on the version that was shown to be in a state
from which the decision makes sense: a quarantine that came in between is not undone by an approval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from fastness.cluster.errors import BadRequest, Conflict, NotFound
from fastness.cluster.port import Cluster, PatchType, WriteOptions
from fastness.domain.access import User
from fastness.domain.attestation.membership import NAMESPACE, Membership, membership_of
from fastness.model.objects import view
from fastness.model.trusted_execution.machine import Machine
from fastness.services.web.sight import MACHINES, Sight

MAX_REASON: Final = 1024
Writers = Callable[[User], Cluster]
_AS: Final = WriteOptions(manager="fastness-page")


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing that can be decided, and about whom."""

    verb: str
    label: str
    wanted: Membership
    come_from: frozenset[Membership]
    reason_required: bool = False


DECISIONS: Final[Mapping[str, Decision]] = {
    one.verb: one
    for one in (
        Decision("approve", "Approve", Membership.APPROVED, frozenset({Membership.PENDING})),
        Decision("release", "End the quarantine", Membership.APPROVED, frozenset({Membership.QUARANTINED})),
        Decision(
            "quarantine", "Quarantine", Membership.QUARANTINED,
            frozenset({Membership.PENDING, Membership.APPROVED, Membership.REVOKED}), reason_required=True,
        ),
    )
}  # fmt: skip


def open_decisions(machine: Machine) -> tuple[Decision, ...]:
    """What can be decided about a machine now."""
    now = membership_of(machine)
    return tuple(
        one for one in DECISIONS.values() if now in one.come_from and machine.spec.approval != one.wanted.value
    )


async def carry_out(writers: Writers, sight: Sight, name: str, form: Mapping[str, str]) -> Decision:
    """Write a decision as the user; raises BadRequest, Forbidden, NotFound, Conflict and what the API says."""
    decision, reason = DECISIONS.get(form.get("decision", "")), form.get("reason", "").strip()
    if decision is None:
        raise BadRequest(f"there is no such decision; there are: {', '.join(DECISIONS)}")
    if decision.reason_required and not reason:
        raise BadRequest(f"to {decision.verb} a machine needs a reason; it is kept on the record")
    if len(reason) > MAX_REASON:
        raise BadRequest(f"the reason is longer than {MAX_REASON} characters")
    sight.require("patch", MACHINES, name)
    found = sight.one(MACHINES, name)
    if found is None:
        raise NotFound(f'machines "{name}" not found', group=MACHINES.group, kind=MACHINES.plural, name=name)
    if decision not in open_decisions(view(found, Machine)):
        raise Conflict(
            f"{name} is {membership_of(view(found, Machine)).value.lower()}: there is nothing to {decision.verb}"
        )
    patch = {
        "metadata": {"resourceVersion": found["metadata"]["resourceVersion"]},
        "spec": {"approval": decision.wanted.value, "approvalReason": reason or None},
    }
    await writers(sight.user).patch(MACHINES, name, patch, PatchType.MERGE, NAMESPACE, _AS)
    return decision
