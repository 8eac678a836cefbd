"""The cache: objects, indexes, and what a new state changes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.kinds.kind import JsonObject
from fastness.kube.informers import Cache, InformerError, Key, key_of
from fastness.kube.informers.cache import IndexerFailed


def thing(name: str, version: int, namespace: str = "n", uid: str = "u", **fields: Any) -> JsonObject:
    """An object."""
    meta = {"namespace": namespace, "name": name, "uid": uid, "resourceVersion": str(version)}
    return {"metadata": meta, **fields}


def colours(obj: JsonObject) -> list[str]:
    """An index with any number of values."""
    return list(obj.get("colours", ()))


def test_an_object_is_found_by_key_and_gone_after_removal() -> None:
    cache = Cache()
    first = thing("a", 1)
    assert cache.put(first) == (None, first)
    second = thing("a", 2)
    assert cache.put(second) == (first, second)
    assert cache.get(Key("n", "a")) is second
    assert cache.remove(Key("n", "a")) == (second, None)
    assert cache.remove(Key("n", "a")) is None
    assert len(cache) == 0


def test_cluster_wide_objects_have_an_empty_namespace() -> None:
    assert key_of({"metadata": {"name": "a"}}) == Key("", "a")


def test_lists_are_ordered_and_can_be_cut_to_a_namespace() -> None:
    cache = Cache()
    for namespace, name in (("b", "x"), ("a", "y"), ("a", "x")):
        cache.put(thing(name, 1, namespace))
    assert [key_of(obj) for obj in cache.list()] == [("a", "x"), ("a", "y"), ("b", "x")]
    assert [key_of(obj) for obj in cache.list("b")] == [("b", "x")]


def test_an_index_follows_values_as_they_come_and_go() -> None:
    cache = Cache({"colour": colours})
    cache.put(thing("a", 1, colours=["red", "blue"]))
    cache.put(thing("b", 2, colours=["red"]))
    assert [obj["metadata"]["name"] for obj in cache.by_index("colour", "red")] == ["a", "b"]
    cache.put(thing("a", 3, colours=["green"]))
    assert [obj["metadata"]["name"] for obj in cache.by_index("colour", "red")] == ["b"]
    assert cache.by_index("colour", "blue") == []
    cache.remove(Key("n", "b"))
    assert cache.by_index("colour", "red") == []


def test_an_index_that_comes_later_covers_what_is_there() -> None:
    cache = Cache()
    cache.put(thing("a", 1, colours=["red"]))
    cache.add_index("colour", colours)
    assert len(cache.by_index("colour", "red")) == 1


def test_the_same_index_twice_is_fine_and_another_of_its_name_is_not() -> None:
    cache = Cache({"colour": colours})
    cache.add_index("colour", colours)
    with pytest.raises(InformerError, match="colour"):
        cache.add_index("colour", lambda _obj: [])


def test_an_index_that_nobody_declared_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(InformerError) as caught:
        Cache({"colour": colours}).by_index("shape", "round")
    assert "colour" in caught.value.hint


def test_a_new_state_tells_deletions_changes_and_additions_and_nothing_else() -> None:
    cache = Cache()
    same, gone, old = thing("same", 1), thing("gone", 2), thing("changed", 3)
    for obj in (same, gone, old):
        cache.put(obj)
    new, added = thing("changed", 5), thing("added", 6)
    state = {key_of(obj): obj for obj in (thing("same", 1), new, added)}
    assert cache.replace(state) == ([(gone, None), (old, new), (None, added)], {})
    assert cache.get(Key("n", "same")) is same


def test_an_object_that_was_replaced_under_its_name_is_a_change() -> None:
    cache = Cache()
    old, new = thing("a", 1, uid="u1"), thing("a", 1, uid="u2")
    cache.put(old)
    assert cache.replace({key_of(new): new}) == ([(old, new)], {})


NAMES = st.sampled_from("abcd")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), NAMES, st.lists(st.sampled_from(["red", "blue"]), max_size=3)),
        st.tuples(st.just("remove"), NAMES, st.just([])),
        st.tuples(st.just("replace"), st.just(""), st.lists(NAMES, max_size=3)),
    ),
    max_size=30,
)


@given(STEPS)
def test_indexes_always_equal_a_scan_of_the_objects(steps: list[tuple[str, str, list[str]]]) -> None:
    cache = Cache({"colour": colours})
    for version, (step, name, values) in enumerate(steps):
        if step == "put":
            cache.put(thing(name, version, colours=values))
        elif step == "remove":
            cache.remove(Key("n", name))
        else:
            cache.replace({Key("n", each): thing(each, version, colours=["red"]) for each in values})
        for value in ("red", "blue"):
            assert cache.by_index("colour", value) == [obj for obj in cache.list() if value in obj["colours"]]


def _first_label(obj: JsonObject) -> list[str]:
    return [obj["metadata"]["labels"]["first"]]


def test_an_object_on_which_an_indexer_fails_is_not_taken_and_its_last_state_stays() -> None:
    cache = Cache({"first": _first_label})
    good = thing("a", 1)
    good["metadata"]["labels"] = {"first": "x"}
    cache.put(good)
    with pytest.raises(IndexerFailed):
        cache.put(thing("a", 2))
    assert cache.get(key_of(good)) is good
    assert cache.by_index("first", "x") == [good]


def test_a_new_state_with_one_hostile_object_takes_all_the_others() -> None:
    cache = Cache({"first": _first_label})
    good, hostile = thing("good", 1), thing("hostile", 2)
    good["metadata"]["labels"] = {"first": "x"}
    hostile["metadata"]["labels"] = {"first": {"not": "hashable"}}
    changes, failures = cache.replace({key_of(hostile): hostile, key_of(good): good})
    assert changes == [(None, good)]
    assert [*failures] == [key_of(hostile)]


def test_what_cannot_be_read_any_more_is_not_taken_for_deleted() -> None:
    cache = Cache()
    held = thing("a", 1)
    cache.put(held)
    assert cache.replace({}, spared=[key_of(held)]) == ([], {})
    assert cache.list() == [held]
