"""The forwarder: the address on a machine's own loopback that unmodified Ignition fetches its configuration from.

    async with Forwarder(port, read=lambda accept: ask_of_host(places, attester, accept, patience)) as forwarder:
        config = await forwarder.run(lambda ask: boot_once(attester, ask, trust, patience))

Ignition asks, the agent reads user-data (`read`), the machine proves itself, and Ignition gets what the cluster signed for it.
Without `read` stock Ignition carries ticket and server in its request. What is answered to whom is decided in `waiting.py`; here
are sockets.

* Loopback only, a few connections at a time, one request each, heads bounded in size and time.
* A request that comes while the machine proves itself is held for a moment, so that Ignition does not sleep through the end.
* `run` ends after the config left, or after Ignition heard the refusal: a refusal that nobody heard would look like a machine
  that is still trying.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self

from fastness.agent.boot.boot import BootedConfig, BootRefused, BootRequest
from fastness.agent.boot.waiting import Boot, IgnitionRequest, Reply, Stage
from fastness.agent.errors import AgentError
from fastness.agent.host.errors import DriverError

# Never another address: whoever reaches this port before Ignition gets the machine's configuration.
HOST: Final = "127.0.0.1"
PORT: Final = 22625
HEAD_BYTES: Final = 16 * 1024
MAX_HEADERS: Final = 64
# Ignition has one. More than a few are somebody else's, and must not keep it out for long.
CONNECTIONS: Final = 8
HEAD_SECONDS: Final = 10.0
BODY_SECONDS: Final = 60.0
# Ignition waits longer after each 503; an answer that is held for a moment often comes just in time.
HOLD_SECONDS: Final = 3.0
Work = Callable[[BootRequest], Awaitable[BootedConfig]]
Read = Callable[[str], Awaitable[BootRequest]]
"""What user-data says, for a reader that accepts such configs."""


class Forwarder:
    """One first boot behind one port."""

    def __init__(self, port: int = PORT, *, hold: float = HOLD_SECONDS, read: Read | None = None) -> None:
        self.boot = Boot(of_image=read is not None)
        self._read = read
        self._listen_port = port
        self._hold = hold
        self._server: asyncio.Server | None = None
        self._begun, self._over, self._answered = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._open = 0

    @property
    def port(self) -> int:
        """The port that is bound."""
        assert self._server is not None  # noqa: S101  # asked inside the block only
        return int(self._server.sockets[0].getsockname()[1])

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, HOST, self._listen_port, limit=HEAD_BYTES)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()

    async def run(self, work: Work) -> BootedConfig:
        """Wait for Ignition, do the work, hand out what came of it; raises what the work raised, after Ignition was told."""
        await self._begun.wait()
        try:
            config = await work(await self._ask())
        except BootRefused as error:
            await self._refuse(error.reason, error.message)
            raise
        except (AgentError, DriverError) as error:
            await self._refuse(error.code, error.message)
            raise
        self.boot.ready(config.body)
        self._over.set()
        await self._answered.wait()
        return config

    async def _ask(self) -> BootRequest:
        """What the machine asks the cluster for: by its user-data, or by the request itself."""
        if self._read is not None:
            return await self._read(self.boot.accept)
        assert self.boot.ask is not None  # noqa: S101  # what `begun` means
        return self.boot.ask

    async def _refuse(self, code: str, detail: str) -> None:
        self.boot.refused(code, detail)
        self._over.set()
        await self._answered.wait()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        answered = False
        try:
            if self._open <= CONNECTIONS:
                answered = await self._served(reader, writer)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever went away or talks too long or too slowly gets no answer, and may come again
        finally:
            self._open -= 1
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
            if answered:
                self._answered.set()

    async def _served(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether Ignition knows now how this boot ended."""
        async with asyncio.timeout(HEAD_SECONDS):
            request = parse_head(await reader.readuntil(b"\r\n\r\n"))
        if request is None:
            await _write(writer, Reply(400, b""))
            return False
        reply = self.boot.answer(request)
        if self.boot.stage is Stage.WORKING:
            self._begun.set()
        if reply.retry_after and not self.boot.over:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._hold):
                    await self._over.wait()
                reply = self.boot.answer(request)
        return await self._tell(writer, reply)

    async def _tell(self, writer: asyncio.StreamWriter, reply: Reply) -> bool:
        whole = False
        try:
            async with asyncio.timeout(BODY_SECONDS):
                await _write(writer, reply)
            whole = True
        finally:
            if reply.delivers:
                self.boot.delivered(whole=whole)
        return reply.delivers or reply.refuses


def parse_head(head: bytes) -> IgnitionRequest | None:
    """The head of a request; None for what is none."""
    first, *lines = head[:-4].decode("latin-1").split("\r\n")
    words = first.split(" ")
    if (
        len(words) != 3
        or not words[2].startswith("HTTP/1.")
        or len(lines) > MAX_HEADERS
        or not words[1].startswith("/")
    ):
        return None
    headers: dict[str, tuple[str, ...]] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        # As for a server of the web (RFC 9112 §5.1): a blank before the colon is read in two ways by two readers.
        if not colon or not name or name != name.strip() or not value.isprintable():
            return None
        headers[name.lower()] = (*headers.get(name.lower(), ()), value.strip())
    return IgnitionRequest(words[0], words[1], headers)


async def _write(writer: asyncio.StreamWriter, reply: Reply) -> None:
    """Write an answer and see it leave; raises ConnectionError."""
    later = f"retry-after: {reply.retry_after}\r\n" if reply.retry_after else ""
    allow = "allow: GET\r\n" if reply.status == HTTPStatus.METHOD_NOT_ALLOWED else ""  # RFC 9110 §15.5.6
    head = (
        f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(reply.body)}\r\ncache-control: no-store\r\nconnection: close\r\n{allow}{later}\r\n"
    )
    # Nothing may be left in our own buffer: what the kernel has taken, it delivers or resets.
    writer.transport.set_write_buffer_limits(high=0)
    writer.write(head.encode("ascii") + reply.body)
    await writer.drain()
