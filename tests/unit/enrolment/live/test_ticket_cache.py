"""A ticket is unknown only when the API says so, and strangers cannot make doors ask it as often as they like."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, cast

import pytest

from fastness.crypto.secret import SecretText
from fastness.enrolment.live.tickets import (
    AT_ONCE,
    BURST,
    MOST_UNKNOWN,
    PER_SECOND,
    UNKNOWN_SECONDS,
    TicketCache,
    TicketProblem,
    join_ticket,
    mint,
)
from fastness.keys.errors import TicketUnclear
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import labels_of
from fastness.kube.errors import Unavailable
from fastness.kube.informers import Informer
from fastness.kube.port import Cluster, Page, Scope
from tests.virtual import SeededEntropy, VirtualClock

ENTROPY = SeededEntropy(7)


class Shelf:
    """An API with tickets, and a cache that holds what it was told of."""

    def __init__(self) -> None:
        self.stored: list[JsonObject] = []
        self.cached: list[JsonObject] = []
        self.in_touch = True
        self.asked: list[str] = []
        self.gone = False
        self.slow = asyncio.Event()
        self.slow.set()

    async def list(self, _resource: Resource, scope: Scope, **_: Any) -> Page:
        self.asked.append(scope.labels)
        await self.slow.wait()
        if self.gone:
            raise Unavailable("nobody answers")
        selector = dict([scope.labels.split("=", 1)])
        return Page([ticket for ticket in self.stored if selector.items() <= labels_of(ticket).items()], "1")


class Cached:
    """The cache of a shelf."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    @property
    def in_touch(self) -> bool:
        return self._shelf.in_touch

    def list(self) -> list[JsonObject]:
        return self._shelf.cached


class World:
    def __init__(self) -> None:
        self.shelf, self.clock = Shelf(), VirtualClock()
        cache = cast("Informer", Cached(self.shelf))
        self.book = TicketCache(cast("Cluster", self.shelf), cache, self.clock)

    def ticket(self, pool: str = "worker") -> str:
        """A ticket that the API has, and the cache not yet."""
        made: SecretText = mint(ENTROPY)
        self.shelf.stored.append(join_ticket("t", made, pool, self.clock.now() + timedelta(hours=1)))
        return made.reveal()


@pytest.fixture
def world() -> World:
    return World()


def unknown() -> str:
    return mint(ENTROPY).reveal()


async def test_a_ticket_that_is_newer_than_the_cache_is_found_with_one_question(world: World) -> None:
    world.ticket()
    ticket = world.ticket()
    assert world.book.cached(ticket, "worker").problem is TicketProblem.UNKNOWN
    assert (await world.book.look_up(ticket, "worker")).good
    assert (await world.book.look_up(ticket, "infra")).problem is TicketProblem.WRONG_POOL
    assert len(world.shelf.asked) == 2
    world.shelf.cached = world.shelf.stored
    assert (await world.book.look_up(ticket, None)).good
    assert len(world.shelf.asked) == 2, "what the cache knows nobody asks about"


async def test_what_the_api_does_not_know_is_unknown_and_not_asked_again_for_a_while(world: World) -> None:
    ticket = unknown()
    for _ in range(3):
        assert (await world.book.look_up(ticket, "worker")).problem is TicketProblem.UNKNOWN
    assert len(world.shelf.asked) == 1
    await world.clock.advance(UNKNOWN_SECONDS)
    await world.book.look_up(ticket, "worker")
    assert len(world.shelf.asked) == 2


@pytest.mark.parametrize("ticket", ["", "fst_", "garbage", "fst_" + "x" * 300, "fst_ü"])
async def test_nobody_is_asked_about_what_cannot_be_a_ticket(world: World, ticket: str) -> None:
    world.shelf.in_touch = False
    assert (await world.book.look_up(ticket, "worker")).problem is TicketProblem.UNKNOWN
    assert world.shelf.asked == []


async def test_strangers_who_make_tickets_up_use_up_a_budget_and_are_asked_to_come_again(world: World) -> None:
    for _ in range(int(BURST)):
        assert (await world.book.look_up(unknown(), "worker")).problem is TicketProblem.UNKNOWN
    with pytest.raises(TicketUnclear, match="too many"):
        await world.book.look_up(unknown(), "worker")
    assert len(world.shelf.asked) == BURST
    await world.clock.advance(1)
    for _ in range(int(PER_SECOND)):
        await world.book.look_up(unknown(), "worker")
    with pytest.raises(TicketUnclear):
        await world.book.look_up(unknown(), "worker")


async def test_only_so_many_questions_are_open_at_once(world: World) -> None:
    world.shelf.slow.clear()
    asking = [asyncio.create_task(world.book.look_up(unknown(), "worker")) for _ in range(AT_ONCE)]
    await asyncio.sleep(0)
    with pytest.raises(TicketUnclear):
        await world.book.look_up(unknown(), "worker")
    world.shelf.slow.set()
    assert {(await lookup).problem for lookup in asking} == {TicketProblem.UNKNOWN}
    assert (await world.book.look_up(world.ticket(), "worker")).good


async def test_a_cluster_that_cannot_be_asked_makes_no_ticket_unknown(world: World) -> None:
    ticket = world.ticket()
    world.shelf.in_touch = False
    with pytest.raises(TicketUnclear):
        await world.book.look_up(ticket, "worker")
    assert world.shelf.asked == []
    world.shelf.in_touch, world.shelf.gone = True, True
    with pytest.raises(TicketUnclear):
        await world.book.look_up(ticket, "worker")
    world.shelf.gone = False
    assert (await world.book.look_up(ticket, "worker")).good


async def test_what_is_remembered_is_bounded(world: World) -> None:
    for _ in range(MOST_UNKNOWN + 10):
        world.book._level = BURST
        await world.book.look_up(unknown(), "worker")
    assert len(world.book._unknown) == MOST_UNKNOWN
