"""The forwarder's socket: what Ignition sees, and what others who can reach the loopback see."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from fastness.agent.boot.boot import BootedConfig, BootRefused, BootRequest
from fastness.agent.boot.enrol import Enrolled
from fastness.agent.boot.forwarder import CONNECTIONS, HEAD_BYTES, Forwarder, parse_head
from fastness.agent.boot.waiting import Stage
from fastness.agent.host.errors import TpmFailure
from tests.patience import PATIENCE

CONFIG = BootedConfig(b'{"ignition":{}}', Enrolled("uid", "machine-1", "worker-1", "worker", "Approved"))


def head(ticket: str = "good", target: str = "/config/worker", method: str = "GET") -> bytes:
    lines = [
        f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {ticket}",
        "X-Fastness-Server: https://cluster.example", "Accept: */*", "", "",
    ]  # fmt: skip
    return "\r\n".join(lines).encode()


async def say(port: int, data: bytes) -> tuple[int, bytes]:
    """Send bytes; status and body of the answer, (0, b"") when there was none."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        async with asyncio.timeout(PATIENCE):
            answer = await reader.read()
    except ConnectionError:
        return 0, b""
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
    status, _, body = answer.partition(b"\r\n\r\n")
    return (int(status.split()[1]) if status else 0), body


@asynccontextmanager
async def forwarding(
    work: Callable[[BootRequest], Awaitable[BootedConfig]], hold: float = 0.02
) -> AsyncIterator[tuple[Forwarder, asyncio.Task[BootedConfig]]]:
    async with Forwarder(0, hold=hold) as forwarder:
        task = asyncio.ensure_future(forwarder.run(work))
        try:
            yield forwarder, task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


class Work:
    """Work that waits for the test."""

    def __init__(self) -> None:
        self.asks: list[BootRequest] = []
        self.begun = asyncio.Event()
        self.end: asyncio.Future[BootedConfig] = asyncio.get_running_loop().create_future()

    async def __call__(self, ask: BootRequest) -> BootedConfig:
        self.asks.append(ask)
        self.begun.set()
        return await self.end


async def test_ignition_waits_and_then_gets_the_config_once() -> None:
    work = Work()
    async with forwarding(work) as (forwarder, task):
        assert [(await say(forwarder.port, head()))[0] for _ in range(2)] == [503, 503]
        work.end.set_result(CONFIG)
        await asyncio.sleep(0)
        assert await say(forwarder.port, head()) == (200, CONFIG.body)
        assert await task == CONFIG
        assert forwarder.boot.stage is Stage.ANSWERED
    assert [ask.pool for ask in work.asks] == ["worker"]


async def test_a_request_is_held_so_that_the_end_is_not_slept_through() -> None:
    work = Work()
    async with forwarding(work, hold=10) as (forwarder, _):
        waiting = asyncio.ensure_future(say(forwarder.port, head()))
        await work.begun.wait()
        work.end.set_result(CONFIG)
        assert await waiting == (200, CONFIG.body)


async def test_after_the_config_left_the_port_is_closed() -> None:
    work = Work()
    work.end.set_result(CONFIG)
    async with Forwarder(0) as forwarder:
        task = asyncio.ensure_future(forwarder.run(work))
        port = forwarder.port
        assert (await say(port, head()))[0] == 200
        await task
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", port)


@pytest.mark.parametrize(
    ("failure", "code"),
    [(BootRefused("value-differs", "PCR 11", "look"), b"value-differs"), (TpmFailure("no TPM"), b"tpm")],
)
async def test_a_failure_ends_the_boot_after_ignition_heard_of_it(failure: Exception, code: bytes) -> None:
    work = Work()
    async with forwarding(work) as (forwarder, task):
        assert (await say(forwarder.port, head()))[0] == 503
        work.end.set_exception(failure)
        await asyncio.sleep(0.02)
        assert not task.done()
        assert (await say(forwarder.port, head("other")))[0] == 403
        await asyncio.sleep(0.02)
        assert not task.done()
        status, body = await say(forwarder.port, head())
        assert status == 403
        assert code in body
        with pytest.raises(type(failure)):
            await task


async def test_strangers_on_the_loopback_start_and_get_nothing() -> None:
    work = Work()
    async with forwarding(work) as (forwarder, _):
        assert (await say(forwarder.port, head(target="/")))[0] == 404
        assert (await say(forwarder.port, b"nonsense\r\n\r\n"))[0] == 400
        assert (await say(forwarder.port, b"GET / HTTP/1.1\r\nx: " + b"y" * HEAD_BYTES * 2))[0] == 0
        assert work.asks == []
        assert (await say(forwarder.port, head()))[0] == 503
        work.end.set_result(CONFIG)
        assert (await say(forwarder.port, head("stolen")))[0] == 403
        assert (await say(forwarder.port, head()))[0] == 200


async def test_a_refused_method_comes_with_the_one_that_there_is() -> None:
    async with forwarding(Work()) as (forwarder, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", forwarder.port)
        writer.write(head(method="POST"))
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert b"\r\nallow: GET\r\n" in answer


async def test_a_reader_who_leaves_in_the_middle_may_come_again() -> None:
    large = BootedConfig(b"x" * 16 * 1024 * 1024, CONFIG.machine)
    work = Work()
    work.end.set_result(large)
    async with forwarding(work) as (forwarder, task):
        reader, writer = await asyncio.open_connection("127.0.0.1", forwarder.port)
        writer.write(head())
        await reader.readexactly(1000)
        writer.transport.abort()
        async with asyncio.timeout(PATIENCE):
            while forwarder.boot.stage is not Stage.READY:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert not task.done()
        assert await say(forwarder.port, head()) == (200, large.body)
        assert await task == large


async def test_more_connections_than_it_serves_are_closed() -> None:
    work = Work()
    async with forwarding(work, hold=5) as (forwarder, _):
        idle = [await asyncio.open_connection("127.0.0.1", forwarder.port) for _ in range(CONNECTIONS)]
        await asyncio.sleep(0.02)
        assert (await say(forwarder.port, head()))[0] == 0
        for _, writer in idle:
            writer.transport.abort()
        work.end.set_result(CONFIG)
        async with asyncio.timeout(PATIENCE):
            while not (status := (await say(forwarder.port, head()))[0]):  # noqa: ASYNC110  # a server tells nobody
                await asyncio.sleep(0.01)
        assert status == 200


async def test_a_port_that_is_taken_is_an_error() -> None:
    async with Forwarder(0) as first:
        with pytest.raises(OSError, match="address already in use"):
            async with Forwarder(first.port):
                pass


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/2\r\n\r\n", b"GET http://a/ HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1 x\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"GET / HTTP/1.1\r\n: x\r\n\r\n", b"GET / HTTP/1.1\r\na : x\r\n\r\n",
        b"GET / HTTP/1.1\r\n a: x\r\n\r\n", b"GET / HTTP/1.1\r\na: x\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 65 + b"\r\n",
    ],
)  # fmt: skip
def test_heads_that_are_none(data: bytes) -> None:
    assert parse_head(data) is None


def test_a_head_keeps_repeated_headers_apart() -> None:
    knock = parse_head(b"GET /config/worker HTTP/1.1\r\nA: 1\r\na:2 \r\nB: 3\r\n\r\n")
    assert knock is not None
    assert knock.headers == {"a": ("1", "2"), "b": ("3",)}
    assert (knock.header("A"), knock.header("b")) == ("", "3")
