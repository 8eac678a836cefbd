"""Memory of the server process under strangers: bounded, whatever they send and however little they read."""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress
from pathlib import Path

from tests.e2e.api.process import CONFIGMAPS, Up

MEBIBYTE = 1024 * 1024
IDLE = 2000
HEAD = b"POST " + CONFIGMAPS.encode() + b" HTTP/1.1\r\nhost: api\r\n"


def port_of(up: Up) -> int:
    return int(up.url.rpartition(":")[2])


def stranger(up: Up) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(up.state / "pki" / "ca.crt"))


async def test_two_thousand_idle_connections_cost_little_and_stop_nobody(tmp_path: Path) -> None:
    async with Up(tmp_path / "state") as up, up.client() as client:
        before = up.rss()
        context = stranger(up)
        idle = []
        for number in range(IDLE // 100):
            # Most stop before the handshake, which is the cheapest way to hold a descriptor of the server.
            secure = context if number % 5 == 0 else None
            # One address has a bound: beyond it whoever says nothing gives way, and a handshake may be cut.
            made = await asyncio.gather(
                *[asyncio.open_connection("127.0.0.1", port_of(up), ssl=secure) for _ in range(100)],
                return_exceptions=True,
            )
            assert all(isinstance(connection, (tuple, ConnectionError)) for connection in made)
            idle += [connection for connection in made if isinstance(connection, tuple)]
        assert (await client.post(CONFIGMAPS, json={"metadata": {"name": "c"}})).status_code == 201
        assert up.rss() - before < 250 * MEBIBYTE
        for _, writer in idle:
            writer.transport.abort()
        assert up.stop() == 0
        assert "Traceback" not in up.stderr_text()


async def test_bodies_of_a_hundred_megabytes_do_not_stay_in_memory(tmp_path: Path) -> None:
    async with Up(tmp_path / "state") as up, up.client() as client:
        await client.get(CONFIGMAPS)
        before = up.rss()
        for head in (b"content-length: 104857600\r\n\r\n", b"transfer-encoding: chunked\r\n\r\n"):
            codes = await asyncio.gather(*[_pour(up, head) for _ in range(8)])
            assert codes == [413] * 8
        assert up.rss() - before < 80 * MEBIBYTE
        assert (await client.get("/readyz")).text == "ok"
        assert up.stop() == 0
        assert "Traceback" not in up.stderr_text()


async def _pour(up: Up, head: bytes) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(up), ssl=up.context())
    writer.write(HEAD + head)
    piece = b"z" * MEBIBYTE
    if b"chunked" in head:
        piece = b"%x\r\n%b\r\n" % (MEBIBYTE, piece)
    pouring = asyncio.create_task(_write(writer, piece))
    line = await reader.readline()
    await pouring
    writer.transport.abort()
    return int(line.split()[1])


async def _write(writer: asyncio.StreamWriter, piece: bytes) -> None:
    with suppress(ConnectionError):
        for _ in range(100):
            writer.write(piece)
            await writer.drain()


async def test_watchers_that_never_read_hold_one_batch_each_at_most(tmp_path: Path) -> None:
    watchers, size, count = 20, 100_000, 300
    async with Up(tmp_path / "state") as up, up.client() as client:
        deaf = [await asyncio.to_thread(_deaf, up) for _ in range(watchers)]
        await client.get(CONFIGMAPS)
        before = up.rss()
        for number in range(count):
            body = {"metadata": {"name": f"c{number % 10}"}, "data": {"k": f"{number}" * (size // 3)}}
            path = f"{CONFIGMAPS}/c{number % 10}"
            answer = await (client.post(CONFIGMAPS, json=body) if number < 10 else client.put(path, json=body))
            assert answer.status_code in (200, 201), answer.text
        # 300 changes of 100 kB for 20 watchers are 600 MB: a queue per watcher would show.
        assert up.rss() - before < 200 * MEBIBYTE
        for connection in deaf:
            connection.close()
        assert up.stop() == 0


def _deaf(up: Up) -> ssl.SSLSocket:
    plain = socket.socket()
    plain.settimeout(10)
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.connect(("127.0.0.1", port_of(up)))
    secure = up.context().wrap_socket(plain, server_hostname="127.0.0.1")
    secure.sendall(f"GET {CONFIGMAPS}?watch=1 HTTP/1.1\r\nhost: api\r\n\r\n".encode())
    return secure
