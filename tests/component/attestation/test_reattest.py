"""A machine stays attested through the real broker: one write a round, the cluster's interval, patience with a closed door."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

from fastness.agent.boot.reattest import Staying
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.evidence import SPENT_CHALLENGE
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType
from fastness.sim.tee.attester import SimAttester
from tests.attesting import ENTROPY, SIMULATED, AttestingWorld, attesting_world, until
from tests.embedded.fixtures import Embedded
from tests.virtual import VirtualClock, settle


def staying(world: AttestingWorld, attester: SimAttester, port: int = 0) -> Staying:
    url = f"https://127.0.0.1:{port or world.doors.broker.port}"
    return Staying(attester, lambda: url, lambda: world.trust, world.clock, ENTROPY)


async def test_every_round_moves_last_attested_and_costs_no_second_verdict(embedded_server: Embedded) -> None:
    spec = {**SIMULATED, "attestation": {"reattestInterval": "2m"}}
    async with attesting_world(embedded_server.cluster, spec) as world:
        await world.approve("snp")
        loop = staying(world, await world.enrolled("snp"))
        waits = [await loop.round() for _ in range(3)]
        assert all(96 <= wait <= 120 for wait in waits)
        assert len((await world.cluster.list(VERDICT.resource)).items) == 1
        machine = await world.cluster.list(MACHINE.resource)
        before, spent = machine.items[0], len((await world.cluster.list(SPENT_CHALLENGE.resource)).items)
        world.clock.ahead = timedelta(minutes=2)
        revision = embedded_server.server.api.store.revision
        await loop.round()
        writes = embedded_server.server.api.store.revision - revision
        after = (await world.cluster.list(MACHINE.resource)).items[0]
        assert after["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
        assert len((await world.cluster.list(SPENT_CHALLENGE.resource)).items) == spent + 1
        # The Machine, the spent challenge, and the line of the record: nothing else.
        assert writes == 3


async def test_a_refused_machine_goes_on_at_the_interval(embedded_server: Embedded) -> None:
    async with attesting_world(embedded_server.cluster) as world:
        await world.approve("tpm")
        attester = await world.enrolled("tpm")
        name = (await world.machine_object(attester))["metadata"]["name"]
        await world.cluster.patch(
            MACHINE.resource, name, {"spec": {"approval": "Quarantined"}}, PatchType.MERGE, NAMESPACE
        )
        machines = world.informers.of(MACHINE.resource)

        async def heard() -> bool:
            machine = machines.get(NAMESPACE, name)
            return machine is not None and bool(machine["spec"].get("approval") == "Quarantined")

        await until(heard)
        loop = staying(world, attester)
        assert await loop.round() >= 12 * 60


async def test_a_door_that_is_not_there_is_tried_again_soon(embedded_server: Embedded) -> None:
    async with attesting_world(embedded_server.cluster) as world:
        loop = staying(world, world.machine("snp"), port=1)
        assert [await loop.round() < 10 for _ in range(2)] == [True, True]


async def test_rounds_follow_the_clock_until_cancelled() -> None:
    clock, rounds = VirtualClock(), []

    class Counted(Staying):
        async def round(self) -> float:
            rounds.append(clock.monotonic())
            return 60.0

    loop = Counted(None, str, None, clock, ENTROPY)  # type: ignore[arg-type]
    task = asyncio.create_task(loop.run(first=5.0))
    await settle()
    await clock.advance(130)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert rounds == [5.0, 65.0, 125.0]
