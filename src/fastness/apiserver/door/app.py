"""The ASGI application of the API door.

A request goes through five steps, each of which can end it: the route (404), the credential (401), impersonation and
authorization (403), the handler, the answer. Rules:

* Whatever a handler raises becomes a `Status`; an unexpected exception is a 500 with the correlation id and nothing else, and the
  full story is in the log. This is one of the two places with a broad `except`.
* Every answer carries the correlation id as `Audit-Id`; every write of somebody who is known leaves an audit line with the
  outcome, also when it is refused. Credentials that do not verify are counted (`fastness_api_authentication_total`).
* Requests in flight are bounded: above the bound the answer is 429 at once. Watches have their own bound.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fastness import __version__
from fastness.apiserver.catalog import Served
from fastness.apiserver.documents.discovery import subresources_of
from fastness.apiserver.documents.document import Document
from fastness.apiserver.door import resources, routes
from fastness.apiserver.door.audit import Audit, AuditEntry
from fastness.apiserver.door.guard import Guard
from fastness.apiserver.engine import EmbeddedApi
from fastness.apiserver.refusals import method_not_allowed, no_such_resource
from fastness.apiserver.verbs import paths
from fastness.formats import json
from fastness.http import Answer, Request, Stream, send_answer
from fastness.http.health import TEXT, Health
from fastness.http.request import BODY_SECONDS, ClientGone
from fastness.http.streaming import until_gone
from fastness.kube.access import Attributes, User, refusal
from fastness.kube.errors import ApiError, Forbidden, TooManyRequests
from fastness.observe import context, logs, metrics

KUBERNETES = {"major": "1", "minor": "36", "gitVersion": f"v1.36.0+fastness.{__version__}"}
MAX_IN_FLIGHT = 600
MAX_WATCHES = 20_000
MAX_WARNING = 500
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
_log = logs.logger("api")


@dataclass(slots=True)
class _Outcome:
    """What became of a request, and of what; a create has no name in its path."""

    target: paths.Target
    code: int = 500


class ApiApp:
    """The Kubernetes API over HTTP."""

    def __init__(
        self, api: EmbeddedApi, guard: Guard, health: Health, audit: Audit, body_seconds: float = BODY_SECONDS
    ) -> None:
        self._api = api
        self._guard = guard
        self._health = health
        self._audit = audit
        self._body_seconds = body_seconds
        self._in_flight = 0
        self._watches = 0

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive, self._body_seconds)
        correlation = context.begin(self._api.entropy.uid())
        started = self._api.clock.monotonic()
        try:
            answer = await self._guarded(request, correlation)
        except ClientGone:
            return
        headers = ((b"audit-id", correlation.encode()),)
        try:
            if isinstance(answer, Stream):
                await self._stream(request, answer, send, headers)
            else:
                await send_answer(answer, send, headers, head=request.method == "HEAD")
        except Exception:  # noqa: BLE001  # the HTTP edge, after the answer began: all that is left is to end the connection
            _log.exception("request.failed", method=request.method, path=request.path)
            metrics.DEFECTS.inc("delivery")
        metrics.REQUESTS.observe(request.method, answer.code, self._api.clock.monotonic() - started)

    async def _guarded(self, request: Request, correlation: str) -> Answer | Stream:
        """The answer, whatever happens."""
        if self._in_flight >= MAX_IN_FLIGHT:
            return error_answer(TooManyRequests("too many requests in flight, please try again later", retry_after=1))
        self._in_flight += 1
        try:
            return await self._respond(request, correlation)
        except ApiError as error:
            return error_answer(error)
        except ClientGone:
            raise
        except Exception:  # noqa: BLE001  # the HTTP edge: nothing may escape without an answer and a log line
            _log.exception("request.failed", method=request.method, path=request.path)
            metrics.DEFECTS.inc("api")
            return error_answer(ApiError(f"an internal error occurred, see the log under {correlation}"))
        finally:
            self._in_flight -= 1

    async def _respond(self, request: Request, correlation: str) -> Answer | Stream:
        found = routes.find(request.path)
        if found is None:
            user = self._guard.identify(request)
            self._authorize_path(user, request)
            raise no_such_resource()
        route, segments = found
        if route is routes.RESOURCES:
            return await self._resource(request, segments, correlation)
        if route.auth is not routes.Auth.OPEN:
            self._authorize_path(self._guard.identify(request), request)
        if request.method not in route.methods:
            raise method_not_allowed(request.method)
        return self._fixed(route, request, segments)

    def _authorize_path(self, user: User, request: Request) -> None:
        attrs = Attributes(
            user, request.method.lower(), path=request.path.rstrip("/") or "/", is_resource_request=False
        )
        decision = self._guard.authorize(attrs)
        if not decision.allowed:
            raise Forbidden(refusal(attrs, decision.reason))

    def _fixed(self, route: routes.Route, request: Request, segments: list[str]) -> Answer:
        """Everything that is not a resource."""
        if route in (routes.HEALTH, routes.LIVE, routes.READY):
            single = segments[1] if len(segments) > 1 else ""
            answer = self._health.answer(segments[0], single, verbose="verbose" in request.query)
            if answer is None:
                raise no_such_resource()
            return answer
        if route is routes.VERSION:
            return Answer(
                200, json.encode({**KUBERNETES, "platform": "linux/amd64", "goVersion": "", "compiler": "python"})
            )
        if route is routes.METRICS:
            return Answer(200, metrics.exposition(), b"text/plain; version=0.0.4; charset=utf-8")
        if route is routes.INDEX:
            return Answer(200, json.encode({"paths": self._index()}))
        path = "/" + "/".join(segments)
        if route is routes.OPENAPI:
            document = self._api.openapi.answer(path, request.query.get("hash", ""))
        else:
            document = self._api.discovery.answer(path, request.header(b"accept"))
        return document_answer(request, document)

    def _index(self) -> list[str]:
        groups = [f"/apis/{group.name}" for group in self._api.catalog.groups() if group.name]
        fixed = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v3", "/readyz", "/version"]
        return sorted([*fixed, *groups])

    async def _resource(self, request: Request, segments: list[str], correlation: str) -> Answer | Stream:
        target = paths.target_of(segments)
        user = self._guard.identify(request)
        if target is None:
            self._authorize_path(user, request)
            raise no_such_resource()
        watching = request.method == "GET" and b"watch=" in request.raw_query and _watching(request)
        verb = paths.verb_of(request.method, target, watching=watching)
        outcome = _Outcome(target)
        if verb not in _WRITES:
            return await self._verb(request, user, verb, target, correlation, outcome)
        try:
            answer = await self._verb(request, user, verb, target, correlation, outcome)
            outcome.code = answer.code
            return answer
        except ApiError as error:
            outcome.code = error.code
            raise
        finally:
            by = self._guard.impersonator(request)
            self._audit.write(AuditEntry.of(request, user, by, correlation, verb, outcome.target, outcome.code))

    async def _verb(
        self, request: Request, user: User, verb: str, target: paths.Target, correlation: str, outcome: _Outcome
    ) -> Answer | Stream:
        """Authorize, and do what was asked; a create tells the outcome what it is about."""
        self._authorize(request, user, verb or request.method.lower(), target)
        if not verb:
            raise method_not_allowed(request.method)
        served = self._api.served(target.group, target.version, target.plural)
        _check_shape(served, target, verb)
        call = resources.call_of(request, user, correlation)
        if served.kind.deprecated:
            call.warn(f"{served.kind.api_version} {served.kind.kind} is deprecated")
        try:
            asked = resources.Context(self._api, self._guard, request, target, served, call)
            answer = await resources.VERBS[verb](asked)
        finally:
            if call.creating and not target.name:
                outcome.target = replace(target, name=call.creating)
        if not call.warnings or isinstance(answer, Stream):
            return answer
        headers = tuple((b"warning", _warning(text)) for text in call.warnings)
        return Answer(answer.code, answer.body, answer.content_type, (*answer.headers, *headers))

    def _authorize(self, request: Request, user: User, verb: str, target: paths.Target) -> None:
        selector = request.query.get("fieldSelector", "") if verb in ("list", "watch", "deletecollection") else ""
        attrs = Attributes(
            user, verb, target.group, target.version, target.plural, target.subresource, target.namespace, target.name,
            field_selector=selector,
        )  # fmt: skip
        decision = self._guard.authorize(attrs)
        if not decision.allowed:
            raise Forbidden(refusal(attrs, decision.reason), group=target.group, kind=target.plural, name=target.name)

    async def _stream(self, request: Request, answer: Stream, send: Send, headers: Any) -> None:
        """Send chunks until they end or the client goes."""
        if self._watches >= MAX_WATCHES:
            await answer.chunks.aclose()  # type: ignore[attr-defined]  # an async generator
            await send_answer(error_answer(TooManyRequests("too many watches", retry_after=5)), send, headers)
            return
        self._watches += 1
        metrics.WATCHES.set(self._watches)
        try:
            await self._pump(request, answer, send, headers)
        finally:
            self._watches -= 1
            metrics.WATCHES.set(self._watches)

    async def _pump(self, request: Request, answer: Stream, send: Send, headers: Any) -> None:
        start = {
            "type": "http.response.start", "status": answer.code,
            "headers": [(b"content-type", answer.content_type), (b"cache-control", b"no-cache, private"), *headers],
        }  # fmt: skip
        await send(start)
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        await until_gone(request, answer.chunks, send)


def _check_shape(served: Served, target: paths.Target, verb: str) -> None:
    """Whether the kind has such a path and this verb on it; raises NotFound, MethodNotAllowed."""
    namespaced = served.kind.namespaced
    if target.namespace and not namespaced and target.plural != "namespaces":
        raise no_such_resource()
    if namespaced and not target.namespace:
        if target.name:
            raise no_such_resource()
        if verb in ("create", "deletecollection"):
            raise method_not_allowed(verb)
    if target.subresource:
        verbs = {part.name: part.verbs for part in subresources_of(served.kind)}.get(target.subresource)
        if verbs is None:
            raise no_such_resource()
        if verb not in verbs:
            raise method_not_allowed(verb)
    elif verb == "deletecollection" and verb not in served.kind.verbs:
        raise method_not_allowed(verb)


def _watching(request: Request) -> bool:
    return request.query.get("watch", "") in ("1", "true", "True", "")


def _warning(text: str) -> bytes:
    """A warning as a header; what cannot stand in one becomes a space, so that a field name cannot end the header."""
    plain = "".join(char if char.isprintable() else " " for char in text[:MAX_WARNING])
    quoted = plain.replace("\\", "\\\\").replace('"', '\\"')
    return b'299 - "%b"' % quoted.encode("utf-8", "replace")


def error_answer(error: ApiError) -> Answer:
    """A refusal as an answer."""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if error.retry_after is not None:
        headers = ((b"retry-after", b"%d" % error.retry_after),)
    if error.code == 401:
        headers = (*headers, (b"www-authenticate", b"Bearer"))
    return Answer(error.code, json.encode(error.status()), headers=headers)


def document_answer(request: Request, document: Document | None) -> Answer:
    """A document that is encoded once, or 304 when the client has it."""
    if document is None:
        return Answer(404, b"404 page not found\n", TEXT)
    if document.location:
        return Answer(301, b"", TEXT, ((b"location", document.location.encode()),))
    extra = tuple((name.lower().encode(), value.encode()) for name, value in document.headers.items())
    headers = ((b"etag", document.etag.encode()), (b"vary", b"Accept"), *extra)
    if document.known_to(request.header(b"if-none-match")):
        return Answer(304, b"", document.content_type.encode(), headers)
    return Answer(200, document.body, document.content_type.encode(), headers)
