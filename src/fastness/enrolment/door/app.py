"""`/v1/enrol` for machines that join.

Only POST creates, only after a ticket was found good: the ticket is looked at before a byte of the body is read. What a refusal
means to a machine is in one table; 4xx is final, 503 asks it to come back (spec of all doors).

The registration endpoints of trusted-execution-clusters take any key from anybody who can reach them. They are refused here, with
what to use instead, but for the Clevis pin of a pool that uses it: its config is for holders of a ticket, and has a URL in it at
which one key can be registered (`enrolment.clevis_pin`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from fastness.enrolment.clevis_pin import PinInvitation
from fastness.enrolment.door.pace import Pace
from fastness.enrolment.enrolment import EnrolmentRefused
from fastness.enrolment.live.door_events import EventSink, NullSink
from fastness.enrolment.live.enrolments import Enrolments
from fastness.enrolment.live.pin_registration import PinRegistrations
from fastness.enrolment.live.tickets import TicketCheck, bearer
from fastness.formats import json
from fastness.http import Answer, Request
from fastness.http.arrivals import network
from fastness.http.edge import UNREADABLE, Door, ErrorTable, application, healthy, nothing_but
from fastness.http.limits import Buckets, Limits, RateLimiter
from fastness.http.refusals import Refusal
from fastness.http.route import JSON_ONLY, READING, UNLIMITED, Auth, Body, Limit, Route, Routes
from fastness.keys.errors import RecordError, TicketUnclear, TrustError
from fastness.kube.errors import ApiError
from fastness.observe import logs, metrics
from fastness.protocol import clevis
from fastness.protocol.clevis import REGISTER
from fastness.protocol.enrolment import DOORS, MAX_BODY, parse_completion, parse_request
from fastness.runtime.clock import Clock, Entropy

# One address may be a rack: it may take all of what runs, while the buckets bound how often it comes.
LIMITS: Final = Limits(strangers_in_flight=64, reading=256)
BODY_SECONDS: Final = 20.0
# A stranger who guesses costs as much as ten machines.
WRONG_TICKET_COST: Final = 10.0
_log = logs.logger("enrol")


# What a machine is answered: 401 a credential that does not count, 403 a final no, 400 not understood, 503 come back.
STATUS: Final[Mapping[str, int]] = {
    "ticket-required": 401,
    "ticket-expired": 401,
    "ticket-used-up": 401,
    "enrolment-invalid": 401,
    "enrolment-expired": 401,
    "wrong-pool": 403,
    "ticket-enrolment-only": 403,
    "pool-not-attested": 403,
    "evidence-not-accepted": 403,
    "first-use-not-allowed": 403,
    "endorsement-refused": 403,
    "activation-failed": 403,
    "signature-invalid": 403,
    "identity-conflict": 403,
    "quarantined": 403,
    "revoked": 403,
    "distrusted": 403,
    "bad-key": 400,
    "bad-certificate": 400,
    "endorsement-missing": 400,
    "too-many-waiting": 503,
}


METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def _count(_route: str, code: int) -> None:
    metrics.ENROLMENTS.inc(str(code))


def _count_refusal(_route: str, refusal: Refusal) -> None:
    metrics.REFUSALS.inc("enrolment", refusal.code)


async def _nobody(_request: Request) -> None:
    """Let nobody in; raises Refusal."""
    raise Refusal(
        403, "ticket-enrolment-only",
        "keys are not taken on their own word here: POST /v1/enrol with a join ticket and activate the credential",
    )  # fmt: skip


def _unrecorded(error: RecordError, _route: str) -> Refusal:
    _log.error("enrol.unrecorded", error=error.message)
    return Refusal(503, error.code, "the record cannot be written now")


def _interrupted(error: Exception, _route: str) -> Refusal:
    _log.warning("enrol.interrupted", error=error)
    return Refusal(503, "cluster-unavailable", "the cluster cannot be asked now")


DOOR: Final = Door("enrol", _count, _count_refusal, BODY_SECONDS)
NOBODY: Final = Auth("nobody", _nobody)


class EnrolDoor:
    """Enrolment: `app` is its application."""

    def __init__(
        self,
        enrolments: Enrolments,
        clock: Clock,
        entropy: Entropy,
        *,
        pace: Pace = Pace(),  # noqa: B008  # frozen
        events: EventSink | None = None,
        demand: Callable[[], None] = lambda: None,
        authorities: Callable[[], str] = lambda: "",
    ) -> None:
        """`authorities` are the certificates (PEM) that doors of this cluster are known by."""
        self._demand = demand
        self._events = events or NullSink()
        self._enrolments = enrolments
        self._pins = PinRegistrations(enrolments, clock, entropy, authorities)
        self._clock = clock
        self._addresses = Buckets(pace.address)
        self._tickets = Buckets(pace.ticket)
        self._turnstile = RateLimiter(LIMITS, clock)
        self.app = application(DOOR, self._routes(), self._errors(), entropy)

    def _routes(self) -> Routes:
        turnstile = self._turnstile
        body = Body(MAX_BODY, JSON_ONLY, lambda request: turnstile.reading(request.address))
        limit: Limit[Any] = Limit(lambda request, _caller: turnstile.stranger(request.address), body)
        lane: Limit[Any] = Limit(limit.lane)
        key: Limit[Any] = Limit(limit.lane, replace(body, most=clevis.MAX_BODY))
        return (
            Route("health", READING, "/healthz", Auth("nothing", self._at_home), UNLIMITED, healthy),
            Route("begin", ("POST",), "/v1/enrol", Auth("ticket", self._ticket), limit, self._begin),
            # What must be shown is in the body, sealed by us; so its size is bounded and strangers have few lanes.
            Route("complete", ("POST",), "/v1/enrol/complete", Auth("enrolment", self._paced), limit, self._complete),
            # For machines that were off while a door moved: no more than user-data says to whoever runs the machine.
            Route("doors", READING, DOORS, Auth("nothing", self._paced), lane, self._tell_doors),
            # Where trusted-execution-clusters registers keys: answered with a reason, so that a machine of that image says what
            # is wrong.
            Route("register-ak", METHODS, f"/{REGISTER}", NOBODY, UNLIMITED, healthy),
            Route(
                "clevis-pin",
                ("GET",),
                "/ignition-clevis-pin-trustee",
                Auth("pin-ticket", self._pin_ticket),
                lane,
                self._pin,
            ),
            Route(
                "register-pin", ("PUT",), f"/{REGISTER}/<invitation>", Auth("invitation", self._invited), key, self._key
            ),
        )

    def _errors(self) -> ErrorTable:
        return {
            **nothing_but("there are POST /v1/enrol, POST /v1/enrol/complete and GET /v1/doors"), **UNREADABLE,
            EnrolmentRefused: self._refused, RecordError: _unrecorded, ApiError: _interrupted, TrustError: _interrupted,
        }  # fmt: skip

    async def _at_home(self, _request: Request) -> None:
        """Let everybody in while the namespace of ours is there; raises Refusal."""
        self._demand()

    async def _paced(self, request: Request) -> None:
        """Let everybody in who does not come too often: what is shown is in the body, and the protocol judges it."""
        self._demand()
        # By network and not by address: with IPv6 a single host has more addresses than any table can hold.
        self._pace(self._addresses, network(request.address))

    async def _ticket(self, request: Request) -> TicketCheck:
        """The ticket that a machine shows, looked at before a byte of the body is read; raises Refusal."""
        await self._paced(request)
        try:
            ticket = await self._enrolments.admit(bearer(request.header(b"authorization")))
        except EnrolmentRefused:
            # Charged after the look, so that a rack behind one address is not slowed down for being many.
            self._addresses.charge(network(request.address), self._clock.monotonic(), WRONG_TICKET_COST)
            raise
        except TicketUnclear as unclear:
            # Not 401: a machine takes every 4xx for final, and this door only could not ask.
            raise Refusal(503, unclear.code, unclear.message) from unclear
        # By ticket as well as by address: a leaked one comes from everywhere.
        self._pace(self._tickets, ticket.uid)
        return ticket

    async def _pin_ticket(self, request: Request) -> TicketCheck:
        """The ticket that Ignition shows for the config of a pin; raises Refusal. Without one it hears what others hear."""
        if not request.header(b"authorization"):
            await self._paced(request)
            await _nobody(request)
        return await self._ticket(request)

    async def _invited(self, request: Request) -> PinInvitation:
        """The invitation in the URL, looked at before a byte of the body is read; raises Refusal."""
        await self._paced(request)
        invited = self._pins.invited(request.values[0])
        self._pace(self._tickets, invited.ticket_uid)
        return invited

    async def _pin(self, request: Request, ticket: TicketCheck) -> Answer:
        return Answer(200, json.encode(await self._pins.config(ticket, request.header(b"host"))))

    async def _key(self, request: Request, invited: PinInvitation) -> Answer:
        enrolled = await self._pins.register(invited, clevis.parse_registration(request.content))
        self._events.admitted(enrolled.machine)
        return Answer(201 if enrolled.created else 200, json.encode({"status": "success"}))

    async def _begin(self, request: Request, ticket: TicketCheck) -> Answer:
        message = parse_request(request.content)
        return Answer(200, json.encode(await self._enrolments.begin(ticket, message)))

    async def _complete(self, request: Request, _caller: None) -> Answer:
        enrolled = await self._enrolments.complete(parse_completion(request.content))
        self._events.admitted(enrolled.machine)
        answer = {**enrolled.answer(), **self._enrolments.doors()}
        return Answer(201 if enrolled.created else 200, json.encode(answer))

    async def _tell_doors(self, _request: Request, _caller: None) -> Answer:
        return Answer(200, json.encode(self._enrolments.doors()))

    def _refused(self, refused: EnrolmentRefused, _route: str) -> Refusal:
        """What the protocol refused, with its place in the table, told of its ticket or of nobody in particular."""
        refusal = Refusal(STATUS[refused.code], refused.code, refused.detail)
        if refused.ticket[0]:
            self._events.ticket_refused(*refused.ticket, refusal)
        else:
            self._events.stranger_refused(refusal)
        return refusal

    def _pace(self, buckets: Buckets, key: str) -> None:
        wait = buckets.take(key, self._clock.monotonic())
        if wait:
            # 503 and not 429, which is a 4xx and final to machines that boot.
            raise Refusal(503, "slow-down", "too many requests: wait and try again", retry=math.ceil(wait))
