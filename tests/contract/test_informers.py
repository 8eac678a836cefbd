"""Informers on every way to a cluster: the cache follows, and handlers hear of every object."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest_asyncio

from fastness.kinds.kind import JsonObject
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster, PatchType, Scope
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.contract.kinds import POOL, TICKET, names, pool, ticket
from tests.patience import PATIENCE


@pytest_asyncio.fixture(loop_scope="session")
async def informers(cluster: Cluster) -> AsyncIterator[Informers]:
    """Informers that run for as long as the test does."""
    async with Informers(cluster, clock=SystemClock(), entropy=SystemEntropy()) as running:
        yield running


async def eventually(informer: Informer, holds: Callable[[], bool]) -> None:
    """Wait until something holds that the informer brings about."""
    changed = asyncio.Event()
    stop = informer.subscribe(lambda _old, _new: changed.set())
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await changed.wait()
            changed.clear()
    stop()


def held_of(obj: JsonObject) -> JsonObject:
    """An object as caches have it: nobody asks there who wrote which field, and one way to a cluster leaves it out."""
    return {**obj, "metadata": {name: value for name, value in obj["metadata"].items() if name != "managedFields"}}


def cached(informer: Informer, name: str) -> JsonObject | None:
    obj = informer.get("", name)
    return None if obj is None else held_of(obj)


async def test_the_cache_starts_with_what_is_there_and_follows(
    cluster: Cluster, informers: Informers, unique: str
) -> None:
    await cluster.create(TICKET, ticket(f"{unique}-a", labels={"set": unique}))
    tickets = informers.of(TICKET, Scope(labels=f"set={unique}"))
    await informers.synced()
    assert names(tickets.list()) == [f"{unique}-a"]
    made = await cluster.create(TICKET, ticket(f"{unique}-b", labels={"set": unique}))
    await eventually(tickets, lambda: cached(tickets, f"{unique}-b") == held_of(made))
    changed = await cluster.patch(TICKET, f"{unique}-b", {"spec": {"uses": 3}}, PatchType.MERGE)
    await eventually(tickets, lambda: cached(tickets, f"{unique}-b") == held_of(changed))
    await cluster.delete(TICKET, f"{unique}-a")
    await eventually(tickets, lambda: names(tickets.list()) == [f"{unique}-b"])


async def test_handlers_hear_of_every_object_that_comes_changes_and_goes(
    cluster: Cluster, informers: Informers, unique: str
) -> None:
    heard: list[tuple[bool, bool]] = []
    tickets = informers.of(TICKET, Scope(labels=f"set={unique}"))
    tickets.subscribe(lambda old, new: heard.append((old is not None, new is not None)))
    await informers.synced()
    await cluster.create(TICKET, ticket(unique, labels={"set": unique}))
    await cluster.patch(TICKET, unique, {"spec": {"uses": 3}}, PatchType.MERGE)
    await cluster.delete(TICKET, unique)
    await eventually(tickets, lambda: len(heard) == 3)
    assert heard == [(False, True), (True, True), (True, False)]


async def test_indexes_follow_objects_out_of_a_value_and_into_another(
    cluster: Cluster, informers: Informers, unique: str
) -> None:
    def paused(obj: JsonObject) -> list[str]:
        return ["yes" if obj["spec"].get("paused") else "no"]

    pools = informers.of(POOL, Scope(fields=f"metadata.name={unique}"), indexers={"paused": paused})
    await cluster.create(POOL, pool(unique))
    await eventually(pools, lambda: names(pools.by_index("paused", "no")) == [unique])
    await cluster.patch(POOL, unique, {"spec": {"paused": True}}, PatchType.MERGE)
    await eventually(pools, lambda: names(pools.by_index("paused", "yes")) == [unique])
    assert pools.by_index("paused", "no") == []
