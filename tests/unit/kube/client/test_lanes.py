"""Lanes: one connection per request, reused, bounded, and never lost."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import httpx
import pytest

from fastness.kube.client import lanes
from fastness.kube.client.lanes import MOST, STREAM, Lanes
from tests.unit.kube.client.server import Stream

URL = "https://api.example/x"


class Lane(httpx.AsyncBaseTransport):
    """A connection that answers when it is let."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.busy = False
        self.closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer with a stream of one chunk."""
        assert not self.busy, "two requests on one connection"
        assert not self.closed, "a request on a closed connection"
        self.busy = True
        try:
            await self.world.gate.wait()
            if self.world.failure is not None:
                raise self.world.failure
        except BaseException:
            self.busy = False
            raise
        return httpx.Response(200, stream=_Freeing(self))

    async def aclose(self) -> None:
        """Close."""
        self.closed = True


class _Freeing(Stream):
    def __init__(self, lane: Lane) -> None:
        super().__init__(b"chunk")
        self._lane = lane

    async def aclose(self) -> None:
        """The connection is free again."""
        self._lane.busy = False


class World:
    """All connections that were made."""

    def __init__(self) -> None:
        self.made: list[Lane] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: httpx.TransportError | None = None
        self.lanes = Lanes(self.make)

    def make(self) -> Lane:
        """A new connection."""
        self.made.append(Lane(self))
        return self.made[-1]

    async def send(self, *, stream: bool = False) -> httpx.Response:
        """Send a request and leave its answer open."""
        return await self.lanes.handle_async_request(httpx.Request("GET", URL, extensions={STREAM: stream}))


async def test_requests_one_after_another_share_a_connection() -> None:
    world = World()
    for _ in range(5):
        await (await world.send()).aclose()
    assert len(world.made) == 1


async def test_an_answer_that_is_open_keeps_its_connection() -> None:
    world = World()
    first = await world.send()
    second = await world.send()
    assert len(world.made) == 2
    await first.aclose()
    await second.aclose()
    await (await world.send()).aclose()
    assert len(world.made) == 2


async def test_closing_an_answer_twice_gives_its_connection_back_once() -> None:
    world = World()
    answer = await world.send()
    stream = answer.stream
    assert isinstance(stream, httpx.AsyncByteStream)
    await stream.aclose()
    await stream.aclose()
    held = [await world.send(), await world.send()]
    assert len(world.made) == 2
    for each in held:
        await each.aclose()


async def test_more_requests_than_lanes_wait_their_turn() -> None:
    world = World()
    world.gate.clear()
    tasks = [asyncio.create_task(world.send()) for _ in range(MOST + 8)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(world.made) == MOST
    world.gate.set()
    while not all(task.done() for task in tasks):
        for task in tasks:
            if task.done():
                await task.result().aclose()
        await asyncio.sleep(0)
    assert len(world.made) == MOST


async def test_waiting_too_long_is_a_pool_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "PATIENCE", 0.0)
    monkeypatch.setattr(lanes, "MOST", 1)
    world = World()
    held = await world.send()
    with pytest.raises(httpx.PoolTimeout):
        await world.send()
    await held.aclose()


async def test_a_failed_and_a_cancelled_request_give_their_connection_back() -> None:
    world = World()
    world.failure = httpx.ReadError("x")
    with pytest.raises(httpx.ReadError):
        await world.send()
    world.failure = None
    world.gate.clear()
    task = asyncio.create_task(world.send())
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    world.gate.set()
    await (await world.send()).aclose()
    assert len(world.made) == 1


async def test_streams_have_connections_of_their_own_that_end_with_them() -> None:
    world = World()
    streams = [await world.send(stream=True) for _ in range(MOST + 1)]
    await (await world.send()).aclose()
    assert len(world.made) == MOST + 2
    for stream in streams:
        await stream.aclose()
    assert [lane.closed for lane in world.made] == [True] * (MOST + 1) + [False]


async def test_closing_closes_free_and_busy_connections() -> None:
    world = World()
    await world.send(stream=True)
    await world.send()
    await (await world.send()).aclose()
    await world.lanes.aclose()
    assert all(lane.closed for lane in world.made)


async def test_after_a_renewal_no_connection_of_before_takes_another_request_and_none_is_cut() -> None:
    world = World()
    busy, free = await world.send(), await world.send()
    await free.aclose()
    await world.lanes.renew()
    first, second = world.made
    assert (first.closed, second.closed) == (False, True)
    await busy.aclose()
    assert first.closed
    await (await world.send()).aclose()
    assert len(world.made) == 3
    held = [await world.send() for _ in range(MOST)]
    assert len(held) == MOST, "no lane was lost"
    for each in held:
        await each.aclose()
