"""When the disk fails: one error for everyone who waits, nothing half visible, reads go on, the next write tries again."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from fastness.apiserver.store import DiskFull, Record, Store, StoreClosed, StoreSettings, StoreUnavailable, WriteStep
from tests.component.apiserver.store.store_parts import Faults, key, put, reopened, small_log

GROUP, PLURAL = "example.dev", "things"


def broken_disk() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    return error


async def test_a_failed_commit_fails_its_batch_and_all_that_was_decided_on_it(store: Store, faults: Faults) -> None:
    committed = await put(store, "kept")
    cursor = store.subscribe(GROUP, PLURAL, since=store.revision)
    faults.arm("commit.before-begin", broken_disk())
    first = asyncio.create_task(put(store, "a", b"1", expect=0))
    second = asyncio.create_task(put(store, "b"))
    results = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(result) for result in results] == [StoreUnavailable, StoreUnavailable]
    assert "disk I/O error" in str(results[0])
    assert store.revision == committed.revision
    assert store.head(key("a")) is None
    assert store.range(GROUP, PLURAL).records == [committed]
    assert cursor.take() == []
    assert store.stats.failures == 1


async def test_writes_queued_behind_a_failing_batch_fail_with_it(store: Store, faults: Faults) -> None:
    queued: list[asyncio.Task[Record]] = []
    loop = asyncio.get_running_loop()

    def queue_more(name: str) -> None:
        if name == "commit.dispatched" and not queued:
            queued.append(loop.create_task(put(store, "a", b"2", expect=2)))

    faults.on = queue_more
    faults.arm("commit.before-begin", broken_disk())
    with pytest.raises(StoreUnavailable):
        await put(store, "a", b"1", expect=0)
    with pytest.raises(StoreUnavailable):
        await queued[0]
    assert store.head(key("a")) is None
    await put(store, "b")
    assert store.get(key("a")) is None
    assert store.stats.pending_changes == 0


async def test_the_next_write_succeeds_with_a_fresh_revision(store: Store, faults: Faults) -> None:
    faults.arm("commit.before-begin", broken_disk())
    with pytest.raises(StoreUnavailable):
        await put(store, "a")
    assert store.problem is not None
    record = await put(store, "a", expect=0)
    assert record.revision == 3
    assert store.problem is None


async def test_a_commit_that_reached_the_disk_but_was_reported_failed_is_taken_back(
    tmp_path: Path, faults: Faults
) -> None:
    store = await Store.open(tmp_path, failpoints=faults)
    faults.arm("commit.after-commit", broken_disk())
    with pytest.raises(StoreUnavailable):
        await put(store, "a", b"unknown outcome")
    record = await put(store, "a", b"known", expect=0)
    store = await reopened(store, tmp_path)
    assert store.range(GROUP, PLURAL).records == [record]
    assert len(store.subscribe(GROUP, PLURAL, since=1).take()) == 1
    await store.close()


async def test_what_cannot_be_taken_back_at_once_is_taken_back_before_the_next_write(
    tmp_path: Path, faults: Faults
) -> None:
    store = await Store.open(tmp_path, failpoints=faults)
    faults.arm("commit.after-commit", broken_disk())
    faults.arm("resume.before", broken_disk(), times=2)
    with pytest.raises(StoreUnavailable):
        await put(store, "a", b"unknown outcome")
    with pytest.raises(StoreUnavailable):
        await put(store, "a", b"the disk is still broken")
    record = await put(store, "a", b"known", expect=0)
    store = await reopened(store, tmp_path)
    assert store.range(GROUP, PLURAL).records == [record]
    await store.close()


@pytest.mark.parametrize("step", ["commit.after-begin", "commit.after-statement", "commit.before-commit"])
async def test_a_failure_inside_a_transaction_leaves_nothing(tmp_path: Path, faults: Faults, step: str) -> None:
    settings = StoreSettings(statement_rows=2)
    store = await Store.open(tmp_path, failpoints=faults, settings=settings)
    faults.arm(step, broken_disk())
    with pytest.raises(StoreUnavailable):
        await store.write(lambda _: [WriteStep(key(f"n{number}"), b"{}") for number in range(5)])
    record = await put(store, "a")
    store = await reopened(store, tmp_path)
    assert store.range(GROUP, PLURAL).records == [record]
    await store.close()


async def test_a_refusal_decided_on_a_write_that_then_fails_reports_the_failure(store: Store, faults: Faults) -> None:
    faults.arm("commit.before-begin", broken_disk())
    first = asyncio.create_task(put(store, "a", expect=0))
    await asyncio.sleep(0)
    with pytest.raises(StoreUnavailable):
        await put(store, "a", expect=0)
    with pytest.raises(StoreUnavailable):
        await first


async def test_a_full_disk_says_so_keeps_serving_and_recovers_when_there_is_room(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, settings=StoreSettings(max_bytes=200_000))
    written = 0
    with pytest.raises(DiskFull) as refusal:
        for _ in range(100):
            await put(store, f"n{written}", b"x" * 10_000)
            written += 1
    assert 5 < written < 20
    assert "space" in refusal.value.hint
    assert store.count(GROUP, PLURAL) == written
    assert isinstance(store.problem, DiskFull)
    store = await reopened(store, tmp_path)
    assert store.count(GROUP, PLURAL) == written
    await put(store, f"n{written}", b"x" * 10_000)
    await store.close()


async def test_compaction_makes_room_on_a_full_disk(tmp_path: Path) -> None:
    settings = small_log(max_bytes=200_000, log_entries=100, compact_every=1_000)
    store = await Store.open(tmp_path, settings=settings)
    with pytest.raises(DiskFull):
        for _ in range(100):
            await put(store, "same", b"x" * 10_000)
    await store.compact()
    await put(store, "same", b"x" * 10_000)
    await store.close()


async def _filled(store: Store) -> list[Record]:
    """Write until the disk is full."""
    written: list[Record] = []
    with pytest.raises(DiskFull):
        for number in range(100):
            made = await put(store, f"n{number}", b"x" * 10_000)
            written += [made]
    return written


async def _removed(store: Store, record: Record) -> None:
    await store.write(lambda _: WriteStep(record.key, None, record.revision, record.body))


async def test_deletions_are_taken_on_a_full_disk_and_make_room_for_others(tmp_path: Path) -> None:
    settings = StoreSettings(max_bytes=200_000, reserve_bytes=200_000)
    store = await Store.open(tmp_path, settings=settings)
    written = await _filled(store)
    for record in written[:4]:
        await _removed(store, record)
    assert store.count(GROUP, PLURAL) == len(written) - 4
    assert store.problem is None
    await store.compact()
    for number in range(3):
        await put(store, f"again{number}", b"x" * 10_000)
    with pytest.raises(DiskFull):
        for number in range(10):
            await put(store, f"more{number}", b"x" * 10_000)
    expected = {record.key.name for record in store.range(GROUP, PLURAL).records}
    store = await reopened(store, tmp_path)
    assert {record.key.name for record in store.range(GROUP, PLURAL).records} == expected
    await store.close()


async def test_without_room_kept_back_a_full_disk_takes_no_deletion(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, settings=StoreSettings(max_bytes=200_000))
    [first, *_] = await _filled(store)
    with pytest.raises(DiskFull):
        await store.write(lambda _: WriteStep(first.key, None, first.revision, first.body))
    await store.close()


async def test_a_deletion_beside_a_write_that_finds_the_disk_full_is_taken_unless_it_rests_on_that(
    tmp_path: Path,
) -> None:
    store = await Store.open(tmp_path, settings=StoreSettings(max_bytes=200_000, reserve_bytes=200_000))
    [first, second, *_] = await _filled(store)
    too_much = asyncio.ensure_future(put(store, "too-much", b"x" * 60_000))
    changed = asyncio.ensure_future(put(store, second.key.name, b"y" * 60_000))
    await asyncio.sleep(0)
    alone = store.write(lambda _: WriteStep(first.key, None, first.revision, first.body))
    on_top = store.write(lambda _: WriteStep(second.key, None, None, second.body))
    results = await asyncio.gather(too_much, changed, alone, on_top, return_exceptions=True)
    assert [type(result) for result in results] == [DiskFull, DiskFull, list, DiskFull]
    assert store.get(first.key) is None
    assert store.get(second.key) == second
    await store.close()


async def test_what_is_kept_back_is_a_file_of_blocks_that_comes_again_with_the_room(tmp_path: Path) -> None:
    settings = StoreSettings(max_bytes=200_000, reserve_bytes=65_536)
    store = await Store.open(tmp_path, settings=settings)
    reserve = tmp_path / "state.reserve"
    assert reserve.stat().st_blocks * 512 >= 65_536
    [first, *_] = await _filled(store)
    reserved = store._database._reserve.keep
    existed: list[bool] = []

    def keep() -> bool:
        existed.append(reserve.exists())
        return reserved()

    store._database._reserve.keep = keep  # type: ignore[method-assign]
    await _removed(store, first)
    await store.close()
    assert existed == [False], "it was given up before it was kept again"
    assert reserve.exists()


async def test_a_failed_compaction_is_remembered_and_tried_again(tmp_path: Path, faults: Faults) -> None:
    store = await Store.open(tmp_path, settings=small_log(log_entries=2), failpoints=faults)
    faults.arm("compact.after-delete", broken_disk())
    for number in range(30):
        await put(store, "a", b"%d" % number)
    last = await put(store, "a", b"last")
    await store.compact()
    store = await reopened(store, tmp_path)
    assert store.range(GROUP, PLURAL).records == [last]
    assert _rows_on_disk(tmp_path) == 1
    await store.close()


async def test_a_failed_compaction_on_demand_is_reported(store: Store, faults: Faults) -> None:
    await put(store, "a")
    await put(store, "a", b"2")
    faults.arm("compact.after-delete", broken_disk())
    with pytest.raises(StoreUnavailable):
        await store.compact()
    assert isinstance(store.problem, StoreUnavailable)
    assert await store.compact() == store.revision


async def test_a_cancelled_compaction_is_finished_or_tried_again(tmp_path: Path, faults: Faults) -> None:
    store = await Store.open(tmp_path, failpoints=faults)
    for number in range(5):
        await put(store, "a", b"%d" % number)
    compaction = asyncio.create_task(store.compact())
    blocker = asyncio.create_task(put(store, "b"))
    await asyncio.sleep(0)
    compaction.cancel()
    await asyncio.gather(compaction, blocker, return_exceptions=True)
    compaction = asyncio.create_task(store.compact(keep=1))
    while "compact.before-begin" not in faults.reached:  # noqa: ASYNC110 - the failpoint is reached in another thread
        await asyncio.sleep(0)
    compaction.cancel()
    await asyncio.gather(compaction, return_exceptions=True)
    last = await put(store, "a", b"last")
    await store.compact()
    store = await reopened(store, tmp_path)
    assert store.get(key("a")) == last
    assert _rows_on_disk(tmp_path) == 2
    await store.close()


async def test_a_failed_checkpoint_loses_nothing(tmp_path: Path, faults: Faults) -> None:
    store = await Store.open(tmp_path, settings=small_log(checkpoint_bytes=1), failpoints=faults)
    faults.arm("checkpoint.before", broken_disk(), times=3)
    for number in range(6):
        await put(store, f"n{number}")
    assert faults.reached.count("checkpoint.after") >= 1
    store = await reopened(store, tmp_path)
    assert store.count(GROUP, PLURAL) == 6
    await store.close()


async def test_the_disk_holds_no_more_than_the_log_and_the_present(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, settings=small_log())
    for number in range(100):
        await put(store, f"n{number % 3}", b"%d" % number)
    await store.compact(keep=2)
    assert _rows_on_disk(tmp_path) == 5
    await store.close()


async def test_a_defect_while_showing_a_batch_stops_writes_instead_of_hanging_them(
    tmp_path: Path, faults: Faults
) -> None:
    defects: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: defects.append(context["exception"]))
    store = await Store.open(tmp_path, failpoints=faults)
    faults.arm("publish.before", RuntimeError("a defect"))
    with pytest.raises(StoreClosed):
        await put(store, "a")
    with pytest.raises(StoreClosed):
        await put(store, "b")
    assert isinstance(store.problem, StoreClosed)
    assert [str(defect) for defect in defects] == ["a defect"]
    store = await reopened(store, tmp_path)
    assert [record.key.name for record in store.range(GROUP, PLURAL).records] == ["a"]
    await store.close()


def _rows_on_disk(directory: Path) -> int:
    connection = sqlite3.connect(directory / "state.db")
    try:
        return int(connection.execute("SELECT count(*) FROM journal").fetchone()[0])
    finally:
        connection.close()
