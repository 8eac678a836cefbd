"""Faults do what they say: a stopped process stops, a hung connection says nothing, lost tiles are gone, tokens are kept."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from random import Random

import pytest

from fastness.keys.authorities import SECRETS
from fastness.keys.certificates import secret_name
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import Unavailable
from fastness.kube.port import PatchType
from fastness.protocol.door import DoorRole
from tests.simulation.loop import OWNER, run, virtual_loop
from tests.simulation.whole_cluster import MemoryTiles, World, world


def test_a_stopped_process_does_nothing_and_goes_on_where_it_was() -> None:
    done: list[float] = []

    async def work() -> None:
        OWNER.set("door")
        for _ in range(3):
            await asyncio.sleep(1)
            done.append(asyncio.get_running_loop().time())

    async def story() -> None:
        working = asyncio.ensure_future(work())
        await asyncio.sleep(1.5)
        virtual_loop().freeze("door")
        await asyncio.sleep(10)
        assert done == pytest.approx([1.0])
        virtual_loop().thaw("door")
        await working
        assert done == pytest.approx([1.0, 11.5, 12.5])

    run(story())


def test_a_hung_connection_answers_nothing_until_the_client_gives_up() -> None:
    async def story() -> None:
        async with world(1) as here:
            line = here.processes["gate-a"].line
            line.hang()
            begun = here.now
            with pytest.raises(Unavailable, match="did not answer in time"):
                await line.list(NODE.resource)
            assert here.now - begun == pytest.approx(60)
            line.mend()
            await line.list(NODE.resource)

    run(story())


def test_a_watch_that_hangs_hears_nothing_and_breaks_when_the_connection_does() -> None:
    async def story() -> None:
        async with world(1) as here:
            line = here.processes["gate-a"].line
            async with line.watch(MACHINE.resource, initial=True) as events:
                await anext(events)
                line.hang()
                here.add("tpm", await here.ticket())
                following = asyncio.ensure_future(anext(events))
                await here.pass_time(30)
                assert not following.done()
                line.mend()
                with pytest.raises(Unavailable, match="the watch broke"):
                    await following

    run(story())


async def _revoked_with_its_token(here: World) -> list[str]:
    """What the doors say to a machine that was quarantined and uses the token that it holds."""
    machine = here.add("tpm", await here.ticket(), joins=False)
    await here.pass_time(30)
    held = await here.held_token(machine)
    assert held is not None
    await held.use()
    assert held.answers == ["given", "503 delivered-by-gate"], "the token counts"
    obj = await here.machine_object(machine)
    assert obj is not None
    here.revoked[here.identity(str(machine.number))] = here.now
    quarantined = {"spec": {"approval": "Quarantined"}}
    await here.cluster.patch(MACHINE.resource, obj["metadata"]["name"], quarantined, PatchType.MERGE, NAMESPACE)
    await here.pass_time(5)
    held.answers.clear()
    await held.use()
    await here.watch.step()
    return held.answers


def test_a_token_that_a_revoked_machine_still_holds_opens_nothing() -> None:
    async def story() -> None:
        async with world(1) as here:
            assert [answer[:3] for answer in await _revoked_with_its_token(here)] == ["403", "403"]

    run(story())


def test_a_door_whose_certificate_was_issued_with_a_clock_that_is_ahead_is_believed_once_it_is_right() -> None:
    async def story() -> None:
        async with world(1) as here:
            issuers = [process for name, process in here.processes.items() if "controllers" in name]
            for process in issuers:
                process.clock.skew = timedelta(minutes=45)
            await here.cluster.delete(SECRETS, secret_name(DoorRole.ENROLMENT), NAMESPACE)
            await here.pass_time(5)
            machine = here.add("tpm", await here.ticket(), joins=False)
            await here.pass_time(60)
            assert here.network.unbelieved > 0
            assert not machine.configured
            for process in issuers:
                process.clock.skew = timedelta()
            await here.pass_time(120)
            assert machine.configured

    run(story())


def test_tiles_that_are_lost_are_gone_until_somebody_brings_them_back() -> None:
    async def story() -> None:
        tiles = MemoryTiles()
        for number in range(20):
            await tiles.write(f"{number}", b"x")
        lost = tiles.lose(Random(2))
        assert 0 < lost < 20
        assert tiles.whole is False
        assert sum([await tiles.read(f"{number}") is None for number in range(20)]) == lost
        tiles.bring_back()
        assert all([await tiles.read(f"{number}") == b"x" for number in range(20)])

    run(story())
