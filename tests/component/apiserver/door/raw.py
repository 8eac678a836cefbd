"""Bytes on a TLS connection, for requests that no HTTP client would send."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import NamedTuple

from fastness.observe import metrics
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
HOST = b"host: api\r\n"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


class Reply(NamedTuple):
    """What came back until the end of the answer or of the connection."""

    code: int
    head: bytes
    body: bytes


def defects() -> float:
    """How many defects the process has counted."""
    lines = metrics.exposition().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("fastness_defects_total"))


async def connect(embedded: Embedded, *, certificate: bool = True) -> Streams:
    """A TLS connection, as the administrator or as nobody."""
    context = ssl.create_default_context(cafile=str(embedded.ca_file))
    if certificate:
        context.load_cert_chain(embedded.directory / "pki" / "admin.pem")
    port = int(embedded.url.rpartition(":")[2])
    return await asyncio.open_connection("127.0.0.1", port, ssl=context)


async def exchange(embedded: Embedded, data: bytes, *, certificate: bool = True) -> Reply:
    """Send bytes on a connection of their own; the first answer."""
    reader, writer = await connect(embedded, certificate=certificate)
    try:
        with suppress(ConnectionError):
            writer.write(data)
            await writer.drain()
        async with asyncio.timeout(PATIENCE):
            return await read_reply(reader)
    finally:
        writer.transport.abort()


async def read_reply(reader: asyncio.StreamReader) -> Reply:
    """One answer; code 0 when the connection ended without one."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return Reply(0, b"", b"")
    code = int(head.split(b" ", 2)[1])
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    body = b""
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        body = await reader.readexactly(length)
    return Reply(code, head, body)


def get(path: str, *headers: bytes) -> bytes:
    """A GET request."""
    return b"GET " + path.encode() + b" HTTP/1.1\r\n" + HOST + b"".join(line + b"\r\n" for line in headers) + b"\r\n"


def post(path: str, body: bytes, *headers: bytes) -> bytes:
    """A POST request with its length."""
    lines = (b"content-type: application/json", b"content-length: %d" % len(body), *headers)
    return (
        b"POST " + path.encode() + b" HTTP/1.1\r\n" + HOST + b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body
    )
