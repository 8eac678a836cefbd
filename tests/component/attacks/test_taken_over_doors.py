"""One door was taken over, and the thief has a machine of their own that proves itself: what do honest machines take from it?

The thief holds the certificate of that door, and what machines send to it. Honest machines run the agent's own code, over TLS.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from fastness.agent.boot.boot import BootRefused, BootRequest, boot_once
from fastness.agent.boot.configs import AttestedConfigs, ConfigRefused
from fastness.agent.boot.enrol import Doors
from fastness.agent.boot.fetch import NONCE, from_gate
from fastness.agent.boot.prove import BrokerClient
from fastness.crypto.secret import SecretText
from fastness.formats import json
from fastness.http.refusals import Refusal
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType, WriteOptions
from fastness.protocol.config_proof import HEADER
from fastness.protocol.delivered import Delivered, Question
from fastness.protocol.door import DoorRole
from fastness.release.configs import Config
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import default_image
from tests.delivering import ENTROPY, DeliveringWorld, delivering_world
from tests.embedded.fixtures import Embedded
from tests.takenover import Heard, Reply, relayed, taken_over

WORKER, INFRA = (f"rendered-{pool}-{'a' * 32}" for pool in ("worker", "infra"))
COPIES = {"mode": "Enforce", "simulated": True, "delivery": {"via": "Broker", "sync": "OnChange"}}
STATUS = WriteOptions(subresource="status")


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[DeliveringWorld]:
    async with delivering_world(embedded_server.cluster) as delivering:
        await delivering.publish(default_image().reference_values("tpm"))
        yield delivering


class Enrolment:
    """An enrolment door that enrols whoever comes for the pool of a ticket of the thief's, and then says `claims` of it."""

    def __init__(self, world: DeliveringWorld, ticket: SecretText, claims: str) -> None:
        self.world, self.ticket, self.claims = world, ticket, claims

    async def __call__(self, heard: Heard) -> Reply:
        if "authorization" in heard.headers:
            body = json.encode({**json.decode(heard.body), "pool": "infra"})
            forged_headers = {**heard.headers, "authorization": f"Bearer {self.ticket.reveal()}"}
            heard = replace(heard, headers=forged_headers, body=body)
        reply = await relayed(self.world.server, self.world.trust, heard)
        answer = json.decode(reply.body)
        if "pool" in answer:
            reply = replace(reply, body=json.encode({**answer, "pool": self.claims}))
        return reply


@pytest.mark.parametrize(("claims", "reason"), [("infra", "other-pool"), ("worker", "wrong-pool")])
async def test_a_machine_that_asked_for_worker_takes_no_config_of_the_pool_that_a_thief_enrols_it_for(
    world: DeliveringWorld, claims: str, reason: str
) -> None:
    """The enrolment door relays the honest machine's own proof of its key, with a ticket for another pool."""
    thief = Enrolment(world, await world.ticket("infra"), claims)
    honest = world.machine()
    async with taken_over(world.cluster, DoorRole.ENROLMENT, thief) as url:
        ask = await world.ask("worker")
        with pytest.raises(BootRefused) as refused:
            await boot_once(honest, BootRequest(ask.pool, ask.ticket, url, ask.accept), world.trust, world.patience())
    assert refused.value.reason == reason
    assert refused.value.hint
    (machine,) = (await world.cluster.list(MACHINE.resource)).items
    assert machine["status"]["pool"] == "infra", "the theft itself worked"
    assert not world.record.of("release")


class Gate:
    """A gate that gives everybody what the real gate once gave to somebody."""

    def __init__(self, stolen: Delivered) -> None:
        self.stolen = stolen

    async def __call__(self, heard: Heard) -> Reply:
        if "dpop" not in heard.headers:
            return Reply(401, {NONCE: "n" * 32})
        return Reply(200, {HEADER: self.stolen.signature}, self.stolen.config)


async def fetched(world: DeliveringWorld, attester: SimAttester, pool: str) -> Delivered:
    """What the real gate gives to a machine that proves itself; whoever holds the gate, or the machine, keeps it."""
    await boot_once(attester, await world.ask(pool), world.trust, world.patience())
    async with BrokerClient(world.urls[0].broker, world.trust.tls, attester, ENTROPY) as broker:
        await broker.attest()
        question = Question("of-another-time")
        return await from_gate(world.urls[0].gate, world.trust.tls, broker, pool, question, world.clock.now)


@pytest.mark.parametrize("owner", ["other machine, other pool", "other machine, same pool", "same machine, before"])
async def test_a_gate_that_was_taken_over_hands_a_machine_nothing_but_its_own_config_of_now(
    world: DeliveringWorld, owner: str
) -> None:
    honest, thiefs = world.machine(), world.machine()
    source, pool = (
        (honest, "worker") if owner.startswith("same") else (thiefs, "infra" if "other pool" in owner else "worker")
    )
    stolen = await fetched(world, source, pool)
    async with taken_over(world.cluster, DoorRole.GATE, Gate(stolen)) as url:
        world.name_gate(url)
        with pytest.raises(BootRefused) as refused:
            await boot_once(honest, await world.ask("worker"), world.trust, world.patience())
    assert refused.value.reason == "signature-invalid"


async def test_a_broker_that_was_taken_over_hands_out_copies_of_the_pool_that_was_asked_for_alone(
    embedded_server: Embedded,
) -> None:
    """Copies name no machine, so that the pool is all that keeps them apart. The thief changed what the broker looks up."""
    async with delivering_world(embedded_server.cluster, COPIES) as world:
        await world.publish(default_image().reference_values("tpm"))
        real = world.served.copy

        async def swapped(pool: str, accept: str, rendered: str = "") -> Config:
            return await real("infra", accept, rendered)

        world.served.copy = swapped  # type: ignore[method-assign]
        with pytest.raises(BootRefused) as refused:
            await boot_once(world.machine(), await world.ask("worker"), world.trust, world.patience())
        assert refused.value.reason == "signature-invalid"
        world.served.copy = real  # type: ignore[method-assign]
        with pytest.raises(Refusal, match="another pool"):
            await world.served.copy("worker", "", INFRA)


async def test_a_running_machine_takes_no_config_under_the_pool_that_a_token_names(world: DeliveringWorld) -> None:
    """A token is the broker's word: the machine asks, and compares, by the pool in the name of the config that it was told."""
    attester = world.machine()
    booted = await boot_once(attester, await world.ask("infra"), world.trust, world.patience())
    patch = {"status": {"desiredConfig": WORKER}}
    await world.cluster.patch(MACHINE.resource, booted.machine.name, patch, PatchType.MERGE, NAMESPACE, STATUS)
    doors = Doors(world.urls[0].broker, world.urls[0].gate)
    configs = AttestedConfigs(attester, lambda: doors, lambda: world.trust, world.clock, ENTROPY)
    with pytest.raises(ConfigRefused, match="wrong-pool"):
        await configs.fetch(WORKER)
