"""Sets of field paths: algebra, the JSON of fieldsV1, reading what others wrote."""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.apiserver.fields import FieldSet, human

STEPS = st.sampled_from(["f:a", "f:b", 'k:{"port":80}', 'k:{"port":443}', 'v:"x"', "v:7"])
PATHS = st.lists(st.lists(STEPS, min_size=1, max_size=4).map(tuple), max_size=8)


def sets(paths: Iterable[tuple[str, ...]]) -> FieldSet:
    return FieldSet.of(*paths)


def test_members_and_their_parents_are_told_apart() -> None:
    fields = FieldSet.of(("spec", "a"), ("spec", "b", "c"), ("spec", "b"))
    assert fields.to_fields_v1() == {"f:spec": {"f:a": {}, "f:b": {".": {}, "f:c": {}}}}
    assert fields.has(("spec", "b"))
    assert fields.has(("f:spec", "f:a"))
    assert not fields.has(("spec",))
    assert not fields.has(("spec", "b", "c", "d"))
    assert not fields.has(())
    assert len(fields) == 3
    assert FieldSet.of(("labels", "x:y")).trie == {"f:labels": {"f:x:y": {}}}


def test_removing_a_parent_leaves_what_is_below_it() -> None:
    below = FieldSet.of(("a", "b"))
    assert below.difference(FieldSet.of(("a",))) == below
    assert FieldSet.of(("a",), ("a", "b")).difference(FieldSet.of(("a",))) == below
    assert below.without(FieldSet.of(("a",))) == FieldSet()


def test_a_set_reads_like_its_paths() -> None:
    fields = FieldSet.of(("spec", "containers", 'k:{"name":"x"}', "image"), ("spec", "tags", 'v:"t"'))
    assert repr(fields) == 'FieldSet(.spec.containers[name="x"].image, .spec.tags[="t"])'
    assert [human(path) for path in fields] == ['.spec.containers[name="x"].image', '.spec.tags[="t"]']


def test_json_has_the_order_of_kubernetes() -> None:
    fields = FieldSet.of(("p", 'k:{"port":443}'), ("p", 'k:{"port":80}'), ("p",), ("b",), ("a",))
    assert json.dumps(fields.to_fields_v1()) == (
        '{"f:a": {}, "f:b": {}, "f:p": {".": {}, "k:{\\"port\\":80}": {}, "k:{\\"port\\":443}": {}}}'
    )


def test_foreign_json_is_normalised() -> None:
    raw: dict[str, Any] = {
        ".": {},
        "f:a": {".": {}},
        'k:{"b":1,"a":2}': {},
        'k:{"a":2, "b":1.0}': {"f:x": {}},
        "z:unknown": {"f:lost": {}},
    }
    assert FieldSet.from_fields_v1(raw).trie == {"f:a": {}, 'k:{"a":2,"b":1}': {".": {}, "f:x": {}}}
    assert not FieldSet.from_fields_v1(None)


@pytest.mark.parametrize("raw", [{"f:a": None}, {"f:a": []}, {"f:a": {"bad": {}}}, [], "x", {"k:{}": {}}])
def test_what_is_not_a_field_set_is_refused(raw: object) -> None:
    with pytest.raises(ValueError):
        FieldSet.from_fields_v1(raw)  # type: ignore[arg-type]


def test_bottomless_json_is_refused() -> None:
    raw: dict[str, object] = {}
    for _ in range(500):
        raw = {"f:a": raw}
    with pytest.raises(ValueError, match="deep"):
        FieldSet.from_fields_v1(raw)


@given(PATHS, PATHS)
def test_operations_are_those_of_sets_of_paths(first: list[tuple[str, ...]], other: list[tuple[str, ...]]) -> None:
    left, right = sets(first), sets(other)
    before = deepcopy((left.trie, right.trie))
    assert set(left.union(right)) == set(first) | set(other)
    assert set(left.difference(right)) == set(first) - set(other)
    assert set(left.intersection(right)) == set(first) & set(other)
    assert set(left.without(right)) == {path for path in first if not any(path[: len(gone)] == gone for gone in other)}
    assert (left.trie, right.trie) == before


@given(PATHS)
def test_fields_v1_round_trips_and_does_not_depend_on_the_order_of_insertion(paths: list[tuple[str, ...]]) -> None:
    fields = sets(paths)
    assert json.dumps(fields.to_fields_v1()) == json.dumps(sets(reversed(paths)).to_fields_v1())
    again = FieldSet.from_fields_v1(json.loads(json.dumps(fields.to_fields_v1())))
    assert again == fields
    assert set(again) == set(paths)
    assert hash(again) == hash(fields)
    assert bool(fields) == bool(paths)


@given(PATHS, PATHS)
def test_no_operation_leaves_an_empty_branch(first: list[tuple[str, ...]], other: list[tuple[str, ...]]) -> None:
    for result in (
        sets(first).difference(sets(other)),
        sets(first).without(sets(other)),
        sets(first).intersection(sets(other)),
    ):
        assert result == sets(result)
