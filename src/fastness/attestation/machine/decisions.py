"""What a person decides about a machine: approve it, put it into quarantine, end the quarantine.

    decision = DECISIONS["approve"]
    match standing(machine, decision): ...        # OPEN: it can be taken; DONE: it is; CLOSED: it makes no sense now
    patch = decision_patch(obj, decision, reason)

One field, `spec.approval`, holds the decision, so kubectl can take it too. Command line and page ask the same function, so
neither offers what the other refuses.

* A decision is written on the version that was judged: a quarantine that came in between is not undone by an approval.
* A quarantine needs a reason; all reasons go on the record.
* Approving a machine that waits because of its chip names the chip: should it turn up on yet another one, it waits again.
* A machine that moved is approved on the chip that a person names (`chip_patch`), never on whichever one asked last.
* A revoked machine can be quarantined as well, and nothing else: it cannot come back, it has to enrol anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from fastness.attestation.machine.chip import BARRED, barred_places
from fastness.attestation.verdict.dispute import OVER_CHIP
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import CHIP, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of

MAX_REASON: Final = 1024
# A family and eight digits: fewer could be met by chance in a large fleet.
MIN_CHIP: Final = len("snp:") + 8
Object = Mapping[str, Any]


class DecisionState(StrEnum):
    """How a machine stands to a decision."""

    OPEN = "open"
    DONE = "done"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Decision:
    """One thing that can be decided, and about whom."""

    verb: str
    label: str
    membership: Membership
    come_from: frozenset[Membership]
    reason_required: bool = False


DECISIONS: Final[Mapping[str, Decision]] = {
    decision.verb: decision
    for decision in (
        Decision("approve", "Approve", Membership.APPROVED, frozenset({Membership.PENDING})),
        Decision("release", "End the quarantine", Membership.APPROVED, frozenset({Membership.QUARANTINED})),
        Decision(
            "quarantine", "Quarantine", Membership.QUARANTINED,
            frozenset({Membership.PENDING, Membership.APPROVED, Membership.REVOKED}), reason_required=True,
        ),
    )
}  # fmt: skip
_WAYS_OUT: Final[Mapping[Membership, str]] = {
    Membership.QUARANTINED: "End the quarantine with `fastness machine release`.",
    Membership.REVOKED: "It cannot come back: delete the Machine and let it enrol anew.",
}


def standing(machine: Machine, decision: Decision) -> DecisionState:
    """Whether a decision can be taken about a machine, is taken, or makes no sense."""
    now, awaited = membership_of(machine), machine.status.awaited_chip
    if (
        decision.membership is Membership.APPROVED
        and now is Membership.PENDING
        and awaited not in ("", machine.spec.chip)
    ):
        return DecisionState.OPEN if now in decision.come_from else DecisionState.CLOSED
    if machine.spec.approval == decision.membership and (now is not Membership.REVOKED or now in decision.come_from):
        return DecisionState.DONE
    return DecisionState.OPEN if now in decision.come_from else DecisionState.CLOSED


def open_decisions(machine: Machine) -> tuple[Decision, ...]:
    """What can be decided about a machine now."""
    return tuple(decision for decision in DECISIONS.values() if standing(machine, decision) is DecisionState.OPEN)


def way_out(machine: Machine) -> str:
    """What helps with a machine about which a decision is closed."""
    return _WAYS_OUT.get(membership_of(machine), "Only a quarantined machine can be released.")


class ChipUnclear(ValueError):
    """A chip that a person named is none that can be approved; the text says why."""


def named_chip(machine: Machine, name: str) -> str:
    """The chip that a person means: a whole one, or the beginning of exactly one that evidence showed; raises ChipUnclear."""
    chips = sorted({entry.shows for entry in machine.status.disputes if entry.over == OVER_CHIP})
    meant = [chip for chip in chips if chip.startswith(name)] if len(name) >= MIN_CHIP else []
    if len(meant) == 1:
        return meant[0]
    # After those that evidence showed: the id of one generation has the length of a beginning of another's.
    if not meant and re.fullmatch(CHIP, name):
        return name
    listed = (
        f"evidence in its name showed {', '.join(chips)}" if chips else "no evidence in its name showed another chip"
    )
    raise ChipUnclear(f"{name!r} means {'several chips' if meant else 'no chip'}: {listed}")


def chip_patch(machine: Object, chip: str, reason: str) -> JsonObject:
    """The merge patch that approves a chip, on the version that was judged."""
    version = {"resourceVersion": machine["metadata"]["resourceVersion"]}
    return {"metadata": version, "spec": {"chip": chip, "chipReason": reason}}


def settle_patch(machine: Object, reason: str) -> JsonObject | None:
    """The merge patch that settles the disputes that a person saw, and no later one; None without any."""
    disputes = (machine.get("status") or {}).get("disputes") or ()
    newest = max((str(entry["since"]) for entry in disputes), default="")
    version = {"resourceVersion": machine["metadata"]["resourceVersion"]}
    return {"metadata": version, "spec": {"settled": newest, "settledReason": reason}} if newest else None


def decision_patch(machine: Object, decision: Decision, reason: str) -> JsonObject:
    """The merge patch that writes a decision on the version that was judged."""
    awaited = (machine.get("status") or {}).get("awaitedChip")
    chip = {"chip": awaited} if awaited and decision.verb == "approve" else {}
    meta: JsonObject = {"resourceVersion": machine["metadata"]["resourceVersion"]}
    finalizers = machine["metadata"].get("finalizers") or []
    if decision.verb == "quarantine" and BARRED not in finalizers and barred_places(view(machine, Machine)):
        meta["finalizers"] = [*finalizers, BARRED]
    return {
        "metadata": meta,
        "spec": {"approval": decision.membership.value, "approvalReason": reason or None, **chip},
    }
