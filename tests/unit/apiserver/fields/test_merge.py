"""Merging a configuration into an object, taking fields out of it, and refusing what cannot be merged."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from fastness.apiserver.fields import BadListItem, FieldNotDeclared, FieldSet, WrongShape
from fastness.apiserver.fields.merge import check, merge, remove
from tests.unit.apiserver.fields.examples import FREE, SCHEMA, widget


def merged(live: Any, config: Any) -> Any:
    live_widget, other = widget(live), widget(config)
    before = deepcopy((live_widget, other))
    out = merge(live_widget, other, SCHEMA.root)
    assert (live_widget, other) == before
    return out["spec"]


def ports(*numbers: int) -> list[dict[str, Any]]:
    return [{"port": number} for number in numbers]


@pytest.mark.parametrize(
    ("live", "config", "out"),
    [
        ({"replicas": 1, "image": "a"}, {"replicas": 2}, {"replicas": 2, "image": "a"}),
        ({"labels": {"a": "1", "b": "2"}}, {"labels": {"b": "3", "c": "4"}}, {"labels": {"a": "1", "b": "3", "c": "4"}}),
        ({"labels": {"a": "1"}}, {"labels": {}}, {"labels": {"a": "1"}}),
        ({"labels": {"a": "1"}}, {"labels": None}, {"labels": {"a": "1"}}),
        ({"labels": {}}, {"labels": None}, {"labels": None}),
        ({"selector": {"a": "1"}}, {"selector": {"b": "2"}}, {"selector": {"b": "2"}}),
        ({"selector": {"a": "1"}}, {"selector": None}, {"selector": None}),
        ({"args": ["a", "b"]}, {"args": ["c"]}, {"args": ["c"]}),
        ({"tags": ["a", "b"]}, {"tags": ["c", "a"]}, {"tags": ["c", "a", "b"]}),
        ({"tags": ["a"]}, {"tags": []}, {"tags": ["a"]}),
        ({"tags": []}, {"tags": ["a"]}, {"tags": ["a"]}),
        ({"nested": {"a": "1", "deep": {"b": "2"}}}, {"nested": {"deep": {}}}, {"nested": {"a": "1", "deep": {"b": "2"}}}),
        ({"free": {"a": {"b": 1}, "l": [1]}}, {"free": {"a": {"c": 2}, "l": [2]}}, {"free": {"a": {"b": 1, "c": 2}, "l": [2]}}),
        ({"free": {"a": 1}}, {"free": {"a": {"c": 2}}}, {"free": {"a": {"c": 2}}}),
        ({"unknown": {"kept": 1}}, {"replicas": 1}, {"unknown": {"kept": 1}, "replicas": 1}),
    ],
)  # fmt: skip
def test_each_type_merges_in_its_way(live: Any, config: Any, out: Any) -> None:
    assert merged(live, config) == out


@pytest.mark.parametrize(
    ("live", "config", "out"),
    [
        ([1, 2], [1, 3, 2], [1, 3, 2]),
        ([1, 9, 2], [1, 3, 2], [1, 9, 3, 2]),
        ([1, 2], [2, 1], [2, 1]),
        ([1, 9, 2, 8], [2, 1], [9, 2, 8, 1]),
        ([9, 8], [1, 2], [9, 8, 1, 2]),
        ([1], [3, 1, 4], [3, 1, 4]),
        ([1, 2, 3, 4], [4, 2], [1, 3, 4, 2]),
    ],
)
def test_items_take_the_place_that_the_configuration_gives_them(
    live: list[int], config: list[int], out: list[int]
) -> None:
    """Items of both in the order of the configuration; items of the live object before the next that both have."""
    result = merged({"ports": ports(*live)}, {"ports": ports(*config)})
    assert [item["port"] for item in result["ports"]] == out


def test_an_item_is_found_by_its_defaulted_key_and_merged_field_by_field() -> None:
    live = {"ports": [{"port": 80, "protocol": "TCP", "name": "n", "unknown": 1}, {"port": 80, "protocol": "UDP"}]}
    assert merged(live, {"ports": [{"port": 80, "name": "m"}]}) == {
        "ports": [{"port": 80, "protocol": "TCP", "name": "m", "unknown": 1}, {"port": 80, "protocol": "UDP"}]
    }


def test_stored_items_that_repeat_a_key_give_way_and_nameless_ones_stay() -> None:
    live = {"tags": ["a", None, "a", "b"]}
    assert merged(live, {"tags": ["a"]}) == {"tags": ["a", None, "b"]}
    twice = {"ports": [{"port": 1, "name": "x"}, {"port": 1, "name": "y"}]}
    assert merged(twice, {"ports": [{"port": 1}]}) == {"ports": [{"port": 1}]}


def test_removing_takes_members_and_leaves_the_rest() -> None:
    obj = widget({"replicas": 1, "labels": {"a": "1", "b": "2"}, "ports": ports(1, 2), "tags": ["x"], "args": ["y"]})
    gone = FieldSet.of(
        ("spec", "replicas"), ("spec", "labels", "a"), ("spec", "ports", 'k:{"port":1,"protocol":"TCP"}'),
        ("spec", "tags", 'v:"x"'), ("spec", "missing"), ("spec", "ports", 'k:{"port":2,"protocol":"TCP"}', "name"),
    )  # fmt: skip
    before = deepcopy(obj)
    assert remove(obj, gone.trie, SCHEMA.root) == widget(
        {"labels": {"b": "2"}, "ports": ports(2), "tags": [], "args": ["y"]}
    )
    assert obj == before


def test_a_container_that_loses_its_last_part_stays_empty() -> None:
    assert remove({"spec": {"replicas": 1}}, FieldSet.of(("spec", "replicas")).trie, SCHEMA.root) == {"spec": {}}
    assert remove({"spec": {"args": [1]}}, FieldSet.of(("spec", "args", "i:0")).trie, SCHEMA.root) == {
        "spec": {"args": [1]}
    }


@pytest.mark.parametrize(
    ("spec", "error", "path", "message"),
    [
        ({"replicaz": 1}, FieldNotDeclared, ".spec.replicaz", ".spec.replicaz: field not declared in schema"),
        ({"tags": ["a", "a"]}, BadListItem, '.spec.tags[="a"]', '.spec.tags: duplicate entries for key [="a"]'),
        ({"tags": [{}]}, BadListItem, ".spec.tags[0]", "element that's a map type"),
        (
            {"ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]},
            BadListItem,
            '.spec.ports[port=1,protocol="TCP"]',
            "duplicate",
        ),
        (
            {"ports": [{"port": 1}, 7]},
            BadListItem,
            ".spec.ports[1]",
            ".spec.ports: element 1: associative list with keys",
        ),
        (
            {"ports": [{"port": 1, "nam": "n"}]},
            FieldNotDeclared,
            '.spec.ports[port=1,protocol="TCP"].nam',
            "not declared",
        ),
        ({"tags": {"a": 1}}, WrongShape, ".spec.tags", ".spec.tags: expected list, got map"),
        ({"labels": ["a"]}, WrongShape, ".spec.labels", ".spec.labels: expected map, got list"),
        ({"labels": {"a": 1}}, WrongShape, ".spec.labels.a", "expected string, got number"),
        ({"replicas": True}, WrongShape, ".spec.replicas", "expected numeric (int or float), got boolean"),
        ({"image": ["a"]}, WrongShape, ".spec.image", ".spec.image: expected string, got list"),
        ({"args": ["a", 7]}, WrongShape, ".spec.args[1]", "expected string, got number"),
    ],
)
def test_what_cannot_be_merged_is_named(spec: Any, error: type[Exception], path: str, message: str) -> None:
    with pytest.raises(error) as caught:
        check(widget(spec), SCHEMA.root)
    assert caught.value.path == path  # type: ignore[attr-defined]
    assert message in str(caught.value)
    assert caught.value.code == error.__name__  # type: ignore[attr-defined]
    assert caught.value.hint  # type: ignore[attr-defined]


def test_sound_configurations_pass() -> None:
    sound = {
        "replicas": None,
        "free": {"x": [1, None, {"y": True}]},
        "tags": None,
        "ports": [{"protocol": "UDP"}],
        "nested": {},
    }
    check(widget(sound), SCHEMA.root)
    check(widget({"whatever": [[1]]}), FREE.root)
