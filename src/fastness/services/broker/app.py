"""A request from the door to the answer.

    limits → route → what the route demands (`Auth`) → handler → answer

* The guard of a route runs before its handler, and the handler gets what the guard found.
* Bodies are bounded by route; JSON is said to be JSON, or nothing is said.
* Whatever goes wrong becomes one of the answers of the table that all doors share. What the cluster or the record cannot do now
  is 503; an unexpected exception is 500 with a correlation id, and the story is in the log, without the request's content.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.errors import ApiError
from fastness.crypto.errors import CryptoError
from fastness.crypto.x509 import Certificate
from fastness.domain.attestation.grant import Standing
from fastness.formats import json, urlpath
from fastness.formats.errors import FormatError
from fastness.formats.kbs import MAX_ATTEST_BYTES, MAX_AUTH_BYTES
from fastness.observe import context, logs, metrics
from fastness.services.broker import introspect
from fastness.services.broker.admin import Administration
from fastness.services.broker.kbs import Behind, Steps
from fastness.services.broker.routes import KBS, Auth, Route, find
from fastness.services.callers import Callers, NeedsNonce, address_of
from fastness.services.doorevents import Silent, Telling
from fastness.services.http import Answer, Request, send_answer
from fastness.services.http.request import ClientGone
from fastness.services.limits import OVERLOAD, Turnstile
from fastness.services.refusals import Refusal
from fastness.services.releases import demand
from fastness.trust.admins import Admin, Admins
from fastness.trust.errors import BadToken, RecordError
from fastness.trust.tickets import bearer
from fastness.trust.tokens import BROKER

BODY_SECONDS: Final = 20.0
JSON_TYPES: Final = ("", "application/json")
_log = logs.logger("broker")


@dataclass(frozen=True, slots=True)
class Ours:
    """What the broker needs to know its callers."""

    admins: Admins
    internal: Callable[[], Sequence[Certificate]]


class Broker:
    """The broker as an application."""

    def __init__(
        self,
        steps: Steps,
        behind: Behind,
        administration: Administration,
        ours: Ours,
        turnstile: Turnstile,
        clock: Clock,
        entropy: Entropy,
        telling: Telling | None = None,
    ) -> None:
        self._steps = steps
        self._telling = telling or Silent()
        self._behind = behind
        self._administration = administration
        self._ours = ours
        self._turnstile = turnstile
        self._callers = Callers(BROKER, behind.tokens, behind.macs, behind.revocations, turnstile, clock, entropy)
        self._clock = clock
        self._entropy = entropy

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive, BODY_SECONDS)
        correlation = context.begin(self._entropy.uid())
        try:
            name, answer = await self._guarded(request)
        except ClientGone:
            return
        metrics.BROKER_ANSWERS.inc(name, answer.code)
        await send_answer(answer, send, ((b"audit-id", correlation.encode()),), head=request.method == "HEAD")

    async def _guarded(self, request: Request) -> tuple[str, Answer]:
        """The name of the route and the answer, whatever happens."""
        name = "none"
        try:
            segments = urlpath.split(request.path)
            route = self._route(request, segments)
            name = route.name
            return name, await self._handled(route, request, tuple(segments or ()))
        except Refusal as refusal:
            return name, self._told(name, refusal)
        except FormatError as error:
            return name, self._told(name, Refusal(400, error.code, str(error)))
        except ApiError as error:
            return name, self._told(name, _of_api(error))
        except RecordError as error:
            _log.error("broker.unavailable", route=name, code=error.code, error=error, hint=error.hint)
            return name, Refusal(503, error.code, "the record cannot be written now").answer()
        except CryptoError as error:
            # Something that we keep ourselves does not open: an operator must look, and a machine may come back.
            _log.error("broker.unavailable", route=name, code=error.code, error=error, hint=error.hint)
            return name, Refusal(503, "unavailable", "the resource cannot be opened now").answer()
        except ClientGone:
            raise
        except Exception:  # noqa: BLE001  # the HTTP edge: nothing may escape without an answer and a log line
            _log.exception("request.failed", method=request.method, route=name)
            metrics.DEFECTS.inc("broker")
            return name, Refusal(500, "internal", f"an internal error, see the log under {context.current()}").answer()

    def _told(self, name: str, refusal: Refusal) -> Answer:
        metrics.REFUSALS.inc("broker", refusal.code)
        if refusal.code == OVERLOAD:  # which is counted, and must cost less than what it keeps away
            return refusal.answer()
        _log.info("broker.refused", route=name, status=refusal.status, code=refusal.code, verdict=refusal.verdict)
        return refusal.answer()

    def _route(self, request: Request, segments: list[str] | None) -> Route:
        if segments is None:
            raise Refusal(400, "bad-path", "the path cannot be read")
        found = find(request.method, segments)
        if found.route is not None:
            return found.route
        if found.methods:
            raise Refusal(405, "method-not-allowed", f"here: {', '.join(sorted(set(found.methods)))}")
        raise Refusal(404, "not-found", "there is nothing here")

    async def _handled(self, route: Route, request: Request, segments: tuple[str, ...]) -> Answer:
        match route.auth:
            case Auth.OPEN:
                return await self._open(route, request)
            case Auth.CHALLENGE:
                cookie = self._steps.challenged(request)
                body = await self._json_body(request, MAX_ATTEST_BYTES)
                with self._turnstile.stranger(address_of(request)):
                    return await self._steps.attest(cookie, body)
            case Auth.SESSION:
                caller = self._recognised(request)
                with self._turnstile.known(caller.subject.thumbprint):
                    return await self._steps.resource(caller, segments[len(KBS) + 1 :], request.query)
            case Auth.ADMIN:
                admin = self._admin(request, segments)
                with self._turnstile.ours():
                    return await self._administration.call(route, admin, request, segments[len(KBS) + 1 :])
            case Auth.INTERNAL:
                introspect.internal_caller(request, self._ours.internal, self._clock.now())
                with self._turnstile.ours():
                    body = await request.body(introspect.MAX_BODY)
                    demand(self._behind.touch)
                    return introspect.introspect(request, body, self._behind.tokens, self._behind.revocations)

    async def _open(self, route: Route, request: Request) -> Answer:
        body = await self._json_body(request, MAX_AUTH_BYTES) if route.name == "auth" else b""
        handlers: Mapping[str, Callable[[], Awaitable[Answer]]] = {
            "health": _healthy,
            "jwks": self._jwks,
            "auth": lambda: self._steps.auth(body),
        }
        with self._turnstile.stranger(address_of(request)):
            return await handlers[route.name]()

    async def _json_body(self, request: Request, limit: int) -> bytes:
        """A body that says it is JSON; raises Refusal, ApiError. One that is still on its way takes a place of its own."""
        kind = request.header(b"content-type").partition(";")[0].strip().lower()
        if kind not in JSON_TYPES:
            raise Refusal(415, "unsupported-media-type", "send application/json")
        if request.complete:
            return await request.body(limit)
        with self._turnstile.reading(address_of(request)):
            return await request.body(limit)

    async def _jwks(self) -> Answer:
        return Answer(200, json.encode(self._behind.tokens.jwks()), headers=((b"x-content-type-options", b"nosniff"),))

    def _recognised(self, request: Request) -> Standing:
        """Who asks for a resource; raises Refusal, which is told unless it only asks for a nonce."""
        try:
            return self._caller(request)
        except NeedsNonce:
            raise
        except Refusal as refusal:
            self._telling.stranger_refused(refusal)
            raise

    def _caller(self, request: Request) -> Standing:
        """Who asks for a resource: by cookie, or by token and proof; raises Refusal."""
        try:
            found = self._steps.session(request)
        except Refusal as refusal:
            raise self._callers.unknown(request, refusal) from refusal
        if found is None:
            return self._bearer(request)
        request.recognised()
        return found

    def _bearer(self, request: Request) -> Standing:
        scheme, _, token = request.header(b"authorization").partition(" ")
        token = token.strip()
        if scheme.lower() not in ("bearer", "dpop") or not token:
            raise self._callers.unknown(request, Refusal(401, "no-session", "attest first"))
        return self._callers.proved(request, token).standing

    def _admin(self, request: Request, segments: tuple[str, ...]) -> Admin:
        """The administrator who may make this call; raises Refusal."""
        token = bearer(request.header(b"authorization"))
        if not token:
            raise Refusal(401, "credential-required", "show a credential of an administrator")
        try:
            admin = self._ours.admins.recognise(token)
        except BadToken as error:
            raise Refusal(401, error.code, error.message) from error
        if not admin.may(request.method, segments[len(KBS) :]):
            raise Refusal(403, "out-of-scope", "the scopes of this credential do not cover the call")
        return admin


async def _healthy() -> Answer:
    return Answer(200)


def _of_api(error: ApiError) -> Refusal:
    """What the cluster, or the reading of a body, refused, as the caller may know it."""
    if error.code in (400, 408, 413, 415):
        return Refusal(error.code, error.reason, error.message)
    _log.warning("broker.unavailable", code=error.reason, error=error, hint=error.hint)
    return Refusal(503, "unavailable", "the cluster cannot be asked now")
