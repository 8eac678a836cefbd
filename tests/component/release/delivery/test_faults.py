"""What breaks around the doors: a disk that is full, an authority that has expired, two machines with one identity."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fastness.agent.boot.boot import BootRefused, BootRequest, boot_once
from fastness.agent.boot.enrol import DoorUnreachable
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.boot.prove import DoorRefused
from fastness.apiserver import ServerOptions, open_apiserver
from fastness.apiserver.store import StoreSettings
from fastness.app.product import PRODUCT
from fastness.crypto.x509 import CertificateAuthority
from fastness.formats import json
from fastness.http.certificates import LoopListener
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import ApiError
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import default_image
from tests.delivering import ACCEPT, ENTROPY, DeliveringWorld, delivering_world
from tests.embedded.fixtures import Embedded

SPEC: JsonObject = {"mode": "Enforce", "simulated": True, "delivery": {"via": "Broker", "sync": "OnDemand"}}


QUOTA = 8 * 1024 * 1024


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[DeliveringWorld]:
    async with delivering_world(embedded_server.cluster, SPEC) as delivering:
        await delivering.publish(default_image().reference_values("tpm"))
        yield delivering


async def test_while_the_disk_is_full_nothing_leaves_and_with_room_the_machine_goes_on_by_itself(
    tmp_path: Path,
) -> None:
    options = ServerOptions(tmp_path / "state", store=StoreSettings(max_bytes=QUOTA))
    async with open_apiserver(options, PRODUCT) as server, delivering_world(server.cluster, SPEC) as world:
        await world.publish(default_image().reference_values("tpm"))
        machine, ask = world.machine("tpm"), await world.ask()
        assert (await boot_once(machine, ask, world.trust, world.patience())).body == world.shelf.body
        assert await _fill(world)
        before = len(world.shelf.requests)
        with pytest.raises((DoorRefused, DoorUnreachable)):
            await boot_once(machine, ask, world.trust, world.patience(1.0))
        assert len(world.shelf.requests) == before
        waiting = asyncio.ensure_future(boot_once(machine, ask, world.trust, world.patience(30.0)))
        server.api.store._database._connection.execute("PRAGMA max_page_count = 1000000")  # somebody made room
        assert (await waiting).body == world.shelf.body


async def _fill(world: DeliveringWorld) -> list[str]:
    """Write until nothing goes any more, in smaller and smaller pieces."""
    names: list[str] = []
    for size in (256 * 1024, 16 * 1024, 1024, 16):
        while len(names) < 2000:
            meta = {"name": f"filler-{len(names)}", "namespace": "default"}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"x": "x" * size}}
            try:
                await world.cluster.create(CONFIG_MAP.resource, body)
            except ApiError:
                break
            names.append(meta["name"])
    return names


async def test_an_authority_that_has_expired_is_waited_for_and_never_believed(world: DeliveringWorld) -> None:
    born = datetime.now(UTC) - timedelta(days=3660)
    old = CertificateAuthority.create("expired", born, ENTROPY)
    heard: list[bytes] = []

    async def app(scope: dict[str, object], _receive: object, _send: object) -> None:
        heard.append(scope.get("raw_path", b""))  # type: ignore[arg-type]

    door = LoopListener(app)
    await door.show(old.issue_server(["127.0.0.1"], timedelta(days=3650), born))
    trust = json.encode({"ca": old.certificate.pem.decode(), "configKeys": world.served.signer.jwks()})
    ask = BootRequest("worker", await world.ticket(), f"https://127.0.0.1:{door.port}", ACCEPT)
    try:
        with pytest.raises(DoorUnreachable):
            await boot_once(world.machine("tpm"), ask, ImageTrust.parse(trust), world.patience(1.0))
    finally:
        await door.stop()
    assert heard == []


async def test_two_machines_with_one_identity_are_one_machine_of_the_cluster(world: DeliveringWorld) -> None:
    ask = await world.ask()
    # Copies that were booted equally often: with different counts the earlier one would be told from the later.
    twins = [SimAttester(world.vendor.chip("tpm", serial=1).boot(default_image())) for _ in range(2)]
    booted = await asyncio.gather(*(boot_once(attester, ask, world.trust, world.patience()) for attester in twins))
    assert booted[0].machine == booted[1].machine
    assert len((await world.cluster.list(MACHINE.resource)).items) == 1


async def test_a_ticket_for_one_machine_that_two_use_at_the_same_instant_lets_one_in(world: DeliveringWorld) -> None:
    ask = BootRequest("worker", await world.ticket(uses=1), world.server, ACCEPT)
    walks = [boot_once(world.machine("tpm"), ask, world.trust, world.patience()) for _ in range(4)]
    ended = await asyncio.gather(*walks, return_exceptions=True)
    refused = [outcome.reason for outcome in ended if isinstance(outcome, BootRefused)]
    assert refused == ["ticket-used-up"] * 3
    assert len((await world.cluster.list(MACHINE.resource)).items) == 1
