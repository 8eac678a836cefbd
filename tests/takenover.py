"""A door that was taken over, for tests: it listens with the stolen certificate of a role and answers as its thief likes.

async with taken_over(world.cluster, DoorRole.GATE, thief) as url: ...

`thief` is asked for every request, and answers it or has it answered by the real door (`relayed`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import httpx

from fastness.agent.boot.image_trust import ImageTrust
from fastness.http.certificates import load
from fastness.http.listener import server_context
from fastness.keys.authorities import SECRETS
from fastness.keys.certificates import read, secret_name
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kube.port import Cluster
from fastness.protocol.door import DoorRole


@dataclass(frozen=True)
class Heard:
    """One request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """What the thief answers."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


Thief = Callable[[Heard], Awaitable[Reply]]


async def relayed(door: str, trust: ImageTrust, heard: Heard) -> Reply:
    """What the real door answers to a request, word for word."""
    passed = {name: value for name, value in heard.headers.items() if name not in ("host", "content-length")}
    async with httpx.AsyncClient(verify=trust.tls, trust_env=False) as http:
        answer = await http.request(heard.method, door + heard.target, headers=passed, content=heard.body)
    passed_on = ("content-type", "dpop-nonce", "retry-after", "set-cookie", "fastness-signature")
    return Reply(
        answer.status_code, {name: answer.headers[name] for name in passed_on if name in answer.headers}, answer.content
    )


@asynccontextmanager
async def taken_over(cluster: Cluster, role: DoorRole, thief: Thief) -> AsyncIterator[str]:
    """The address at which the thief listens, with the certificate in the Secret of a role."""
    stolen = read(await cluster.get(SECRETS, secret_name(role), NAMESPACE))
    assert stolen is not None
    context = server_context()
    load(context, stolen.serving)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            answer = await thief(await _read(reader))
            head = {**answer.headers, "content-length": str(len(answer.body)), "connection": "close"}
            lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
            writer.write(f"HTTP/1.1 {answer.status} x\r\n{lines}\r\n".encode() + answer.body)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _read(reader: asyncio.StreamReader) -> Heard:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if ":" in line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, target, _ = first.split(" ")
    return Heard(method, target, headers, body)
