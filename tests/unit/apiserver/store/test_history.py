"""The shared log: positions, trimming, what it counts."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.apiserver.store.errors import Compacted, FutureRevision
from fastness.apiserver.store.history import ENTRY_COST, Channel, History
from fastness.apiserver.store.records import Key, LogEntry, Record, StoreSettings
from fastness.kube.port import EventType


def entry(revision: int, name: str = "a", previous: bytes | None = None, namespace: str = "n") -> LogEntry:
    key = Key("g", "p", namespace, name)
    before = None if previous is None else Record(key, revision - 1, 1, previous)
    kind = EventType.ADDED if before is None else EventType.MODIFIED
    return LogEntry(kind, Record(key, revision, revision, b"body"), before)


def history(**bounds: int) -> History:
    return History(StoreSettings(**bounds), revision=1, compacted=1)  # type: ignore[arg-type]


def publish(log: History, entries: list[LogEntry], at: float) -> None:
    for entry in entries:
        log.publish(entry, at)


@given(count=st.integers(0, 400), drops=st.integers(0, 400), limit=st.integers(1, 50))
def test_a_channel_keeps_positions_while_its_beginning_goes(count: int, drops: int, limit: int) -> None:
    channel = Channel(("g", "p", ""))
    entries = [entry(revision * 2) for revision in range(1, count + 1)]
    for log_entry in entries:
        channel.append(log_entry)
    dropped = min(drops, count)
    for _ in range(dropped):
        channel.drop_oldest()
    assert (channel.first, channel.end) == (dropped, count)
    assert channel.read(channel.first, limit) == entries[dropped : dropped + limit]
    for position in range(dropped, count):
        assert channel.position_after(entries[position].revision) == position + 1
        assert channel.position_after(entries[position].revision - 1) == position


@given(count=st.integers(1, 500))
def test_a_channel_holds_little_more_than_what_is_alive(count: int) -> None:
    channel = Channel(("g", "p", ""))
    for revision in range(1, 1_001):
        channel.append(entry(revision))
        if revision > count:
            channel.drop_oldest()
    assert len(channel._entries) <= count + 64 + (count + 64) // 7 + 1


def test_trimming_returns_what_it_dropped_oldest_first() -> None:
    log = history(log_entries=2)
    publish(log, [entry(2), entry(3), entry(4), entry(5)], at=0.0)
    assert [log_entry.revision for log_entry in log.trim(0.0)] == [2, 3]
    assert (log.compacted, len(log), log.revision) == (3, 2, 5)


def test_age_counts_from_publication() -> None:
    log = history(log_seconds=10)
    publish(log, [entry(2)], at=100.0)
    publish(log, [entry(3)], at=105.0)
    assert log.trim(110.0) == []
    assert [log_entry.revision for log_entry in log.trim(110.5)] == [2]


def test_bytes_count_what_only_the_log_keeps_alive() -> None:
    log = history()
    publish(log, [entry(2)], at=0.0)
    assert log.bytes == ENTRY_COST
    publish(log, [entry(3, previous=b"x" * 1000)], at=0.0)
    assert log.bytes == 2 * ENTRY_COST + 1000
    last = Record(Key("g", "p", "n", "a"), 4, 2, b"y" * 50)
    publish(log, [LogEntry(EventType.DELETED, last, Record(last.key, 3, 2, b"z" * 7))], at=0.0)
    assert log.bytes == 3 * ENTRY_COST + 1000 + 57
    log.trim(0.0, keep=0)
    assert log.bytes == 0


def test_revisions_outside_the_log_are_refused() -> None:
    log = history(log_entries=1)
    publish(log, [entry(2), entry(3)], at=0.0)
    log.trim(0.0)
    with pytest.raises(Compacted):
        log.check(1)
    with pytest.raises(FutureRevision):
        log.check(4)
    log.check(2)
    log.check(3)


def test_undo_gives_the_oldest_record_since_the_revision() -> None:
    log = history()
    first = entry(2)
    second = LogEntry(EventType.MODIFIED, Record(first.record.key, 3, 2, b"2"), first.record)
    third = LogEntry(EventType.DELETED, Record(first.record.key, 4, 2, b"3"), second.record)
    publish(log, [first, second, third], at=0.0)
    key = first.record.key
    assert log.undo("g", "p", "", 1) == {key: None}
    assert log.undo("g", "p", "n", 2) == {key: first.record}
    assert log.undo("g", "p", "", 3) == {key: second.record}
    assert log.undo("g", "p", "", 4) == {}
    assert log.undo("g", "q", "", 1) == {}


def test_a_cluster_scoped_change_has_one_channel() -> None:
    log = history()
    publish(log, [entry(2, namespace="")], at=0.0)
    assert list(log._channels) == [("g", "p", "")]
    assert len(log.subscribe("g", "p", "", 1).take()) == 1


async def test_a_cursor_of_one_name_is_given_that_name_and_moves_past_all_others() -> None:
    log = history()
    cursor = log.subscribe("g", "p", "", since=1, name="b")
    publish(log, [entry(2, "a"), entry(3, "b"), entry(4, "a"), entry(5, "b"), entry(6, "a")], at=0.0)
    assert [log_entry.revision for log_entry in await cursor.next_batch(1)] == [3]
    assert cursor.progress == 3
    assert [log_entry.revision for log_entry in await cursor.next_batch(1)] == [5]
    assert await cursor.next_batch(1, wait=0.0) == []
    assert cursor.progress == 6


async def test_a_cursor_of_one_name_sleeps_while_others_change_and_wakes_for_its_own() -> None:
    log = history()
    named = log.subscribe("g", "p", "n", since=1, name="b")
    everything = log.subscribe("g", "p", "n", since=1)
    waiting = [asyncio.ensure_future(cursor.next_batch()) for cursor in (named, everything)]
    await asyncio.sleep(0)
    publish(log, [entry(2, "a")], at=0.0)
    for _ in range(3):
        await asyncio.sleep(0)
    assert [waiter.done() for waiter in waiting] == [False, True]
    publish(log, [entry(3, "b")], at=0.0)
    assert [log_entry.revision for log_entry in await waiting[0]] == [3]


async def test_a_cursor_that_waits_for_one_name_is_never_behind_however_much_of_others_was_dropped() -> None:
    log = history(log_entries=1)
    cursor = log.subscribe("g", "p", "", since=1, name="b")
    waiting = asyncio.ensure_future(cursor.next_batch())
    await asyncio.sleep(0)
    publish(log, [entry(2, "a"), entry(3, "a"), entry(4, "a")], at=0.0)
    log.trim(0.0)
    publish(log, [entry(5, "b"), entry(6, "a")], at=0.0)
    assert [log_entry.revision for log_entry in await waiting] == [5]
    waiting = asyncio.ensure_future(cursor.next_batch(wait=0.0))
    await asyncio.sleep(0)
    publish(log, [entry(7, "a"), entry(8, "a")], at=0.0)
    log.trim(0.0)
    assert await waiting == []
    assert cursor.progress == 8


async def test_closing_ends_the_wait_of_a_cursor_of_one_name_and_leaves_nobody_waiting() -> None:
    log = history()
    cursors = [log.subscribe("g", "p", "n", since=1, name=name) for name in ("a", "b")]
    waiting = [asyncio.ensure_future(cursor.next_batch()) for cursor in cursors]
    await asyncio.sleep(0)
    cursors[0].close()
    assert await waiting[0] == []
    waiting[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting[1]
    assert log._channel(("g", "p", "n")).named == {}
    left = asyncio.ensure_future(cursors[1].next_batch())
    await asyncio.sleep(0)
    log.close()
    assert await left == []


@given(names=st.lists(st.sampled_from("abc"), max_size=60), limit=st.integers(1, 5))
def test_a_cursor_of_one_name_sees_what_a_filter_over_all_would(names: list[str], limit: int) -> None:
    log = history()
    cursor = log.subscribe("g", "p", "", since=1, name="a")
    entries = [entry(revision, name) for revision, name in enumerate(names, 2)]
    publish(log, entries, at=0.0)
    expected = [log_entry for log_entry in entries if log_entry.record.key.name == "a"]
    taken: list[LogEntry] = []
    while batch := cursor.take(limit):
        assert len(batch) <= limit
        taken += batch
    assert taken == expected
    assert cursor.progress == log.revision


def test_a_cursor_of_one_name_that_did_not_wait_when_the_log_moved_past_it_must_list_again() -> None:
    log = history(log_entries=1)
    cursor = log.subscribe("g", "p", "", since=1, name="b")
    publish(log, [entry(2, "a"), entry(3, "a")], at=0.0)
    log.trim(0.0)
    with pytest.raises(Compacted):
        cursor.take()
