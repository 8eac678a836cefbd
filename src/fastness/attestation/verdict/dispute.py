"""Evidence in a machine's name that is authentic and still not its own: it gives no standing, and takes none.

    dispute = chip_dispute(machine, chip)                 # None: the evidence is the machine's
    conclusion = disputed(conclusion, dispute)            # never accepted
    status = dispute_status(known, dispute, verdict, now) # on the Machine, beside a standing that stays as it was

Whoever copies a guest key has a machine's name and not its chip; whoever copies a TPM's state, or runs a guest beside it, has not
its newest boot (`attestation.machine.boots`). Their evidence proves something about another guest, so it
decides nothing about this one: neither good evidence that would put a changed machine back, nor bad evidence that would take an
honest one out. The machine keeps approval, verdict, conditions, labels and tokens; what came is kept beside them
(`status.disputes`), the condition `Disputed` says so, and the record has every attempt.

* One entry for each thing that was shown, however often it comes: a stranger with a key must not be able to fill the status.
* Only people end a dispute: by approving the chip (`spec.chip`), which counts when the machine proves itself there, or by writing
  down that they looked at it (`spec.settled`), which changes nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from fastness.attestation.evidence.checks import Check, Result
from fastness.attestation.verdict.conclude import Conclusion
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, rfc3339, with_condition
from fastness.kinds.trusted_execution.machine import Machine

HIDDEN: Final = "hidden"
CONDITION: Final = "Disputed"
OVER_CHIP: Final = "Chip"
OVER_BOOT: Final = "Boot"
PENDING_CODE: Final = "approval-pending"
MOST_DISPUTES: Final = 8
_REASONS: Final = {OVER_CHIP: "AnotherChip", OVER_BOOT: "EarlierBoot"}
_SETTLED: Final = ("Settled", "no evidence in its name is disputed any more")
Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Dispute:
    """What evidence showed, what the Machine has instead, and the sentence that explains it; `check` is what the verdict adds."""

    over: str
    shows: str
    against: str
    message: str
    check: Check
    # A person may still let it in, so that the machine comes again; otherwise it is refused for good.
    may_pass: bool


def chip_dispute(machine: Machine, chip: str) -> Dispute | None:
    """Why evidence of this chip is not the machine's: it is pinned to another one, and nobody approved this one."""
    pinned = machine.status.chip
    if not chip or not pinned or chip in (pinned, machine.spec.chip):
        return None
    name = machine.metadata.name
    message = (
        f"evidence in its name comes from {short(chip)}, and the machine is on {short(pinned)}: "
        f"`fastness machine approve-chip {name} CHIP` moves it there, `fastness machine settle {name}` leaves it where it is"
    )
    check = Check("chip", Result.FAIL, "chip-changed", chip, pinned, "the Machine", message)
    return Dispute(OVER_CHIP, chip, pinned, message, check, may_pass=True)


def disputed(conclusion: Conclusion, dispute: Dispute | None) -> Conclusion:
    """The same conclusion, or one that accepts nothing; evidence that is refused for itself stays refused."""
    if dispute is None:
        return conclusion
    checks = (*conclusion.checks, dispute.check)
    if not conclusion.accepted:
        return replace(conclusion, checks=checks)
    if dispute.may_pass:
        return replace(conclusion, checks=checks, result="NotAssessed", reason=PENDING_CODE, accepted=False, retry=True)
    return replace(conclusion, checks=checks, result="Refused", reason=dispute.check.code, accepted=False, retry=False)


def dispute_status(known: Object, dispute: Dispute, verdict: str, now: datetime) -> JsonObject:
    """What a dispute adds to the status of a Machine; empty when it stands there already."""
    entries: Sequence[JsonObject] = known.get("disputes") or ()
    if any((entry["over"], entry["shows"]) == (dispute.over, dispute.shows) for entry in entries):
        return {}
    entry = {
        "over": dispute.over, "shows": dispute.shows, "against": dispute.against, "since": rfc3339(now), "verdict": verdict,
    }  # fmt: skip
    conditions = with_condition(
        known.get("conditions") or [], kind=CONDITION, status="True", reason=_REASONS[dispute.over],
        message=dispute.message, now=now,
    )  # fmt: skip
    return {"disputes": [*entries, entry][-MOST_DISPUTES:], "conditions": conditions}


def chip_settled(status: Object, chip: str, now: datetime) -> JsonObject:
    """What the status of a Machine becomes that proved itself on a chip which was approved for it; empty for nothing."""
    entries = status.get("disputes") or ()
    return _left(status, [entry for entry in entries if (entry["over"], entry["shows"]) != (OVER_CHIP, chip)], now)


def settled(machine: Object, now: datetime) -> JsonObject:
    """What it changes on the status of a Machine that a person looked at its disputes up to a time; empty for nothing.

    A time to come settles nothing: it would silence what nobody has looked at.
    """
    status, until = machine.get("status") or {}, str((machine.get("spec") or {}).get("settled") or "")
    if not until or until > rfc3339(now):
        return {}
    return _left(status, [entry for entry in status.get("disputes") or () if str(entry["since"]) > until], now)


def _left(status: Object, left: Sequence[JsonObject], now: datetime) -> JsonObject:
    """The status with these disputes alone, and the condition without any."""
    if len(left) == len(status.get("disputes") or ()):
        return {}
    return {"disputes": list(left) or None, **({} if left else _undisputed(status, now))}


def _undisputed(status: Object, now: datetime) -> JsonObject:
    shown = condition({"status": status}, CONDITION)
    if shown is None or shown["status"] != "True":
        return {}
    reason, message = _SETTLED
    return {
        "conditions": with_condition(
            status.get("conditions") or [], kind=CONDITION, status="False", reason=reason, message=message, now=now
        )
    }


def told_disputes(machine: Machine) -> tuple[str, ...]:
    """A line for each dispute of a machine, for the page and the command line."""
    return tuple(
        f"evidence in its name of a boot that is over ({entry.shows}) since {entry.since}, after {entry.against}"
        if entry.over == OVER_BOOT
        else f"evidence in its name from {short(entry.shows)} since {entry.since}, not from {short(entry.against)}"
        for entry in machine.status.disputes
    )


def short(chip: str) -> str:
    """A chip for a sentence: the id cut to sixteen digits."""
    family, _, value = chip.partition(":")
    return f"chip {family}:{value[:16]}{'…' if len(value) > 16 else ''}" if value else "a chip that its provider hides"
