"""Silent connections at a listener, over real sockets and with both loops that we run on: others are answered all the same."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import uvloop

from fastness.crypto.x509 import CertificateAuthority
from fastness.http.bounds import Bounds
from fastness.http.certificates import LoopListener
from fastness.http.rustls import RustListener
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.patience import PATIENCE

AUTHORITY = CertificateAuthority.create("test", datetime.now(UTC), SystemEntropy())
TRUST = ssl.create_default_context(cadata=AUTHORITY.certificate.pem.decode())
FLOOD = 600
BOUNDS = Bounds(connections=60, handshakes=40, address_handshakes=20, reserve=8, known_reserve=8)
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
Story = Callable[[LoopListener], Awaitable[None]]


async def app(scope: Any, _receive: Any, send: Any) -> None:
    if scope["path"] == "/known":
        scope["fastness.known"]()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture(params=LOOPS)
def play(request: pytest.FixtureRequest) -> Callable[[Story], None]:
    """Tell a story about a listener, in one of the loops."""

    async def listening(story: Story) -> None:
        listener = LoopListener(app, bounds=BOUNDS)
        await listener.show(AUTHORITY.issue_server(["127.0.0.1"], timedelta(days=1), datetime.now(UTC)))
        try:
            async with asyncio.timeout(PATIENCE):
                await story(listener)
        finally:
            await listener.stop()

    def tell(story: Story) -> None:
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(listening(story))

    return tell


@contextmanager
def silent(port: int, address: str, count: int = FLOOD) -> Iterator[list[socket.socket]]:
    """So many connections of an address that say nothing."""
    made: list[socket.socket] = []
    try:
        for _ in range(count):
            connection = socket.socket()
            made.append(connection)
            connection.bind((address, 0))
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", port))
        yield made
    finally:
        for connection in made:
            connection.close()


@asynccontextmanager
async def connected(
    port: int, address: str = "127.0.0.1", trust: ssl.SSLContext = TRUST
) -> AsyncIterator[Callable[[str], Awaitable[int]]]:
    """A client over one connection: gives the code of each answer, 0 when there is none."""
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=trust, local_addr=(address, 0), server_hostname="127.0.0.1"
    )

    async def ask(path: str) -> int:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(2)
        except (asyncio.IncompleteReadError, ConnectionError):
            return 0
        return int(head.split(b" ")[1])

    try:
        yield ask
    finally:
        writer.transport.abort()


async def once(port: int, address: str = "127.0.0.1") -> int:
    """One answer over a new connection."""
    async with connected(port, address) as ask:
        return await ask("/healthz")


async def drained(listener: LoopListener, most: int) -> None:
    """Wait until the kernel's queue was taken: nobody came for a while of turns."""
    arrivals = listener._listener.arrivals
    for _ in range(200):
        await asyncio.sleep(0.001)
        assert arrivals.unfinished <= most


@pytest.mark.parametrize("address", ["127.0.0.2", "127.0.0.1"], ids=["another-address", "the-same-address"])
def test_silent_connections_hold_few_places_and_others_are_answered(
    play: Callable[[Story], None], address: str
) -> None:
    async def story(listener: LoopListener) -> None:
        before = len(os.listdir("/proc/self/fd"))
        async with connected(listener.port) as ask:
            assert await ask("/known") == 200
            with silent(listener.port, address):
                await drained(listener, BOUNDS.address_handshakes)
                held = len(os.listdir("/proc/self/fd")) - before - FLOOD
                assert held <= BOUNDS.address_handshakes + 10
                assert [await once(listener.port) for _ in range(20)] == [200] * 20
                assert [await once(listener.port, "127.0.0.3") for _ in range(20)] == [200] * 20
                assert await ask("/healthz") == 200

    play(story)


def test_silent_connections_of_many_addresses_hold_few_places_too(play: Callable[[Story], None]) -> None:
    async def story(listener: LoopListener) -> None:
        async with connected(listener.port) as ask:
            assert await ask("/known") == 200
            floods = [silent(listener.port, f"127.0.1.{number}", 10) for number in range(1, 61)]
            for flood in floods:
                flood.__enter__()
            try:
                await drained(listener, BOUNDS.handshakes)
                assert await once(listener.port) == 200
                assert await once(listener.port, "127.0.0.3") == 200
                assert await ask("/healthz") == 200
            finally:
                for flood in floods:
                    flood.__exit__(None, None, None)

    play(story)


def test_a_full_listener_answers_probes_once_and_known_addresses_as_usual(play: Callable[[Story], None]) -> None:
    """Strangers who finish their handshakes, ask once and stay."""

    async def story(listener: LoopListener) -> None:
        async with connected(listener.port) as ask:
            assert await ask("/known") == 200
            strangers = [connected(listener.port, f"127.0.1.{number}") for number in range(1, 60)]
            asks = [await stranger.__aenter__() for stranger in strangers]
            assert [await question("/healthz") for question in asks] == [200] * 59
            try:
                for _ in range(30):
                    assert await once(listener.port, "127.0.0.3") == 200
                async with connected(listener.port) as earlier:
                    assert [await earlier("/healthz") for _ in range(3)] == [200] * 3
                async with connected(listener.port, "127.0.0.3") as probe:
                    assert [await probe("/healthz") for _ in range(2)] == [200, 0]
                assert [await question("/healthz") for question in asks] == [200] * 59
            finally:
                for stranger in strangers:
                    await stranger.__aexit__(None, None, None)
            assert await ask("/healthz") == 200

    play(story)


def test_a_door_speaks_tls_1_3_only(play: Callable[[Story], None]) -> None:
    async def story(listener: LoopListener) -> None:
        await refuses_old_tls(listener.port)

    play(story)


async def refuses_old_tls(port: int) -> None:
    old = ssl.create_default_context(cadata=AUTHORITY.certificate.pem.decode())
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(OSError):  # an alert, or a reset that was faster
        async with connected(port, trust=old):
            pass
    assert await once(port) == 200


async def test_a_door_in_rust_speaks_tls_1_3_only() -> None:
    listener = RustListener(app, SystemClock())
    await listener.show(AUTHORITY.issue_server(["127.0.0.1"], timedelta(days=1), datetime.now(UTC)))
    try:
        await refuses_old_tls(listener.port)
    finally:
        await listener.stop()
