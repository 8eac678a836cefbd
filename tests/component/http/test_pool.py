"""The pool: one connection for each request, used again, bounded, and never lost; over real connections."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx
import pytest
import pytest_asyncio

from fastness.kube.client import pool as module
from fastness.kube.client.pool import STREAM, ConnectionPool
from tests.patience import PATIENCE

MOST = 4


class GatedServer:
    """Answers each request with two bytes when it is let, and notes what was asked on which connection."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.connections = 0
        self.ended = 0
        self.requests: list[int] = []
        self.changed = asyncio.Condition()
        self.pool = ConnectionPool(ssl.create_default_context(), most_idle=MOST, most=MOST, plain=True)
        self.url = ""

    async def speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = self.connections
        self.connections += 1
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                self.requests.append(number)
                await self.note()
                await self.gate.wait()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        except (asyncio.IncompleteReadError, OSError):
            self.ended += 1
            await self.note()
        finally:
            writer.close()

    async def note(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def until(self, *, requests: int = 0, ended: int = 0) -> None:
        async with asyncio.timeout(PATIENCE), self.changed:
            await self.changed.wait_for(lambda: len(self.requests) >= requests and self.ended >= ended)

    async def send(self, *, stream: bool = False) -> httpx.Response:
        """Send a request and leave its answer open."""
        return await self.pool.handle_async_request(httpx.Request("GET", self.url, extensions={STREAM: stream}))

    async def ask(self) -> None:
        """Send a request and read its answer to the end."""
        answer = await self.send()
        assert await answer.aread() == b"ok"
        await answer.aclose()


@pytest_asyncio.fixture
async def server() -> AsyncIterator[GatedServer]:
    server = GatedServer()
    running = await asyncio.start_server(server.speak, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{running.sockets[0].getsockname()[1]}/x"
    yield server
    server.gate.set()
    await server.pool.aclose()
    running.close()


async def test_requests_one_after_another_share_a_connection(server: GatedServer) -> None:
    for _ in range(5):
        await server.ask()
    assert server.requests == [0] * 5


async def test_an_answer_that_is_open_keeps_its_connection(server: GatedServer) -> None:
    first, second = await server.send(), await server.send()
    assert server.connections == 2
    for answer in (first, second):
        await answer.aread()
        await answer.aclose()
    await server.ask()
    assert server.connections == 2


async def test_an_answer_that_ends_twice_gives_its_place_back_once(server: GatedServer) -> None:
    answer = await server.send()
    await answer.aread()
    stream = answer.stream
    assert isinstance(stream, httpx.AsyncByteStream)
    await stream.aclose()
    await stream.aclose()
    server.gate.clear()
    tasks = [asyncio.create_task(server.send()) for _ in range(MOST + 1)]
    await server.until(requests=1 + MOST)
    assert len(server.requests) == 1 + MOST, "one more than may be was let in"
    server.gate.set()
    for task in tasks:
        await (await task).aread()


async def test_more_requests_than_places_wait_their_turn(server: GatedServer) -> None:
    server.gate.clear()
    tasks = [asyncio.create_task(server.ask()) for _ in range(MOST + 8)]
    await server.until(requests=MOST)
    assert server.connections == MOST
    server.gate.set()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*tasks)
    assert server.connections == MOST


async def test_waiting_too_long_is_a_pool_timeout(server: GatedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [await server.send() for _ in range(MOST)]
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    with pytest.raises(httpx.PoolTimeout):
        await server.send()
    for answer in answers:
        await answer.aclose()


async def test_failed_and_cancelled_requests_give_their_places_back(server: GatedServer) -> None:
    server.gate.clear()
    tasks = [asyncio.create_task(server.send()) for _ in range(MOST)]
    await server.until(requests=MOST)
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    nowhere = httpx.Request("GET", "http://127.0.0.1:1/x")
    for _ in range(MOST):
        with pytest.raises(httpx.ConnectError):
            await server.pool.handle_async_request(nowhere)
    server.gate.set()
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(server.ask() for _ in range(MOST)))


async def test_streams_have_connections_of_their_own_that_end_with_them(server: GatedServer) -> None:
    streams = [await server.send(stream=True) for _ in range(MOST + 1)]
    await server.ask()
    assert server.connections == MOST + 2
    for stream in streams:
        await stream.aread()
    await server.until(ended=MOST + 1)
    await server.ask()
    assert server.connections == MOST + 2, "the connection of requests stayed"


async def test_closing_ends_free_and_busy_connections(server: GatedServer) -> None:
    await server.send(stream=True)
    await server.send()
    await server.ask()
    await server.pool.aclose()
    await server.until(ended=3)


async def test_after_a_renewal_no_connection_of_before_takes_another_request_and_none_is_cut(
    server: GatedServer,
) -> None:
    busy = await server.send()
    await server.ask()
    await server.pool.renew()
    await server.until(ended=1)
    assert await busy.aread() == b"ok", "a busy one ends with its answer"
    await server.until(ended=2)
    await server.ask()
    assert server.requests[-1] == 2
    answers = [await server.send() for _ in range(MOST)]
    assert len(answers) == MOST, "no place was lost"
