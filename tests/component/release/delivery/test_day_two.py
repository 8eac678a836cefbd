"""A running machine fetches the config that it was sent to: it attests when it has to, and believes signed bytes alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from fastness.agent.boot.boot import boot_once
from fastness.agent.boot.configs import AttestedConfigs, ConfigRefused
from fastness.agent.boot.enrol import Doors
from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.errors import BadConfig
from fastness.crypto.eddsa import Ed25519Signer
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.http.refusals import Refusal
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import Unavailable
from fastness.kube.port import PatchType, WriteOptions
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import default_image
from tests.delivering import ENTROPY, DeliveringWorld, delivering_world, until
from tests.embedded.fixtures import Embedded

NEW, OTHER = (f"rendered-worker-{letter * 32}" for letter in "ab")
STATUS = WriteOptions(subresource="status")


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[DeliveringWorld]:
    async with delivering_world(embedded_server.cluster) as delivering:
        await delivering.publish(default_image().reference_values("tpm"), "values-tpm")
        yield delivering


class Counting(SimAttester):
    """A machine that counts how often it had to prove itself."""

    quotes = 0

    async def evidence(self, report_data: bytes) -> JsonObject:
        """The evidence of the chip, counted."""
        self.quotes += 1
        return await super().evidence(report_data)


async def sent(world: DeliveringWorld, name: str = NEW) -> Counting:
    """A machine that booted and was sent to a config by the controllers."""
    attester = Counting(world.machine().machine)
    booted = await boot_once(attester, await world.ask(), world.trust, world.patience())
    patch = {"status": {"desiredConfig": name}}
    await world.cluster.patch(MACHINE.resource, booted.machine.name, patch, PatchType.MERGE, NAMESPACE, STATUS)
    world.shelf.body = json.encode({"kind": "MachineConfig", "metadata": {"name": name}, "spec": {"fips": False}})
    attester.quotes = 0
    return attester


def configs(world: DeliveringWorld, attester: SimAttester, trust: ImageTrust | None = None) -> AttestedConfigs:
    doors = Doors(world.urls[0].broker, world.urls[0].gate)
    return AttestedConfigs(attester, lambda: doors, lambda: trust or world.trust, world.clock, ENTROPY)


async def test_a_machine_attests_on_demand_and_again_when_its_token_has_ended(world: DeliveringWorld) -> None:
    attester = await sent(world)
    agent = configs(world, attester)
    for ahead, quotes in ((0, 1), (1, 1), (12, 2)):
        world.clock.ahead = timedelta(minutes=ahead)
        assert (await agent.fetch(NEW))["spec"] == {"fips": False}
        assert attester.quotes == quotes
    assert [entry.detail["basis"] for entry in world.record.entries if entry.what == "release"][1:] == ["verdict"] * 3


async def test_the_broker_delivers_by_name_too_and_the_machine_finds_the_door_by_itself(world: DeliveringWorld) -> None:
    attester = await sent(world)
    agent = configs(world, attester)
    patch = {"spec": {"delivery": {"via": "Broker", "sync": "OnDemand"}}}
    await world.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", patch, PatchType.MERGE)
    informer = world.informers.of(CONFIDENTIAL_CLUSTER.resource)
    await until(lambda: (informer.get("", "cluster") or {})["spec"]["delivery"]["via"] == "Broker")
    assert (await agent.fetch(NEW))["metadata"]["name"] == NEW
    with pytest.raises(ConfigRefused, match="not-assigned"):
        await agent.fetch(OTHER)


async def test_a_config_that_is_not_the_machines_is_refused_and_says_so(world: DeliveringWorld) -> None:
    attester = await sent(world)
    before = len(world.shelf.requests)
    with pytest.raises(ConfigRefused, match="not-assigned") as caught:
        await configs(world, attester).fetch(OTHER)
    assert caught.value.hint
    assert len(world.shelf.requests) == before, "nobody fetched it for them"


async def test_bytes_that_another_key_signed_are_not_believed(world: DeliveringWorld) -> None:
    attester = await sent(world)
    stranger = Ed25519Signer(SecretBytes(b"s" * 32)).verifier
    trusted = next(iter(world.trust.keys))
    for keys in ({stranger.id: stranger}, {trusted: stranger}):
        with pytest.raises(ConfigRefused, match="sign"):
            await configs(world, attester, replace(world.trust, keys=keys)).fetch(NEW)


async def test_a_door_that_gives_another_config_under_the_name_is_not_believed(world: DeliveringWorld) -> None:
    attester = await sent(world)
    world.shelf.body = json.encode({"kind": "MachineConfig", "metadata": {"name": OTHER}, "spec": {}})
    with pytest.raises(BadConfig, match="another config"):
        await configs(world, attester).fetch(NEW)


async def test_what_passes_is_waited_for_as_an_api_that_cannot_answer(world: DeliveringWorld) -> None:
    attester = await sent(world)
    world.shelf.refusals = [Refusal(503, "not-rendered", "not yet")]
    agent = configs(world, attester)
    with pytest.raises(Unavailable):
        await agent.fetch(NEW)
    assert (await agent.fetch(NEW))["metadata"]["name"] == NEW
