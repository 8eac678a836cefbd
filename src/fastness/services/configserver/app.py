"""`/config/<pool>` for machines that boot.

Answers follow the table that all doors share: 401 without a good ticket, 403 for a final refusal (a ticket of another pool,
a confidential pool), 404 for an unknown pool after authorization, 503 with Retry-After while there is nothing rendered, 400
for what cannot be understood. Ignition retries 5xx for ever and gives up at the first 4xx, so a state that will pass is
never a 4xx. Errors carry a small JSON body with a code; HEAD never has a body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fastness.cluster.clock import Clock
from fastness.cluster.informers import Informer
from fastness.domain.machineconfig.serving import CannotServe, UnsupportedAccept, negotiate
from fastness.domain.trustmodel import TrustModel, trust_model
from fastness.formats import urlpath
from fastness.observe import metrics
from fastness.services.configserver.replies import NoConfig, Replies
from fastness.services.http import Answer, Request, send_answer
from fastness.services.refusals import Refusal
from fastness.trust.tickets import TicketProblem, bearer, check


class Auth(StrEnum):
    """What a caller must show."""

    OPEN = "open"
    TICKET = "ticket"


@dataclass(frozen=True, slots=True)
class Route:
    """One way in."""

    pattern: str
    methods: tuple[str, ...]
    auth: Auth


ROUTES = (
    Route("/healthz", ("GET", "HEAD"), Auth.OPEN),
    Route("/config/<pool>", ("GET", "HEAD"), Auth.TICKET),
)


class ConfigServer:
    """The config server as an application."""

    def __init__(self, replies: Replies, tickets: Informer, confidential: Informer, clock: Clock) -> None:
        self._replies = replies
        self._tickets = tickets
        self._confidential = confidential
        self._clock = clock

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            answer = self._answer(request)
        except Refusal as refusal:
            answer = refusal.answer()
        metrics.CONFIG_SERVED.inc(str(answer.code))
        await send_answer(answer, send, head=request.method == "HEAD")

    def _answer(self, request: Request) -> Answer:
        segments = urlpath.split(request.path)
        if request.method not in ("GET", "HEAD"):
            raise Refusal(405, "method-not-allowed", "only GET and HEAD")
        if segments == ["healthz"]:
            return Answer(200, b"")
        if segments is None or len(segments) != 2 or segments[0] != "config":
            raise Refusal(404, "not-found", "there is /config/<pool>")
        return self._config(request, segments[1])

    def _config(self, request: Request, pool: str) -> Answer:
        self._admit(request, pool)
        try:
            version = negotiate(request.header(b"accept"))
            reply = self._replies.of(pool, version)
        except UnsupportedAccept as error:
            raise Refusal(400, error.code, error.message) from error
        except NoConfig as error:
            if error.known:
                raise Refusal(503, "not-rendered", "the pool has no rendered config yet") from error
            raise Refusal(404, "unknown-pool", "there is no such pool") from error
        except CannotServe as error:
            raise Refusal(400, error.code, error.message) from error
        headers = ((b"etag", reply.etag), (b"vary", b"Accept"))
        if request.header(b"if-none-match").encode() == reply.etag:
            return Answer(304, b"", headers=headers)
        return Answer(200, reply.body, headers=headers)

    def _admit(self, request: Request, pool: str) -> None:
        """Let the caller in or not; raises Refusal. What a pool is, nobody learns without a ticket."""
        shown = bearer(request.header(b"authorization"))
        found = check(shown, pool, self._tickets.list(), self._clock.now())
        if found.problem in (TicketProblem.UNKNOWN, TicketProblem.EXPIRED, TicketProblem.USED_UP):
            raise Refusal(401, "ticket-required", "show a join ticket that is good for this pool")
        if found.problem is TicketProblem.WRONG_POOL:
            raise Refusal(403, "wrong-pool", "this ticket is for another pool")
        if trust_model(self._confidential.get("", "cluster"), pool) is TrustModel.CONFIDENTIAL_CLUSTER:
            raise Refusal(403, "attestation-required", "machines of this pool come through the gate, attested")
