"""Counting uses: exact for limited tickets under any interleaving, lazy for the others."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from typing import Any

import pytest

from fastness.enrolment.live.tickets import TicketProblem, TicketSpent, TicketUses, join_ticket, mint
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import Conflict, Unavailable
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.runtime.clock import Clock, SystemClock
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE
from tests.virtual import SeededEntropy, VirtualClock


class Faulty:
    """A cluster whose patches fail, or are late, as a seed says."""

    def __init__(self, inner: Cluster, seed: int, failing: type[Exception] | None = None) -> None:
        self._inner = inner
        self._random = random.Random(seed)
        self.failing = failing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def patch(self, *args: Any, **named: Any) -> Any:
        for _ in range(self._random.randrange(5)):
            await asyncio.sleep(0)
        if self.failing is not None:
            raise self.failing("made up")
        return await self._inner.patch(*args, **named)


def key(number: int) -> str:
    return f"machine-{number:020x}"


async def stored(cluster: Cluster, clock: Clock, uses: int) -> JsonObject:
    made = join_ticket("t", mint(SeededEntropy(1)), "worker", clock.now() + timedelta(days=1), uses)
    return await cluster.create(JOIN_TICKET.resource, made)


@pytest.mark.parametrize("seed", range(5))
async def test_any_number_of_doors_count_exactly_and_each_key_once(embedded_server: Embedded, seed: int) -> None:
    cluster, clock = embedded_server.cluster, SystemClock()
    ticket = await stored(cluster, clock, uses=4)
    doors = [TicketUses(Faulty(cluster, seed * 7 + number), clock) for number in range(3)]
    chance = random.Random(seed)
    order = [(chance.choice(doors), key(number % 8)) for number in range(24)]
    chance.shuffle(order)

    async def spend(door: TicketUses, thumbprint: str) -> str:
        try:
            await door.spend("t", ticket["metadata"]["uid"], thumbprint)
        except TicketSpent as spent:
            return spent.problem
        return thumbprint

    inside = set(await asyncio.gather(*(spend(door, thumbprint) for door, thumbprint in order)))
    inside -= {TicketProblem.USED_UP.value}
    status = (await cluster.get(JOIN_TICKET.resource, "t"))["status"]
    assert status["used"] == len(status["usedBy"]) == 4
    assert inside == set(status["usedBy"])


async def test_a_ticket_that_changed_hands_is_not_used(embedded_server: Embedded) -> None:
    cluster, clock = embedded_server.cluster, VirtualClock()
    ticket = await stored(cluster, clock, uses=1)
    uses = TicketUses(cluster, clock)
    for uid, problem in (("another", TicketProblem.UNKNOWN), (ticket["metadata"]["uid"], TicketProblem.EXPIRED)):
        if problem is TicketProblem.EXPIRED:
            await clock.advance(2 * 86400)
        with pytest.raises(TicketSpent) as spent:
            await uses.spend("t", uid, key(1))
        assert spent.value.problem is problem
    with pytest.raises(TicketSpent):
        await uses.spend("nobody", "x", key(1))


async def test_a_number_that_somebody_lowered_does_not_open_a_used_ticket(embedded_server: Embedded) -> None:
    cluster, clock = embedded_server.cluster, VirtualClock()
    ticket = await stored(cluster, clock, uses=1)
    uses = TicketUses(cluster, clock)
    await uses.spend("t", ticket["metadata"]["uid"], key(1))
    options = WriteOptions(subresource="status")
    await cluster.patch(JOIN_TICKET.resource, "t", {"status": {"used": 0}}, PatchType.MERGE, "", options)
    with pytest.raises(TicketSpent) as spent:
        await uses.spend("t", ticket["metadata"]["uid"], key(2))
    assert spent.value.problem is TicketProblem.USED_UP


async def test_a_count_that_never_gets_through_gives_up(embedded_server: Embedded) -> None:
    cluster, clock = embedded_server.cluster, VirtualClock()
    ticket = await stored(cluster, clock, uses=1)
    uses = TicketUses(Faulty(cluster, 1, Conflict), clock)
    spending = asyncio.create_task(uses.spend("t", ticket["metadata"]["uid"], key(1)))
    while not spending.done():
        await clock.advance(1)
    with pytest.raises(Conflict):
        await spending
    assert "status" not in await cluster.get(JOIN_TICKET.resource, "t")


async def test_uses_without_a_limit_are_kept_until_they_can_be_written(embedded_server: Embedded) -> None:
    cluster, clock = embedded_server.cluster, VirtualClock()
    ticket = await stored(cluster, clock, uses=0)
    faulty = Faulty(cluster, 1, Unavailable)
    uses = TicketUses(faulty, clock)
    for number in range(5):
        await uses.spend("t", ticket["metadata"]["uid"], key(number))
    await uses.flush()
    assert "status" not in await cluster.get(JOIN_TICKET.resource, "t")
    faulty.failing = None
    running = asyncio.create_task(uses.run())
    await clock.advance(10.5)
    async with asyncio.timeout(PATIENCE):
        while "status" not in await cluster.get(JOIN_TICKET.resource, "t"):  # noqa: ASYNC110  # it is in the store
            await asyncio.sleep(0.01)
    running.cancel()
    assert (await cluster.get(JOIN_TICKET.resource, "t"))["status"]["used"] == 5


async def test_uses_of_a_ticket_that_is_gone_are_forgotten(embedded_server: Embedded) -> None:
    cluster, clock = embedded_server.cluster, VirtualClock()
    ticket = await stored(cluster, clock, uses=0)
    uses = TicketUses(cluster, clock)
    await uses.spend("t", ticket["metadata"]["uid"], key(1))
    await cluster.delete(JOIN_TICKET.resource, "t")
    await uses.flush()
    assert not uses._uncounted
