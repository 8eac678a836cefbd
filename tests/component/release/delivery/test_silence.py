"""Silent connections at all doors at once: machines enrol, attest and fetch, and health is answered, all the same."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from fastness.agent.boot.boot import boot_once
from fastness.http.bounds import Bounds
from fastness.sim.tee.images import default_image
from tests.delivering import delivering_world
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

FLOOD = 600
BOUNDS = Bounds(connections=40, handshakes=20, address_handshakes=10, reserve=8, known_reserve=8)


@contextmanager
def silent(port: int, address: str) -> Iterator[None]:
    """Connections that say nothing."""
    with ExitStack() as stack:
        for _ in range(FLOOD):
            listener = stack.enter_context(socket.socket())
            listener.bind((address, 0))
            listener.setblocking(False)
            listener.connect_ex(("127.0.0.1", port))
        yield


@pytest.mark.parametrize("address", ["127.0.0.2", "127.0.0.1"], ids=["another-address", "the-same-address"])
async def test_machines_boot_and_health_is_answered_while_silent_connections_flood_every_door(
    embedded_server: Embedded, address: str
) -> None:
    async with delivering_world(embedded_server.cluster, bounds=BOUNDS) as world:
        await world.publish(default_image().reference_values("tpm"))
        ports = (world.doors.enrolment.port, world.doors.broker.port, world.gate.port)
        before = len(os.listdir("/proc/self/fd"))
        with ExitStack() as stack:
            for port in ports:
                stack.enter_context(silent(port, address))
            for _ in range(2):
                booted = await boot_once(world.machine(), await world.ask(), world.trust, world.patience())
                assert booted.body == world.shelf.body
            async with httpx.AsyncClient(verify=world.trust.tls, timeout=PATIENCE) as http:
                for port in ports:
                    assert (await http.get(f"https://127.0.0.1:{port}/healthz")).status_code == 200
                held = len(os.listdir("/proc/self/fd")) - before - len(ports) * FLOOD
            assert held <= len(ports) * BOUNDS.descriptors
