"""Machines that the Clevis pin enrols, over the cluster: a config for a ticket, a Machine for a key.

    config = await pins.config(ticket, host)              # nothing is written
    enrolled = await pins.register(sealed, registration)

`enrolment.clevis_pin` decides; taking a newcomer in is `Enrolments.take_in`, with the bounds, the count of the ticket and the
record of every enrolment.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from fastness.enrolment.clevis_pin import PinInvitation, invite, registered
from fastness.enrolment.enrolment import EnrolmentRefused, Invitation
from fastness.enrolment.live.enrolments import Enrolled, Enrolments, used_up
from fastness.enrolment.live.tickets import TicketCheck
from fastness.http.refusals import Refusal
from fastness.kinds.fastness_dev.cluster import NAME
from fastness.kinds.fastness_dev.trust_model import clevis_pools
from fastness.kinds.kind import JsonObject
from fastness.protocol.clevis import REGISTER, Registration, pin_config
from fastness.protocol.enrolment import TPM
from fastness.runtime.clock import Clock, Entropy

# A text that was sealed for the two messages of enrolment is no invitation, and the reverse.
PURPOSE: Final = "clevis"
MAX_SEALED: Final = 2048
# What a client calls this door goes into a URL for that same client.
_HOST: Final = re.compile(r"[A-Za-z0-9.:\[\]-]{1,255}\Z", re.ASCII)


class PinRegistrations:
    """Answers the Clevis pin of trusted-execution clusters."""

    def __init__(
        self, enrolments: Enrolments, clock: Clock, entropy: Entropy, authorities: Callable[[], str] = lambda: ""
    ) -> None:
        """`authorities` are the certificates (PEM) that doors of this cluster are known by."""
        self._enrolments = enrolments
        self._clock = clock
        self._entropy = entropy
        self._authorities = authorities

    async def config(self, ticket: TicketCheck, host: str) -> JsonObject:
        """What Ignition gets for a ticket; raises EnrolmentRefused, Refusal, RecordError."""
        invitation = Invitation(ticket.name, ticket.uid, ticket.pool)
        try:
            # There is no key yet that could tell a retry from a second machine.
            if ticket.problem is not None:
                raise used_up()
            invited = invite(
                invitation, self._pools(), self._enrolments.terms(ticket.pool), self._entropy.uid(), self._clock.now()
            )
        except EnrolmentRefused as refused:
            await self._enrolments.note_refusal(refused, invitation, f"ticket:{ticket.name}", TPM)
            raise
        urls = self._enrolments.urls()
        own = urls.enrolment or (f"https://{host}" if _HOST.match(host) else "")
        if not urls.broker or not own:
            raise Refusal(503, "cluster-unavailable", "this door was not told yet where the key broker is")
        sealed = self._enrolments.sealer.write(PURPOSE, invited.encode())
        return pin_config(invited.identity, urls.broker, f"{own}/{REGISTER}/{sealed}", self._authorities())

    def invited(self, sealed: str) -> PinInvitation:
        """The invitation in a registration URL; raises EnrolmentRefused."""
        payload = self._enrolments.sealer.read(PURPOSE, sealed) if len(sealed) <= MAX_SEALED else None
        if payload is None:
            raise EnrolmentRefused("enrolment-invalid", "this door did not write that URL: fetch the config again")
        return PinInvitation.decode(payload)

    async def register(self, invited: PinInvitation, registration: Registration) -> Enrolled:
        """The machine of a key that the pin registers; raises EnrolmentRefused, RecordError, ApiError."""
        terms, who = self._enrolments.terms(invited.pool), f"ticket:{invited.ticket}"
        try:
            newcomer = registered(invited, registration, self._pools(), terms, self._clock.now())
            who = newcomer.thumbprint
            self._enrolments.check_identity(newcomer)
            return await self._enrolments.take_in(newcomer)
        except EnrolmentRefused as refused:
            invitation = Invitation(invited.ticket, invited.ticket_uid, invited.pool)
            await self._enrolments.note_refusal(refused, invitation, who, TPM)
            raise

    def _pools(self) -> frozenset[str]:
        return clevis_pools(self._enrolments.sources.confidential.get("", NAME))
