"""A client certificate in files that somebody renews is shown without a restart, over a real handshake."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trustme

from fastness.formats import json
from fastness.kinds.kind import Resource
from fastness.kube.client.client import connect
from fastness.kube.client.config import Surroundings, find
from fastness.kube.client.renewed_certificate import FRESH_SECONDS
from tests.virtual import VirtualClock

AUTHORITY = trustme.CA()
NODES = Resource("", "v1", "nodes", "Node", False)


@asynccontextmanager
async def server(names: list[str]) -> AsyncIterator[str]:
    """An API that answers everything with a Node, and writes down who came with each request."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    AUTHORITY.issue_cert("127.0.0.1").configure_cert(context)
    AUTHORITY.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = writer.get_extra_info("peercert")
        body = b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}'
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                names.append(peer["subjectAltName"][0][1])
                head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    listener = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    async with listener:
        yield f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}"


def written(file: Path, name: str) -> None:
    """Certificate and key in one file, as a kubelet has them."""
    leaf = AUTHORITY.issue_cert(name)
    file.write_bytes(leaf.cert_chain_pems[0].bytes() + leaf.private_key_pem.bytes())


async def test_a_renewed_certificate_is_shown_after_a_minute_and_one_that_cannot_be_used_never(tmp_path: Path) -> None:
    file, clock, names = tmp_path / "current.pem", VirtualClock(), list[str]()
    written(file, "first.example")
    (tmp_path / "ca.pem").write_bytes(AUTHORITY.cert_pem.bytes())
    async with server(names) as url:
        user = {"client-certificate": "current.pem", "client-key": "current.pem"}
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority": "ca.pem"}}],
            "users": [{"name": "u", "user": user}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        }  # fmt: skip
        (tmp_path / "config").write_bytes(json.encode(config))
        connection = find(Surroundings({}, tmp_path), kubeconfig=tmp_path / "config")
        async with connect(connection, clock=clock) as cluster:
            await cluster.get(NODES, "n")
            written(file, "second.example")
            await cluster.get(NODES, "n")
            await clock.advance(FRESH_SECONDS)
            await cluster.get(NODES, "n")
            file.write_text("half of a file")
            await clock.advance(FRESH_SECONDS)
            await cluster.get(NODES, "n")
    assert names == ["first.example", "first.example", "second.example", "second.example"]
