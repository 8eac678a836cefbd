"""The listener outside our loop: what it needs of its library, how it changes its certificate, what a stranger may take."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fastness.crypto.x509 import Certificate, CertificateAuthority, Credential
from fastness.http.bounds import Bounds
from fastness.http.rustls import RustListener
from fastness.runtime.clock import SystemClock, SystemEntropy

BODY = b"x" * 200 * 1024
AUTHORITY = CertificateAuthority.create("test", datetime.now(UTC), SystemEntropy())
TRUST = ssl.create_default_context(cadata=AUTHORITY.certificate.pem.decode())


def issued() -> Credential:
    return AUTHORITY.issue_server(["127.0.0.1"], timedelta(days=1), datetime.now(UTC))


async def app(scope: Any, _receive: Any, send: Any) -> None:
    code = 200 if scope["raw_path"] == b"/good%20path" else 404
    await send({"type": "http.response.start", "status": code, "headers": [(b"content-length", b"%d" % len(BODY))]})
    await send({"type": "http.response.body", "body": BODY})


@asynccontextmanager
async def listening(**more: Any) -> AsyncIterator[RustListener]:
    listener = RustListener(app, SystemClock(), **more)
    try:
        await listener.show(issued())
        yield listener
    finally:
        await listener.stop()


async def ask(port: int, head: str = "GET /good%20path HTTP/1.1") -> tuple[bytes, Certificate]:
    """One request over a new connection; the answer and what the server showed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=TRUST)
    try:
        certificate = Certificate.from_der(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        writer.write(f"{head}\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        return await asyncio.wait_for(reader.read(-1), 20), certificate
    finally:
        writer.close()


async def test_it_serves_over_tls_1_3_with_the_path_as_it_was_sent() -> None:
    async with listening() as listener:
        answer, _ = await ask(listener.port)
        assert answer.startswith(b"HTTP/1.1 200")
        assert answer.endswith(BODY)
        assert (await ask(listener.port, "GET /other HTTP/1.1"))[0].startswith(b"HTTP/1.1 404")
        _, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=TRUST)
        assert writer.get_extra_info("ssl_object").version() == "TLSv1.3"
        writer.close()


async def test_another_certificate_is_shown_without_a_lost_connection_and_old_generations_end() -> None:
    async with listening(grace=0.5) as listener:
        fingerprints: list[str] = []
        over = False

        async def ask_on() -> None:
            while not over:
                answer, certificate = await ask(listener.port)
                assert answer.endswith(BODY)
                fingerprints.append(str(certificate.fingerprint))

        callers = [asyncio.create_task(ask_on()) for _ in range(6)]
        credentials = [issued() for _ in range(3)]
        for credential in credentials:
            await asyncio.sleep(0.2)
            await listener.show(credential)
            await asyncio.sleep(0.1)
            _, certificate = await ask(listener.port)
            assert certificate.fingerprint == credential.certificate.fingerprint
            await asyncio.sleep(0.6)
        over = True
        await asyncio.gather(*callers)
        assert {str(entry.certificate.fingerprint) for entry in credentials} <= set(fingerprints)
        descriptors = len(os.listdir("/proc/self/fd"))
    async with listening() as alone:
        assert len(os.listdir("/proc/self/fd")) <= descriptors + 2  # no generation has left something behind
        assert alone.port


async def test_of_several_generations_the_newest_one_is_met_whatever_ends_first() -> None:
    async with listening(grace=0.4) as listener:
        for _ in range(6):
            credential = issued()
            await listener.show(credential)
            for _ in range(8):
                await asyncio.sleep(0.02)
                answer, certificate = await ask(listener.port)
                assert answer.endswith(BODY)
                assert certificate.fingerprint == credential.certificate.fingerprint


async def test_a_port_that_is_stopped_is_free_again() -> None:
    async with listening() as listener:
        port = listener.port
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
    with pytest.raises(OSError):  # refused or reset, whichever comes first
        await ask(port)


async def test_a_port_of_somebody_else_is_refused() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            RustListener(app, SystemClock(), port=taken.getsockname()[1])


async def test_heads_that_are_too_large_or_never_end_are_cut() -> None:
    async with listening(bounds=Bounds(head_bytes=8192, head_seconds=0.5)) as listener:
        answer, _ = await ask(listener.port, f"GET /{'x' * 20_000} HTTP/1.1")
        assert not answer.startswith(b"HTTP/1.1 200")
        assert answer[:12] in (b"", b"HTTP/1.1 431", b"HTTP/1.1 400", b"HTTP/1.1 414")
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=TRUST)
        writer.write(b"GET /good%20path HTTP/1.1\r\nHost: ")
        assert not (await asyncio.wait_for(reader.read(-1), 10)).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_the_private_key_lies_in_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    async with listening() as listener:
        await ask(listener.port)
        assert os.listdir(tmp_path) == []
        assert not [entry for entry in os.listdir("/proc/self/fd") if "memfd:fastness" in _target(entry)]


def _target(descriptor: str) -> str:
    try:
        return str(Path("/proc/self/fd", descriptor).readlink())
    except OSError:
        return ""
