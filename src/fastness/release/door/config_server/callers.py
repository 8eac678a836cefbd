"""Who may have the config of which pool on the ticket port; gate and broker come to the internal one (`internal.py`).

| shows                              | ordinary pool | confidential pool                    |
| ---------------------------------- | ------------- | ------------------------------------ |
| a join ticket of the pool          | served        | 403: machines come through the gate  |
| one with a limited number of uses  | 403: ADR 11   | 403                                  |

On day two a ticket opens nothing: nodes show their certificates (`release.live.day_two_nodes`). What a pool is, nobody
learns without a credential.
"""

from __future__ import annotations

from collections.abc import Awaitable

from fastness.enrolment.live.ticket_cache import TicketCache
from fastness.enrolment.live.tickets import TicketCheck, TicketProblem, bearer
from fastness.http import Request
from fastness.http.refusals import Refusal
from fastness.keys.errors import TicketUnclear
from fastness.kinds.fastness_dev.trust_model import TrustModel, trust_model
from fastness.kube.informers import Informer
from fastness.release.door.config_server.app import Admit


def by_ticket(book: TicketCache, confidential: Informer) -> Admit:
    """Admission of machines that boot."""

    def admit(request: Request, pool: str) -> Awaitable[None] | None:
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
