"""Watchers: order, scope, waiting, slowness, numbers."""

from __future__ import annotations

import asyncio
import gc
import sys
from pathlib import Path

import pytest

from fastness.apiserver.store import Compacted, Cursor, FutureRevision, LogEntry, Store, WriteStep
from fastness.kube.port import EventType
from tests.component.apiserver.store.store_parts import ManualClock, key, put, remove, small_log

GROUP, PLURAL = "example.dev", "things"


def summaries(entries: list[LogEntry]) -> list[tuple[str, str, bytes]]:
    return [(entry.type.value, entry.record.key.name, entry.record.body) for entry in entries]


async def test_a_cursor_sees_every_change_after_its_revision_in_order(store: Store) -> None:
    start = (await put(store, "before")).revision
    cursor = store.subscribe(GROUP, PLURAL, since=start)
    await put(store, "a", b"1")
    await put(store, "a", b"2")
    await remove(store, "a", b"3")
    entries = await cursor.next_batch()
    assert summaries(entries) == [("ADDED", "a", b"1"), ("MODIFIED", "a", b"2"), ("DELETED", "a", b"3")]
    assert [entry.revision for entry in entries] == [start + 1, start + 2, start + 3]
    assert entries[1].previous is entries[0].record
    cursor.close()


async def test_batches_are_limited_and_continue_where_they_ended(store: Store) -> None:
    for number in range(5):
        await put(store, f"n{number}")
    cursor = store.subscribe(GROUP, PLURAL, since=1)
    sizes = [len(await cursor.next_batch(2)) for _ in range(3)]
    assert sizes == [2, 2, 1]
    assert cursor.take() == []


async def test_a_waiting_cursor_wakes_for_a_write(store: Store) -> None:
    cursor = store.subscribe(GROUP, PLURAL, since=store.revision)
    waiting = asyncio.create_task(cursor.next_batch())
    await asyncio.sleep(0)
    record = await put(store, "a")
    assert [entry.record for entry in await waiting] == [record]


async def test_a_cursor_sees_only_its_resource_and_namespace(store: Store) -> None:
    everywhere = store.subscribe(GROUP, PLURAL, since=1)
    in_one_namespace = store.subscribe(GROUP, PLURAL, "one", since=1)
    other_kind = store.subscribe(GROUP, "others", since=1)
    await put(store, key("a", "one"))
    await put(store, key("b", "two"))
    assert [entry.record.key.name for entry in everywhere.take()] == ["a", "b"]
    assert [entry.record.key.name for entry in in_one_namespace.take()] == ["a"]
    assert other_kind.take() == []


async def test_changes_of_one_write_arrive_in_one_wake_up(store: Store) -> None:
    cursor = store.subscribe(GROUP, PLURAL, since=1)
    waiting = asyncio.create_task(cursor.next_batch())
    await asyncio.sleep(0)
    await store.write(lambda _: [WriteStep(key("a"), b"1"), WriteStep(key("b"), b"2")])
    assert len(await waiting) == 2


async def test_a_time_out_while_waiting_loses_nothing(store: Store) -> None:
    cursor = store.subscribe(GROUP, PLURAL, since=1)
    waiting = asyncio.create_task(cursor.next_batch())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await put(store, "a")
    assert len(await cursor.next_batch()) == 1


async def test_a_cursor_waiting_over_and_over_leaves_nothing_behind(store: Store) -> None:
    cursor = store.subscribe(GROUP, PLURAL, since=1)
    for _ in range(100):
        waiting = asyncio.create_task(cursor.next_batch())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert not cursor._channel.waiting


async def test_progress_follows_other_resources_once_everything_was_taken(store: Store) -> None:
    cursor = store.subscribe(GROUP, PLURAL, since=1)
    await put(store, "a")
    other = await put(store, key("x", plural="others"))
    assert cursor.progress == 1
    cursor.take()
    assert cursor.progress == other.revision


async def test_a_revision_in_the_future_is_refused(store: Store) -> None:
    with pytest.raises(FutureRevision):
        store.subscribe(GROUP, PLURAL, since=store.revision + 1)
    with pytest.raises(FutureRevision):
        store.range(GROUP, PLURAL, at=store.revision + 1)


async def test_a_revision_before_the_log_is_refused(store: Store) -> None:
    first = await put(store, "a")
    second = await put(store, "b")
    assert await store.compact() == second.revision
    with pytest.raises(Compacted) as refusal:
        store.subscribe(GROUP, PLURAL, since=first.revision)
    assert refusal.value.oldest == second.revision
    with pytest.raises(Compacted):
        store.range(GROUP, PLURAL, at=first.revision)
    store.subscribe(GROUP, PLURAL, since=second.revision).close()


async def test_a_slow_cursor_is_told_that_the_log_moved_on(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, settings=small_log())
    slow = store.subscribe(GROUP, PLURAL, since=1)
    for number in range(20):
        await put(store, "a", b"%d" % number)
    with pytest.raises(Compacted):
        await slow.next_batch()
    assert store.stats.log_entries == 8
    await store.close()


async def test_an_idle_cursor_is_never_behind(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, settings=small_log())
    quiet_kind = store.subscribe(GROUP, "others", since=1)
    quiet_namespace = store.subscribe(GROUP, PLURAL, "quiet", since=1)
    for number in range(40):
        await put(store, key("a", "busy"), b"%d" % number)
    assert quiet_kind.take() == []
    await put(store, key("b", "quiet"))
    assert len(quiet_namespace.take()) == 1
    await store.close()


async def test_the_log_is_bounded_by_bytes(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, settings=small_log(log_entries=10_000, log_bytes=100_000))
    dead = [store.subscribe(GROUP, PLURAL, since=1) for _ in range(50)]
    for number in range(100):
        await put(store, "a", b"%05d" % number * 2_000)
    assert store.stats.log_bytes <= 100_000
    large_lists = [thing for thing in gc.get_objects() if isinstance(thing, list) and len(thing) > 5_000]
    assert not [thing for thing in large_lists if thing and isinstance(thing[0], LogEntry)]
    assert _log_memory(store) < 300_000
    with pytest.raises(Compacted):
        dead[0].take()
    await store.close()


def _log_memory(store: Store) -> int:
    """Bytes of all bodies that the log's channels still refer to."""
    channels = store._history._channels.values()
    bodies = {
        id(record.body): sys.getsizeof(record.body)
        for channel in channels
        for entry in channel._entries
        for record in (entry.record, entry.previous)
        if record is not None
    }
    return sum(bodies.values())


async def test_the_log_is_bounded_by_age(tmp_path: Path, clock: ManualClock) -> None:
    store = await Store.open(tmp_path, settings=small_log(log_entries=100, log_seconds=60.0), clock=clock)
    old = await put(store, "a")
    clock.advance(61)
    new = await put(store, "b")
    assert store.compacted == old.revision
    assert store.range(GROUP, PLURAL, at=old.revision).records == [old]
    clock.advance(61)
    await put(store, "c")
    assert store.compacted == new.revision
    await store.close()


async def test_closing_a_cursor_ends_its_wait(store: Store) -> None:
    cursor = store.subscribe(GROUP, PLURAL, since=1)
    waiting = asyncio.create_task(cursor.next_batch())
    await asyncio.sleep(0)
    cursor.close()
    cursor.close()
    assert await waiting == []
    assert store.stats.watchers == 0


async def test_closing_the_store_ends_all_waits(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    cursors = [store.subscribe(GROUP, PLURAL, namespace, since=1) for namespace in ("", "a", "b")]
    waiting = [asyncio.create_task(cursor.next_batch()) for cursor in cursors]
    await asyncio.sleep(0)
    await store.close()
    assert await asyncio.gather(*waiting) == [[], [], []]
    assert all(cursor.closed for cursor in cursors)


async def test_channels_of_gone_namespaces_are_forgotten(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, settings=small_log())
    for number in range(50):
        await put(store, key("a", f"ns{number}"))
        store.subscribe(GROUP, PLURAL, f"other{number}", since=store.revision).close()
    assert len(store._history._channels) <= 9
    await store.close()


async def test_five_thousand_watchers_each_get_every_event(store: Store) -> None:
    async def watch(cursor: Cursor) -> list[int]:
        revisions: list[int] = []
        while len(revisions) < 20:
            revisions += [entry.revision for entry in await cursor.next_batch()]
        return revisions

    cursors = [store.subscribe(GROUP, PLURAL, since=1) for _ in range(5_000)]
    assert store.stats.watchers == 5_000
    tasks = [asyncio.create_task(watch(cursor)) for cursor in cursors]
    await asyncio.gather(*(put(store, f"n{number}") for number in range(10)))
    await asyncio.gather(*(put(store, f"n{number}") for number in range(10)))
    results = await asyncio.gather(*tasks)
    assert all(received == list(range(2, 22)) for received in results)


async def test_types_tell_additions_from_changes_after_a_delete(store: Store) -> None:
    cursor = store.subscribe(GROUP, PLURAL, since=1)
    await put(store, "a")
    await remove(store, "a")
    await put(store, "a")
    assert [entry.type for entry in cursor.take()] == [EventType.ADDED, EventType.DELETED, EventType.ADDED]
