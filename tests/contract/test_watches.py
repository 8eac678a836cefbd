"""Watch: every change once, in order, from any version that the server still has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from fastness.kube.errors import BadRequest, Expired, NotFound
from fastness.kube.port import Cluster, Event, EventType, PatchType, Scope
from tests.contract.kinds import CONFIG_MAP, TICKET, UNKNOWN, config_map, ticket
from tests.contract.worlds import World
from tests.patience import PATIENCE


async def take(events: AsyncIterator[Event], count: int) -> list[Event]:
    """That many changes, without bookmarks."""
    changes: list[Event] = []
    async with asyncio.timeout(PATIENCE):
        while len(changes) < count:
            event = await anext(events)
            if event.type is not EventType.BOOKMARK:
                changes.append(event)
    return changes


async def until_synced(events: AsyncIterator[Event]) -> tuple[list[Event], Event]:
    """The initial events and the bookmark that ends them."""
    initial: list[Event] = []
    async with asyncio.timeout(PATIENCE):
        async for event in events:
            if event.synced:
                return initial, event
            initial.append(event)
    raise AssertionError("the watch ended before it was synced")


def summary(events: list[Event]) -> list[tuple[str, str]]:
    """Types and names."""
    return [(event.type.value, event.object["metadata"]["name"]) for event in events]


async def test_a_watch_tells_creation_change_and_deletion_in_order(cluster: Cluster, namespace: str) -> None:
    scope = Scope(namespace, labels="set=w")
    since = (await cluster.list(CONFIG_MAP, scope)).resource_version
    async with cluster.watch(CONFIG_MAP, scope, since=since) as events:
        await cluster.create(CONFIG_MAP, config_map(namespace, "one", labels={"set": "w"}))
        changed = await cluster.patch(CONFIG_MAP, "one", {"data": {"a": "2"}}, PatchType.MERGE, namespace)
        await cluster.delete(CONFIG_MAP, "one", namespace)
        changes = await take(events, 3)
    assert summary(changes) == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one")]
    assert changes[1].object == changed
    assert changes[2].object["data"] == {"a": "2"}
    versions = [int(event.resource_version) for event in changes]
    assert versions == sorted(set(versions))


async def test_a_watch_from_a_past_version_starts_with_what_came_after(cluster: Cluster, unique: str) -> None:
    scope = Scope(labels=f"set={unique}")
    first = await cluster.create(TICKET, ticket(f"{unique}-a", labels={"set": unique}))
    await cluster.create(TICKET, ticket(f"{unique}-b", labels={"set": unique}))
    await cluster.delete(TICKET, f"{unique}-a")
    async with cluster.watch(TICKET, scope, since=first["metadata"]["resourceVersion"]) as events:
        changes = await take(events, 2)
    assert summary(changes) == [("ADDED", f"{unique}-b"), ("DELETED", f"{unique}-a")]


async def test_a_list_and_a_watch_from_its_version_have_no_gap(cluster: Cluster, unique: str) -> None:
    scope = Scope(labels=f"set={unique}")

    async def write() -> None:
        for index in range(30):
            await cluster.create(TICKET, ticket(f"{unique}-{index:02}", labels={"set": unique}))

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        await asyncio.sleep(0.02)
        page = await cluster.list(TICKET, scope)
        listed = [item["metadata"]["name"] for item in page.items]
        async with cluster.watch(TICKET, scope, since=page.resource_version) as events:
            changes = await take(events, 30 - len(listed))
    assert listed + [name for _, name in summary(changes)] == [f"{unique}-{index:02}" for index in range(30)]


async def test_initial_state_comes_as_additions_and_ends_with_a_bookmark(cluster: Cluster, unique: str) -> None:
    for name in ("b", "a"):
        await cluster.create(TICKET, ticket(f"{unique}-{name}", labels={"set": unique}))
    async with cluster.watch(TICKET, Scope(labels=f"set={unique}"), initial=True) as events:
        state, mark = await until_synced(events)
        await cluster.create(TICKET, ticket(f"{unique}-c", labels={"set": unique}))
        after = await take(events, 1)
    assert sorted(summary(state)) == [("ADDED", f"{unique}-a"), ("ADDED", f"{unique}-b")]
    assert mark.type is EventType.BOOKMARK
    assert int(mark.resource_version) >= max(int(event.resource_version) for event in state)
    assert summary(after) == [("ADDED", f"{unique}-c")]


async def test_initial_state_of_nothing_is_a_bookmark(cluster: Cluster, unique: str) -> None:
    async with cluster.watch(TICKET, Scope(labels=f"set={unique}"), initial=True) as events:
        state, mark = await until_synced(events)
    assert state == []
    assert int(mark.resource_version) > 0


async def test_the_bookmark_is_a_version_to_watch_from(cluster: Cluster, unique: str) -> None:
    scope = Scope(labels=f"set={unique}")
    await cluster.create(TICKET, ticket(f"{unique}-a", labels={"set": unique}))
    async with cluster.watch(TICKET, scope, initial=True) as events:
        _, mark = await until_synced(events)
    await cluster.create(TICKET, ticket(f"{unique}-b", labels={"set": unique}))
    async with cluster.watch(TICKET, scope, since=mark.resource_version) as events:
        assert summary(await take(events, 1)) == [("ADDED", f"{unique}-b")]


async def test_a_watch_of_one_namespace_leaves_out_others(cluster: Cluster, namespace: str) -> None:
    scope = Scope(namespace, labels="set=mine")
    since = (await cluster.list(CONFIG_MAP, scope)).resource_version
    async with cluster.watch(CONFIG_MAP, scope, since=since) as events:
        await cluster.create(CONFIG_MAP, config_map("default", f"{namespace}-x", labels={"set": "mine"}))
        await cluster.create(CONFIG_MAP, config_map(namespace, "here", labels={"set": "mine"}))
        assert summary(await take(events, 1)) == [("ADDED", "here")]
    await cluster.delete(CONFIG_MAP, f"{namespace}-x", "default")


async def test_entering_and_leaving_a_selection_is_addition_and_deletion(cluster: Cluster, unique: str) -> None:
    scope = Scope(labels=f"set={unique},on=yes")
    since = (await cluster.list(TICKET, scope)).resource_version
    async with cluster.watch(TICKET, scope, since=since) as events:
        await cluster.create(TICKET, ticket(unique, labels={"set": unique, "on": "no"}))
        await cluster.patch(TICKET, unique, {"metadata": {"labels": {"on": "yes"}}}, PatchType.MERGE)
        await cluster.patch(TICKET, unique, {"metadata": {"labels": {"extra": "1"}}}, PatchType.MERGE)
        left = await cluster.patch(TICKET, unique, {"metadata": {"labels": {"on": "no"}}}, PatchType.MERGE)
        changes = await take(events, 3)
    assert [kind for kind, _ in summary(changes)] == ["ADDED", "MODIFIED", "DELETED"]
    assert changes[2].resource_version == left["metadata"]["resourceVersion"]
    assert changes[2].object["metadata"]["labels"]["on"] == "yes", "a deletion shows the last state that was selected"


async def test_a_watch_by_name_sees_one_object(cluster: Cluster, unique: str) -> None:
    since = (await cluster.list(TICKET)).resource_version
    async with cluster.watch(TICKET, Scope(fields=f"metadata.name={unique}-b"), since=since) as events:
        for name in ("a", "b"):
            await cluster.create(TICKET, ticket(f"{unique}-{name}"))
        assert summary(await take(events, 1)) == [("ADDED", f"{unique}-b")]


async def test_a_finalizer_shows_as_change_before_the_deletion(cluster: Cluster, unique: str) -> None:
    made = await cluster.create(TICKET, ticket(unique, finalizers=["example.com/hold"]))
    scope = Scope(fields=f"metadata.name={unique}")
    async with cluster.watch(TICKET, scope, since=made["metadata"]["resourceVersion"]) as events:
        await cluster.delete(TICKET, unique)
        await cluster.patch(TICKET, unique, {"metadata": {"finalizers": None}}, PatchType.MERGE)
        changes = await take(events, 2)
    assert [kind for kind, _ in summary(changes)] == ["MODIFIED", "DELETED"]
    assert changes[0].object["metadata"]["deletionTimestamp"]


async def test_a_version_that_is_gone_expires(world: World, cluster: Cluster, unique: str) -> None:
    for name in ("a", "b"):
        await cluster.create(TICKET, ticket(f"{unique}-{name}"))
    await world.forget_the_past()
    with pytest.raises(Expired):
        async with cluster.watch(TICKET, since="1") as events:
            await take(events, 1)


async def test_a_watch_of_a_kind_that_is_not_served_is_not_found(cluster: Cluster) -> None:
    with pytest.raises(NotFound):
        async with cluster.watch(UNKNOWN, initial=True) as events:
            await take(events, 1)


@pytest.mark.parametrize("initial", [True, False])
async def test_a_watch_with_a_bad_selector_is_refused(cluster: Cluster, initial: bool) -> None:
    with pytest.raises(BadRequest):
        async with cluster.watch(
            TICKET, Scope(labels="a in (b"), since="" if initial else "1", initial=initial
        ) as events:
            await take(events, 1)


async def test_many_watchers_see_the_same(cluster: Cluster, unique: str) -> None:
    scope = Scope(labels=f"set={unique}")
    since = (await cluster.list(TICKET, scope)).resource_version

    async def follow() -> list[tuple[str, str]]:
        async with cluster.watch(TICKET, scope, since=since) as events:
            return summary(await take(events, 10))

    async with asyncio.TaskGroup() as group:
        watchers = [group.create_task(follow()) for _ in range(10)]
        for index in range(10):
            await cluster.create(TICKET, ticket(f"{unique}-{index}", labels={"set": unique}))
    expected = [("ADDED", f"{unique}-{index}") for index in range(10)]
    assert all(watcher.result() == expected for watcher in watchers)


async def test_a_watch_can_be_left_at_any_time(cluster: Cluster, unique: str) -> None:
    async with cluster.watch(TICKET, Scope(labels=f"set={unique}"), initial=True) as events:
        await until_synced(events)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await anext(events)
    await cluster.create(TICKET, ticket(unique))
