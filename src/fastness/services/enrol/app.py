"""`/v1/enrol` for machines that join.

Only POST creates, only after a ticket was found good: the ticket is looked at before a byte of the body is read. What a refusal
means to a machine is in one table; 4xx is final, 503 asks it to come back (spec of all doors).

The registration endpoints of trusted-execution-clusters are answered, and refused: they take any key from anybody who can reach
them. The answer says what to use instead.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.errors import ApiError, BadRequest, TooLarge, UnsupportedMedia
from fastness.domain.attestation.enrolment import EnrolmentRefused
from fastness.formats import json, urlpath
from fastness.formats.enrolment import MAX_BODY, parse_completion, parse_request
from fastness.formats.errors import FormatError
from fastness.observe import context, logs, metrics
from fastness.services.doorevents import Silent, Telling
from fastness.services.http import Answer, Request, send_answer
from fastness.services.http.arrivals import network
from fastness.services.http.request import ClientGone, SlowBody
from fastness.services.limits import Buckets, Limits, Rate, Turnstile
from fastness.services.refusals import Refusal
from fastness.trust.enrolment import Enrolments
from fastness.trust.errors import RecordError, TicketUnclear, TrustError
from fastness.trust.tickets import bearer

# One address may be a rack: it may take all of what runs, while the buckets bound how often it comes.
LIMITS: Final = Limits(strangers_in_flight=64, reading=256)
BODY_SECONDS: Final = 20.0
USUAL_RATE: Final = 10.0
BURST_SECONDS: Final = 20.0
PER_ADDRESS: Final = Rate(USUAL_RATE * BURST_SECONDS, USUAL_RATE)
PER_TICKET: Final = Rate(2 * USUAL_RATE * BURST_SECONDS, 2 * USUAL_RATE)
# A stranger who guesses costs as much as ten machines.
WRONG_TICKET_COST: Final = 10.0
_log = logs.logger("enrol")


class Auth(StrEnum):
    """What a caller must show."""

    OPEN = "open"
    TICKET = "ticket"
    ENROLMENT = "enrolment"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Route:
    """One way in."""

    path: str
    methods: tuple[str, ...]
    auth: Auth


ROUTES: Final = (
    Route("/healthz", ("GET", "HEAD"), Auth.OPEN),
    Route("/v1/enrol", ("POST",), Auth.TICKET),
    Route("/v1/enrol/complete", ("POST",), Auth.ENROLMENT),
    Route("/register-ak", ("PUT",), Auth.NOBODY),
    Route("/ignition-clevis-pin-trustee", ("GET",), Auth.NOBODY),
)

# What a machine is answered: 401 a credential that does not count, 403 a final no, 400 not understood, 503 come back.
STATUS: Final[Mapping[str, int]] = {
    "ticket-required": 401,
    "ticket-expired": 401,
    "ticket-used-up": 401,
    "enrolment-invalid": 401,
    "enrolment-expired": 401,
    "wrong-pool": 403,
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


@dataclass(frozen=True, slots=True)
class Pace:
    """How many requests may come from one address, and with one ticket. A machine needs two."""

    address: Rate = PER_ADDRESS
    ticket: Rate = PER_TICKET

    @classmethod
    def of(cls, per_second: float) -> Pace:
        """So many a second for long from an address, with a ticket twice as many; a rack that boots may come at once."""
        ticket = 2 * per_second
        return cls(Rate(per_second * BURST_SECONDS, per_second), Rate(ticket * BURST_SECONDS, ticket))


class EnrolDoor:
    """Enrolment as an application."""

    def __init__(
        self,
        enrolments: Enrolments,
        clock: Clock,
        entropy: Entropy,
        *,
        pace: Pace = Pace(),  # noqa: B008  # frozen
        telling: Telling | None = None,
        demand: Callable[[], None] = lambda: None,
    ) -> None:
        self._demand = demand
        self._telling = telling or Silent()
        self._enrolments = enrolments
        self._clock = clock
        self._entropy = entropy
        self._addresses = Buckets(pace.address)
        self._tickets = Buckets(pace.ticket)
        self._turnstile = Turnstile(LIMITS, clock)
        self._handlers: Mapping[str, Callable[[Request], Awaitable[Answer]]] = {
            "/v1/enrol": self._begin,
            "/v1/enrol/complete": self._complete,
        }

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive, BODY_SECONDS)
        correlation = context.begin(self._entropy.uid())
        try:
            answer = await self._guarded(request)
        except ClientGone:
            return
        metrics.ENROLMENTS.inc(str(answer.code))
        await send_answer(answer, send, ((b"audit-id", correlation.encode()),), head=request.method == "HEAD")

    async def _guarded(self, request: Request) -> Answer:
        """The answer, whatever happens."""
        try:
            return await self._answer(request)
        except Refusal as refusal:
            metrics.REFUSALS.inc("enrolment", refusal.code)
            return refusal.answer()
        except ClientGone:
            raise
        except Exception:  # noqa: BLE001  # the HTTP edge: nothing may escape without an answer and a log line
            _log.exception("request.failed", method=request.method)
            metrics.DEFECTS.inc("enrol")
            return Refusal(500, "internal", f"an internal error, see the log under {context.current()}").answer()

    async def _answer(self, request: Request) -> Answer:
        segments = urlpath.split(request.path)
        path = "/" + "/".join(segments) if segments else ""
        route = next((route for route in ROUTES if route.path == path), None)
        if route is None:
            raise Refusal(404, "not-found", "there are POST /v1/enrol and POST /v1/enrol/complete")
        if route.auth is Auth.NOBODY:
            raise Refusal(
                403, "ticket-enrolment-only",
                "keys are not taken on their own word here: POST /v1/enrol with a join ticket and activate the credential",
            )  # fmt: skip
        if request.method not in route.methods:
            raise Refusal(405, "method-not-allowed", f"only {' and '.join(route.methods)}")
        self._demand()
        if route.auth is Auth.OPEN:
            return Answer(200, b"")
        self._pace(self._addresses, _address(request))
        return await self._told(request, self._handlers[route.path])

    async def _told(self, request: Request, handler: Callable[[Request], Awaitable[Answer]]) -> Answer:
        """Run a handler and give what it raises its place in the table."""
        try:
            return await handler(request)
        except EnrolmentRefused as refused:
            refusal = Refusal(STATUS[refused.code], refused.code, refused.detail)
            if refused.ticket[0]:
                self._telling.ticket_refused(*refused.ticket, refusal)
            else:
                self._telling.stranger_refused(refusal)
            raise refusal from refused
        except FormatError as error:
            raise Refusal(400, error.code, str(error)) from error
        except (TooLarge, UnsupportedMedia, BadRequest, SlowBody) as error:
            raise Refusal(error.code, error.reason, error.message) from error
        except RecordError as error:
            _log.error("enrol.unrecorded", error=error.message)
            raise Refusal(503, error.code, "the record cannot be written now") from error
        except (ApiError, TrustError) as error:
            _log.warning("enrol.interrupted", error=error)
            raise Refusal(503, "cluster-unavailable", "the cluster cannot be asked now") from error

    async def _begin(self, request: Request) -> Answer:
        address = _address(request)
        try:
            ticket = await self._enrolments.admit(bearer(request.header(b"authorization")))
        except EnrolmentRefused:
            self._addresses.charge(address, self._clock.monotonic(), WRONG_TICKET_COST)
            raise
        except TicketUnclear as unclear:
            raise Refusal(503, unclear.code, unclear.message) from unclear
        self._pace(self._tickets, ticket.uid)
        message = parse_request(await self._json(request))
        with self._turnstile.stranger(address):
            return Answer(200, json.encode(await self._enrolments.begin(ticket, message)))

    async def _complete(self, request: Request) -> Answer:
        completion = parse_completion(await self._json(request))
        with self._turnstile.stranger(_address(request)):
            enrolled = await self._enrolments.complete(completion)
        self._telling.admitted(enrolled.machine)
        answer = {**enrolled.answer(), **self._enrolments.doors()}
        return Answer(201 if enrolled.created else 200, json.encode(answer))

    async def _json(self, request: Request) -> bytes:
        kind = request.header(b"content-type").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise Refusal(415, "unsupported-media-type", "send application/json")
        if request.complete:
            return await request.body(MAX_BODY)
        with self._turnstile.reading(_address(request)):
            return await request.body(MAX_BODY)

    def _pace(self, buckets: Buckets, key: str) -> None:
        wait = buckets.take(key, self._clock.monotonic())
        if wait:
            raise Refusal(503, "slow-down", "too many requests: wait and try again", retry=math.ceil(wait))


def _address(request: Request) -> str:
    client = request.scope.get("client")
    return network(str(client[0])) if client else ""
