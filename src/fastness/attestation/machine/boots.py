"""Which boot of a machine evidence is of, and whether that boot is over: then it is of a copy, or of a state that was put back.

    boot = boot_of(appraisal.claims, boot_key)       # None: this evidence does not tell
    dispute = boot_dispute(machine, boot)            # None: the boot of before, or a later one
    status = boot_status(known, boot)                # the newest boot, and the launches that are over

A machine has one boot at a time. A TPM counts its resets and restarts, and its clock goes on within a boot; so a count or a clock
that went back is another TPM with the same keys: its state was copied, or an old one put back. The report of an SNP guest has an
id of its launch instead, without an order: one that comes again after another says that two guests run with one key. A quote of
TDX has neither, so there the key that the measured agent made at its boot is that id (`protocol.guest_key`). What is over gets no
standing and takes none from the boot that counts: it is disputed (`attestation.verdict.dispute`), with both shown.

* Evidence of a later boot counts, whoever booted it: a reboot looks like that, too. Whoever copied the state meets the alarm when
  the original comes back, and not before.
* Authentic evidence that is refused is of a boot all the same: after a boot of something else, the one before does not come back.
* The key of a session tells no boots apart: it is new each time, and a machine has several sessions at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.attestation.evidence.checks import Check, Result
from fastness.attestation.verdict.dispute import OVER_BOOT, Dispute
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.machine import MOST_FORMER_BOOTS, BootMark, Machine

CODE: Final = "boot-is-over"
# Two attempts of one boot overtake each other for as long as a challenge lives, and that is ten minutes at most.
CLOCK_SLACK_MS: Final = 600_000
# Counts have 32 bits, and a TPM adds a number of its own to those that keys outside of its endorsement hierarchy sign
# (TPM 2.0 Part 1, "Attestation", obfuscation of TPMS_CLOCK_INFO): they may pass zero, and are compared as serial numbers.
_ROUND: Final = 1 << 32
Object = Mapping[str, Any]


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
    check = Check("boot", Result.FAIL, CODE, shows, f"{against}, or a later boot", "the Machine", message)
    return Dispute(OVER_BOOT, shows, against, message, check, may_pass=False)


def boot_status(known: Object, boot: Boot | None) -> JsonObject:
    """What authentic evidence of a boot that is not over changes on the status of a Machine; empty for nothing."""
    if boot is None:
        return {}
    mark = known.get("boot") or {}
    if boot.launch:
        if mark.get("launch") == boot.launch:
            return {}
        ended = [mark["launch"]] if mark.get("launch") else []
        former = [*(known.get("formerBoots") or ()), *ended][-MOST_FORMER_BOOTS:]
        return {"boot": {"launch": boot.launch}, **({"formerBoots": former} if ended else {})}
    counts = {"resets": boot.resets, "restarts": boot.restarts}
    if counts.items() <= mark.items() and boot.clock <= mark["clock"]:
        return {}  # overtaken by a later attempt of the same boot
    return {"boot": {**counts, "clock": boot.clock}}


def _is_over(boot: Boot, mark: BootMark, former: tuple[str, ...]) -> bool:
    if boot.launch or mark.launch:
        return boot.launch != mark.launch and boot.launch in former
    if boot.resets != mark.resets:
        return _before(boot.resets, mark.resets)
    if boot.restarts != mark.restarts:
        return _before(boot.restarts, mark.restarts)
    return boot.clock + CLOCK_SLACK_MS < mark.clock


def _before(count: int, other: int) -> bool:
    """Whether a count that is not the other one is nearer before it than after it."""
    return (other - count) % _ROUND < _ROUND // 2
