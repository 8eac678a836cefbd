"""A Distrust that stands stops a machine at the gate and the broker within a second; when it goes, the machine comes back.

Both doors run with the controller beside them, as in the product.
No token of before comes to life again: the machine attests anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from fastness.agent.boot.boot import boot_once
from fastness.agent.boot.fetch import from_gate
from fastness.agent.boot.prove import BrokerClient, DoorRefused
from fastness.attestation.loops.distrust import Distrusting
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.controllers import Runner
from fastness.protocol.delivered import Question
from fastness.sim.tee.images import default_image
from tests.delivering import ENTROPY, DeliveringWorld, delivering_world, until
from tests.embedded.fixtures import Embedded

STATUS = "default/attestation-status/status"
IMAGE = f"registry.example/os@sha256:{'ab' * 32}"
QUESTION = Question("n" * 24)
AT_ONCE, PATIENT = 1.0, 15.0
TARGETS: dict[str, Callable[[JsonObject], object]] = {
    "machine": lambda obj: obj["metadata"]["uid"],
    "key": lambda obj: obj["status"]["keyThumbprint"],
    "image": lambda obj: obj["status"]["properties"]["image"],
    "tcbBelow": lambda obj: {"snp": {"microcode": int(obj["status"]["properties"]["tcb-microcode"]) + 1}},
}


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[DeliveringWorld]:
    async with delivering_world(embedded_server.cluster) as delivering:
        approval = {
            "apiVersion": APPROVED_IMAGE.api_version, "kind": "ApprovedImage",
            "metadata": {"name": "os", "namespace": NAMESPACE}, "spec": {"image": IMAGE},
        }  # fmt: skip
        values = {
            "apiVersion": REFERENCE_VALUE_SET.api_version, "kind": "ReferenceValueSet", "metadata": {"name": "image-os"},
            "spec": {"source": "image", "image": IMAGE, "values": default_image().reference_values("snp")},
        }  # fmt: skip
        await delivering.cluster.create(APPROVED_IMAGE.resource, approval)
        await delivering.cluster.create(REFERENCE_VALUE_SET.resource, values)
        informers = [delivering.informers.of(kind.resource) for kind in (APPROVED_IMAGE, REFERENCE_VALUE_SET)]
        await until(lambda: all(informer.list() for informer in informers))
        async with following(delivering):
            yield delivering


@asynccontextmanager
async def following(world: DeliveringWorld) -> AsyncIterator[None]:
    """The controller of Distrusts, for the time of the block."""
    loop = Distrusting(world.cluster, world.informers, world.record, world.clock)
    running = asyncio.create_task(Runner([loop], world.informers, world.clock, ENTROPY).run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])


async def machine(world: DeliveringWorld) -> JsonObject:
    (stored,) = (await world.cluster.list(MACHINE.resource)).items
    return stored


async def answer(call: Awaitable[object]) -> str:
    """How a door answers: `ok`, or the reason of its refusal."""
    try:
        await call
    except DoorRefused as refused:
        return f"{refused.status} {refused.reason}"
    return "ok"


class Asking:
    """One machine, at both doors."""

    def __init__(self, world: DeliveringWorld, client: BrokerClient) -> None:
        self.world, self.client = world, client

    async def both(self) -> tuple[str, str]:
        """What gate and broker say now."""
        gate, world = f"https://127.0.0.1:{self.world.gate.port}", self.world
        fetched = from_gate(gate, world.trust.tls, self.client, "worker", QUESTION, world.clock.now)
        return await answer(fetched), await answer(self.client.resource(STATUS))

    async def until(self, answers: tuple[str, str], seconds: float) -> None:
        """Ask until both doors say this, for so long at most."""
        async with asyncio.timeout(seconds):
            while await self.both() != answers:  # noqa: ASYNC110  # it is the doors that are asked
                await asyncio.sleep(0.01)

    async def attested_again(self) -> None:
        """Attest as soon as the cluster lets it."""
        async with asyncio.timeout(PATIENT):
            while await answer(self.client.attest()) != "ok":  # noqa: ASYNC110  # it is the doors that are asked
                await asyncio.sleep(0.05)


@pytest.mark.parametrize("target", TARGETS)
async def test_what_is_distrusted_stops_at_gate_and_broker_within_a_second_and_comes_back_when_trusted_again(
    world: DeliveringWorld, target: str
) -> None:
    attester = world.machine("snp")
    await boot_once(attester, await world.ask(), world.trust, world.patience())
    url = f"https://127.0.0.1:{world.doors.broker.port}"
    async with BrokerClient(url, world.trust.tls, attester, ENTROPY) as client:
        await client.attest()
        asking = Asking(world, client)
        assert await asking.both() == ("ok", "ok")
        spec = {"reason": "a test", target: TARGETS[target](await machine(world))}
        body = {"apiVersion": DISTRUST.api_version, "kind": "Distrust", "metadata": {"name": "bad"}, "spec": spec}
        await world.cluster.create(DISTRUST.resource, body)
        await asking.until(("403 revoked", "403 revoked"), AT_ONCE)
        served = len(world.shelf.requests)
        assert await asking.both() == ("403 revoked", "403 revoked")
        assert len(world.shelf.requests) == served
        refused = await answer(client.attest())
        assert refused.startswith("403 "), refused
        await world.cluster.delete(DISTRUST.resource, "bad")
        await asking.attested_again()
        await asking.until(("ok", "ok"), AT_ONCE)


async def test_a_token_of_before_stays_dead_after_the_machine_is_trusted_again(world: DeliveringWorld) -> None:
    attester = world.machine("snp")
    await boot_once(attester, await world.ask(), world.trust, world.patience())
    url = f"https://127.0.0.1:{world.doors.broker.port}"
    async with (
        BrokerClient(url, world.trust.tls, attester, ENTROPY) as before,
        BrokerClient(url, world.trust.tls, attester, ENTROPY) as after,
    ):
        await before.attest()
        spec = {"reason": "a test", "key": (await machine(world))["status"]["keyThumbprint"]}
        body = {"apiVersion": DISTRUST.api_version, "kind": "Distrust", "metadata": {"name": "bad"}, "spec": spec}
        await world.cluster.create(DISTRUST.resource, body)
        machines = world.informers.of(MACHINE.resource)
        await until(lambda: any((entry.get("status") or {}).get("epoch") for entry in machines.list()))
        await world.cluster.delete(DISTRUST.resource, "bad")
        await Asking(world, after).attested_again()
        assert await Asking(world, after).both() == ("ok", "ok")
        assert await Asking(world, before).both() == ("403 revoked", "403 revoked")
