"""Connections of clients: what is kept, what is dropped, and answers that play tricks."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from fastness.crypto.x509 import CertificateAuthority
from fastness.http.certificates import load
from fastness.kube.client.pool import ConnectionPool
from fastness.runtime.clock import SystemEntropy
from tests.patience import PATIENCE

AUTHORITY = CertificateAuthority.create("test", datetime.now(UTC), SystemEntropy())
TRUST = ssl.create_default_context(cadata=AUTHORITY.certificate.pem.decode())
GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """Answers every request with the same bytes; counts connections and keeps what it was asked."""

    def __init__(self, answer: bytes, *, ends: bool = False) -> None:
        self.answer, self.ends = answer, ends
        self.connections = 0
        self.asked: list[bytes] = []
        self.port = 0

    async def speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next((int(x[15:]) for x in head.lower().split(b"\r\n") if x[:15] == b"content-length:"), 0)
                self.asked.append(head + await reader.readexactly(length))
                writer.write(self.answer)
                await writer.drain()
                if self.ends:
                    break
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def listening(answer: bytes, *, ends: bool = False) -> AsyncIterator[tuple[Server, httpx.AsyncClient]]:
    server, context = Server(answer, ends=ends), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load(context, AUTHORITY.issue_server(["127.0.0.1"], timedelta(days=1), datetime.now(UTC)))
    running = await asyncio.start_server(server.speak, "127.0.0.1", 0, ssl=context)
    server.port = running.sockets[0].getsockname()[1]
    url = f"https://127.0.0.1:{server.port}"
    try:
        async with httpx.AsyncClient(
            base_url=url, transport=ConnectionPool(TRUST), timeout=5.0, trust_env=False, follow_redirects=False
        ) as client:
            yield server, client
    finally:
        running.close()


async def test_requests_one_after_the_other_share_a_connection() -> None:
    async with listening(GOOD) as (server, client):
        for number in range(3):
            answer = await client.post(f"/a/{number}", content=b"body", headers={"X-One": "two"})
            assert (answer.status_code, answer.content) == (200, b"ok")
        assert server.connections == 1
        assert server.asked[2].startswith(b"POST /a/2 HTTP/1.1\r\n")
        assert b"\r\nX-One: two\r\n" in server.asked[2]
        assert server.asked[2].endswith(b"\r\n\r\nbody")


async def test_requests_at_once_have_connections_of_their_own() -> None:
    async with listening(GOOD) as (server, client):
        answers = await asyncio.gather(*(client.get("/") for _ in range(4)))
        assert [answer.content for answer in answers] == [b"ok"] * 4
        assert server.connections == 4


async def test_a_connection_that_the_server_closed_is_not_used_again() -> None:
    async with listening(GOOD, ends=True) as (server, client):
        assert (await client.get("/")).content == b"ok"
        await asyncio.sleep(0.05)
        assert (await client.get("/")).content == b"ok"
        assert server.connections == 2


async def test_an_answer_that_says_close_ends_its_connection() -> None:
    async with listening(GOOD.replace(b"Content", b"Connection: close\r\nContent")) as (server, client):
        for _ in range(2):
            assert (await client.get("/")).content == b"ok"
        assert server.connections == 2


async def test_chunks_are_put_together_and_the_connection_is_kept() -> None:
    body = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n"
    async with listening(body) as (server, client):
        assert (await client.get("/")).content == b"abcde"
        assert (await client.get("/")).content == b"abcde"
        assert server.connections == 1


async def test_a_body_may_end_with_its_connection() -> None:
    async with listening(b"HTTP/1.1 200 OK\r\n\r\nall of it", ends=True) as (_, client):
        assert (await client.get("/")).content == b"all of it"


async def test_what_comes_before_the_answer_is_passed_over_and_a_head_has_no_body() -> None:
    async with listening(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n") as (
        server,
        client,
    ):
        answer = await client.head("/")
        assert (answer.status_code, answer.content) == (200, b"")
        assert (await client.head("/")).status_code == 200
        assert server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-hello\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n folded: x\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nSpace : x\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nNul: \0\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokXX",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ncut",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000,
        b"",
    ],
)
async def test_an_answer_that_cannot_be_right_is_an_error(answer: bytes) -> None:
    async with listening(answer, ends=True) as (_, client):
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get("/")


async def test_leaving_a_body_unread_ends_the_connection() -> None:
    async with listening(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1_000_000) as (server, client):
        async with client.stream("GET", "/") as answer:
            async for _ in answer.aiter_raw():
                break
        assert len((await client.get("/")).content) == 1_000_000
        assert server.connections == 2


async def test_a_server_that_says_nothing_is_a_timeout_and_its_connection_goes() -> None:
    async with listening(b"HTTP/1.1 200") as (server, client):
        for _ in range(2):
            with pytest.raises(httpx.ReadTimeout):
                await client.get("/", timeout=httpx.Timeout(PATIENCE, read=0.05))
        assert server.connections == 2


async def test_a_certificate_of_another_authority_is_not_believed() -> None:
    async with listening(GOOD) as (server, _):
        async with httpx.AsyncClient(
            transport=ConnectionPool(ssl.create_default_context()), trust_env=False
        ) as stranger:
            with pytest.raises(httpx.ConnectError) as caught:
                await stranger.get(f"https://127.0.0.1:{server.port}/")
        assert isinstance(caught.value.__cause__, ssl.SSLCertVerificationError)
        assert not server.asked


async def test_plain_http_is_spoken_only_where_that_is_allowed() -> None:
    server = Server(GOOD)
    running = await asyncio.start_server(server.speak, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{running.sockets[0].getsockname()[1]}/"
    async with running:
        async with httpx.AsyncClient(transport=ConnectionPool(TRUST), trust_env=False) as client:
            with pytest.raises(httpx.UnsupportedProtocol):
                await client.get(url)
        async with httpx.AsyncClient(transport=ConnectionPool(TRUST, plain=True), trust_env=False) as client:
            assert (await client.get(url)).content == b"ok"
    assert server.connections == 1


async def test_nobody_there_is_an_error_of_the_connection() -> None:
    async with listening(GOOD) as (server, client):
        gone = server.port
    async with httpx.AsyncClient(transport=ConnectionPool(TRUST), trust_env=False) as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(f"https://127.0.0.1:{gone}/")
