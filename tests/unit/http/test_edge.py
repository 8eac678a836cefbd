"""The edge of every door: dispatch by the table, what a handler is called with, and what errors become."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest

from fastness.formats import json
from fastness.http import Answer, Request, Stream
from fastness.http.edge import UNREADABLE, Door, Edge, ErrorTable, Outage, Stopwatch, application, healthy
from fastness.http.refusals import Refusal
from fastness.http.route import JSON_ONLY, OPEN, READING, UNLIMITED, Auth, Body, Limit, Route, Routes
from fastness.kube.errors import ApiError, Unavailable
from fastness.observe import metrics
from tests.virtual import SeededEntropy

Sent = tuple[int, dict[bytes, bytes], bytes]


async def ask(app: Edge, method: str, path: str, body: bytes = b"", **headers: str) -> Sent:
    """What an application answers; a body comes only when it is asked for."""
    sent: list[Any] = []

    whole = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> Any:
        for message in whole:
            return message
        return await asyncio.Event().wait()  # the client stays

    async def send(message: Any) -> None:
        sent.append(message)

    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http", "method": method, "raw_path": path.encode(), "query_string": b"", "headers": given,
        "client": ("192.0.2.1", 1),
    }  # fmt: skip
    await app(scope, receive, send)
    return sent[0]["status"], dict(sent[0]["headers"]), sent[1]["body"]


class Probe:
    """A door that writes down in which order things happen."""

    def __init__(self, errors: ErrorTable | None = None) -> None:
        self.story: list[object] = []
        self.raises: Exception | None = None
        limit = Limit(self._lane, Body(10, JSON_ONLY, self._reading))
        self.routes: Routes = (
            Route("health", READING, "/healthz", OPEN, UNLIMITED, healthy),
            Route("any", ("GET",), "/things/<name>", Auth("a name", self._known), UNLIMITED, self._handle),
            Route("own", ("GET",), "/things/own", OPEN, UNLIMITED, self._handle),
            Route("write", ("POST",), "/things/<name>", Auth("a name", self._known), limit, self._handle),
            Route("rest", ("GET",), "/deep/<**>", OPEN, UNLIMITED, self._handle),
        )
        door = Door("probe", self._answered, self._refused)
        self.app = application(door, self.routes, errors or {}, SeededEntropy(1))

    def _answered(self, route: str, code: int) -> None:
        self.story.append((route, code))

    def _refused(self, route: str, refusal: Refusal) -> None:
        self.story.append((route, refusal.code))

    async def _known(self, request: Request) -> str:
        self.story.append("auth")
        if not request.header(b"authorization"):
            raise Refusal(401, "credential-required", "say who you are")
        return request.header(b"authorization")

    @contextmanager
    def _reading(self, _request: Request) -> Iterator[None]:
        self.story.append("reading")
        yield

    @contextmanager
    def _lane(self, _request: Request, caller: str) -> Iterator[None]:
        self.story.append(f"lane of {caller}")
        yield

    async def _handle(self, request: Request, caller: str | None) -> Answer:
        self.story.append((caller, request.values, request.content))
        if self.raises is not None:
            raise self.raises
        return Answer(200, b"done")


async def test_a_handler_is_called_with_the_caller_that_the_check_gave_after_the_body_and_inside_the_lane() -> None:
    probe = Probe()
    status, _, _ = await ask(
        probe.app, "POST", "/things/lamp", b"{}", authorization="me", content_type="application/json"
    )
    assert status == 200
    assert probe.story == ["auth", "reading", "lane of me", ("me", ("lamp",), b"{}"), ("write", 200)]


async def test_nobody_gets_past_the_check_of_a_route_and_nothing_of_the_body_is_read_for_a_stranger() -> None:
    probe = Probe()
    assert (await ask(probe.app, "POST", "/things/lamp", b"{}"))[0] == 401
    assert probe.story == ["auth", ("write", "credential-required"), ("write", 401)]


@pytest.mark.parametrize(
    ("method", "path", "values"),
    [("GET", "/things/own", ()), ("GET", "/things/l%61mp/", ("lamp",)), ("GET", "/deep/a/b", ("a", "b"))],
)
async def test_a_literal_wins_over_any_text_and_values_are_what_stands_in_the_path(
    method: str, path: str, values: tuple[str, ...]
) -> None:
    probe = Probe()
    assert (await ask(probe.app, method, path, authorization="me"))[0] == 200
    assert [entry[1] for entry in probe.story if isinstance(entry, tuple) and len(entry) == 3] == [values]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/", 404), ("GET", "/things", 404), ("GET", "/things/a/b", 404), ("GET", "/deep", 404),
        ("GET", "/things/..", 404), ("GET", "/things/%2e%2e", 404), ("GET", "//healthz", 404), ("POST", "/healthz", 405),
        ("HEAD", "/things/own", 405), ("HEAD", "/healthz", 200), ("DELETE", "/things/lamp", 405),
    ],
)  # fmt: skip
async def test_what_is_not_in_the_table_does_not_exist(method: str, path: str, code: int) -> None:
    probe = Probe()
    assert (await ask(probe.app, method, path, authorization="me"))[0] == code
    assert not [entry for entry in probe.story if entry == "auth" or (isinstance(entry, tuple) and len(entry) == 3)]


@pytest.mark.parametrize(
    ("method", "path", "allow"), [("POST", "/healthz", b"GET, HEAD"), ("DELETE", "/things/lamp", b"GET, POST")]
)
async def test_a_refused_method_comes_with_those_that_there_are(method: str, path: str, allow: bytes) -> None:
    status, headers, _ = await ask(Probe().app, method, path)
    assert (status, headers[b"allow"]) == (405, allow)


async def test_a_door_may_tell_strangers_neither_what_is_there_nor_by_which_method() -> None:
    probe = Probe()
    door = Door("probe", unrouted=Auth("a name", probe._known))
    app = application(door, probe.routes, {}, SeededEntropy(1))
    cases = [("GET", "/nothing", 404), ("GET", "/things/..", 404), ("DELETE", "/things/lamp", 405)]
    assert [(await ask(app, method, path))[0] for method, path, _ in cases] == [401, 401, 401]
    assert [(await ask(app, method, path, authorization="me"))[0] for method, path, _ in cases] == [404, 404, 405]
    assert (await ask(app, "POST", "/healthz"))[0] == 405, "an open path is open about its methods"


async def test_a_stream_takes_its_place_while_it_is_sent_and_is_timed_to_its_end() -> None:
    times, story = iter([1.0, 5.0]), list[object]()

    @contextmanager
    def place() -> Iterator[None]:
        story.append("enters")
        yield
        story.append("leaves")

    async def chunks() -> AsyncIterator[bytes]:
        story.append("sends")
        yield b"a"

    async def handler(_request: Request, _caller: object) -> Stream:
        return Stream(200, chunks(), place=place())

    watch = Stopwatch(lambda: next(times), lambda *observed: story.append(observed))
    route = Route("watch", ("GET",), "/", OPEN, UNLIMITED, handler)
    app = application(Door("probe", stopwatch=watch), (route,), {}, SeededEntropy(1))
    assert (await ask(app, "GET", "/"))[0] == 200
    assert story == ["enters", "sends", "leaves", ("GET", 200, 4.0)]


class Opened:
    """A source of chunks that is open from the moment of the answer, before anybody asks for one."""

    def __init__(self, place: AbstractContextManager[None]) -> None:
        self.open = True
        route = Route("watch", ("GET",), "/", OPEN, UNLIMITED, self._handle)
        self._place = place
        self.app = application(Door("probe"), (route,), {}, SeededEntropy(1))

    async def _handle(self, _request: Request, _caller: object) -> Stream:
        return Stream(200, self._chunks(), place=self._place, close=self._close)

    async def _chunks(self) -> AsyncIterator[bytes]:
        assert self.open
        yield b"a"

    def _close(self) -> None:
        self.open = False

    async def ask(self, send: Any) -> None:
        scope = {
            "type": "http", "method": "GET", "raw_path": b"/", "query_string": b"", "headers": [],
            "client": ("192.0.2.1", 1),
        }  # fmt: skip
        await self.app(scope, asyncio.Event().wait, send)


class Full(AbstractContextManager[None]):
    """A place that cannot be taken."""

    def __enter__(self) -> None:
        raise ZeroDivisionError

    def __exit__(self, *_: object) -> None:
        """Nobody comes in."""


async def test_what_a_stream_comes_from_is_closed_at_its_end() -> None:
    source, sent = Opened(nullcontext()), list[Any]()

    async def send(message: Any) -> None:
        sent.append(message.get("body"))

    await source.ask(send)
    assert (sent, source.open) == ([None, b"", b"a", b""], False)


@pytest.mark.parametrize(("place", "messages"), [(nullcontext(), 0), (nullcontext(), 1), (Full(), 9)])
async def test_a_stream_whose_head_cannot_be_sent_is_closed_although_it_never_began(
    place: AbstractContextManager[None], messages: int
) -> None:
    source, sent = Opened(place), list[Any]()

    async def send(message: Any) -> None:
        if len(sent) == messages:
            raise ConnectionResetError
        sent.append(message)

    await source.ask(send)
    assert not source.open


async def test_a_stream_that_is_cancelled_while_its_head_is_sent_is_closed() -> None:
    source, begun = Opened(nullcontext()), asyncio.Event()

    async def send(_message: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    asking = asyncio.create_task(source.ask(send))
    await begun.wait()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    assert asking.cancelled()
    assert not source.open


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ({"content_type": "text/plain"}, b"{}", 415),
        ({}, b"{}", 415),
        ({"content_type": "application/json; charset=utf-8"}, b"x" * 11, 413),
        ({"content_type": "application/json", "content_length": "11"}, b"", 413),
    ],
)
async def test_a_body_that_a_route_does_not_take_reaches_no_lane(
    headers: dict[str, str], body: bytes, code: int
) -> None:
    probe = Probe(UNREADABLE)
    assert (await ask(probe.app, "POST", "/things/lamp", body, authorization="me", **headers))[0] == code
    assert "lane of me" not in probe.story


async def test_the_nearest_class_of_an_error_has_the_say_and_an_outage_is_no_refusal_of_anybody() -> None:
    errors: ErrorTable = {
        ApiError: lambda _error, _route: Refusal(400, "bad-message", "not this row"),
        Unavailable: lambda _error, route: Outage(503, "api-unavailable", f"at {route}"),
    }
    probe = Probe(errors)
    probe.raises = Unavailable("etcd is away")
    status, headers, body = await ask(probe.app, "GET", "/things/own")
    assert (status, json.decode(body)["detail"], headers[b"retry-after"]) == (503, "at own", b"5")
    assert probe.story == [(None, (), b""), ("own", 503)]


async def test_what_no_row_expects_is_a_counted_defect_with_an_id_and_without_a_word_of_the_request() -> None:
    probe = Probe()
    probe.raises = ZeroDivisionError("secret")
    status, headers, body = await ask(probe.app, "GET", "/things/own")
    detail = json.decode(body)["detail"]
    assert (status, headers[b"audit-id"].decode() in detail, b"secret" in body) == (500, True, False)
    assert b'fastness_defects_total{where="probe"} 1.0' in metrics.exposition()


async def test_every_answer_names_its_request_and_no_two_are_the_same() -> None:
    probe = Probe()
    answers = [await ask(probe.app, "GET", path) for path in ("/healthz", "/nothing", "/healthz")]
    assert len({headers[b"audit-id"] for _, headers, _ in answers}) == 3


def test_a_table_that_says_one_thing_twice_is_not_made() -> None:
    route = Probe().routes[0]
    for second in (
        Route("health", READING, "/other", OPEN, UNLIMITED, healthy),
        Route("other", ("HEAD",), "/healthz", OPEN, UNLIMITED, healthy),
    ):
        with pytest.raises(ValueError, match=r"same name|two routes"):
            application(Door("probe"), (route, second), {}, SeededEntropy(1))
