"""The API server goes away and comes back: watches resume, informers converge, nobody is told twice without reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from fastness.apiserver import ApiServer, ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.kinds.kind import JsonObject
from fastness.kinds.registry import find as find_kind
from fastness.kube.client.client import connect
from fastness.kube.client.config import Surroundings, find
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster, Scope
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.patience import PATIENCE

CONFIG_MAP = find_kind("", "v1", "configmaps").resource
SCOPE = Scope("default", labels="test=restart")


class Impatient(SystemClock):
    """A clock that waits at most a moment, so that back-off does not make tests slow."""

    async def sleep(self, seconds: float) -> None:
        """Wait, shortly."""
        await asyncio.sleep(min(seconds, 0.05))


class Server:
    """An embedded API that can be stopped and started at the same address."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = 0
        self._serving = AsyncExitStack()

    async def start(self) -> ApiServer:
        """Start, or start again."""
        options = ServerOptions(self.directory / "state", port=self.port)
        running = await self._serving.enter_async_context(open_apiserver(options, PRODUCT))
        self.port = int(running.url.rpartition(":")[2])
        (self.directory / "kubeconfig").write_bytes(running.kubeconfig())
        return running

    async def stop(self) -> None:
        """Stop; a stopped server stays stopped."""
        await self._serving.aclose()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """A server that runs."""
    server = Server(tmp_path)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@asynccontextmanager
async def followed(server: Server) -> AsyncIterator[tuple[Cluster, Informer]]:
    """The cluster over HTTPS, and an informer that follows it."""
    around = Surroundings({}, Path("/nonexistent"))
    connection = find(around, kubeconfig=server.directory / "kubeconfig")
    clock, entropy = Impatient(), SystemEntropy()
    async with (
        connect(connection, clock=clock, entropy=entropy) as cluster,
        Informers(cluster, clock=clock, entropy=entropy) as informers,
    ):
        informer = informers.of(CONFIG_MAP, SCOPE)
        await informers.synced()
        yield cluster, informer


def config_map(name: str) -> JsonObject:
    """A labelled ConfigMap."""
    meta = {"name": name, "namespace": "default", "labels": {"test": "restart"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}


async def eventually(informer: Informer, holds: Callable[[], bool]) -> None:
    """Wait until something holds that the informer brings about."""
    changed = asyncio.Event()
    stop = informer.subscribe(lambda _old, _new: changed.set())
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await changed.wait()
            changed.clear()
    stop()


async def test_an_informer_follows_a_server_that_was_restarted(server: Server) -> None:
    async with followed(server) as (cluster, informer):
        heard: list[str] = []
        await cluster.create(CONFIG_MAP, config_map("before"))
        await eventually(informer, lambda: informer.get("default", "before") is not None)
        informer.subscribe(lambda old, new: heard.append((new or old or {})["metadata"]["name"]))
        await server.stop()
        await server.start()
        await cluster.create(CONFIG_MAP, config_map("after"))
        await eventually(informer, lambda: informer.get("default", "after") is not None)
    assert heard == ["before", "after"]


async def test_what_happened_while_the_server_was_out_of_reach_is_found_out(server: Server) -> None:
    async with followed(server) as (cluster, informer):
        await cluster.create(CONFIG_MAP, config_map("goes"))
        await eventually(informer, lambda: informer.get("default", "goes") is not None)
        port, server.port = server.port, 0
        await server.stop()
        elsewhere = await server.start()
        await elsewhere.cluster.delete(CONFIG_MAP, "goes", "default")
        await elsewhere.cluster.create(CONFIG_MAP, config_map("comes"))
        await elsewhere.api.store.compact()
        await server.stop()
        server.port = port
        await server.start()
        await eventually(informer, lambda: [obj["metadata"]["name"] for obj in informer.list()] == ["comes"])
