"""What a write promises: order, expectations, atomicity, visibility, survival."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fastness.apiserver.store import (
    Overloaded,
    Record,
    RecordTooLarge,
    Stale,
    Store,
    StoreClosed,
    StoreSettings,
    WriteStep,
)
from fastness.kube.port import EventType
from tests.component.apiserver.store.store_parts import ManualClock, key, put, remove, reopened


class Refused(Exception):
    """What a caller's decision may raise."""


async def test_a_new_store_is_empty_at_revision_one(store: Store) -> None:
    assert store.revision == 1
    assert store.range("example.dev", "things").records == []
    assert store.collections() == []


async def test_make_gets_the_revision_that_the_record_has(store: Store) -> None:
    [record] = await store.write(lambda revision: WriteStep(key("a"), b"at %d" % revision))
    assert record == Record(key("a"), 2, 2, b"at 2")
    assert store.get(key("a")) is record
    assert store.revision == 2


async def test_an_update_keeps_the_creation_revision(store: Store) -> None:
    first = await put(store, "a")
    second = await put(store, "a", b"2")
    assert (second.revision, second.created) == (first.revision + 1, first.revision)


async def test_an_object_created_again_has_a_new_creation_revision(store: Store) -> None:
    await put(store, "a")
    await remove(store, "a")
    again = await put(store, "a", expect=0)
    assert again.created == again.revision


async def test_expecting_absence_refuses_an_existing_record(store: Store) -> None:
    record = await put(store, "a")
    with pytest.raises(Stale) as refusal:
        await put(store, "a", b"other", expect=0)
    assert (refusal.value.expected, refusal.value.found) == (0, record.revision)
    assert store.get(key("a")) is record


async def test_expecting_an_old_revision_is_stale(store: Store) -> None:
    first = await put(store, "a")
    await put(store, "a", b"2", expect=first.revision)
    with pytest.raises(Stale):
        await remove(store, "a", expect=first.revision)


async def test_deleting_what_is_not_there_is_stale(store: Store) -> None:
    with pytest.raises(Stale, match="expected any revision, found none"):
        await remove(store, "nobody")
    assert store.revision == 1


async def test_a_delete_returns_the_final_body_at_its_own_revision(store: Store) -> None:
    created = await put(store, "a")
    record = await remove(store, "a", b"bye")
    assert record == Record(key("a"), created.revision + 1, created.revision, b"bye")
    assert store.get(key("a")) is None


async def test_what_make_raises_reaches_the_caller_and_nothing_happens(store: Store) -> None:
    def refuse(_: int) -> WriteStep:
        raise Refused

    with pytest.raises(Refused):
        await store.write(refuse)
    assert (store.revision, store.stats.writes) == (1, 0)
    assert (await put(store, "a")).revision == 2


async def test_no_changes_are_no_write(store: Store) -> None:
    assert await store.write(lambda _: ()) == []
    assert store.revision == 1


async def test_changes_of_one_write_have_consecutive_revisions_and_see_each_other(store: Store) -> None:
    records = await store.write(
        lambda r: [
            WriteStep(key("a"), b"1", 0),
            WriteStep(key("a"), b"2", r),
            WriteStep(key("b"), b"3", 0),
            WriteStep(key("a"), None, r + 1, b"4"),
        ]
    )
    assert [record.revision for record in records] == [2, 3, 4, 5]
    assert store.get(key("a")) is None
    assert store.range("example.dev", "things").records == [records[2]]


async def test_one_bad_change_refuses_the_whole_write(store: Store) -> None:
    with pytest.raises(Stale):
        await store.write(lambda _: [WriteStep(key("a"), b"1", 0), WriteStep(key("b"), b"1", 7)])
    assert store.get(key("a")) is None
    assert store.head(key("a")) is None


async def test_readers_see_a_write_only_when_it_is_answered_but_writers_decide_on_it(store: Store) -> None:
    first = asyncio.create_task(put(store, "a", b"1", expect=0))
    await asyncio.sleep(0)
    head = store.head(key("a"))
    assert head is not None
    assert store.get(key("a")) is None
    assert store.revision == 1
    second = await put(store, "a", b"2", expect=head.revision)
    assert (await first).revision == head.revision
    assert store.get(key("a")) is second


async def test_a_pending_delete_hides_the_head_but_not_the_record(store: Store) -> None:
    record = await put(store, "a")
    task = asyncio.create_task(remove(store, "a"))
    await asyncio.sleep(0)
    assert store.head(key("a")) is None
    assert store.get(key("a")) is record
    await task


async def test_a_refusal_decided_on_a_pending_write_waits_until_that_write_is_visible(store: Store) -> None:
    task = asyncio.create_task(put(store, "a", expect=0))
    await asyncio.sleep(0)
    with pytest.raises(Stale):
        await put(store, "a", expect=0)
    assert store.get(key("a")) is not None
    await task


async def test_a_no_op_decided_on_a_pending_write_waits_for_it(store: Store) -> None:
    task = asyncio.create_task(put(store, "a", expect=0))
    await asyncio.sleep(0)
    assert await store.write(lambda _: ()) == []
    assert store.get(key("a")) is not None
    await task


async def test_concurrent_writes_share_commits_and_keep_a_total_order(store: Store) -> None:
    records = await asyncio.gather(*(put(store, f"n{number}") for number in range(200)))
    assert sorted(record.revision for record in records) == list(range(2, 202))
    assert store.stats.commits < 20


async def test_a_cancelled_caller_does_not_harm_the_batch(store: Store) -> None:
    doomed = asyncio.create_task(put(store, "a"))
    other = asyncio.create_task(put(store, "b"))
    await asyncio.sleep(0)
    doomed.cancel()
    await other
    with pytest.raises(asyncio.CancelledError):
        await doomed
    assert store.get(key("a")) is not None
    assert store.stats.pending_changes == 0


async def test_a_full_queue_refuses_more_writes_and_recovers(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, settings=StoreSettings(pending_changes=3))
    tasks = [asyncio.create_task(put(store, f"n{number}")) for number in range(5)]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [Record, Record, Record, Overloaded, Overloaded]
    await put(store, "later")
    await store.close()


async def test_a_body_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, settings=StoreSettings(max_body=10))
    with pytest.raises(RecordTooLarge):
        await put(store, "a", b"x" * 11)
    await put(store, "a", b"x" * 10)
    await store.close()


async def test_a_name_that_is_not_text_is_refused_without_harm_to_others(store: Store) -> None:
    good = asyncio.create_task(put(store, "good"))
    await asyncio.sleep(0)
    with pytest.raises(ValueError, match="surrogates"):
        await put(store, "bad\ud800")
    assert (await good).revision == 2
    assert (await put(store, "next")).revision == 3


async def test_a_write_larger_than_a_statement_is_atomic_and_survives(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, settings=StoreSettings(statement_rows=3, batch_changes=2))
    await store.write(lambda _: [WriteStep(key(f"n{number}"), b"{}") for number in range(10)])
    store = await reopened(store, tmp_path)
    assert store.count("example.dev", "things") == 10
    await store.close()


async def test_everything_survives_a_restart_and_revisions_go_on(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, identity={"simulated": "true"})
    stored = await put(store, "kept", b"\x00\xffopaque")
    changed = await put(store, "changed", b"2", expect=(await put(store, "changed")).revision)
    await put(store, "gone")
    await remove(store, "gone")
    before = store.revision
    identifier = store.id
    store = await reopened(store, tmp_path)
    assert (store.revision, store.id, dict(store.identity)) == (before, identifier, {"simulated": "true"})
    assert store.range("example.dev", "things").records == [changed, stored]
    assert (await put(store, "next")).revision == before + 1
    await store.close()


async def test_the_log_survives_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    store = await Store.open(tmp_path, clock=clock)
    first = await put(store, "a", b"1")
    second = await put(store, "a", b"2")
    await remove(store, "a", b"3")
    store = await reopened(store, tmp_path, clock=clock)
    entries = store.subscribe("example.dev", "things", since=first.revision - 1).take()
    assert [entry.type for entry in entries] == [EventType.ADDED, EventType.MODIFIED, EventType.DELETED]
    assert [entry.previous for entry in entries] == [None, first, second]
    assert store.range("example.dev", "things", at=second.revision).records == [second]
    await store.close()


async def test_the_last_revision_survives_when_compaction_left_no_row(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await put(store, "a")
    last = await remove(store, "a")
    await store.compact()
    store = await reopened(store, tmp_path)
    assert store.revision == last.revision
    assert (await put(store, "a")).revision == last.revision + 1
    await store.close()


async def test_closing_finishes_writes_that_wait_and_refuses_new_ones(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    tasks = [asyncio.create_task(put(store, f"n{number}")) for number in range(50)]
    await asyncio.sleep(0)
    await store.close()
    assert len(await asyncio.gather(*tasks)) == 50
    with pytest.raises(StoreClosed):
        await put(store, "late")
    await store.close()
    store = await Store.open(tmp_path)
    assert store.count("example.dev", "things") == 50
    await store.close()


async def test_collections_and_counts_follow_namespaces(store: Store) -> None:
    await put(store, key("a", "one"))
    await put(store, key("b", "two"))
    await put(store, key("c", "", "nodes", ""))
    assert store.collections() == [("", "nodes"), ("example.dev", "things")]
    assert store.collections("two") == [("example.dev", "things")]
    assert store.count("example.dev", "things") == 2
    assert store.count("example.dev", "things", "one") == 1
    await remove(store, key("b", "two"))
    assert store.collections("two") == []
    assert store.count("example.dev", "things", "two") == 0
