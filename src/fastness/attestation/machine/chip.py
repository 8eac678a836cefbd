"""The chip under a machine: what its owner cannot change, and what is therefore pinned, compared and barred.

    chip = chip_of(appraisal)                       # snp:<CHIP_ID>, tdx:<platform instance>, hidden, or nothing for a TPM
    wait = why_wait(machine, chip, standing_against(peers))
    conclusion = held(conclusion, wait)             # not assessed, come again: a person has to decide

A guest makes its own key and can make another one at any time; the chip that signs its evidence stays. So:

* At the first affirmed verdict the chip is pinned on the Machine. Evidence of another chip is disputed
  (`attestation.verdict.dispute`) until a person approves that very chip (`spec.chip`): the key was copied, or the machine moved,
  and nothing here can tell which.
* A chip whose Machine was quarantined, revoked or distrusted takes no new Machine until a person approves. Many guests share a
  chip, so Machines that attested on it before go on.
* What bars a chip outlives its Machine: deleting one that is not trusted leaves a Distrust with the places that it `bars`.
* A VLEK belongs to a cloud and not to a chip, and a host may mask the id with zeros. Such a chip is `hidden`: it cannot be
  barred, the verdict warns, and turning up from behind it (or going there) is a change of chip like any other.

The chip of a TPM is its endorsement key, which enrolment pins: there the same question is asked before the Machine is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from fastness.attestation.evidence.checks import Appraisal
from fastness.attestation.machine.machine import SUPERSEDED, waits_for_chip
from fastness.attestation.verdict.dispute import HIDDEN, Wait, chip_settled, short
from fastness.attestation.verdict.distrust import Distrusted, about_machine
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, with_condition
from fastness.kinds.trusted_execution.machine import CHIP_BARRED, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of

# Holds a Machine that bars something until a Distrust says so in its place.
BARRED: Final = "fastness.dev/barred"
INDEX: Final = "chip"
AWAITING: Final = "awaited-chip"
_KINDS: Final = {"chip": "snp", "platform-instance": "tdx", "platform": "tdx", "cloud-provider": ""}
Object = Mapping[str, Any]


def chip_of(appraisal: Appraisal) -> str:
    """The chip that authentic evidence comes from; empty for a kind of evidence that shows none."""
    identity = appraisal.identity
    if identity is None or identity.kind not in _KINDS:
        return ""
    family = _KINDS[identity.kind]
    # A host that masks the id makes it zeros (MASK_CHIP_ID): as an id those would be one chip that all of them share.
    return f"{family}:{identity.value}" if family and identity.value.strip("0") else HIDDEN


def on_chip(machine: Object) -> Iterable[str]:
    """For an index of Machines: the chip that one is pinned to, where that is one."""
    chip = (machine.get("status") or {}).get("chip")
    return (chip,) if chip and chip != HIDDEN else ()


def awaiting_chip(machine: Object) -> Iterable[str]:
    """For an index of Machines: the chip that one waits for."""
    chip = (machine.get("status") or {}).get("awaitedChip")
    return (chip,) if chip else ()


def barring(machine: Machine, distrusts: Iterable[Distrusted] = ()) -> str | None:
    """What a Machine that is no longer trusted is, as its chip must not take new ones; None where it bars nothing.

    `distrusts` are those that stand now: a door knows them before the Machine shows them.
    """
    revoked = next((entry for entry in machine.status.conditions if entry.type == "Revoked"), None)
    match membership_of(machine):
        case Membership.QUARANTINED:
            return "quarantined"
        case Membership.REVOKED if revoked is not None and revoked.reason != SUPERSEDED:
            return "revoked"
    if machine.spec.approval == Membership.QUARANTINED:
        return "quarantined"
    about = about_machine(machine)
    return "distrusted" if any(entry.revokes and entry.hits(about) for entry in distrusts) else None


def standing_against(peers: Iterable[Machine], distrusts: Iterable[Distrusted] = ()) -> str | None:
    """Which of the Machines on a chip makes newcomers wait, and what it is; None without one."""
    live = tuple(distrusts)
    return next((f"{peer.metadata.name} is {word}" for peer in peers if (word := barring(peer, live))), None)


def barred_places(machine: Machine) -> dict[str, str]:
    """What a Machine stands on that its owner cannot change: its chip, its TPM's endorsement key."""
    endorsement = machine.status.endorsement.key if machine.status.endorsement else ""
    chip = machine.status.chip if machine.status.chip != HIDDEN else ""
    return {name: value for name, value in (("chip", chip), ("endorsementKey", endorsement)) if value}


def bars(machine: Machine) -> bool:
    """Whether newcomers wait because of this Machine."""
    return bool(barring(machine) and barred_places(machine))


def kept_bar(machine: Machine) -> JsonObject:
    """The Distrust that keeps what a Machine bars when it is deleted."""
    why = f"{machine.metadata.name} was {barring(machine) or 'not trusted'} when it was deleted"
    reason = f"{why}: {machine.spec.approval_reason}" if machine.spec.approval_reason else why
    return {
        "apiVersion": DISTRUST.api_version, "kind": DISTRUST.kind,
        "metadata": {"name": f"kept-{machine.metadata.uid}"},
        "spec": {"machine": machine.metadata.uid, "reason": reason[:1024], "bars": barred_places(machine)},
    }  # fmt: skip


def kept_against(place: str, distrusts: Iterable[Distrusted]) -> str | None:
    """What a Machine that is gone left against a chip or an endorsement key; None without one."""
    return next((entry.reason for entry in distrusts if entry.bars_newcomers(place)), None)


def why_wait(machine: Machine, chip: str, against: str | None) -> Wait | None:
    """Why a newcomer with evidence of this chip waits for approval; None when it need not.

    `against` is what stands against the chip. It counts for a machine that never attested: others go on.
    """
    # Many guests share a chip: those that attested on it before are no newcomers, and one bad guest must not stop them all.
    newcomer = not machine.status.chip and not machine.status.last_attested
    if not chip or against is None or not newcomer or chip == machine.spec.chip:
        return None
    approve = f"`fastness machine approve {machine.metadata.name}` lets it in all the same"
    return Wait(chip, f"{against}, and this machine is on the same {short(chip)}: {approve}")


def chip_status(before: Object, chip: str, wait: Wait | None, now: datetime, *, accepted: bool) -> JsonObject:
    """What a verdict changes on the status of a Machine: the pin, or the question to a person; empty for nothing.

    The question takes the approval of a newcomer back. A chip that was approved ends the disputes about it.
    """
    if accepted:
        pinned = {"chip": chip} if chip and before.get("chip") != chip else {}
        ended = chip_settled(before, chip, now) if pinned else {}
        return {**pinned, **ended, **({"awaitedChip": None} if before.get("awaitedChip") else {})}
    if wait is None or before.get("awaitedChip") == wait.chip:
        return {}
    conditions = with_condition(
        before.get("conditions") or [], kind="Approved", status="False", reason=CHIP_BARRED, message=wait.message, now=now
    )  # fmt: skip
    # The epoch rises, as whenever trust ends: tokens of before never come to life again.
    return {"awaitedChip": wait.chip, "conditions": conditions, "epoch": int(before.get("epoch") or 0) + 1}


def waits_for_bar_alone(machine: Object) -> bool:
    """Whether a Machine waits only because of what stood against its chip, and not because the chip is another one."""
    return waits_for_chip(machine) and (condition(machine, "Approved") or {}).get("reason") == CHIP_BARRED
