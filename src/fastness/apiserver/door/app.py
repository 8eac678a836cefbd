"""The API as a door: its table of routes, what each demands, and the way of a request to a verb.

`http/edge` serves the table as it does for every door. What is Kubernetes' own about it:

* Who shows nothing learns nothing: a path without a route is 401 or 403 before it is 404, and so is a wrong method before 405.
* `PATH` asks RBAC for the path, `RESOURCE` for the verb on the resource; liveness and version alone are open.
* Refusals are `Status` objects (`errors.py`); an unexpected exception is a 500 with the correlation id and nothing else.
* Every write of somebody who is known leaves an audit line with the outcome, also when it is refused.
* Requests for resources that run at once are bounded: above the bound the answer is 429 at once. Watches have their own bound,
  which counts them while they are sent. Whatever else is served never waits, so it needs none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final

from fastness.apiserver.door import errors, resources
from fastness.apiserver.door.about import About
from fastness.apiserver.door.audit import Audit, AuditEntry
from fastness.apiserver.door.guard import Guard
from fastness.apiserver.engine import EmbeddedApi
from fastness.apiserver.refusals import method_not_allowed, no_such_resource
from fastness.apiserver.verbs import paths
from fastness.http import Answer, Request, Stream
from fastness.http.edge import Door, Stopwatch, application
from fastness.http.health import Health
from fastness.http.request import BODY_SECONDS
from fastness.http.route import OPEN, READING, UNLIMITED, Auth, Limit, Route, Routes
from fastness.kube.access import Attributes, User, refusal
from fastness.kube.errors import ApiError, Forbidden, MethodNotAllowed, TooManyRequests
from fastness.observe import logs, metrics

NAME: Final = "api"
# As many as kube-apiserver's --max-requests-inflight (400) and --max-mutating-requests-inflight (200) together.
MAX_IN_FLIGHT: Final = 600
MAX_WATCHES: Final = 20_000
_WRITES: Final = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """What somebody may do: the verb, as whom, on what. The verb is empty where the method does not fit the path."""

    user: User
    verb: str
    target: paths.Target


class ApiDoor:
    """The Kubernetes API over HTTP."""

    def __init__(
        self, api: EmbeddedApi, guard: Guard, health: Health, audit: Audit, body_seconds: float = BODY_SECONDS
    ) -> None:
        self._api = api
        self._guard = guard
        self._audit = audit
        self._running = _Running()
        self._watches = _Watches()
        self._path = Auth("RBAC on the path", self._path_caller)
        door = Door(
            NAME, body_seconds=body_seconds, unrouted=self._path, defect=errors.defect,
            stopwatch=Stopwatch(api.clock.monotonic, metrics.REQUESTS.observe),
        )  # fmt: skip
        self.app = application(door, self._routes(About(api, health)), errors.ERRORS, api.entropy)

    def _routes(self, about: About) -> Routes:
        path, resource, limit = self._path, Auth("RBAC on the resource", self._resource_caller), Limit(self._in_flight)
        return (
            Route("resources", paths.METHODS, "/apis/<group>/<version>/<**>", resource, limit, self._resource),
            Route("core-resources", paths.METHODS, "/api/<version>/<**>", resource, limit, self._resource),
            Route("discovery", READING, "/apis", path, UNLIMITED, about.discovery),
            Route("discovery-group", READING, "/apis/<group>", path, UNLIMITED, about.discovery),
            Route("discovery-version", READING, "/apis/<group>/<version>", path, UNLIMITED, about.discovery),
            Route("discovery-core", READING, "/api", path, UNLIMITED, about.discovery),
            Route("discovery-core-version", READING, "/api/<version>", path, UNLIMITED, about.discovery),
            Route("openapi", READING, "/openapi/<**>", path, UNLIMITED, about.openapi),
            Route("index", READING, "/", path, UNLIMITED, about.index),
            Route("metrics", READING, "/metrics", path, UNLIMITED, about.metrics),
            Route("version", READING, "/version", OPEN, UNLIMITED, about.version),
            Route("health", READING, "/healthz", OPEN, UNLIMITED, about.probe),
            Route("health-check", READING, "/healthz/<check>", OPEN, UNLIMITED, about.probe),
            Route("live", READING, "/livez", OPEN, UNLIMITED, about.probe),
            Route("live-check", READING, "/livez/<check>", OPEN, UNLIMITED, about.probe),
            Route("ready", READING, "/readyz", OPEN, UNLIMITED, about.probe),
            Route("ready-check", READING, "/readyz/<check>", OPEN, UNLIMITED, about.probe),
        )

    async def _path_caller(self, request: Request) -> User:
        """Whoever may use this method on this path; raises Unauthorized, Forbidden, BadRequest."""
        user = self._guard.identify(request)
        self._authorize(
            Attributes(user, request.method.lower(), path=request.path.rstrip("/") or "/", is_resource_request=False)
        )
        return user

    async def _resource_caller(self, request: Request) -> ResourceRequest:
        """Whoever may do what is asked for; raises Unauthorized, Forbidden, NotFound, BadRequest."""
        target = paths.target_of(request.segments)
        if target is None:
            # The caller shows who they are before hearing that nothing is there: 404 must not map the API for strangers.
            await self._path_caller(request)
            raise no_such_resource()
        user = self._guard.identify(request)
        watching = request.method == "GET" and b"watch=" in request.raw_query and _watching(request)
        verb = paths.verb_of(request.method, target, watching=watching)
        # The node authorizer needs it: a kubelet lists and watches pods by `spec.nodeName`, and is allowed to for itself alone.
        selector = request.query.get("fieldSelector", "") if verb in ("list", "watch", "deletecollection") else ""
        attributes = Attributes(
            user, verb or request.method.lower(), target.group, target.version, target.plural, target.subresource,
            target.namespace, target.name, field_selector=selector,
        )  # fmt: skip
        allowed = ResourceRequest(user, verb, target)
        if verb not in _WRITES:
            self._authorize(attributes)
            return allowed
        with _AuditLine(self, request, allowed):  # of a refusal; the handler writes that of what is allowed
            self._authorize(attributes)
        return allowed

    def _authorize(self, attributes: Attributes) -> None:
        decision = self._guard.authorize(attributes)
        if decision.allowed:
            return
        raise Forbidden(
            refusal(attributes, decision.reason),
            group=attributes.group, kind=attributes.resource, name=attributes.name,
        )  # fmt: skip

    def _in_flight(self, _request: Request, _caller: object) -> _Running:
        return self._running

    async def _resource(self, request: Request, caller: ResourceRequest) -> Answer | Stream:
        if caller.verb not in _WRITES:
            return await self._verb(request, caller, None)
        with _AuditLine(self, request, caller) as line:
            answer = await self._verb(request, caller, line)
            line.code = answer.code
            return answer

    async def _verb(self, request: Request, caller: ResourceRequest, line: _AuditLine | None) -> Answer | Stream:
        """Do what was asked; a create tells the audit line what it is about."""
        target, verb = caller.target, caller.verb
        if not verb:
            raise method_not_allowed(request.method, paths.methods_of(target))
        served = self._api.served(target.group, target.version, target.plural)
        try:
            resources.check_shape(served, target, verb)
            call = resources.call_of(request, caller.user, logs.current_correlation())
            handled = resources.Context(self._api, self._guard, request, target, served, call)
            return await (self._watch(handled) if verb == "watch" else self._answered(handled, verb, line))
        except MethodNotAllowed as error:
            error.allow = resources.methods_of(served, target)
            raise

    async def _watch(self, handled: resources.Context) -> Stream:
        # Before the cursor is taken; the place itself counts from the first byte to the end of the stream.
        self._watches.demand_room()
        return replace(await resources.watch(handled), place=self._watches)

    async def _answered(self, handled: resources.Context, verb: str, line: _AuditLine | None) -> Answer:
        call, kind = handled.call, handled.served.kind
        if kind.deprecated:
            call.warn(f"{kind.api_version} {kind.kind} is deprecated")
        try:
            answer = await resources.VERBS[verb](handled)
        finally:
            if line is not None and call.creating and not handled.target.name:
                line.target = replace(handled.target, name=call.creating)
        if not call.warnings:
            return answer
        return replace(answer, headers=(*answer.headers, *((b"warning", _warning(text)) for text in call.warnings)))

    def write_line(self, request: Request, caller: ResourceRequest, target: paths.Target, code: int) -> None:
        """The audit line of a write."""
        by = self._guard.impersonator(request)
        self._audit.write(
            AuditEntry.of(request, caller.user, by, logs.current_correlation(), caller.verb, target, code)
        )


class _AuditLine:
    """Writes the audit line of a write when the block ends: with `code`, or with that of the error; None: nothing to say yet."""

    __slots__ = ("_caller", "_door", "_request", "code", "target")

    def __init__(self, door: ApiDoor, request: Request, caller: ResourceRequest) -> None:
        self._door, self._request, self._caller = door, request, caller
        self.target = caller.target
        self.code: int | None = None

    def __enter__(self) -> _AuditLine:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: TracebackType | None) -> None:
        code = self.code
        if error is not None:
            code = error.code if isinstance(error, ApiError) else 500
        if code is not None:
            self._door.write_line(self._request, self._caller, self.target, code)


class _Running:
    """Requests for resources that run now; one object for all, because it is entered on every request."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def __enter__(self) -> None:
        if self._count >= MAX_IN_FLIGHT:
            raise TooManyRequests("too many requests in flight, please try again later", retry_after=1)
        self._count += 1

    def __exit__(self, *_: object) -> None:
        self._count -= 1


class _Watches:
    """Watches that are being sent now."""

    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def demand_room(self) -> None:
        """Refuse one more than the bound, before it takes anything of the store; raises TooManyRequests."""
        if self._count >= MAX_WATCHES:
            raise TooManyRequests("too many watches", retry_after=5)

    def __enter__(self) -> None:
        self._count += 1
        metrics.WATCHES.set(self._count)

    def __exit__(self, *_: object) -> None:
        self._count -= 1
        metrics.WATCHES.set(self._count)


def _watching(request: Request) -> bool:
    return request.query.get("watch", "") in ("1", "true", "True", "")


def _warning(text: str) -> bytes:
    """A warning as a header; what cannot stand in one becomes a space, so that a field name cannot end the header."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    quoted = plain.replace("\\", "\\\\").replace('"', '\\"')
    return b'299 - "%b"' % quoted.encode("utf-8", "replace")
