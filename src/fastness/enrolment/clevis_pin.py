"""Machines that the Clevis pin enrols: invited with a ticket, registered with a key on its own word.

    invitation = invite(ticket, terms, identity, now)      # for the config that Ignition fetches; nothing is made of it
    newcomer = registered(invitation, registration, terms, now)

The pin makes a key in its TPM and sends its public half. It opens no credential and shows no certificate, so whatever the pool
asks of other machines, this is trust on first use: without `join.trustOnFirstUse` it is refused, at both steps.

* An invitation is sealed by the door and travels in the registration URL. It names the ticket, so that a key costs a use of it.
* The machine is told its id before it has a key. The Machine is made when the key comes, and never for a config alone: Ignition
  asks as often as it likes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Final

from fastness.attestation.machine.machine import Newcomer
from fastness.crypto.errors import CryptoError
from fastness.crypto.silicon.verify import AttestationKey
from fastness.enrolment.enrolment import EnrolmentRefused, Invitation, Terms
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.fastness_dev.cluster import CLEVIS_PIN
from fastness.protocol.clevis import Registration
from fastness.protocol.enrolment import TPM

# Between config and key Ignition makes partitions and wipes; a config that is older was not of this boot.
LIFETIME: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class PinInvitation:
    """What must be remembered between config and key; readable by the machine, sealed by the door."""

    identity: str
    ticket: str
    ticket_uid: str
    pool: str
    expires: int

    def encode(self) -> bytes:
        """The invitation as bytes."""
        return json.canonical(asdict(self))

    @classmethod
    def decode(cls, data: bytes) -> PinInvitation:
        """An invitation that `encode` made; raises EnrolmentRefused for one of another version."""
        try:
            value = json.decode(data)
        except JsonError as error:
            raise EnrolmentRefused("enrolment-invalid", "fetch the config again") from error
        if not isinstance(value, dict) or value.keys() != {entry.name for entry in fields(cls)}:
            raise EnrolmentRefused("enrolment-invalid", "fetch the config again")
        return cls(**value)


def invite(invitation: Invitation, pools: Collection[str], terms: Terms, identity: str, now: datetime) -> PinInvitation:
    """An invitation for whoever shows a ticket; `pools` are those that use the pin. Raises EnrolmentRefused."""
    _welcome(invitation.pool, pools, terms)
    expires = int((now + LIFETIME).timestamp())
    return PinInvitation(identity, invitation.ticket, invitation.uid, invitation.pool, expires)


def registered(
    invitation: PinInvitation, registration: Registration, pools: Collection[str], terms: Terms, now: datetime
) -> Newcomer:
    """The machine whose key the pin registers; raises EnrolmentRefused."""
    if now.timestamp() >= invitation.expires:
        raise EnrolmentRefused("enrolment-expired", "it took too long: boot again")
    # Asked again: between config and key an operator may have taken back what the config rested on.
    _welcome(invitation.pool, pools, terms)
    if registration.uuid and registration.uuid != invitation.identity:
        raise EnrolmentRefused("enrolment-invalid", "this URL is for another machine")
    try:
        key = AttestationKey(registration.key)
    except CryptoError as error:
        raise EnrolmentRefused("bad-key", str(error)) from error
    return Newcomer(
        str(key.thumbprint), key.der, TPM, invitation.pool, invitation.ticket, not terms.manual, first_use=True,
        ticket_uid=invitation.ticket_uid, pin=CLEVIS_PIN, identity=invitation.identity,
    )  # fmt: skip


def _welcome(pool: str, pools: Collection[str], terms: Terms) -> None:
    if pool not in pools:
        raise EnrolmentRefused(
            "ticket-enrolment-only",
            "disks of this pool are not opened by the Clevis pin: POST /v1/enrol with the ticket",
        )
    if TPM not in terms.evidence:
        raise EnrolmentRefused("evidence-not-accepted", "the Clevis pin brings evidence of type tpm, not accepted here")
    if not terms.first_use:
        raise EnrolmentRefused(
            "first-use-not-allowed", "the Clevis pin proves nothing of its key, and join.trustOnFirstUse is off"
        )
