"""`fastness selftest` against real doors: what a good cluster shows, and each way in which a bad one is found out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from fastness.agent.boot.fetch import GateRefused
from fastness.agent.boot.image_trust import BadTrust, ImageTrust
from fastness.attestation.live.simulated_vendor import NAME as VENDOR
from fastness.cli.support.selftest_walk import (
    IMAGE,
    DoorsAt,
    SelftestFailed,
    knock,
    trust_of,
    until_answered,
    until_made,
    walk,
)
from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.http.refusals import Refusal
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.sim.hardware import tampered_image
from fastness.sim.tee.images import default_image
from tests.delivering import DeliveringWorld, delivering_world
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[DeliveringWorld]:
    async with delivering_world(embedded_server.cluster) as delivering:
        await delivering.publish(default_image().reference_values("tpm"))
        # The one that the test brings is the only one then, as in a cluster that nobody simulates machines in.
        await delivering.cluster.delete(CONFIG_MAP.resource, VENDOR, NAMESPACE)
        yield delivering


def doors_of(world: DeliveringWorld, trust: ImageTrust | None = None, gate: str | None = None) -> DoorsAt:
    urls = world.urls[0]
    return DoorsAt(world.server, urls.broker, trust or world.trust, urls.gate if gate is None else gate)


async def walked(world: DeliveringWorld, doors: DoorsAt, *, configured: bool = True) -> list[str]:
    lines: list[str] = []
    async with asyncio.timeout(PATIENCE):
        await walk(world.cluster, doors, "worker", lines.append, configured=configured)
    return lines


async def test_a_made_up_machine_goes_all_the_way_and_leaves_nothing_behind(world: DeliveringWorld) -> None:
    lines = await walked(world, doors_of(world))
    assert lines[0].startswith("enrolled as machine-")
    assert lines[1:4] == [
        "attested",
        "read default/attestation-status/status",
        "got the configuration of pool worker from the gate, signed for this machine",
    ]
    assert lines[4].startswith("the same machine with another boot loader is refused: ")
    assert [entry.what for entry in world.record.entries] == ["release"]
    for kind in (MACHINE, JOIN_TICKET):
        assert (await world.cluster.list(kind.resource)).items == []
    approved = (await world.cluster.list(APPROVED_IMAGE.resource)).items
    assert IMAGE not in [entry["metadata"]["name"] for entry in approved]


async def test_without_keys_of_configurations_the_gate_is_not_asked(world: DeliveringWorld) -> None:
    assert len(await walked(world, doors_of(world, gate=""))) == 4
    assert world.record.entries == []


async def test_a_pool_without_a_configuration_is_told_so_to_a_machine_that_the_gate_knows(
    world: DeliveringWorld,
) -> None:
    world.shelf.refusals = [Refusal(503, "not-rendered", "the pool has no rendered config yet")]
    assert "the gate knows the machine, and has no configuration for it yet" in await walked(
        world, doors_of(world), configured=False
    )


@pytest.mark.parametrize(("code", "configured"), [("not-rendered", True), ("config-unsigned", False)])
async def test_a_gate_that_gives_nothing_although_it_should_fails_it(
    world: DeliveringWorld, code: str, configured: bool
) -> None:
    world.shelf.refusals = [Refusal(503, code, "nothing")]
    with pytest.raises(GateRefused) as refused:
        await walked(world, doors_of(world), configured=configured)
    assert refused.value.reason == code


async def test_a_configuration_that_another_key_signed_fails_it(world: DeliveringWorld) -> None:
    strange = Ed25519Signer(SecretBytes(bytes(32))).verifier
    with pytest.raises(SelftestFailed, match="a configuration that does not count"):
        await walked(world, doors_of(world, ImageTrust(world.trust.tls, {strange.id: strange})))


async def test_a_broker_that_lets_a_changed_machine_in_fails_it(world: DeliveringWorld) -> None:
    await world.publish(tampered_image("tpm").reference_values("tpm"), "whatever-comes")
    with pytest.raises(SelftestFailed, match="the broker let in the same machine with another boot loader"):
        await walked(world, doors_of(world))


async def test_a_stranger_is_refused_at_both_doors(world: DeliveringWorld) -> None:
    lines: list[str] = []
    await knock(doors_of(world), lines.append)
    assert lines[0] == "a ticket that nobody made is refused: ticket-required"
    assert lines[1].startswith("a machine that never enrolled is refused: ")


async def test_where_machines_cannot_be_made_up_it_says_what_to_run(embedded_server: Embedded) -> None:
    async with delivering_world(embedded_server.cluster, {"mode": "Audit", "simulated": True}) as world:
        with pytest.raises(SelftestFailed, match="not one that enforces and is simulated") as failed:
            await walked(world, doors_of(world))
        assert "--stranger" in failed.value.hint


async def test_another_simulated_vendor_is_left_alone(embedded_server: Embedded) -> None:
    async with delivering_world(embedded_server.cluster) as world:
        before = await world.cluster.get(CONFIG_MAP.resource, VENDOR, NAMESPACE)
        with pytest.raises(SelftestFailed, match="another simulated vendor"):
            await walked(world, doors_of(world))
        assert await world.cluster.get(CONFIG_MAP.resource, VENDOR, NAMESPACE) == before


async def test_keys_that_are_no_keys_are_refused_by_what_they_are(world: DeliveringWorld) -> None:
    world_ca = world.gate.doors.bundle
    with pytest.raises(SelftestFailed, match="not a JWKS"):
        trust_of(world_ca, b"[]")
    with pytest.raises(BadTrust):
        trust_of(world_ca, json.encode({"keys": [{"kty": "RSA"}]}))
    assert trust_of(world_ca, b"").keys == {}


async def test_it_waits_for_doors_that_come_and_not_longer_than_it_may(world: DeliveringWorld) -> None:
    started = asyncio.get_running_loop().time()
    await until_answered(doors_of(world), PATIENCE)
    await until_made(world.cluster, PATIENCE)
    assert asyncio.get_running_loop().time() - started < PATIENCE, "doors that are there are not waited for"
    await until_answered(DoorsAt("https://127.0.0.1:1", world.urls[0].broker, world.trust), 0.1)
