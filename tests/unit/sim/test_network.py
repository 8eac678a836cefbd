"""While the cable is pulled, nothing of a machine reaches the cluster; afterwards everything does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fastness.kinds.kind import Resource
from fastness.kube.errors import Unavailable
from fastness.kube.port import Event, EventType, PatchType
from fastness.sim.network import NOWHERE, Cable, Cabled

NODES = Resource("", "v1", "nodes", "Node", False)
CALLS: dict[str, Callable[[Any], Coroutine[Any, Any, Any]]] = {
    "get": lambda cluster: cluster.get(NODES, "n"),
    "list": lambda cluster: cluster.list(NODES),
    "create": lambda cluster: cluster.create(NODES, {}),
    "patch": lambda cluster: cluster.patch(NODES, "n", {}, PatchType.MERGE),
    "delete": lambda cluster: cluster.delete(NODES, "n"),
    "connect": lambda cluster: cluster.connect(NODES, "n", "", "eviction", {}),
}


class Counting:
    """A cluster that remembers what reached it."""

    def __init__(self) -> None:
        self.reached: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, str]]:
        async def answer(*_: Any, **__: Any) -> str:
            self.reached.append(name)
            return name

        return answer

    @asynccontextmanager
    async def watch(self, *_: Any, **__: Any) -> AsyncIterator[AsyncIterator[Event]]:
        async def events() -> AsyncIterator[Event]:
            for name in ("a", "b"):
                yield Event(EventType.ADDED, {"metadata": {"name": name}})

        yield events()


@pytest.mark.parametrize("verb", CALLS)
async def test_every_verb_fails_as_if_no_route_led_there(verb: str) -> None:
    cluster, cable = Counting(), Cable()
    cabled: Any = Cabled(cluster, cable)  # type: ignore[arg-type]  # answers with words
    cable.pull()
    with pytest.raises(Unavailable, match="network of this virtual machine is cut"):
        await CALLS[verb](cabled)
    assert cluster.reached == []
    cable.plug()
    assert await CALLS[verb](cabled) == verb


async def test_an_open_watch_ends_with_the_first_event_that_does_not_get_through() -> None:
    cable, names = Cable(), []
    cabled: Any = Cabled(Counting(), cable)  # type: ignore[arg-type]  # answers with words
    with pytest.raises(Unavailable):
        async with cabled.watch(NODES) as events:
            async for event in events:
                names.append(event.object["metadata"]["name"])
                cable.pull()
    assert names == ["a"]
    with pytest.raises(Unavailable):
        async with cabled.watch(NODES):
            pass


def test_requests_to_doors_lead_nowhere() -> None:
    cable = Cable()
    assert cable.way("https://127.0.0.1:1234") == "https://127.0.0.1:1234"
    cable.pull()
    assert cable.way("https://127.0.0.1:1234") == NOWHERE
