"""A machine's place in the cluster: the objects that enrolment makes, and what they say.

    machine-<id>   Machine: the identity, the administrator's decision, what was proved since
    ak-<id>        AttestationKey: the public half of an AK; guest keys are no attestation keys and have none
    <pool>-<id>    the node that this machine, and no other, may become

`protocol.machine_names` makes these names of the key; `kinds.trusted_execution.membership` says who may take part.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, is_being_deleted, object_name, rfc3339, view, with_condition
from fastness.kinds.trusted_execution.approvals import ATTESTATION_KEY
from fastness.kinds.trusted_execution.machine import CHIP_BARRED, IDENTITIES, MACHINE, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kinds.trusted_execution.properties import ENDORSEMENT, TEE
from fastness.kinds.trusted_execution.subject import UNLOCK, Endorsement, KeyKind, Subject, is_endorsed, key_kind
from fastness.protocol.machine_names import endorsement_label, key_name, machine_name, node_name
from fastness.protocol.node_certificates import LONGEST

ENDORSEMENT_LABEL: Final = "fastness.dev/endorsement"
POOL_LABEL: Final = "fastness.dev/pool"
SUPERSEDED: Final = "Superseded"
TYPE_DIFFERS: Final = "evidence-type-differs"
PIN_KEY: Final = "the Clevis pin registered the key on its own word: no TPM and no maker of one vouched for it"
_MAX_LABEL: Final = 63
_PEM_LINE: Final = 64


@dataclass(frozen=True, slots=True)
class Newcomer:
    """A machine whose key and ticket were proved, and how the cluster takes it in."""

    thumbprint: str
    public: bytes
    tee: str
    pool: str
    ticket: str
    approved: bool
    endorsement: str = ""
    root: str = ""
    first_use: bool = False
    simulated: bool = False
    supersedes: str = ""
    waits: str = ""
    ticket_uid: str = ""
    # Set where the Clevis pin registered the key: the id that the machine was told, and that its disk key is asked for by.
    pin: str = ""
    identity: str = ""

    @property
    def kind(self) -> KeyKind:
        """Whether its key is an attestation key of a TPM or a guest key."""
        return key_kind(self.tee)

    @property
    def endorsed_by(self) -> Endorsement:
        """How its key was endorsed."""
        if self.kind is KeyKind.GUEST:
            return Endorsement.EVIDENCE
        return Endorsement.FIRST_USE if self.first_use else Endorsement.EK_CERTIFICATE

    @property
    def machine_name(self) -> str:
        """The name of its Machine, which follows from its key."""
        return machine_name(self.kind, self.thumbprint)


@dataclass(frozen=True, slots=True)
class Misbound:
    """Why an attempt is not bound to the enrolment of the machine that it names."""

    code: str
    detail: str


def misbound(machine: Machine, tee: str, *, first_use: bool) -> Misbound | None:
    """Why evidence of this type cannot be this machine's, whatever it says; `first_use` says what the cluster allows."""
    enrolled, endorsement = machine.status.tee, machine.status.endorsed_by
    # A software key that enrolled for `snp` proves nothing until its report does: it must not get to sign quotes.
    if enrolled != tee:
        return Misbound(TYPE_DIFFERS, f"this key enrolled for evidence of {enrolled or 'no type'}, not of {tee}")
    # A Machine that somebody wrote by hand may say nothing of its endorsement: that is none.
    if not is_endorsed(enrolled, endorsement):
        return Misbound("not-endorsed", "nothing shows that this key lives where it says: enrol again with a new key")
    if endorsement == Endorsement.FIRST_USE and not first_use:
        return Misbound("first-use-not-allowed", "nobody vouches for this TPM, and trust on first use is off")
    return None


def proved_as_enrolled(machine: Machine) -> bool:
    """Whether what a Machine proved last is of the type and endorsement that it enrolled with."""
    proved, status = machine.status.properties, machine.status
    same = (proved.get(TEE), proved.get(ENDORSEMENT)) == (status.tee, status.endorsed_by)
    return same and is_endorsed(status.tee, status.endorsed_by)


def is_subject(machine: Machine, subject: Subject) -> bool:
    """Whether a Machine as it stands is the subject that somebody was told of: same object, type, key and endorsement."""
    status = machine.status
    named = f"{UNLOCK}{machine.metadata.uid}" if subject.is_unlock else status.key_thumbprint
    return (machine.metadata.uid, status.tee, named, status.endorsed_by) == (
        subject.machine, subject.tee, subject.thumbprint, subject.endorsement,
    )  # fmt: skip


def subject_of(machine: Machine, tenant: str = "") -> Subject:
    """The machine as grants and tokens name it."""
    return Subject(
        machine=machine.metadata.uid,
        name=machine.metadata.name,
        thumbprint=machine.status.key_thumbprint,
        pool=machine.status.pool,
        tenant=tenant,
        simulated=machine.status.simulated,
        epoch=machine.status.epoch,
        tee=machine.status.tee,
        endorsement=machine.status.endorsed_by,
        id=machine.spec.id,
    )


def machine_object(newcomer: Newcomer, identity: str) -> JsonObject:
    """A new Machine; `identity` is a fresh UUID, for a newcomer that was not told one."""
    labels = {POOL_LABEL: newcomer.pool} if len(newcomer.pool) <= _MAX_LABEL else {}
    if newcomer.endorsement:
        labels[ENDORSEMENT_LABEL] = endorsement_label(newcomer.endorsement)
    why = {"approvalReason": newcomer.waits} if newcomer.waits else {}
    return {
        "apiVersion": MACHINE.api_version, "kind": MACHINE.kind,
        "metadata": {"name": newcomer.machine_name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "id": newcomer.identity or identity,
            "approval": str(Membership.APPROVED if newcomer.approved else Membership.PENDING),
            **why,
        },
    }  # fmt: skip


def machine_status(newcomer: Newcomer, name: str, now: datetime) -> JsonObject:
    """What enrolment found out, written once."""
    status: JsonObject = {
        "pool": newcomer.pool, "nodeName": node_name(newcomer.pool, newcomer.kind, newcomer.thumbprint),
        "keyThumbprint": newcomer.thumbprint, "tee": newcomer.tee, "endorsedBy": str(newcomer.endorsed_by),
        "identity": IDENTITIES[newcomer.kind is KeyKind.GUEST],
        "ticket": newcomer.ticket, "simulated": newcomer.simulated, "conditions": _first_conditions(newcomer, name, now),
    }  # fmt: skip
    if newcomer.ticket_uid:
        status["ticketUid"] = newcomer.ticket_uid
    if newcomer.endorsement:
        root = {"root": newcomer.root} if newcomer.root else {}
        status["endorsement"] = {"key": newcomer.endorsement, **root}
    if newcomer.pin:
        status["pin"] = newcomer.pin
    if newcomer.supersedes:
        status["supersedes"] = newcomer.supersedes
    status["standing"] = "Waiting (simulated)" if newcomer.simulated else "Waiting"
    status["standingReason"] = "NeverAttested" if newcomer.approved else "Pending"
    return status


def attestation_key_object(newcomer: Newcomer, machine: Mapping[str, Any]) -> JsonObject:
    """The AttestationKey of a Machine, which owns it."""
    owner = {
        "apiVersion": MACHINE.api_version, "kind": MACHINE.kind, "name": object_name(machine).name,
        "uid": machine["metadata"]["uid"], "controller": True, "blockOwnerDeletion": False,
    }  # fmt: skip
    return {
        "apiVersion": ATTESTATION_KEY.api_version, "kind": ATTESTATION_KEY.kind,
        "metadata": {
            "name": key_name(newcomer.thumbprint), "namespace": NAMESPACE, "ownerReferences": [owner],
        },
        "spec": {"publicKey": _pem(newcomer.public), "uuid": machine["spec"]["id"]},
    }  # fmt: skip


def key_conditions(key: Mapping[str, Any], now: datetime, *, pin: bool = False) -> list[JsonObject]:
    """The conditions of an AttestationKey that belongs to a Machine; `pin` says that the Clevis pin registered it."""
    present = (key.get("status") or {}).get("conditions") or ()
    message = PIN_KEY if pin else "the key was activated and belongs to a Machine"
    return with_condition(
        present, kind="Approved", status="True", reason="MachineCreated", message=message, now=now
    )  # fmt: skip


def approval_condition(machine: Mapping[str, Any], now: datetime) -> list[JsonObject]:
    """The conditions with `Approved` as `spec.approval` wants it; the same list when nothing changes."""
    approval = machine["spec"].get("approval") or Membership.PENDING
    why = machine["spec"].get("approvalReason") or ""
    name = object_name(machine).name
    held = _quarantined(why or f"end it with `fastness machine release {name}`", now)
    status, reason, message = {
        Membership.APPROVED: ("True", "Approved", why or "an administrator approved the machine"),
        Membership.QUARANTINED: ("False", "Quarantined", held),
    }.get(approval, ("False", "Pending", why or f"waits for `fastness machine approve {name}`"))
    present = (machine.get("status") or {}).get("conditions") or []
    approved = condition(machine, "Approved")
    if approval == Membership.APPROVED and waits_for_chip(machine):
        reason = CHIP_BARRED
        status, message = "False", f"waits for `fastness machine approve {name}`, which names its chip"
    if approved is not None and approved["status"] == status and (status == "True" or approved.get("reason") == reason):
        return list(present)
    return with_condition(present, kind="Approved", status=status, reason=reason, message=message, now=now)


def _quarantined(why: str, now: datetime) -> str:
    """What a quarantine says, with the time by which it holds everywhere: only our own API asks the Machine at each request."""
    end = rfc3339(now + LONGEST)
    return f"{why[:768]}; its node credential opens nothing at the embedded API; on another Kubernetes it ends by {end}"


def waits_for_chip(machine: Mapping[str, Any]) -> bool:
    """Whether a person still has to approve the chip that a Machine showed (`chip.py`); approving another one is not enough."""
    awaited = (machine.get("status") or {}).get("awaitedChip")
    return bool(awaited) and machine["spec"].get("chip") != awaited


def replaced_by(machines: Iterable[Mapping[str, Any]]) -> list[tuple[JsonObject, JsonObject]]:
    """Of Machines that may share an endorsement key: those that a newer one replaces, each with the newest.

    Only an approved Machine replaces others. One that is revoked already needs nothing.
    """
    by_key: dict[str, list[tuple[Machine, JsonObject]]] = {}
    for machine in machines:
        machine_view = view(machine, Machine)
        if (
            machine_view.status.endorsement is not None
            and machine_view.status.key_thumbprint
            and not is_being_deleted(machine)
        ):
            by_key.setdefault(machine_view.status.endorsement.key, []).append((machine_view, dict(machine)))
    replaced = []
    for entries in by_key.values():
        ages = _ages(typed for typed, _ in entries)
        entries.sort(key=lambda entry: ages[entry[0].metadata.uid])
        newest = next((each for each in reversed(entries) if membership_of(each[0]) is Membership.APPROVED), None)
        if newest is not None:
            older = entries[: entries.index(newest)]
            replaced += [(old, newest[1]) for typed, old in older if membership_of(typed) is not Membership.REVOKED]
    return replaced


def _ages(machines: Iterable[Machine]) -> dict[str, tuple[str, int, str]]:
    """How old Machines of one TPM are, by uid: larger is newer.

    Times have whole seconds, and a machine that is installed by a program can enrol twice in one. Between two of a second the
    one that was told to supersede the other is the newer; by their names alone the older could revoke its successor.
    """
    by_uid = {machine.metadata.uid: machine for machine in machines}

    def generation(machine: Machine) -> int:
        seen = [machine.metadata.uid]
        while (before := by_uid[seen[-1]].status.supersedes) in by_uid and before not in seen:
            seen.append(before)
        return len(seen)

    return {
        uid: (machine.metadata.creation_timestamp or "", generation(machine), machine.metadata.name)
        for uid, machine in by_uid.items()
    }


def of_same_tpm(newcomer: Newcomer, machines: Iterable[Mapping[str, Any]]) -> list[Machine]:
    """Of Machines that share a label, the other ones of the newcomer's endorsement key."""
    return [
        machine
        for machine in (view(entry, Machine) for entry in machines)
        if machine.status.endorsement is not None
        and machine.status.endorsement.key == newcomer.endorsement
        and machine.status.key_thumbprint != newcomer.thumbprint
    ]


def predecessor_of(peers: Iterable[Machine]) -> str:
    """Uid of the newest Machine of a TPM that still counts, which a newcomer replaces; empty without one."""
    peers = list(peers)
    ages = _ages(peers)
    live = [peer.metadata.uid for peer in peers if membership_of(peer) is not Membership.REVOKED]
    return max(live, key=ages.__getitem__, default="")


def _first_conditions(newcomer: Newcomer, name: str, now: datetime) -> list[JsonObject]:
    reason, message = _how(newcomer)
    entries = with_condition([], kind="Enrolled", status="True", reason=reason, message=message, now=now)
    approved = ("True", "Automatic", "the cluster approves machines that enrol")
    waiting = ("False", "Pending", newcomer.waits or f"waits for `fastness machine approve {name}`")
    status, reason, message = approved if newcomer.approved else waiting
    entries = with_condition(entries, kind="Approved", status=status, reason=reason, message=message, now=now)
    return with_condition(
        entries,
        kind="Attested",
        status="False",
        reason="NeverAttested",
        message="no evidence was appraised yet",
        now=now,
    )


def _how(newcomer: Newcomer) -> tuple[str, str]:
    if newcomer.pin:
        return "TrustOnFirstUse", f"{PIN_KEY}; it was accepted when first seen"
    if newcomer.endorsed_by is Endorsement.FIRST_USE:
        return "TrustOnFirstUse", "the endorsement key came without a certificate and was accepted when first seen"
    if newcomer.endorsed_by is Endorsement.EK_CERTIFICATE:
        return "Activated", "a certified endorsement key vouched for the identity"
    return "KeyProved", "the guest key signed the challenge"


def _pem(der: bytes) -> str:
    text = base64.b64encode(der).decode()
    lines = [text[start : start + _PEM_LINE] for start in range(0, len(text), _PEM_LINE)]
    return "\n".join(["-----BEGIN PUBLIC KEY-----", *lines, "-----END PUBLIC KEY-----", ""])
