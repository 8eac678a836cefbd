"""Watches of the HTTPS adapter: resumed over closed and broken connections, honest about what cannot be."""

from __future__ import annotations

import contextlib
import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.kinds.registry import find
from fastness.kube.client.client import KubeCluster
from fastness.kube.client.watching import MAX_LINE, parse_event
from fastness.kube.errors import ApiError, BadRequest, Expired, InternalError, NotFound, TooLarge, Unavailable
from fastness.kube.port import Event, EventType, Scope
from tests.unit.kube.client.server import Script, Stream, event, listing, status, streaming, synced

CONFIG_MAP = find("", "v1", "configmaps").resource
GONE = json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}).encode() + b"\n"


async def take(cluster: KubeCluster, count: int, since: str = "", initial: bool = False) -> list[Event]:
    """That many events, bookmarks included."""
    received: list[Event] = []
    async with cluster.watch(CONFIG_MAP, since=since, initial=initial) as events:
        async for each in events:
            received.append(each)
            if len(received) == count:
                break
    return received


def types_and_versions(events: list[Event]) -> list[tuple[str, str]]:
    """Types and versions."""
    return [(each.type.value, each.resource_version) for each in events]


async def test_a_watch_asks_for_bookmarks_from_its_version_within_its_scope() -> None:
    script = Script(streaming(event("ADDED", "a", "6")))
    async with script.cluster() as cluster:
        scope = Scope("n", labels="x=y")
        async with cluster.watch(CONFIG_MAP, scope, since="5") as events:
            await anext(events)
    assert script.requests[0].url.path == "/api/v1/namespaces/n/configmaps"
    assert script.params(0) == {
        "labelSelector": "x=y",
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": "450",
        "resourceVersion": "5",
    }


async def test_a_watch_that_the_server_closes_goes_on_from_the_last_version() -> None:
    script = Script(
        streaming(event("ADDED", "a", "6"), event("BOOKMARK", "", "8")), streaming(event("MODIFIED", "a", "9"))
    )
    async with script.cluster() as cluster:
        assert types_and_versions(await take(cluster, 3, since="5")) == [
            ("ADDED", "6"),
            ("BOOKMARK", "8"),
            ("MODIFIED", "9"),
        ]
    assert script.params(1)["resourceVersion"] == "8"
    assert script.clock.slept == []


async def test_a_watch_that_breaks_within_a_line_goes_on_without_it() -> None:
    line = event("MODIFIED", "a", "7")
    broken = streaming(event("ADDED", "a", "6"), line[:10], breaks=httpx.ReadError("x"))
    script = Script(broken, listing("a", version="6"), streaming(line))
    async with script.cluster() as cluster:
        assert types_and_versions(await take(cluster, 2, since="5")) == [("ADDED", "6"), ("MODIFIED", "7")]
    assert script.params(1) == {"limit": "1"}, "whether it is the same cluster is asked first"
    assert script.params(2)["resourceVersion"] == "6"


@pytest.mark.parametrize(("newest", "goes_on"), [("5", False), ("6", True), ("60", True), ("another-kind", True)])
async def test_a_watch_that_broke_does_not_go_on_at_a_cluster_that_is_younger(newest: str, goes_on: bool) -> None:
    broken = streaming(event("ADDED", "a", "6"), breaks=httpx.ReadError("x"))
    script = Script(broken, listing(version=newest), streaming(event("MODIFIED", "a", "61")))
    async with script.cluster() as cluster:
        with contextlib.nullcontext() if goes_on else pytest.raises(Expired, match="made anew or restored"):
            assert len(await take(cluster, 2, since="5")) == 2


async def test_connections_that_bring_nothing_are_repeated_with_growing_pauses() -> None:
    script = Script(streaming(), streaming(), streaming(), streaming(event("ADDED", "a", "6")))
    async with script.cluster() as cluster:
        await take(cluster, 1, since="5")
    assert len(script.clock.slept) == 3
    assert script.clock.slept == sorted(set(script.clock.slept))


async def test_a_server_that_breaks_every_stream_is_unavailable_in_the_end() -> None:
    broken = [(streaming(breaks=httpx.ReadError("x")), listing(version="5")) for _ in range(4)]
    script = Script(*[answer for pair in broken for answer in pair])
    async with script.cluster() as cluster:
        with pytest.raises(Unavailable):
            await take(cluster, 1, since="5")


async def test_an_error_event_is_raised_as_its_error() -> None:
    async with Script(streaming(event("ADDED", "a", "6"), GONE)).cluster() as cluster:
        with pytest.raises(Expired):
            await take(cluster, 2, since="5")


async def test_a_version_that_is_refused_at_once_expires() -> None:
    async with Script(status(410, "Gone")).cluster() as cluster:
        with pytest.raises(Expired):
            await take(cluster, 1, since="5")


async def test_initial_state_is_asked_of_the_server() -> None:
    script = Script(streaming(event("ADDED", "a", "3"), synced("9"), event("ADDED", "b", "10")))
    async with script.cluster() as cluster:
        received = await take(cluster, 3, initial=True)
    assert types_and_versions(received) == [("ADDED", "3"), ("BOOKMARK", "9"), ("ADDED", "10")]
    assert [each.synced for each in received] == [False, True, False]
    params = script.params(0)
    assert (params["sendInitialEvents"], params["resourceVersionMatch"]) == ("true", "NotOlderThan")
    assert "resourceVersion" not in params


async def test_after_the_initial_state_a_closed_watch_goes_on_as_any_other() -> None:
    script = Script(streaming(event("ADDED", "a", "3"), synced("9")), streaming(event("ADDED", "b", "10")))
    async with script.cluster() as cluster:
        assert len(await take(cluster, 3, initial=True)) == 3
    assert script.params(1)["resourceVersion"] == "9"
    assert "sendInitialEvents" not in script.params(1)


@pytest.mark.parametrize("breaks", [None, httpx.ReadError("x")])
async def test_an_initial_state_that_is_cut_short_is_not_resumed(breaks: Exception | None) -> None:
    async with Script(streaming(event("ADDED", "a", "3"), breaks=breaks)).cluster() as cluster:
        with pytest.raises(Unavailable):
            await take(cluster, 2, initial=True)


@pytest.mark.parametrize("code", [400, 422])
async def test_a_server_without_initial_events_is_listed_instead_and_not_asked_again(code: int) -> None:
    refused = status(code, "Invalid" if code == 422 else "BadRequest")
    script = Script(
        refused, listing("a", "b", version="9"), streaming(event("DELETED", "a", "10")), listing("b", version="11")
    )
    async with script.cluster() as cluster:
        received = await take(cluster, 4, initial=True)
        assert types_and_versions(received) == [("ADDED", "1"), ("ADDED", "1"), ("BOOKMARK", "9"), ("DELETED", "10")]
        assert received[2].synced
        await take(cluster, 1, initial=True)
    assert script.params(2)["resourceVersion"] == "9"
    assert "watch" not in script.params(3)


async def test_a_selector_that_is_refused_in_both_ways_does_not_end_initial_events_for_others() -> None:
    script = Script(status(400, "BadRequest"), status(400, "BadRequest"), streaming(synced("9")))
    async with script.cluster() as cluster:
        with pytest.raises(BadRequest):
            await take(cluster, 1, initial=True)
        await take(cluster, 1, initial=True)
    assert script.params(2)["sendInitialEvents"] == "true"


async def test_a_kind_that_is_not_served_is_not_found() -> None:
    async with Script(status(404, "NotFound")).cluster() as cluster:
        with pytest.raises(NotFound):
            await take(cluster, 1, initial=True)


async def test_a_watch_without_a_position_ends_with_its_connection() -> None:
    script = Script(streaming(event("ADDED", "a", "3")))
    async with script.cluster() as cluster:
        assert len(await take(cluster, 2)) == 1


async def test_leaving_a_watch_closes_its_connection() -> None:
    stream = Stream(event("ADDED", "a", "6"), event("ADDED", "b", "7"))
    async with Script(httpx.Response(200, stream=stream)).cluster() as cluster:
        await take(cluster, 1, since="5")
        assert stream.closed


async def test_an_endless_line_is_refused() -> None:
    chunk = b"x" * (MAX_LINE // 2)
    async with Script(streaming(chunk, chunk, chunk)).cluster() as cluster:
        with pytest.raises(TooLarge):
            await take(cluster, 1, since="5")


@pytest.mark.parametrize(
    "line",
    [b"{}", b"nonsense", b"[]", b'{"type":"ADDED"}', b'{"type":"NEW","object":{"metadata":{"resourceVersion":"1"}}}',
     b'{"type":"ADDED","object":{}}', b'{"type":"ADDED","object":{"metadata":[]}}',
     b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1","annotations":7}}}'],
)  # fmt: skip
def test_a_line_that_is_no_event_is_the_server_s_fault(line: bytes) -> None:
    with pytest.raises(InternalError):
        parse_event(line)


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(
    st.sampled_from(["type", "object", "metadata", "resourceVersion", "annotations", "code", "reason", "details"]),
    inner | st.sampled_from(["ADDED", "ERROR", "BOOKMARK"]), max_size=5), max_leaves=15))  # fmt: skip
def test_whatever_a_line_holds_it_is_an_event_or_an_api_error(value: object) -> None:
    with contextlib.suppress(ApiError):
        assert isinstance(parse_event(json.dumps(value).encode()).type, EventType)
