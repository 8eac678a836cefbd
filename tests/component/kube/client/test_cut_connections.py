"""Connections that are cut anywhere, within a TLS record and within a line: the informer converges, writes say what they know.

A proxy in front of a real listener forwards bytes and cuts each connection after a number of them, by a reset or by an end.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kinds.registry import find as find_kind
from fastness.kube.client.client import connect
from fastness.kube.client.config import Surroundings, find
from fastness.kube.errors import ApiError, Timeout, Unavailable
from fastness.kube.informers import Informers
from fastness.kube.port import Scope
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

CONFIG_MAP = find_kind("", "v1", "configmaps").resource


class Impatient(SystemClock):
    """A clock that waits at most a moment, so that back-off does not make tests slow."""

    async def sleep(self, seconds: float) -> None:
        """Wait, shortly."""
        await asyncio.sleep(min(seconds, 0.02))


class CuttingProxy:
    """Forwards to a port and cuts a connection once the server has sent its share of bytes."""

    def __init__(self, target: int, shares: list[int]) -> None:
        self.target = target
        self.shares = shares
        self.cuts = 0
        self.port = 0

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Listen on a free port of 127.0.0.1."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        share = self.shares.pop(0) if self.shares else None
        with suppress(ConnectionError):
            upstream, downstream = await asyncio.open_connection("127.0.0.1", self.target)
            ways = [self._copy(reader, downstream, None), self._copy(upstream, writer, share)]
            tasks = [asyncio.create_task(way) for way in ways]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            downstream.transport.abort()
        if share is not None and self.cuts % 2:
            writer.transport.abort()
        else:
            writer.close()

    async def _copy(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, share: int | None) -> None:
        left = share
        while left is None or left > 0:
            data = await source.read(65536)
            if not data:
                return
            sink.write(data if left is None else data[:left])
            await sink.drain()
            left = None if left is None else left - len(data)
        self.cuts += 1


def kubeconfig_through(proxy: CuttingProxy, embedded: Embedded, target: Path) -> Path:
    """The administrator's kubeconfig with the proxy's address."""
    document = json.loads(embedded.kubeconfig.read_text())
    document["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{proxy.port}"
    target.write_text(json.dumps(document))
    return target


def config_map(name: str) -> JsonObject:
    """A ConfigMap of some size, so that events are longer than a few packets."""
    meta = {"name": name, "namespace": "default", "labels": {"test": "cut"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"x": name * 500}}


@pytest.mark.parametrize("share", [0, 1, 700, 2500, 6000, 20000])
async def test_an_informer_converges_over_connections_that_are_cut(
    embedded_server: Embedded, tmp_path: Path, share: int
) -> None:
    proxy = CuttingProxy(int(embedded_server.url.rpartition(":")[2]), [share + 211 * step for step in range(6)])
    clock, entropy = Impatient(), SystemEntropy()
    async with proxy.listening():
        connection = find(
            Surroundings({}, Path("/nonexistent")),
            kubeconfig=kubeconfig_through(proxy, embedded_server, tmp_path / "config"),
        )
        async with (
            connect(connection, clock=clock, entropy=entropy) as cluster,
            Informers(cluster, clock=clock, entropy=entropy) as informers,
            asyncio.timeout(PATIENCE),
        ):
            informer = informers.of(CONFIG_MAP, Scope("default", labels="test=cut"))
            last = asyncio.Event()
            informer.subscribe(lambda _old, new: last.set() if new and new["metadata"]["name"] == "last" else None)
            for number in range(12):
                await embedded_server.cluster.create(CONFIG_MAP, config_map(f"n{number:02}"))
                await asyncio.sleep(0.01)
            await embedded_server.cluster.delete(CONFIG_MAP, "n05", "default")
            await embedded_server.cluster.create(CONFIG_MAP, config_map("last"))
            await last.wait()
            names = {obj["metadata"]["name"] for obj in informer.list()}
    assert names == {f"n{number:02}" for number in range(12) if number != 5} | {"last"}
    assert proxy.cuts > 0


@pytest.mark.parametrize("share", [0, 100, 1500, 2500, 3000, 3300, 3600])
async def test_a_write_over_a_connection_that_is_cut_never_lies(
    embedded_server: Embedded, tmp_path: Path, share: int
) -> None:
    proxy = CuttingProxy(int(embedded_server.url.rpartition(":")[2]), [share] * 8)
    async with proxy.listening():
        connection = find(
            Surroundings({}, Path("/nonexistent")),
            kubeconfig=kubeconfig_through(proxy, embedded_server, tmp_path / "config"),
        )
        async with connect(connection, clock=Impatient(), entropy=SystemEntropy()) as cluster:
            error: ApiError | None = None
            try:
                await cluster.create(CONFIG_MAP, config_map("one"))
            except (Timeout, Unavailable) as caught:
                error = caught
    stored = (await embedded_server.cluster.list(CONFIG_MAP, Scope("default", labels="test=cut"))).items
    if error is None:
        assert len(stored) == 1
    elif isinstance(error, Unavailable):
        assert stored == [], "unavailable means that nothing was changed"
    else:
        assert len(stored) <= 1
