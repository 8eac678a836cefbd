"""The listener outside our loop: how it changes its certificate, how it ends, what a stranger may take."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fastness.crypto.x509 import Certificate, CertificateAuthority, Credential
from fastness.http import shared_port
from fastness.http.bounds import Bounds
from fastness.http.rustls import GRACE, RustListener
from fastness.http.shared_port import SharedPort
from fastness.runtime.clock import SystemEntropy
from tests.patience import PATIENCE
from tests.virtual import VirtualClock, settle

BODY = b"x" * 200 * 1024
AUTHORITY = CertificateAuthority.create("test", datetime.now(UTC), SystemEntropy())
TRUST = ssl.create_default_context(cadata=AUTHORITY.certificate.pem.decode())


def issued() -> Credential:
    return AUTHORITY.issue_server(["127.0.0.1", "::1"], timedelta(days=1), datetime.now(UTC))


async def app(scope: Any, _receive: Any, send: Any) -> None:
    code = 200 if scope["raw_path"] == b"/good%20path" else 404
    await send({"type": "http.response.start", "status": code, "headers": [(b"content-length", b"%d" % len(BODY))]})
    await send({"type": "http.response.body", "body": BODY})


class Observed(RustListener):
    """A listener whose clock the test moves, and whose port it looks at."""

    def __init__(self, application: Any, clock: VirtualClock, **more: Any) -> None:
        super().__init__(application, clock, **more)
        self.clock = clock

    @property
    def shared(self) -> SharedPort:
        return self._shared

    @property
    def ending(self) -> int:
        return len(self._generations)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110  # other threads and the kernel tell nobody
            await asyncio.sleep(0.005)


@asynccontextmanager
async def listening(**more: Any) -> AsyncIterator[Observed]:
    listener = Observed(app, VirtualClock(), **more)
    try:
        await listener.show(issued())
        yield listener
    finally:
        await listener.stop()


async def ask(port: int, head: str = "GET /good%20path HTTP/1.1", host: str = "127.0.0.1") -> tuple[bytes, Certificate]:
    """One request over a new connection; the answer and what the server showed."""
    reader, writer = await asyncio.open_connection(host, port, ssl=TRUST)
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


class Callers:
    """Clients that never stop asking, each time over a new connection; a failure of one fails the test."""

    def __init__(self, port: int, count: int) -> None:
        self._port = port
        self._over = False
        self._met: list[list[Certificate]] = [[] for _ in range(count)]
        self._tasks = [asyncio.create_task(self._ask_on(certificates)) for certificates in self._met]

    async def _ask_on(self, certificates: list[Certificate]) -> None:
        while not self._over:
            answer, certificate = await ask(self._port)
            assert answer.endswith(BODY)
            certificates.append(certificate)

    async def meet_only(self, credential: Credential) -> None:
        """Have everybody ask at least twice from now on: whoever connects after this moment meets this certificate."""
        begins = [len(certificates) + 1 for certificates in self._met]  # without what is under way
        await until(
            lambda: all(len(own) > begin for own, begin in zip(self._met, begins, strict=True)) or self._failed()
        )
        for certificates, begin in zip(self._met, begins, strict=True):
            assert {met.fingerprint for met in certificates[begin:]} == {credential.certificate.fingerprint}

    def _failed(self) -> bool:
        for task in self._tasks:
            if task.done():
                task.result()
        return False

    async def stop(self) -> None:
        self._over = True
        await asyncio.gather(*self._tasks)


async def test_another_certificate_is_shown_under_load_without_a_lost_connection() -> None:
    async with listening() as listener:
        callers = Callers(listener.port, 12)
        for _ in range(5):
            credential = issued()
            await listener.show(credential)
            await callers.meet_only(credential)
            ending = asyncio.create_task(listener.clock.advance(GRACE))
            await callers.meet_only(credential)
            await ending
            await until(lambda: listener.shared.listeners() == 1)
            await callers.meet_only(credential)
        await callers.stop()


async def test_generations_that_ended_leave_nothing_behind() -> None:
    async with listening() as listener:
        await ask(listener.port)  # its threads have what they need
        descriptors = len(os.listdir("/proc/self/fd"))
        for _ in range(8):
            await listener.show(issued())
            await listener.clock.advance(GRACE)
            await until(lambda: listener.shared.listeners() == 1)
        await until(lambda: len(os.listdir("/proc/self/fd")) <= descriptors + 2)


async def test_a_certificate_that_comes_early_waits_until_there_is_room_for_its_listener() -> None:
    async with listening() as listener:
        second, third = issued(), issued()
        await listener.show(second)
        waiting = asyncio.create_task(listener.show(third))
        for _ in range(8):
            _, certificate = await ask(listener.port)
            assert certificate.fingerprint == second.certificate.fingerprint
        await listener.clock.advance(GRACE)
        await asyncio.wait_for(waiting, PATIENCE)
        for _ in range(8):
            _, certificate = await ask(listener.port)
            assert certificate.fingerprint == third.certificate.fingerprint


async def test_a_certificate_that_is_shown_already_starts_nothing() -> None:
    async with listening() as listener:
        credential = issued()
        await listener.show(credential)
        await listener.clock.advance(GRACE)
        await until(lambda: listener.shared.listeners() == 1)
        await listener.show(credential, [AUTHORITY.certificate])
        assert listener.shared.listeners() == 1


async def test_whoever_connects_before_the_first_listener_is_heard_by_it() -> None:
    listener = Observed(app, VirtualClock())
    listener.shared.begin()
    early = asyncio.create_task(ask(listener.port))
    await settle()
    try:
        await listener.show(issued())
        assert (await asyncio.wait_for(early, PATIENCE))[0].endswith(BODY)
    finally:
        await listener.stop()


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="this kernel has no IPv6")
async def test_an_address_of_version_6_is_served_and_rotated() -> None:
    async with listening(host="::1") as listener:
        assert listener.shared.listeners() == 1
        await listener.show(issued())
        assert listener.shared.listeners() == 2
        assert (await ask(listener.port, host="::1"))[0].endswith(BODY)
        await listener.clock.advance(GRACE)
        await until(lambda: listener.shared.listeners() == 1)


async def test_where_the_kernel_takes_no_filter_both_generations_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_port, "_SO_ATTACH_REUSEPORT_CBPF", 9999)  # an option that no kernel has
    async with listening() as listener:
        credential = issued()
        await listener.show(credential)
        for _ in range(8):
            assert (await ask(listener.port))[0].endswith(BODY)
        await listener.clock.advance(GRACE)
        await until(lambda: listener.shared.listeners() == 1)
        assert (await ask(listener.port))[1].fingerprint == credential.certificate.fingerprint


async def test_a_start_that_is_refused_says_why_and_leaves_what_is_served() -> None:
    async with listening() as listener:
        _, before = await ask(listener.port)
        good = issued()
        wrong = Credential(good.certificate, issued().key)
        with pytest.raises(
            OSError, match=f"nothing can listen on port {listener.port} with this certificate: .*KEY_VALUES"
        ):
            await listener.show(wrong)
        assert (await ask(listener.port))[1].fingerprint == before.fingerprint
        await listener.show(good)
        assert (await ask(listener.port))[1].fingerprint == good.certificate.fingerprint


async def test_a_library_that_does_not_start_says_why() -> None:
    listener = Observed(app, VirtualClock(), bounds=Bounds(head_seconds=-1))
    try:
        with pytest.raises(OSError, match=f"the listener on port {listener.port} did not start: .*negative"):
            await listener.show(issued())
    finally:
        await listener.stop()


async def test_a_listener_that_stops_answers_what_runs_and_takes_no_more() -> None:
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        arrived.set()
        await go_on.wait()
        await app(scope, receive, send)

    listener = Observed(slow, VirtualClock(), bounds=Bounds(shutdown_seconds=PATIENCE))
    await listener.show(issued())
    await listener.show(issued())  # the older one is retiring
    asking = asyncio.create_task(ask(listener.port))
    await asyncio.wait_for(arrived.wait(), PATIENCE)
    stopping = asyncio.create_task(listener.stop())
    await until(lambda: listener.shared.listeners() == 0)
    with pytest.raises(ConnectionRefusedError):
        await ask(listener.port)
    assert not stopping.done()
    go_on.set()
    assert (await asking)[0].endswith(BODY)
    await asyncio.wait_for(stopping, PATIENCE)


async def test_a_client_that_takes_nothing_does_not_hold_the_end_up() -> None:
    async def large(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(32 * 1024 * 1024)})

    listener = Observed(large, VirtualClock(), bounds=Bounds(shutdown_seconds=0.1))
    await listener.show(issued())
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=TRUST, limit=1024)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    await asyncio.wait_for(listener.stop(), PATIENCE)
    assert not reader.at_eof()
    writer.transport.abort()
    await until(lambda: listener.ending == 0)


async def test_a_listener_that_ends_late_leaves_the_next_one_of_its_port_alone() -> None:
    async with listening() as listener:
        port = listener.port
    with socket.socket() as other:  # as the library forgets one
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        after = Observed(app, VirtualClock(), port=port)
        listener.shared.sweep()
        with pytest.raises(OSError, match="Bad file descriptor"):
            other.getsockname()
        other.detach()
    try:
        await after.show(issued())
        assert (await ask(port))[0].endswith(BODY)
    finally:
        await after.stop()


async def test_no_more_connections_are_served_at_once_than_the_bounds_allow() -> None:
    async with listening(bounds=Bounds(connections=2, reserve=1, known_reserve=0)) as listener:
        places = [await asyncio.open_connection("127.0.0.1", listener.port, ssl=TRUST) for _ in range(2)]
        late = asyncio.create_task(ask(listener.port))
        for reader, writer in places:
            writer.write(b"GET /good%20path HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(len(BODY))
        assert not late.done()
        places[0][1].close()
        assert (await asyncio.wait_for(late, PATIENCE))[0].endswith(BODY)
        places[1][1].close()


async def test_the_logs_of_the_process_are_left_as_they_are() -> None:
    handler, library = logging.NullHandler(), logging.getLogger("_granian")
    library.addHandler(handler)
    try:
        names = ("", "_granian", "granian.access", "fastness")
        before = [(list(logging.getLogger(name).handlers), logging.getLogger(name).propagate) for name in names]
        async with listening() as listener:
            await ask(listener.port)
            after = [(list(logging.getLogger(name).handlers), logging.getLogger(name).propagate) for name in names]
        assert after == before
        assert not library.isEnabledFor(logging.WARNING)
    finally:
        library.removeHandler(handler)


async def test_a_port_that_is_stopped_is_free_again() -> None:
    async with listening() as listener:
        port = listener.port
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
    with pytest.raises(OSError):  # refused or reset, whichever comes first
        await ask(port)


@pytest.mark.parametrize("shares", [False, True])
async def test_a_port_of_somebody_else_is_refused(shares: bool) -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, shares)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(OSError, match="in use"):
            RustListener(app, VirtualClock(), port=taken.getsockname()[1])


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
