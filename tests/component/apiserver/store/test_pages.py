"""Lists in pages stay what they were when they began, whatever is written meanwhile."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fastness.apiserver.store import Compacted, Record, Store
from tests.component.apiserver.store.store_parts import key, put, remove, small_log

GROUP, PLURAL = "example.dev", "things"


async def fill(store: Store, count: int = 12) -> list[Record]:
    return list(await asyncio.gather(*(put(store, f"n{number:02}", b"old") for number in range(count))))


def after(page: list[Record]) -> tuple[str, str]:
    return page[-1].key.namespace, page[-1].key.name


async def test_pages_of_one_list_do_not_see_what_is_written_between_them(store: Store) -> None:
    original = await fill(store)
    first = store.range(GROUP, PLURAL, limit=4)
    assert first.remaining == 8
    await put(store, "n02", b"changed behind the reader")
    await put(store, "n04", b"changed before the reader")
    await put(store, "n05a", b"new before the reader")
    await remove(store, "n06")
    await remove(store, "n07")
    await put(store, "n07", b"deleted and made again")
    await put(store, key("n09", "zoo"), b"another namespace")
    listed = list(first.records)
    while True:
        page = store.range(GROUP, PLURAL, after=after(listed), limit=4, at=first.revision)
        assert page.revision == first.revision
        listed += page.records
        if not page.remaining:
            break
    assert listed == original


async def test_a_fresh_list_sees_all_of_it(store: Store) -> None:
    await fill(store, 3)
    await put(store, "n01", b"new")
    await remove(store, "n02")
    assert [record.body for record in store.range(GROUP, PLURAL).records] == [b"old", b"new"]


async def test_pages_end_with_compacted_when_the_log_no_longer_reaches_back(tmp_path: Path) -> None:
    store = await Store.open(tmp_path, settings=small_log())
    await fill(store, 4)
    first = store.range(GROUP, PLURAL, limit=2)
    for number in range(10):
        await put(store, "n03", b"%d" % number)
    with pytest.raises(Compacted):
        store.range(GROUP, PLURAL, after=after(first.records), limit=2, at=first.revision)
    await store.close()


async def test_a_page_within_a_namespace_counts_only_that_namespace(store: Store) -> None:
    for number in range(5):
        await put(store, key(f"n{number}", "one"))
        await put(store, key(f"n{number}", "two"))
    at = store.revision
    await remove(store, key("n3", "one"))
    page = store.range(GROUP, PLURAL, "one", limit=2, at=at)
    assert [record.key.name for record in page.records] == ["n0", "n1"]
    assert page.remaining == 3
    present = store.range(GROUP, PLURAL, "one", limit=2)
    assert present.remaining == 2


async def test_a_limit_larger_than_the_collection_gives_all(store: Store) -> None:
    records = await fill(store, 3)
    page = store.range(GROUP, PLURAL, limit=100)
    assert (page.records, page.remaining) == (records, 0)
    assert store.range(GROUP, "nothing", limit=100).records == []
