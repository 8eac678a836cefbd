"""Unlock sessions, judged: may this session have the keys of a Machine's disks?

    needs_identity(machine)                        # whether the machine's own key has to sign as well
    refusal = unlock_refusal(machine, appraisal, chip, boot)

An unlock session names a Machine by its uid, which is text on a disk that the host owns. What makes it that Machine's:

    tpm         the key that signed the quote
    snp, tdx    the chip that the Machine is pinned to; before it has one, or where it is hidden, the guest key as well

The image may be any that counts for the Machine's pool now, and an override of approvers opens no disk. The machine must be in
its initrd: PCR 11 or RTMR 3 say so; SNP guests have no such register, and there the launch must be new (`live.launches`).
Two machines with equal images on one chip can have their disks swapped by their host: each opens the other's. Nothing in the
evidence tells them apart before their disks are open; afterwards the guest key does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastness.attestation.evidence.checks import Appraisal
from fastness.attestation.evidence.phases import Phase
from fastness.attestation.verdict.dispute import BOOT_CODE, HIDDEN, Boot, boot_dispute
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kinds.trusted_execution.subject import KeyKind, key_kind

LAUNCH_USED: Final = "launch-already-used"
PHASE_PASSED: Final = "initrd-left"
WITHOUT_PHASES: Final = frozenset({"snp"})


@dataclass(frozen=True, slots=True)
class UnlockRefusal:
    """Why a session has no disk key; `retry` says that this may pass."""

    code: str
    detail: str
    retry: bool = False


OTHER_MACHINE: Final = UnlockRefusal("other-machine", "the evidence is not of the Machine that the session names")
USED: Final = UnlockRefusal(
    LAUNCH_USED, "disks are opened in the first session of a launch alone, and one was seen before: boot again"
)


def needs_identity(machine: Machine) -> bool:
    """Whether the machine's own key must have signed the session: where there is no chip that only its Machines are on."""
    if key_kind(machine.status.tee) is KeyKind.AK:
        return False  # the quote itself is signed by it
    chip = machine.status.chip
    # A provider that hides its chips makes them all one; a person may have named even that one for this machine.
    return not chip or (chip == HIDDEN and machine.spec.chip != HIDDEN)


def unlock_refusal(machine: Machine, appraisal: Appraisal, chip: str, boot: Boot | None) -> UnlockRefusal | None:
    """Why authentic evidence opens no disk of this Machine, whatever it measured; None when nothing speaks against it."""
    pinned = machine.status.chip
    if pinned and chip not in (pinned, machine.spec.chip):
        return UnlockRefusal("other-chip", "the evidence is of another chip than the one that the Machine is on")
    # After the chip: how a machine stands is not told to whoever merely knows its uid.
    membership = membership_of(machine)
    if membership is Membership.PENDING:
        return UnlockRefusal("approval-pending", "the machine waits for approval", retry=True)
    if membership is not Membership.APPROVED:
        code = "revoked" if membership is Membership.REVOKED else "quarantined"
        return UnlockRefusal(code, "this machine is no longer trusted")
    if boot_dispute(machine, boot) is not None:
        return UnlockRefusal(BOOT_CODE, "the evidence is of a boot that is over")
    return _phase_refusal(appraisal)


def phase_of_evidence(appraisal: Appraisal) -> str:
    """The phase of the boot that evidence shows; empty where it shows none."""
    claims = appraisal.claims.get(appraisal.tee)
    return str(claims.get("phase") or "") if isinstance(claims, dict) else ""


def _phase_refusal(appraisal: Appraisal) -> UnlockRefusal | None:
    if appraisal.tee in WITHOUT_PHASES:
        return None
    phase = phase_of_evidence(appraisal)
    if phase == Phase.INITRD:
        return None
    if phase == Phase.SYSTEM:
        return UnlockRefusal(PHASE_PASSED, "the machine has left its initrd: keys of disks are given before that alone")
    return UnlockRefusal("phase-unknown", "nothing shows that the machine is still in its initrd")
