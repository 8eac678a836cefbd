"""The embedded API as a peer of kube-apiserver: with the loops that Kubernetes runs itself, and without those of the product."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastness.apiserver import ApiServer, ServerOptions, open_apiserver
from fastness.apiserver.inventory import Inventory
from fastness.apiserver.loops.controllers import kube_loops
from fastness.app.product import PRODUCT
from fastness.attestation.admission.trusted_objects import WITHOUT_OWNERS
from fastness.kube.controllers import Runner
from fastness.kube.informers import Informers
from fastness.runtime.clock import SystemClock, SystemEntropy

READY_SECONDS = 30.0
POLL = 0.02


@asynccontextmanager
async def embedded_peer(state: Path, *, simulated: bool = True) -> AsyncIterator[ApiServer]:
    """A server with garbage collection, namespace lifecycle and what else an API cannot be told apart without."""
    clock, entropy = SystemClock(), SystemEntropy()
    async with (
        open_apiserver(ServerOptions(state, simulated=simulated), PRODUCT, clock, entropy) as server,
        Informers(server.cluster, clock=clock, entropy=entropy) as informers,
    ):
        loops = kube_loops(server.cluster, Inventory(server.api), clock, server.pki.bundle.decode(), WITHOUT_OWNERS)
        runner = Runner(loops.controllers, informers, clock, entropy, feeds=loops.feeds)
        async with asyncio.TaskGroup() as tasks:
            working = tasks.create_task(runner.run())
            async with asyncio.timeout(READY_SECONDS):
                while runner.waiting_for():  # noqa: ASYNC110  # what it waits for is data, not an event
                    await asyncio.sleep(POLL)
            try:
                yield server
            finally:
                working.cancel()
