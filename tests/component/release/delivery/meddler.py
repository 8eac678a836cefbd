"""Somebody between a machine and the gate who holds a certificate that the machine believes: the strongest there can be.

async with meddling(world) as meddler:
    meddler.change = lambda answer: …          # every answer of the gate passes here
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from fastness.http.certificates import load
from fastness.http.listener import server_context
from fastness.keys.doors import doors_authority
from fastness.protocol.door import DoorRole
from tests.delivering import ENTROPY, DeliveringWorld


@dataclass
class Meddler:
    """Changes answers, and remembers them; `change` gets the answer as bytes and gives what the machine sees."""

    gate: int
    trust: ssl.SSLContext
    change: Callable[[bytes], bytes] = lambda answer: answer
    answers: list[bytes] = field(default_factory=list)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass requests on until the machine or the gate has had enough."""
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                behind, ahead = await asyncio.open_connection("127.0.0.1", self.gate, ssl=self.trust)
                ahead.write(head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
                answer = await behind.read()
                ahead.close()
                self.answers.append(answer)
                writer.write(self.change(answer))
                await writer.drain()
                break
        writer.close()


@asynccontextmanager
async def meddling(world: DeliveringWorld) -> AsyncIterator[Meddler]:
    """A meddler whom machines take for the gate, for the time of the block."""
    context = server_context()
    authority = await doors_authority(world.cluster, ENTROPY, world.clock.now())
    load(context, authority.serving(DoorRole.GATE, ["127.0.0.1"], world.clock.now()))
    meddler = Meddler(world.gate.port, world.trust.tls)
    server = await asyncio.start_server(meddler.connected, "127.0.0.1", 0, ssl=context)
    async with server:
        world.name_gate(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        yield meddler


def parts(answer: bytes) -> tuple[list[bytes], bytes]:
    """Lines of the head, and the body."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return head.split(b"\r\n"), body


def with_body(answer: bytes, body: bytes) -> bytes:
    """The answer with another body."""
    lines, _ = parts(answer)
    headers = [line for line in lines if not line.lower().startswith(b"content-length")]
    return b"\r\n".join([*headers, b"content-length: %d" % len(body), b"", body])


def without(answer: bytes, header: bytes) -> bytes:
    """The answer without a header."""
    lines, body = parts(answer)
    return b"\r\n".join([*(line for line in lines if not line.lower().startswith(header + b":")), b"", body])


def good(answer: bytes) -> bool:
    """Whether it is the answer that carries a configuration."""
    return answer.startswith(b"HTTP/1.1 200")
