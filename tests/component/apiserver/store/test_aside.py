"""Records that nobody can read: out of everybody's way, in the chain, and gone when somebody takes them away."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.apiserver.store import Compacted, Key, Store, WriteStep
from fastness.apiserver.store.errors import NotSetAside, StoreInUse
from fastness.apiserver.store.offline import remove_unreadable, unreadable_records

GOOD, BAD = Key("", "things", "n", "good"), Key("", "things", "n", "bad")


def judge(body: bytes) -> str | None:
    """A judge that cannot read what says so."""
    return "it says so" if b"unreadable" in body else None


async def filled(directory: Path) -> Store:
    """A store with one good and one bad record, opened with the judge."""
    store = await Store.open(directory)
    await store.write(lambda _: [WriteStep(GOOD, b"{}", 0), WriteStep(BAD, b"unreadable", 0)])
    await store.close()
    return await Store.open(directory, judge=judge)


async def test_a_record_that_cannot_be_read_is_in_no_list_and_its_name_stays_taken(tmp_path: Path) -> None:
    store = await filled(tmp_path)
    assert [record.key for record in store.range("", "things").records] == [GOOD]
    assert (store.get(BAD), store.count("", "things")) == (None, 1)
    assert {key: unreadable.reason for key, unreadable in store.aside.items()} == {BAD: "it says so"}
    assert store.head(BAD) is not None
    assert store.collections("n") == [("", "things")]
    await store.close()


async def test_a_collection_with_nothing_but_unreadable_records_still_holds_its_namespace(tmp_path: Path) -> None:
    store = await filled(tmp_path)
    await store.write(lambda _: WriteStep(GOOD, None, None, b"{}"))
    assert store.collections("n") == [("", "things")]
    await store.close()


async def test_a_log_that_holds_such_a_record_begins_anew(tmp_path: Path) -> None:
    store = await filled(tmp_path)
    assert store.compacted == store.revision
    with pytest.raises(Compacted):
        store.subscribe("", "things", since=1)
    await store.close()


async def test_a_log_without_one_is_kept_although_a_live_record_cannot_be_read(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await store.write(lambda _: WriteStep(BAD, b"unreadable", 0))
    await store.compact()
    [record] = await store.write(lambda _: WriteStep(GOOD, b"{}", 0))
    await store.close()
    store = await Store.open(tmp_path, judge=judge)
    assert store.compacted < record.revision
    await store.close()


async def test_overwriting_one_makes_it_a_record_like_any_other(tmp_path: Path) -> None:
    """Built-in objects are made anew that way at every start."""
    store = await filled(tmp_path)
    cursor = store.subscribe("", "things", since=store.revision)
    await store.write(lambda _: WriteStep(BAD, b'{"fine":1}', None))
    [entry] = await cursor.next_batch(10, None)
    assert entry.previous is not None
    assert judge(entry.previous.body) is None, "watchers with a selector read the state before"
    assert not store.aside
    await store.compact()
    await store.close()
    store = await Store.open(tmp_path, judge=judge)
    assert store.count("", "things") == 2
    await store.close()


async def test_removing_an_unreadable_record_leaves_a_chain_that_opens(tmp_path: Path) -> None:
    await (await filled(tmp_path)).close()
    aside = remove_unreadable(tmp_path, BAD, judge, None, None)
    assert aside.size == len(b"unreadable")
    for _ in range(2):
        store = await Store.open(tmp_path, judge=judge)
        assert (len(store.aside), store.count("", "things")) == (0, 1)
        await store.compact()
        await store.close()


async def test_only_what_is_set_aside_can_be_removed_past_the_api(tmp_path: Path) -> None:
    await (await filled(tmp_path)).close()
    with pytest.raises(NotSetAside):
        remove_unreadable(tmp_path, GOOD, judge, None, None)
    with pytest.raises(NotSetAside):
        remove_unreadable(tmp_path, BAD._replace(name="absent"), judge, None, None)


async def test_a_store_in_use_can_be_looked_at_and_not_cut(tmp_path: Path) -> None:
    store = await filled(tmp_path)
    assert [*unreadable_records(tmp_path, judge, None, None)] == [BAD]
    with pytest.raises(StoreInUse):
        remove_unreadable(tmp_path, BAD, judge, None, None)
    await store.close()
