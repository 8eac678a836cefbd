"""What a write changed."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.apiserver.fields import FieldSet, TypedSchema
from fastness.apiserver.fields.compare import SAME, compare, same
from fastness.apiserver.fields.fieldset import human, paths
from tests.unit.apiserver.fields.examples import FREE, SCHEMA, widget

PORT = {"port": 80, "protocol": "TCP"}


def change_text(before: Any, after: Any, schema: TypedSchema = SCHEMA) -> str:
    """The change as `-removed ~modified +added`, paths below spec."""
    change = compare({"spec": before}, {"spec": after}, schema)
    lines = [
        f"{mark}{human(path).removeprefix('.spec')}"
        for mark, trie in zip("-~+", change, strict=True)
        for path in paths(trie or {})
    ]
    return " ".join(lines)


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ({"replicas": 1}, {"replicas": 1}, ""),
        ({"replicas": 1}, {"replicas": 1.0}, ""),
        ({"replicas": 1}, {"replicas": 2}, "~.replicas"),
        ({"replicas": 1}, {}, "-.replicas"),
        ({"replicas": 1}, {"replicas": 1, "image": "x"}, "+.image"),
        ({"args": ["a"]}, {"args": ["a", "b"]}, "~.args"),
        ({"args": ["a"]}, {"args": []}, "~.args"),
        ({"args": []}, {"args": None}, "~.args"),
        ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, ""),
        ({"tags": ["a", "b"]}, {"tags": ["b", "c"]}, '-.tags[="a"] +.tags[="c"]'),
        ({"tags": []}, {"tags": ["c"]}, '+.tags[="c"]'),
        ({}, {"tags": ["c"]}, '+.tags +.tags[="c"]'),
        ({"selector": {"a": "1"}}, {"selector": {"a": "1", "b": "2"}}, "~.selector"),
        ({"labels": {"a": "1"}}, {"labels": {"a": "2", "b": "2"}}, "~.labels.a +.labels.b"),
        ({"labels": {"a": "1"}}, {"labels": {}}, "-.labels.a"),
        ({"labels": {"a": "1"}}, {"labels": None}, "-.labels.a"),
        ({"labels": {}}, {"labels": None}, "~.labels"),
        ({"ports": [PORT]}, {"ports": [{**PORT, "name": "n"}]}, '+.ports[port=80,protocol="TCP"].name'),
        ({"ports": [PORT]}, {"ports": [{"port": 80}]}, '-.ports[port=80,protocol="TCP"].protocol'),
        ({"nested": {"a": "1"}}, {}, "-.nested -.nested.a"),
        ({"free": {"x": {"y": 1}}}, {"free": {"x": 7}}, "-.free.x.y ~.free.x"),
        ({"free": {"x": 7}}, {"free": {"x": {"y": 1}}}, "~.free.x +.free.x.y"),
        ({"free": {"x": {"y": 1}}}, {"free": {"x": [1]}}, "-.free.x.y ~.free.x"),
        ({"free": {"x": None}}, {"free": {"x": {"y": 1}}}, "+.free.x.y"),
        ({"free": {"x": None}}, {"free": {"x": 1}}, "~.free.x"),
        ({"free": {"x": 1}}, {"free": {"x": True}}, "~.free.x"),
        ({"free": {"x": [1]}}, {"free": {"x": [True]}}, "~.free.x"),
        ({"free": {"x": {"deep": [0]}}}, {"free": {"x": {"deep": [False]}}}, "~.free.x.deep"),
    ],
)
def test_changes_follow_the_schema(before: Any, after: Any, change: str) -> None:
    assert change_text(before, after) == change


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (["a", "a"], ["a", "a"], ""),
        (["a"], ["a", "a"], '-.tags[="a"] +.tags[="a"]'),
        (["a", "a"], ["a"], '-.tags[="a"] +.tags[="a"]'),
        (["a", "a"], [], '-.tags[="a"]'),
        (["b"], ["b", "a", "a"], '+.tags[="a"]'),
        (["a", "a"], ["a", "a", "a"], '~.tags[="a"]'),
        (["a", None], ["a", {}], ""),
    ],
)
def test_repeated_items_are_one_leaf_and_unnameable_ones_none(before: Any, after: Any, change: str) -> None:
    assert change_text({"tags": before}, {"tags": after}) == change


def test_native_structs_that_appear_bring_only_their_fields() -> None:
    strategy = {"type": "object", "properties": {"type": {"type": "string"}}, "default": {}}
    names = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    spec = {"type": "object", "required": ["names"], "properties": {"strategy": strategy, "names": names}}
    native = TypedSchema({"type": "object", "properties": {"spec": {**spec, "default": {}}}}, native=True)
    assert change_text({}, {"strategy": {"type": "x"}, "names": ["n"]}, native) == '+.names[="n"] +.strategy.type'
    assert change_text({"strategy": {"type": "x"}}, {}, native) == "-.strategy.type"
    assert compare({}, {"spec": {"strategy": {}}}, native) == SAME


def test_managed_fields_do_not_count_as_a_change() -> None:
    first, other = widget(metadata={"managedFields": [{"a": 1}]}), widget(metadata={"managedFields": []})
    assert compare(first, other, SCHEMA) == SAME
    assert compare(first, widget(), SCHEMA) == SAME


def test_reset_fields_leave_a_change() -> None:
    change = compare(widget({"replicas": 1}), widget({"replicas": 2}, status={"ready": 1}), SCHEMA)
    remainder = change.without(FieldSet.of(("status",)))
    assert remainder.taken == {"f:spec": {"f:replicas": {}}}
    assert remainder.removed is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 1.5]) | st.sampled_from(["", "a"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_nothing_changed_exactly_when_values_are_equal(first: Any, other: Any) -> None:
    before = deepcopy((first, other))
    unchanged = compare({"spec": first}, {"spec": other}, FREE) == SAME
    assert unchanged == same(first, other)
    assert (first, other) == before


@given(JSON, JSON)
def test_the_way_back_removes_what_was_added(first: Any, other: Any) -> None:
    there, back = compare({"spec": first}, {"spec": other}, FREE), compare({"spec": other}, {"spec": first}, FREE)
    assert (there.removed, there.modified, there.added) == (back.added, back.modified, back.removed)


def test_equality_is_that_of_kubernetes() -> None:
    assert same(1, 1.0)
    assert same({"a": [1, {"b": 2}]}, {"a": [1.0, {"b": 2}]})
    assert same({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert not same(1, True)
    assert not same([1], [True])
    assert not same({"a": {"b": 0}}, {"a": {"b": False}})
    assert same(True, True)
    assert not same(None, {})
