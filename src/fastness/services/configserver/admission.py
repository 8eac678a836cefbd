"""Who may have the config of which pool.

| port     | shows                              | ordinary pool | confidential pool                    |
| -------- | ---------------------------------- | ------------- | ------------------------------------ |
| ticket   | a join ticket of the pool          | served        | 403: machines come through the gate  |
|          | one with a limited number of uses  | 403: ADR 11   | 403                                  |
| internal | certificate of the gate or broker  | served        | served, once `authorize` agrees too  |

What a pool is, nobody learns without a credential. On the internal port TLS has refused everybody without a certificate of the
internal authority before a request is read; the certificate is verified here once more, against the authorities that are trusted
at this moment, because a context of OpenSSL cannot forget one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastness.cluster.clock import Clock
from fastness.cluster.informers import Informer
from fastness.crypto.errors import CryptoError
from fastness.crypto.x509 import Certificate
from fastness.domain.attestation.ear import standing
from fastness.domain.trustmodel import Mode, TrustModel, mode_of, trust_model
from fastness.services.assignments import Assignments
from fastness.services.configserver.app import Admit, rendered_in
from fastness.services.http import Request
from fastness.services.refusals import Refusal
from fastness.trust.errors import BadToken, NoTokenKeys, TicketUnclear
from fastness.trust.internal import InternalAuthority, Role
from fastness.trust.ticketbook import TicketBook
from fastness.trust.tickets import TicketCheck, TicketProblem, bearer
from fastness.trust.tokens import GATE, Revocations, TokenVerifier

Authorize = Callable[[Request, str, Role], Awaitable[None] | None]
"""A further check of a request of gate or broker for a pool; raises Refusal."""


def by_ticket(book: TicketBook, confidential: Informer) -> Admit:
    """Admission of the ticket port."""

    def admit(request: Request, pool: str) -> Awaitable[None] | None:
        if rendered_in(request):
            raise Refusal(
                403, "wrong-credential", "a ticket is for machines that boot: rendered configs are not given for it"
            )
        shown = bearer(request.header(b"authorization"))
        found = book.known(shown, pool)
        if found.problem is TicketProblem.UNKNOWN:
            return ask(shown, pool)
        judge(found, pool)
        return None

    async def ask(shown: str, pool: str) -> None:
        try:
            judge(await book.asked(shown, pool), pool)
        except TicketUnclear as unclear:
            raise Refusal(503, unclear.code, unclear.message) from unclear

    def judge(found: TicketCheck, pool: str) -> None:
        if found.problem in (TicketProblem.UNKNOWN, TicketProblem.EXPIRED, TicketProblem.USED_UP):
            raise Refusal(401, "ticket-required", "show a join ticket that is good for this pool")
        if found.problem is TicketProblem.WRONG_POOL:
            raise Refusal(403, "wrong-pool", "this ticket is for another pool")
        if trust_model(confidential.get("", "cluster"), pool) is TrustModel.CONFIDENTIAL_CLUSTER:
            raise Refusal(403, "attestation-required", "machines of this pool come through the gate, attested")
        if found.limited:
            raise Refusal(403, "limited-ticket", "uses are counted by enrolment alone: show a ticket without a limit")

    return admit


def by_certificate(authority: Callable[[], InternalAuthority], clock: Clock, authorize: Authorize | None) -> Admit:
    """Admission of the internal port; `authorize` comes after the certificate."""

    def admit(request: Request, pool: str) -> Awaitable[None] | None:
        if request.peer is None:
            raise Refusal(401, "certificate-required", "show the certificate of the gate or the broker")
        try:
            role = authority().role_of(Certificate.from_der(request.peer), clock.now())
        except CryptoError as error:
            raise Refusal(401, "bad-certificate", error.message) from error
        if role is None:
            raise Refusal(403, "wrong-role", "only the gate and the broker ask here")
        return authorize(request, pool, role) if authorize is not None else None

    return admit


def by_token(
    tokens: TokenVerifier, revocations: Revocations, confidential: Informer, assignments: Assignments
) -> Authorize:
    """What the gate forwards is verified once more: a token of ours, for this pool, of a machine that is still trusted.

    The broker keeps configurations for machines that come later, so it asks without a token. So does the gate for machines
    that showed it a ticket, in a cluster that only watches. A rendered config by name goes to the machine that it is meant for.
    """

    def authorize(request: Request, pool: str, role: Role) -> Awaitable[None] | None:
        scheme, _, token = request.header(b"authorization").partition(" ")
        rendered = rendered_in(request)
        watching = role is Role.GATE and mode_of(confidential.get("", "cluster")) is Mode.AUDIT and not rendered
        if not scheme and (role is Role.BROKER or watching):
            return None
        if scheme.lower() != "dpop":
            raise Refusal(401, "token-required", "forward the token of the machine")
        try:
            claims = tokens.verify(token.strip(), GATE)
        except NoTokenKeys as error:
            raise Refusal(503, error.code, error.message) from error
        except BadToken as error:
            raise Refusal(401, error.code, error.message) from error
        found = standing(claims)
        if found is None or found.subject.pool != pool:
            raise Refusal(403, "wrong-pool", "the machine of this token belongs to another pool")
        if revocations.revoked(claims):
            raise Refusal(403, "revoked", "this machine is no longer trusted")
        return assignments.check(found.subject, rendered, found.verdict) if rendered else None

    return authorize
