"""Objects of a real API server that nobody here can read: each is named, and costs nobody else anything."""

from __future__ import annotations

import httpx
import pytest

from fastness.kinds.registry import find
from fastness.kube.client.watching import parse_event
from fastness.kube.errors import InternalError
from fastness.kube.port import EventType
from fastness.kube.readable import READABLE
from tests.unit.kube.client.server import Script, event, status, streaming, synced

CONFIG_MAP = find("", "v1", "configmaps").resource
BEYOND = [READABLE.max_depth, 900, 1500, 9_990]


def deep(name: str, levels: int) -> bytes:
    """An object whose content nests so deep, as an API server encodes it: ownership before the name."""
    inner = b'{"a":' * levels + b"1" + b"}" * levels
    return (
        b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"managedFields":[{"fieldsV1":%b}],"name":"%b",'
        b'"namespace":"n","resourceVersion":"7","uid":"u"},"spec":%b}' % (inner, name.encode(), inner)
    )


@pytest.mark.parametrize("levels", BEYOND)
@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
def test_an_event_of_an_object_that_is_too_deep_has_its_name_its_version_and_the_reason(kind: str, levels: int) -> None:
    event = parse_event(b'{"type":"%b","object":%b}' % (kind.encode(), deep("x", levels)))
    assert event.object == {"metadata": {"name": "x", "namespace": "n", "resourceVersion": "7", "uid": "u"}}
    assert event.unreadable is not None
    assert f"deeper than {READABLE.max_depth} levels" in event.unreadable


def test_an_object_at_the_bound_is_read() -> None:
    event = parse_event(b'{"type":"ADDED","object":%b}' % deep("x", READABLE.max_depth - 4))
    assert event.unreadable is None
    assert "spec" in event.object


@pytest.mark.parametrize("levels", BEYOND)
def test_the_deletion_of_an_object_that_is_too_deep_is_a_deletion(levels: int) -> None:
    event = parse_event(b'{"type":"DELETED","object":%b}' % deep("x", levels))
    assert (event.type, event.unreadable) == (EventType.DELETED, None)


@pytest.mark.parametrize("levels", BEYOND)
async def test_one_bad_item_of_a_list_loses_none_of_the_others(levels: int) -> None:
    good = b'{"metadata":{"name":"%b","namespace":"n","resourceVersion":"1"}}'
    items = b",".join((good % b"a", deep("bad", levels), good % b"z"))
    body = b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[%b]}' % items
    script = Script(httpx.Response(200, content=body))
    async with script.cluster() as cluster:
        page = await cluster.list(CONFIG_MAP)
    assert [item["metadata"]["name"] for item in page.items] == ["a", "z"]
    assert all(item["kind"] == "ConfigMap" for item in page.items)
    assert [obj["metadata"]["name"] for obj, _ in page.unreadable] == ["bad"]


@pytest.mark.parametrize("levels", BEYOND)
async def test_a_watch_goes_on_over_an_object_that_is_too_deep(levels: int) -> None:
    bad = b'{"type":"ADDED","object":%b}\n' % deep("bad", levels)
    script = Script(streaming(event("ADDED", "a", "5"), bad, synced("8"), event("ADDED", "b", "9")))
    async with script.cluster() as cluster, cluster.watch(CONFIG_MAP, initial=True) as events:
        received = [await anext(events) for _ in range(4)]
    assert [bool(watched.unreadable) for watched in received] == [False, True, False, False]


async def test_where_the_state_comes_from_a_list_the_bad_item_is_told_too() -> None:
    body = b'{"metadata":{"resourceVersion":"9"},"items":[%b]}' % deep("bad", 1500)
    script = Script(status(422, "Invalid"), httpx.Response(200, content=body))
    async with script.cluster() as cluster, cluster.watch(CONFIG_MAP, initial=True) as events:
        received = [await anext(events) for _ in range(2)]
    assert [(bool(event.unreadable), event.synced) for event in received] == [(True, False), (False, True)]


@pytest.mark.parametrize("levels", BEYOND)
async def test_a_get_of_an_object_that_is_too_deep_is_an_api_error(levels: int) -> None:
    script = Script(httpx.Response(200, content=deep("x", levels)))
    async with script.cluster() as cluster:
        with pytest.raises(InternalError):
            await cluster.get(CONFIG_MAP, "x", "n")
