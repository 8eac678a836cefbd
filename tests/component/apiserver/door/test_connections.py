"""Connections that are slow, idle, many or gone: they cost their own place and nobody else's."""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import socket
import ssl
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from fastness.apiserver import ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.http import bounds, streaming
from fastness.http.bounds import RESERVED_DESCRIPTORS, Bounds, Places, Share
from tests.component.apiserver.door.conftest import SHORT
from tests.component.apiserver.door.raw import CONFIGMAPS, HOST, Streams, connect, exchange, get, post, read_reply
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE


async def ended(reader: asyncio.StreamReader) -> bool:
    """Whether the server ends the connection within a few seconds."""
    try:
        async with asyncio.timeout(PATIENCE):
            while await reader.read(65536):
                pass
    except TimeoutError:
        return False
    except ConnectionError:
        return True
    return True


@pytest.mark.parametrize("start", [b"", b"G", b"GET /version HTTP/1.1\r\n", get("/version")[:-2] + b"x-a: "])
async def test_a_head_that_does_not_end_is_cut(impatient: Embedded, start: bytes) -> None:
    reader, writer = await connect(impatient, certificate=False)
    writer.write(start)
    assert await ended(reader)
    writer.transport.abort()


async def test_a_head_that_drips_is_cut_although_it_moves(impatient: Embedded) -> None:
    reader, writer = await connect(impatient, certificate=False)
    dripping = asyncio.create_task(_drip(writer, get("/version", b"x-slow: " + b"a" * 1000)))
    assert await ended(reader)
    dripping.cancel()
    writer.transport.abort()


async def _drip(writer: asyncio.StreamWriter, data: bytes) -> None:
    for position in range(len(data)):
        writer.write(data[position : position + 1])
        await asyncio.sleep(0.05)


async def test_a_handshake_that_does_not_end_is_cut(impatient: Embedded) -> None:
    port = int(impatient.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"\x16\x03\x01")
    assert await ended(reader)
    writer.close()


async def test_plain_http_on_the_tls_port_is_refused(impatient: Embedded) -> None:
    port = int(impatient.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(get("/version"))
    assert await ended(reader)
    writer.close()


async def test_a_body_that_does_not_come_is_408(impatient: Embedded) -> None:
    reader, writer = await connect(impatient)
    writer.write(post(CONFIGMAPS, b"x" * 100)[:-50])
    reply = await read_reply(reader)
    assert (reply.code, b"did not arrive" in reply.body) == (408, True)
    assert await ended(reader)
    writer.transport.abort()


async def test_the_body_of_an_answered_request_is_not_waited_for(impatient: Embedded) -> None:
    reader, writer = await connect(impatient, certificate=False)
    writer.write(post(CONFIGMAPS, b"x" * 100)[:-50])
    assert (await read_reply(reader)).code == 401
    assert await ended(reader)
    writer.transport.abort()


async def test_an_idle_connection_ends_after_its_time(impatient: Embedded) -> None:
    reader, writer = await connect(impatient)
    writer.write(get("/version"))
    assert (await read_reply(reader)).code == 200
    assert await ended(reader)
    writer.transport.abort()


async def test_connections_above_the_bound_are_cut_and_the_others_stay(impatient: Embedded) -> None:
    streams: list[Streams] = []
    for _ in range(30):
        reader, writer = await connect(impatient, certificate=False)
        writer.write(get("/livez"))
        assert (await read_reply(reader)).code == 200
        streams.append((reader, writer))
    late = await asyncio.gather(*[connect(impatient, certificate=False) for _ in range(30)], return_exceptions=True)
    refused = [item for item in late if isinstance(item, BaseException)]
    made = [item for item in late if not isinstance(item, BaseException)]
    cut = sum([await _is_cut(item) for item in made]) + len(refused)
    assert cut >= 10
    for _, writer in (*streams, *made):
        writer.transport.abort()
    await asyncio.sleep(0.1)


async def _is_cut(streams: Streams) -> bool:
    reader, writer = streams
    try:
        writer.write(get("/livez"))
        await writer.drain()
        async with asyncio.timeout(PATIENCE):
            return (await read_reply(reader)).code == 0
    except (ConnectionError, ssl.SSLError):
        return True


async def test_clients_that_leave_in_the_middle_leave_nothing_behind(calm: Embedded) -> None:
    before = calm.server.api.store.revision
    for position in range(0, 200, 10):
        _, writer = await connect(calm)
        writer.write(post(CONFIGMAPS, b'{"metadata":{"name":"half"}}' + b" " * 100)[:position])
        await writer.drain()
        writer.transport.abort()
    await _settled(calm)
    assert calm.server.api.store.revision == before


async def test_clients_that_leave_before_the_answer_leave_nothing_behind(calm: Embedded) -> None:
    for number in range(50):
        _, writer = await connect(calm)
        writer.write(post(CONFIGMAPS, b'{"metadata":{"name":"left-%d"}}' % number))
        await writer.drain()
        writer.transport.abort()
    await _settled(calm)


async def test_watches_that_come_and_go_leave_nothing_behind(calm: Embedded) -> None:
    store = calm.server.api.store
    before = store.stats.watchers
    for _ in range(20):
        streams = await asyncio.gather(*[connect(calm) for _ in range(25)])
        for _, writer in streams:
            writer.write(get(f"{CONFIGMAPS}?watch=1"))
        for reader, _ in streams:
            assert (await read_reply(reader)).code == 200
        for _, writer in streams:
            writer.transport.abort()
    await _settled(calm)
    assert store.stats.watchers == before
    gc.collect()


async def test_a_watch_whose_head_cannot_be_sent_leaves_nothing_behind(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, subscribed = embedded_server.server.api.store, list[int]()

    def fails(_stream: object) -> None:
        subscribed.append(store.stats.watchers)
        raise ConnectionResetError

    monkeypatch.setattr(streaming, "caching", fails)
    for _ in range(3):
        await exchange(embedded_server, get(f"{CONFIGMAPS}?watch=1"))
    assert subscribed == [1, 1, 1]
    await _settled(embedded_server)


async def _settled(embedded: Embedded) -> None:
    """Wait until the server has noticed that everybody left."""
    listener, store = embedded.server._listener, embedded.server.api.store
    async with asyncio.timeout(PATIENCE):
        while listener.connections or store.stats.watchers:  # noqa: ASYNC110  # the state of a server, seen from outside
            await asyncio.sleep(0.02)


def deaf(embedded: Embedded, request: bytes) -> ssl.SSLSocket:
    """A client with a small window that asks and never reads."""
    context = ssl.create_default_context(cafile=str(embedded.ca_file))
    context.load_cert_chain(embedded.directory / "pki" / "admin.pem")
    plain = socket.socket()
    plain.settimeout(10)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect(("127.0.0.1", int(embedded.url.rpartition(":")[2])))
    secure = context.wrap_socket(plain, server_hostname="127.0.0.1")
    secure.sendall(request)
    return secure


async def _fill(embedded: Embedded, size: int, count: int) -> None:
    async with embedded.client() as client:
        for number in range(count):
            body = {"metadata": {"name": f"big-{number}"}, "data": {"k": "x" * size}}
            assert (await client.post(CONFIGMAPS, json=body)).status_code == 201


async def test_a_watcher_that_never_reads_is_cut(impatient: Embedded) -> None:
    silent = await asyncio.to_thread(deaf, impatient, get(f"{CONFIGMAPS}?watch=1"))
    async with asyncio.timeout(PATIENCE):
        while impatient.server.api.store.stats.watchers != 1:  # noqa: ASYNC110  # the state of a server, seen from outside
            await asyncio.sleep(0.01)
    await _fill(impatient, 500_000, 30)
    async with asyncio.timeout(PATIENCE):
        while impatient.server.api.store.stats.watchers:  # noqa: ASYNC110  # the state of a server, seen from outside
            await asyncio.sleep(0.02)
    silent.close()


async def test_a_reader_of_a_long_list_that_stops_reading_is_cut(impatient: Embedded) -> None:
    await _fill(impatient, 500_000, 30)
    silent = await asyncio.to_thread(deaf, impatient, get(CONFIGMAPS))
    async with asyncio.timeout(PATIENCE):
        while impatient.server._listener.connections:  # noqa: ASYNC110  # the state of a server, seen from outside
            await asyncio.sleep(0.02)
    silent.close()


async def test_a_slow_reader_that_moves_is_not_cut(tmp_path: Path) -> None:
    patient = replace(SHORT, stalled_seconds=2.0, keep_alive_seconds=60.0)  # no thread here stands still for so long
    async with open_apiserver(ServerOptions(tmp_path, bounds=patient), PRODUCT) as server:
        embedded = Embedded(server, tmp_path)
        await _fill(embedded, 500_000, 12)
        secure = await asyncio.to_thread(deaf, embedded, get(CONFIGMAPS))
        got = await asyncio.to_thread(_sip, secure)
    assert got > 12 * 500_000


def _sip(secure: ssl.SSLSocket) -> int:
    """Read slower than the bound on a stall, for longer than it."""
    size, began = 0, time.monotonic()
    while chunk := secure.recv(16_384):
        size += len(chunk)
        if time.monotonic() - began < 3.0:
            time.sleep(0.01)
        if size > 12 * 500_000:
            break
    secure.close()
    return size


async def test_shutdown_ends_watches_and_waiting_bodies_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    serving = AsyncExitStack()
    server = await serving.enter_async_context(open_apiserver(ServerOptions(tmp_path, bounds=SHORT), PRODUCT))
    embedded = Embedded(server, tmp_path)
    watching, waiting = await connect(embedded), await connect(embedded)
    watching[1].write(get(f"{CONFIGMAPS}?watch=1"))
    assert (await read_reply(watching[0])).code == 200
    waiting[1].write(b"POST " + CONFIGMAPS.encode() + b" HTTP/1.1\r\n" + HOST + b"content-length: 10\r\n\r\n")
    await asyncio.sleep(0.05)
    async with asyncio.timeout(PATIENCE):
        closing = asyncio.create_task(serving.aclose())
        assert await watching[0].read() == b"0\r\n\r\n"
        assert await ended(waiting[0])
        await closing
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_connections_leave_descriptors_for_files_and_for_other_listeners(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of its own could not tell more: whoever else listens in this one is left out."""
    monkeypatch.setattr(bounds, "_shares", set())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    small = Bounds(connections=100, reserve=10, known_reserve=10)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))
        first = Share(small)
        assert first.places == Places(100, 50, 10, 10)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 400
        second = Share(Bounds(connections=1000, reserve=10, known_reserve=10))
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 120 + 1020 + RESERVED_DESCRIPTORS
        assert first.places == Places(100, 50, 10, 10)
        assert sum((second.places.usual, second.places.recognised, second.places.late)) == (120 + 1020) // 2
        second.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (RESERVED_DESCRIPTORS + 40, hard))
        assert first.places == Places(30, 15, 5, 5)
        Share(Bounds(connections=10**9))
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_requests_of_others_go_on_while_many_are_slow(impatient: Embedded) -> None:
    slow = [await connect(impatient) for _ in range(20)]
    for _, writer in slow:
        writer.write(b"POST " + CONFIGMAPS.encode() + b" HTTP/1.1\r\n" + HOST + b"content-length: 10\r\n\r\n")
    assert (await exchange(impatient, get("/version"))).code == 200
    for _, writer in slow:
        writer.transport.abort()


def test_the_usual_bounds_are_finite() -> None:
    assert all(value > 0 for value in (getattr(Bounds(), name) for name in Bounds.__slots__))
