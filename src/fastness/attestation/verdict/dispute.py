"""Evidence in a machine's name that is authentic and still not its own: it gives no standing, and takes none.

    dispute = chip_dispute(machine, chip)                 # None: the evidence is of the machine's chip
    boot = boot_of(appraisal.claims, boot_key)            # None: this evidence does not tell
    dispute = boot_dispute(machine, boot)                 # None: of the boot of before, or of a later one
    status = dispute_status(known, dispute, verdict, now) # on the Machine, beside a standing that stays as it was

Whoever copies a guest key has a machine's name and not its chip; whoever copies a TPM's state, or runs a guest beside it, has not
its newest boot. Their evidence proves something about another guest, so it decides nothing about this one: neither good evidence
that would put a changed machine back, nor bad evidence that would take an honest one out. The machine keeps approval, verdict,
conditions, labels and tokens; what came is kept beside them (`status.disputes`), the condition `Disputed` says so, and the record
has every attempt.

* One entry for each thing that was shown, however often it comes: a stranger with a key must not be able to fill the status.
* Only people end a dispute: by approving the chip (`spec.chip`), which counts when the machine proves itself there, or by writing
  down that they looked at it (`spec.settled`), which changes nothing else.

A machine has one boot at a time. A TPM counts its resets and restarts, and its clock goes on within a boot; so a count or a clock
that went back is another TPM with the same keys: its state was copied, or an old one put back. The report of an SNP guest has an
id of its launch instead, without an order: one that comes again after another says that two guests run with one key. A quote of
TDX has neither, so there the key that the measured agent made at its boot is that id (`protocol.guest_key`).

* Evidence of a later boot counts, whoever booted it: a reboot looks like that, too. Whoever copied the state meets the alarm when
  the original comes back, and not before.
* Authentic evidence that is refused is of a boot all the same: after a boot of something else, the one before does not come back.
* The key of a session tells no boots apart: it is new each time, and a machine has several sessions at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fastness.attestation.evidence.checks import Check, Result
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, rfc3339, with_condition
from fastness.kinds.trusted_execution.machine import MOST_FORMER_BOOTS, BootMark, Machine

HIDDEN: Final = "hidden"
CONDITION: Final = "Disputed"
OVER_CHIP: Final = "Chip"
OVER_BOOT: Final = "Boot"
PENDING_CODE: Final = "approval-pending"
# Whoever has a copied key can come from any number of chips; the status of a Machine has a bound.
MOST_DISPUTES: Final = 8
_REASONS: Final = {OVER_CHIP: "AnotherChip", OVER_BOOT: "EarlierBoot"}
_SETTLED: Final = ("Settled", "no evidence in its name is disputed any more")
BOOT_CODE: Final = "boot-is-over"
# Two attempts of one boot overtake each other for as long as a challenge lives, and that is ten minutes at most.
CLOCK_SLACK_MS: Final = 600_000
# Counts have 32 bits, and a TPM adds a number of its own to those that keys outside of its endorsement hierarchy sign
# (TPM 2.0 Part 1, "Attestation", obfuscation of TPMS_CLOCK_INFO): they may pass zero, and are compared as serial numbers.
_ROUND: Final = 1 << 32
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
    # `spec.chip` is what a person approved: moving a guest to another host is ordinary, being in two places is not (decision 42).
    if not chip or not pinned or chip in (pinned, machine.spec.chip):
        return None
    name = machine.metadata.name
    message = (
        f"evidence in its name comes from {short(chip)}, and the machine is on {short(pinned)}: "
        f"`fastness machine approve-chip {name} CHIP` moves it there, `fastness machine settle {name}` leaves it where it is"
    )
    check = Check("chip", Result.FAIL, "chip-changed", chip, pinned, "the Machine", message)
    return Dispute(OVER_CHIP, chip, pinned, message, check, may_pass=True)


def dispute_status(before: Object, dispute: Dispute, verdict: str, now: datetime) -> JsonObject:
    """What a dispute adds to the status of a Machine; empty when it stands there already."""
    entries: Sequence[JsonObject] = before.get("disputes") or ()
    # Once for each: an attacker with a copied key comes every few seconds, and must not fill the status or hide the first entry.
    if any((entry["over"], entry["shows"]) == (dispute.over, dispute.shows) for entry in entries):
        return {}
    entry = {
        "over": dispute.over, "shows": dispute.shows, "against": dispute.against, "since": rfc3339(now), "verdict": verdict,
    }  # fmt: skip
    conditions = with_condition(
        before.get("conditions") or [], kind=CONDITION, status="True", reason=_REASONS[dispute.over],
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
    present = condition({"status": status}, CONDITION)
    if present is None or present["status"] != "True":
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


@dataclass(frozen=True, slots=True)
class Wait:
    """Why a newcomer waits for a person: the chip, and the sentence that explains it."""

    chip: str
    message: str


@dataclass(frozen=True, slots=True)
class Boot:
    """One boot as evidence shows it: the id of a launch, or the counts and the clock of a TPM."""

    launch: str = ""
    resets: int = 0
    restarts: int = 0
    clock: int = 0
    tee: str = "snp"
    """Whose launch it is, for people."""

    def __str__(self) -> str:
        """The same for all evidence of a boot, so that a dispute about it stands once; therefore without the clock."""
        if self.launch:
            return f"{self.tee.upper()} launch {self.launch}"
        return f"TPM boot of {self.resets} resets and {self.restarts} restarts"


def boot_of(claims: Object, boot_key: str = "") -> Boot | None:
    """The boot that authentic evidence is of, by its own word or by the key of the boot; None where it does not tell."""
    if boot_key:
        return Boot(launch=boot_key, tee="tdx")
    tpm, snp = claims.get("tpm"), claims.get("snp")
    if isinstance(tpm, Mapping) and "reset_count" in tpm:
        return Boot(resets=int(tpm["reset_count"]), restarts=int(tpm["restart_count"]), clock=int(tpm["clock"]))
    launch = str(snp.get("report_id") or "") if isinstance(snp, Mapping) else ""
    # Zeros are no id: all guests that report none would be one boot.
    return Boot(launch=launch) if launch.strip("0") else None


def boot_dispute(machine: Machine, boot: Boot | None) -> Dispute | None:
    """Why evidence of this boot is not of the boot that the machine is in; None when it may be."""
    mark = machine.status.boot
    if boot is None or mark is None or not _is_over(boot, mark, machine.status.former_boots):
        return None
    shows, against = str(boot), str(Boot(mark.launch, mark.resets, mark.restarts, mark.clock, boot.tee))
    if shows == against:
        shows, against = f"{shows}, an earlier clock", f"{against}, clock at {mark.clock} ms"
    message = (
        f"evidence in its name is of a boot that is over ({shows}), after evidence of a later one ({against}): the machine "
        f"was copied, or an old state of it put back; `fastness machine settle {machine.metadata.name}` when you have looked"
    )
    check = Check("boot", Result.FAIL, BOOT_CODE, shows, f"{against}, or a later boot", "the Machine", message)
    return Dispute(OVER_BOOT, shows, against, message, check, may_pass=False)


def boot_status(status: Object, boot: Boot | None) -> JsonObject:
    """What authentic evidence of a boot that is not over changes on the status of a Machine; empty for nothing."""
    if boot is None:
        return {}
    mark = status.get("boot") or {}
    if boot.launch:
        if mark.get("launch") == boot.launch:
            return {}
        ended = [mark["launch"]] if mark.get("launch") else []
        former = [*(status.get("formerBoots") or ()), *ended][-MOST_FORMER_BOOTS:]
        return {"boot": {"launch": boot.launch}, **({"formerBoots": former} if ended else {})}
    counts = {"resets": boot.resets, "restarts": boot.restarts}
    if counts.items() <= mark.items() and boot.clock <= mark["clock"]:
        return {}  # overtaken by a later attempt of the same boot
    return {"boot": {**counts, "clock": boot.clock}}


def _is_over(boot: Boot, mark: BootMark, former: tuple[str, ...]) -> bool:
    # Launch ids are random for each launch of an SNP guest (REPORT_ID in the attestation report), or the key of the boot.
    if boot.launch or mark.launch:
        # Launches have no order: one that is over is recognised because it was there before.
        return boot.launch != mark.launch and boot.launch in former
    if boot.resets != mark.resets:
        return _before(boot.resets, mark.resets)
    if boot.restarts != mark.restarts:
        return _before(boot.restarts, mark.restarts)
    # Within one boot the clock of a TPM only goes forward: evidence of the same boot with a far older clock comes from a copied
    # state.
    return boot.clock + CLOCK_SLACK_MS < mark.clock


def _before(count: int, other: int) -> bool:
    """Whether a count that is not the other one is nearer before it than after it."""
    return (other - count) % _ROUND < _ROUND // 2
