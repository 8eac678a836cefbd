"""The edge of a door: from bytes of a stranger to a handler that knows its caller, and from whatever happens to an answer.

    route → what it demands (`Auth`) → body → lane → handler → answer

    app = application(DOOR, routes, errors, entropy)

* A request has a correlation id from its first moment. It is in every log line of it, and in the header `audit-id` of the answer.
* What a handler raises becomes an answer by the door's table of errors: the nearest class of the error has the say. Each door has
  its own, because the same error is final at one and passes at another: a 400 of the cluster is no fault of a booting machine.
* What no row expects is a defect: 500 with the id, counted, and the story is in the log, without the request's content.
* A client that went away gets nothing, and is no error.
* A door may demand a credential before it says what is not there (`unrouted`); then a 404 or a 405 tells strangers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from fastness.formats.errors import FormatError
from fastness.http.answers import Answer, Headers, Stream, send_answer
from fastness.http.refusals import Refusal
from fastness.http.request import BODY_SECONDS, ClientGone, Request, SlowBody
from fastness.http.route import Auth, Body, NoRoute, Route, Routes, RouteTable, WrongMethod
from fastness.http.streaming import send_stream
from fastness.kube.errors import ApiError, BadRequest, TooLarge, UnsupportedMedia
from fastness.observe import logs, metrics
from fastness.runtime.clock import Entropy

NO_ROUTE: Final = "none"
ErrorTable = Mapping[type[Exception], Callable[[Any, str], Refusal]]
"""The refusal that an error becomes, by its class; a row gets the error and the name of the route."""
_log = logs.logger("http")


class Outage(Refusal):
    """What the door itself cannot do now. Its row has logged why; it says nothing about the caller, so no refusal is counted."""


def _uncounted(_route: str, _code: int) -> None:
    """Count nothing."""


def _unnoted(_route: str, _refusal: Refusal) -> None:
    """Note nothing."""


def _defect(correlation: str) -> Refusal:
    return Refusal(500, "internal", f"an internal error, see the log under {correlation}")


def _said_by_itself(refusal: Refusal) -> Answer:
    """As its class says it: some carry a header, as the nonce that the next proof must be made with."""
    return refusal.answer()


class Stopwatch(NamedTuple):
    """How a door's answers are timed: method, code and seconds are told when an answer is out, or a stream has ended."""

    monotonic: Callable[[], float]
    observe: Callable[[str, int, float], None]


@dataclass(frozen=True, slots=True)
class Door:
    """How a door is seen: its name where defects are counted, how its answers are counted, how its refusals are noted.

    `unrouted` is what a caller must show to hear that nothing is at a path; nobody hears the methods of a path then who does not
    show what they demand. `defect` is what an unexpected error becomes, given the correlation id. `headers` go with every answer.
    `say` makes the answer of a refusal: small JSON, unless people read it.
    """

    name: str
    answered: Callable[[str, int], None] = _uncounted
    refused: Callable[[str, Refusal], None] = _unnoted
    body_seconds: float = BODY_SECONDS
    unrouted: Auth[Any] | None = None
    defect: Callable[[str], Refusal] = _defect
    stopwatch: Stopwatch | None = None
    headers: Headers = ()
    say: Callable[[Refusal], Answer] = _said_by_itself


class Edge:
    """A door as an application, and its table as it is served."""

    def __init__(self, door: Door, routes: Routes, errors: ErrorTable, entropy: Entropy) -> None:
        self.routes = routes
        self._door = door
        self._table = RouteTable(self.routes)
        self._errors: ErrorTable = {**COMMON, **errors}
        self._entropy = entropy

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive, self._door.body_seconds)
        # Drawn here and never taken from the request: a caller's own id could be that of somebody else's lines in the log.
        correlation = logs.begin_correlation(self._entropy.uid())
        stopwatch = self._door.stopwatch
        started = stopwatch.monotonic() if stopwatch is not None else 0.0
        name = NO_ROUTE
        try:
            try:
                route = self._table.find(request)
            # 404 and 405 tell what is served; where a door wants a credential for that, it is asked for before the answer.
            except (NoRoute, WrongMethod) as error:
                await self._demand(request, error)
                raise
            name = route.name
            answer = await _handled(route, request)
        except Refusal as refusal:
            answer = self._refused(name, refusal)
        # Nobody is there to hear an answer, and counting it as a failure would let anybody write into our metrics by hanging up.
        except ClientGone:
            return
        except Exception as error:  # noqa: BLE001  # the HTTP edge: nothing may escape without an answer and a log line
            answer = self._failed(name, request, error)
        self._door.answered(name, answer.code)
        await self._send(request, answer, send, ((b"audit-id", correlation.encode()), *self._door.headers))
        if stopwatch is not None:
            stopwatch.observe(request.method, answer.code, stopwatch.monotonic() - started)

    async def _demand(self, request: Request, error: NoRoute | WrongMethod) -> None:
        """Have the caller show what the door demands before it says what is not there; raises what the check raises."""
        if self._door.unrouted is not None:
            await (error.auth if isinstance(error, WrongMethod) else self._door.unrouted).check(request)

    async def _send(self, request: Request, answer: Answer | Stream, send: Any, headers: Headers) -> None:
        try:
            if isinstance(answer, Stream):
                with closing(answer), answer.place:
                    await send_stream(request, answer, send, headers)
            else:
                await send_answer(answer, send, headers, head=request.method == "HEAD")
        except Exception:  # noqa: BLE001  # after the answer began: all that is left is to end the connection
            _log.exception("request.failed", door=self._door.name, method=request.method)
            metrics.DEFECTS.inc("delivery")

    def _refused(self, name: str, refusal: Refusal) -> Answer:
        if not isinstance(refusal, Outage):
            self._door.refused(name, refusal)
        return self._door.say(refusal)

    def _failed(self, name: str, request: Request, error: Exception) -> Answer:
        """The answer to an error, by the table; one that is not in it is a defect."""
        # The nearest class decides: a row for the base must not swallow what a row for the child says better.
        for kind in type(error).__mro__:
            row = self._errors.get(kind)
            if row is not None:
                return self._refused(name, row(error, name))
        _log.exception("request.failed", door=self._door.name, method=request.method, route=name)
        metrics.DEFECTS.inc(self._door.name)
        return self._door.say(self._door.defect(logs.current_correlation()))


def application(door: Door, routes: Routes, errors: ErrorTable, entropy: Entropy) -> Edge:
    """The application of a door; raises ValueError for a table that says one thing twice."""
    return Edge(door, routes, errors, entropy)


async def _handled(route: Route[Any], request: Request) -> Answer | Stream:
    # Before a byte of the body: whoever may not ask does not get to have 3 MiB read and parsed.
    caller = await route.auth.check(request)
    limit = route.limit
    if limit.body is not None:
        request.content = await _read(request, limit.body)
    if limit.lane is None:
        return await route.handler(request, caller)
    with limit.lane(request, caller):
        return await route.handler(request, caller)


async def _read(request: Request, body: Body) -> bytes:
    """A body of a type that the route takes; raises Refusal, ApiError. One that is still on its way takes a place of its own."""
    # A form that a browser posts from any page has one of three types (Fetch standard, safelisted); JSON is none of them.
    demand_media(request, body.media)
    if request.complete:
        return await request.body(body.most)
    with body.reading(request):
        return await request.body(body.most)


def demand_media(request: Request, media: Sequence[str]) -> None:
    """Go on only with a body that says it is of one of these types; raises Refusal."""
    if request.header(b"content-type").partition(";")[0].strip().lower() not in media:
        raise Refusal(415, "unsupported-media-type", f"send {' or '.join(media)}")


async def healthy(_request: Request, _caller: object) -> Answer:
    """The handler of `/healthz`: whoever is answered knows that the door runs."""
    return Answer(200, b"")


def _no_route(error: NoRoute, _route: str) -> Refusal:
    return Refusal(404, "not-found", str(error))


def _wrong_method(error: WrongMethod, _route: str) -> Refusal:
    return Refusal(405, "method-not-allowed", str(error), headers=(error.allow,))


def nothing_but(hint: str) -> ErrorTable:
    """The row of a door that says what there is where nothing is."""
    return {NoRoute: lambda _error, _route: Refusal(404, "not-found", hint)}


def _of_body(error: ApiError, _route: str) -> Refusal:
    return Refusal(error.code, error.reason, error.message)


def of_format(error: FormatError, _route: str) -> Refusal:
    """The row for what cannot be parsed."""
    return Refusal(400, error.code, str(error))


COMMON: Final[ErrorTable] = {NoRoute: _no_route, WrongMethod: _wrong_method}
UNREADABLE: Final[ErrorTable] = {
    FormatError: of_format,
    **dict.fromkeys((TooLarge, UnsupportedMedia, BadRequest, SlowBody), _of_body),
}
"""For doors that take bodies: what is wrong with one is the caller's to put right."""
