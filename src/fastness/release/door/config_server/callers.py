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
from datetime import timedelta
from typing import Final

from fastness.enrolment.live.tickets import TicketCache, TicketCheck, TicketProblem, bearer
from fastness.http import Request
from fastness.http.refusals import Refusal
from fastness.keys.errors import TicketUnclear
from fastness.kinds.trusted_execution.subject import Basis, Grant, ProvenCaller, Subject
from fastness.protocol.kbs_path import pool_config
from fastness.release.door.config_server.app import TICKET_SUBJECT, Admit
from fastness.release.live.releases import grant_here
from fastness.release.live.settings import Settings
from fastness.runtime.clock import Clock

# A ticket was looked at for this request alone.
_LIFETIME: Final = timedelta(minutes=1)


def by_ticket(tickets: TicketCache, settings: Settings, clock: Clock) -> Admit:
    """Admission of machines that boot."""

    def admit(request: Request, pool: str) -> Grant | Awaitable[Grant]:
        text = bearer(request.header(b"authorization"))
        ticket = tickets.cached(text, pool)
        return look_up(text, pool) if ticket.problem is TicketProblem.UNKNOWN else grant(ticket, pool)

    async def look_up(text: str, pool: str) -> Grant:
        try:
            return grant(await tickets.look_up(text, pool), pool)
        except TicketUnclear as unclear:
            raise Refusal(503, unclear.code, unclear.message) from unclear

    def grant(ticket: TicketCheck, pool: str) -> Grant:
        if ticket.problem in (TicketProblem.UNKNOWN, TicketProblem.EXPIRED, TicketProblem.USED_UP):
            raise Refusal(401, "ticket-required", "show a join ticket that is good for this pool")
        if ticket.problem is TicketProblem.WRONG_POOL:
            raise Refusal(403, "wrong-pool", "this ticket is for another pool")
        now = clock.now()
        # The name of the ticket and never its text: this goes on the record.
        name = f"{TICKET_SUBJECT}{ticket.name}"
        subject = Subject("", name, name, ticket.pool)
        caller = ProvenCaller(subject, "", {}, now + _LIFETIME, Basis.TICKET)
        leave = grant_here(caller, pool_config(pool), settings.current.rules, now)
        if ticket.limited:
            # The config server sees no key of a machine, so it cannot tell a second use from a retry (decision 11).
            raise Refusal(403, "limited-ticket", "uses are counted by enrolment alone: show a ticket without a limit")
        return leave

    return admit
