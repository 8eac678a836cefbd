"""A request from the door to the answer.

    limits → route → what the route demands (`Auth`) → handler → answer

* The guard of a route runs before its handler, and the handler gets what the guard found.
* Bodies are bounded by route; JSON is said to be JSON, or nothing is said.
* Whatever goes wrong becomes one of the answers of the table that all doors share. What the cluster or the record cannot do now
  is 503; an unexpected exception is 500 with a correlation id, and the story is in the log, without the request's content.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.errors import ApiError
from fastness.crypto.errors import CryptoError
from fastness.domain.attestation import dpop
from fastness.domain.attestation.ear import standing
from fastness.domain.attestation.grant import Standing
from fastness.formats import json, urlpath
from fastness.formats.errors import FormatError
from fastness.formats.kbs import MAX_ATTEST_BYTES, MAX_AUTH_BYTES
from fastness.observe import context, logs, metrics
from fastness.services.broker import introspect
from fastness.services.broker.admin import Administration
from fastness.services.broker.kbs import Behind, Steps
from fastness.services.broker.limits import Turnstile
from fastness.services.broker.routes import KBS, Auth, Route, find
from fastness.services.http import Answer, Request, send_answer
from fastness.services.http.request import ClientGone
from fastness.services.refusals import Refusal
from fastness.trust.admins import Admin, Admins
from fastness.trust.errors import BadToken, RecordError
from fastness.trust.internal import InternalAuthority
from fastness.trust.tickets import bearer
from fastness.trust.tokens import BROKER

JSON_TYPES: Final = ("", "application/json")
_log = logs.logger("broker")


class NeedsProof(Refusal):
    """A token came without a proof that counts; the answer carries a nonce for the next."""

    def __init__(self, code: str, detail: str, nonce: str) -> None:
        super().__init__(401, code, detail)
        self.nonce = nonce

    def answer(self) -> Answer:
        """The refusal, with the nonce that a proof must have."""
        challenge = b'DPoP error="use_dpop_nonce", algs="ES256"'
        headers = ((b"dpop-nonce", self.nonce.encode()), (b"www-authenticate", challenge))
        return replace(super().answer(), headers=headers)


@dataclass(frozen=True, slots=True)
class Ours:
    """What the broker needs to know its callers."""

    admins: Admins
    internal: Callable[[], InternalAuthority]


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
    ) -> None:
        self._steps = steps
        self._behind = behind
        self._administration = administration
        self._ours = ours
        self._turnstile = turnstile
        self._clock = clock
        self._entropy = entropy

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
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
            client = request.scope.get("client")
            with self._turnstile.entered(client[0] if client else ""):
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
                return await self._steps.attest(cookie, await _json_body(request, MAX_ATTEST_BYTES))
            case Auth.SESSION:
                caller = self._caller(request)
                return await self._steps.resource(caller, segments[len(KBS) + 1 :], request.query)
            case Auth.ADMIN:
                admin = self._admin(request, segments)
                return await self._administration.call(route, admin, request, segments[len(KBS) + 1 :])
            case Auth.INTERNAL:
                introspect.internal_caller(request, self._ours.internal, self._clock.now())
                body = await request.body(introspect.MAX_BODY)
                return introspect.introspect(request, body, self._behind.tokens, self._behind.revocations)

    async def _open(self, route: Route, request: Request) -> Answer:
        handlers: Mapping[str, Callable[[], Awaitable[Answer]]] = {
            "health": _healthy,
            "jwks": self._jwks,
            "auth": lambda: self._auth(request),
        }
        return await handlers[route.name]()

    async def _auth(self, request: Request) -> Answer:
        return await self._steps.auth(await _json_body(request, MAX_AUTH_BYTES))

    async def _jwks(self) -> Answer:
        return Answer(200, json.encode(self._behind.tokens.jwks()), headers=((b"x-content-type-options", b"nosniff"),))

    def _caller(self, request: Request) -> Standing:
        """Who asks for a resource: by cookie, or by token and proof; raises Refusal."""
        found = self._steps.session(request)
        return found if found is not None else self._bearer(request)

    def _bearer(self, request: Request) -> Standing:
        scheme, _, token = request.header(b"authorization").partition(" ")
        token = token.strip()
        if scheme.lower() not in ("bearer", "dpop") or not token:
            raise Refusal(401, "no-session", "attest first")
        try:
            claims = self._behind.tokens.verify(token, BROKER)
        except BadToken as error:
            raise Refusal(401, error.code, error.message) from error
        found = standing(claims)
        if found is None:
            raise Refusal(401, "bad-token", "the token does not say who its bearer is")
        proofs, now = request.headers(dpop.HEADER), self._clock.now()
        demand = dpop.Demand(request.method, f"https://{request.header(b'host')}{request.path}", token)
        try:
            dpop.check_proof(proofs[0] if len(proofs) == 1 else "", demand, found.recipient, self._behind.macs, now)
        except dpop.BadProof as error:
            if error.needs_nonce:
                nonce = dpop.new_nonce(self._behind.macs, now, self._entropy)
                raise NeedsProof(error.code, error.detail, nonce) from error
            raise Refusal(401, error.code, error.detail) from error
        return found

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


async def _json_body(request: Request, limit: int) -> bytes:
    kind = request.header(b"content-type").partition(";")[0].strip().lower()
    if kind not in JSON_TYPES:
        raise Refusal(415, "unsupported-media-type", "send application/json")
    return await request.body(limit)


def _of_api(error: ApiError) -> Refusal:
    """What the cluster, or the reading of a body, refused, as the caller may know it."""
    if error.code in (400, 408, 413, 415):
        return Refusal(error.code, error.reason, error.message)
    _log.warning("broker.unavailable", code=error.reason, error=error, hint=error.hint)
    return Refusal(503, "unavailable", "the cluster cannot be asked now")
