"""A request from the door to the answer.

Every way in is a row of the table below (`http.route`), with what a caller must show; the edge does the rest.

* Bodies are bounded by route; JSON is said to be JSON, or nothing is said.
* Whatever goes wrong becomes one of the answers of the table that all doors share. What the cluster or the record cannot do now
  is 503; an unexpected exception is 500 with a correlation id, and the story is in the log, without the request's content.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from fastness.crypto.errors import CryptoError
from fastness.crypto.x509 import Certificate
from fastness.enrolment.live.door_events import EventSink, NullSink
from fastness.enrolment.live.tickets import bearer
from fastness.formats import json
from fastness.formats.errors import FormatError
from fastness.http import Answer, Request
from fastness.http.edge import Door, ErrorTable, Outage, application, healthy, of_format
from fastness.http.freshness import Touch
from fastness.http.limits import OVERLOAD, RateLimiter
from fastness.http.refusals import Refusal
from fastness.http.route import OPEN, READING, Auth, Body, Limit, NoRoute, Route, Routes
from fastness.keys.errors import BadToken, RecordError
from fastness.kinds.trusted_execution.subject import ProvenCaller
from fastness.kube.errors import ApiError
from fastness.observe import logs, metrics
from fastness.protocol.door import DoorRole
from fastness.protocol.kbs import MAX_ATTEST_BYTES, MAX_AUTH_BYTES
from fastness.release.door.broker import introspect
from fastness.release.door.broker.admin import Administration
from fastness.release.door.broker.kbs import Steps
from fastness.release.live.admins import Admin, Admins
from fastness.release.live.callers import Callers, NeedsNonce
from fastness.release.live.releases import demand
from fastness.release.live.tokens import TokenIssuer
from fastness.runtime.clock import Clock, Entropy

BODY_SECONDS: Final = 20.0
KBS: Final = ("kbs", "v0")
RESOURCE: Final = "/kbs/v0/resource/<repository>/<type>/<tag>"
GET: Final = ("GET",)
POST: Final = ("POST",)
JSON_TYPES: Final = ("", "application/json")
_log = logs.logger("broker")


def _note(route: str, refusal: Refusal) -> None:
    metrics.REFUSALS.inc("broker", refusal.code)
    if refusal.code != OVERLOAD:  # which is counted, and must cost less than what it keeps away
        _log.info("broker.refused", route=route, status=refusal.status, code=refusal.code, verdict=refusal.verdict)


def _no_route(error: NoRoute, _route: str) -> Refusal:
    if not error.readable:
        return Refusal(400, "bad-path", "the path cannot be read")
    return Refusal(404, "not-found", "there is nothing here")


def _of_api(error: ApiError, _route: str) -> Refusal:
    """What the cluster, or the reading of a body, refused, as the caller may know it."""
    # What is wrong with the request is told; what the cluster said about us is not a stranger's business.
    if error.code in (400, 408, 413, 415):
        return Refusal(error.code, error.reason, error.message)
    _log.warning("broker.unavailable", code=error.reason, error=error, hint=error.hint)
    return Refusal(503, "unavailable", "the cluster cannot be asked now")


def _unrecorded(error: RecordError, route: str) -> Refusal:
    _log.error("broker.unavailable", route=route, code=error.code, error=error, hint=error.hint)
    return Outage(503, error.code, "the record cannot be written now")


def _unopened(error: CryptoError, route: str) -> Refusal:
    # Something that we keep ourselves does not open: an operator must look, and a machine may come back.
    _log.error("broker.unavailable", route=route, code=error.code, error=error, hint=error.hint)
    return Outage(503, "unavailable", "the resource cannot be opened now")


DOOR: Final = Door("broker", metrics.BROKER_ANSWERS.inc, _note, BODY_SECONDS)
ERRORS: Final[ErrorTable] = {
    NoRoute: _no_route, FormatError: of_format, ApiError: _of_api, RecordError: _unrecorded, CryptoError: _unopened,
}  # fmt: skip


class Broker:
    """The broker: `app` is its application."""

    def __init__(
        self,
        steps: Steps,
        administration: Administration,
        limiter: RateLimiter,
        clock: Clock,
        entropy: Entropy,
        *,
        tokens: TokenIssuer,
        callers: Callers,
        admins: Admins,
        parts: Callable[[], Sequence[Certificate]],
        touch: Touch,
        events: EventSink | None = None,
    ) -> None:
        """`parts` are the authorities by which our own parts are known."""
        self._steps = steps
        self._limiter = limiter
        self._clock = clock
        self._tokens = tokens
        self._callers = callers
        self._admins = admins
        self._internal = parts
        self._touch = touch
        self._events = events or NullSink()
        routes = (*self._machines(), *self._administrators(administration), self._parts())
        self.app = application(DOOR, routes, ERRORS, entropy)

    def _machines(self) -> Routes:
        """The ways of machines and of whoever asks who we are."""
        challenge: Auth[str] = Auth("the cookie of a challenge, and evidence that answers it", self._challenged)
        session = Auth("the cookie of a session, or a token with a proof of possession", self._recognised)
        by_machine: Limit[ProvenCaller] = Limit(
            lambda _request, caller: self._limiter.proven(caller.subject.thumbprint)
        )
        stranger, short, long = self._stranger(), self._stranger(MAX_AUTH_BYTES), self._stranger(MAX_ATTEST_BYTES)
        return (
            Route("health", READING, "/healthz", OPEN, stranger, healthy),
            Route("jwks", READING, "/.well-known/jwks.json", OPEN, stranger, self._jwks),
            Route("auth", POST, "/kbs/v0/auth", OPEN, short, self._auth),
            # The largest body of all is read only for who holds a challenge of ours, and strangers have a budget for bytes (the
            # order of pitfall 7).
            Route("attest", POST, "/kbs/v0/attest", challenge, long, self._attest),
            Route("resource", GET, RESOURCE, session, by_machine, self._resource),
        )

    def _administrators(self, administration: Administration) -> Routes:
        """The ways of administrators, each with a credential whose scopes allow this very call."""
        auth, do = Auth("a credential of an administrator", self._admin), administration
        ours: Limit[Admin] = Limit(lambda _request, _admin: self._limiter.ours())
        rows = (
            ("write-resource", POST, RESOURCE, do.write_resource),
            ("delete-resource", ("DELETE",), RESOURCE, do.delete_resource),
            ("list-resources", GET, "/kbs/v0/resource", do.list_resources),
            ("write-policy", POST, "/kbs/v0/attestation-policy", do.write_policy),
            ("list-policies", GET, "/kbs/v0/attestation-policy", do.list_policies),
            ("write-resource-policy", POST, "/kbs/v0/resource-policy", do.write_resource_policy),
            ("list-resource-policies", GET, "/kbs/v0/resource-policy", do.list_resource_policies),
            ("write-value", POST, "/kbs/v0/reference-value", do.write_value),
            ("read-value", GET, "/kbs/v0/reference-value/<**>", do.read_value),
        )
        return tuple(Route(name, methods, path, auth, ours, handler) for name, methods, path, handler in rows)

    def _parts(self) -> Route[DoorRole]:
        """The way of our own parts, which show a client certificate of the internal authority."""
        ours: Limit[DoorRole] = Limit(lambda _request, _role: self._limiter.ours())
        auth = Auth("a client certificate of the internal authority", self._part)
        return Route("introspect", POST, "/attestation/v1/introspect", auth, ours, self._introspect)

    def _stranger(self, most: int = 0) -> Limit[Any]:
        """The lane of somebody who proved nothing, for a body of at most so many bytes."""
        body = Body(most, JSON_TYPES, lambda request: self._limiter.reading(request.address)) if most else None
        return Limit(lambda request, _caller: self._limiter.stranger(request.address), body)

    async def _auth(self, request: Request, _caller: None) -> Answer:
        return await self._steps.auth(request.content)

    async def _challenged(self, request: Request) -> str:
        return self._steps.challenged(request)

    async def _attest(self, request: Request, cookie: str) -> Answer:
        return await self._steps.attest(cookie, request.content)

    async def _resource(self, request: Request, caller: ProvenCaller) -> Answer:
        return await self._steps.resource(caller, request.values, request.query)

    async def _part(self, request: Request) -> DoorRole:
        return introspect.internal_caller(request, self._internal, self._clock.now())

    async def _introspect(self, request: Request, _part: DoorRole) -> Answer:
        body = await request.body(introspect.MAX_BODY)
        # "Active" from caches that are out of touch would be a statement about some time ago.
        demand(self._touch)
        return introspect.introspect(request, body, self._tokens, self._callers.revocations)

    async def _jwks(self, _request: Request, _caller: None) -> Answer:
        return Answer(200, json.encode(self._tokens.jwks()), headers=((b"x-content-type-options", b"nosniff"),))

    async def _recognised(self, request: Request) -> ProvenCaller:
        """Who asks for a resource; raises Refusal, which is told unless it only asks for a nonce."""
        try:
            return self._caller(request)
        # The first request of every client, by protocol; told as a refusal it would hide the real ones.
        except NeedsNonce:
            raise
        except Refusal as refusal:
            self._events.stranger_refused(refusal)
            raise

    def _caller(self, request: Request) -> ProvenCaller:
        """Who asks for a resource: by cookie, or by token and proof; raises Refusal."""
        try:
            caller = self._steps.session(request)
        except Refusal as refusal:
            raise self._callers.unknown(request, refusal) from refusal
        if caller is None:
            return self._bearer(request)
        request.recognised()
        return caller

    def _bearer(self, request: Request) -> ProvenCaller:
        scheme, _, token = request.header(b"authorization").partition(" ")
        token = token.strip()
        if scheme.lower() not in ("bearer", "dpop") or not token:
            raise self._callers.unknown(request, Refusal(401, "no-session", "attest first"))
        return self._callers.proved(request, token).caller

    async def _admin(self, request: Request) -> Admin:
        """The administrator who may make this call; raises Refusal."""
        token = bearer(request.header(b"authorization"))
        if not token:
            raise Refusal(401, "credential-required", "show a credential of an administrator")
        try:
            admin = self._admins.recognise(token)
        except BadToken as error:
            raise Refusal(401, error.code, error.message) from error
        # With the method, and on the segments that the route was chosen by: a rule that matched the raw path could be walked
        # around (pitfall 17).
        if not admin.may(request.method, request.segments[len(KBS) :]):
            raise Refusal(403, "out-of-scope", "the scopes of this credential do not cover the call")
        return admin
