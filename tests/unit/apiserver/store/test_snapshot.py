"""The present state keeps order under any run of changes, and pages tile it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fastness.apiserver.store.records import Key, Record
from fastness.apiserver.store.snapshot import Present

NAMES = st.text("abc", min_size=1, max_size=3)
KEYS = st.builds(Key, st.just("g"), st.sampled_from(["p", "q"]), st.sampled_from(["", "n1", "n2", "n3"]), NAMES)


def record(key: Key, revision: int = 1) -> Record:
    return Record(key, revision, 1, b"{}")


def filled(keys: list[Key]) -> Present:
    present = Present()
    for revision, key in enumerate(keys, 1):
        present.put(record(key, revision))
    return present


@given(puts=st.lists(KEYS), removals=st.lists(st.integers(0, 50)), namespace=st.sampled_from(["", "n1", "n9"]))
def test_a_collection_is_sorted_and_counted_whatever_happened(
    puts: list[Key], removals: list[int], namespace: str
) -> None:
    present = filled(puts)
    model = {key: revision for revision, key in enumerate(puts, 1)}
    for choice in removals:
        if model:
            key = sorted(model)[choice % len(model)]
            present.remove(key)
            del model[key]
    for plural in ("p", "q"):
        expected = [key for key in sorted(model) if key.plural == plural and namespace in ("", key.namespace)]
        records, left = present.page("g", plural, namespace, None, 0)
        assert [(record.key, record.revision) for record in records] == [(key, model[key]) for key in expected]
        assert left == 0
        assert present.count("g", plural, namespace) == len(expected)
    assert present.collections("") == sorted({key[:2] for key in model})


@given(keys=st.lists(KEYS, unique=True), limit=st.integers(1, 5), namespace=st.sampled_from(["", "n1"]))
def test_pages_tile_a_collection(keys: list[Key], limit: int, namespace: str) -> None:
    present = filled(keys)
    everything, _ = present.page("g", "p", namespace, None, 0)
    tiles: list[Record] = []
    after: tuple[str, str] | None = None
    while True:
        page, left = present.page("g", "p", namespace, after, limit)
        tiles += page
        assert left == len(everything) - len(tiles)
        if not left:
            break
        after = (page[-1].key.namespace, page[-1].key.name)
    assert tiles == everything


@given(
    common=st.lists(KEYS, max_size=20), old=st.lists(KEYS, max_size=5), new=st.lists(KEYS, max_size=5),
    limit=st.integers(0, 4),
)  # fmt: skip
def test_undoing_changes_gives_the_pages_from_before(
    common: list[Key], old: list[Key], new: list[Key], limit: int
) -> None:
    before, now = Present(), Present()
    before.load(({key: record(key, 1) for key in common} | {key: record(key, 2) for key in old}).values())
    now.load(({key: record(key, 1) for key in common} | {key: record(key, 3) for key in new}).values())
    undo = {
        key: before.records.get(key)
        for key in {*common, *old, *new}
        if key.plural == "p" and before.records.get(key) != now.records.get(key)
    }
    expected, _ = before.page("g", "p", "", None, 0)
    after: tuple[str, str] | None = None
    tiles: list[Record] = []
    while True:
        page, left = now.page_before("g", "p", "", after, limit, undo)
        tiles += page
        assert left == len(expected) - len(tiles)
        assert not left or len(page) == limit
        if not left:
            break
        after = (page[-1].key.namespace, page[-1].key.name)
    assert tiles == expected


def test_loading_equals_putting_one_by_one() -> None:
    keys = [Key("g", "p", "n", name) for name in "dacb"]
    loaded = Present()
    loaded.load(record(key, revision) for revision, key in enumerate(keys, 1))
    assert loaded.page("g", "p", "", None, 0) == filled(keys).page("g", "p", "", None, 0)


def test_a_position_in_a_namespace_that_is_gone_continues_with_the_next() -> None:
    present = filled([Key("g", "p", "n1", "a"), Key("g", "p", "n3", "a")])
    page, left = present.page("g", "p", "", ("n2", "zzz"), 0)
    assert [record.key.namespace for record in page] == ["n3"]
    assert left == 0


def test_a_page_is_a_copy_that_later_writes_do_not_change() -> None:
    present = filled([Key("g", "p", "n", "a")])
    page, _ = present.page("g", "p", "", None, 0)
    present.put(record(Key("g", "p", "n", "b")))
    assert len(page) == 1
