"""Which fields an object has: as it appears, and as a configuration states them."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.apiserver.fields import NOTHING, FieldSet, TypedSchema, fields_of, reset_fields
from fastness.apiserver.fields.ownership import created
from tests.unit.apiserver.fields.examples import FREE, SCHEMA, widget

CASES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("scalar", {"replicas": 1}, {"f:replicas": {}}, {"f:replicas": {}}),
    ("null", {"image": None}, {"f:image": {}}, {"f:image": {}}),
    ("atomic list", {"args": ["a"]}, {"f:args": {}}, {"f:args": {}}),
    ("empty atomic list", {"args": []}, {"f:args": {}}, {"f:args": {}}),
    ("set", {"tags": ["b", "a"]}, {"f:tags": {'v:"a"': {}, 'v:"b"': {}}}, {"f:tags": {".": {}, 'v:"a"': {}, 'v:"b"': {}}}),
    ("empty set", {"tags": []}, {}, {"f:tags": {}}),
    (
        "keyed list",
        {"ports": [{"port": 80, "name": "n"}]},
        {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}}}},
        {"f:ports": {".": {}, 'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}}}},
    ),
    ("map", {"labels": {"a": "1"}}, {"f:labels": {"f:a": {}}}, {"f:labels": {".": {}, "f:a": {}}}),
    ("empty map", {"labels": {}}, {"f:labels": {}}, {"f:labels": {}}),
    ("atomic map", {"selector": {"a": "1"}}, {"f:selector": {}}, {"f:selector": {}}),
    (
        "struct",
        {"nested": {"deep": {"b": "1"}}},
        {"f:nested": {"f:deep": {"f:b": {}}}},
        {"f:nested": {".": {}, "f:deep": {".": {}, "f:b": {}}}},
    ),
    (
        "free form",
        {"free": {"m": {"n": 1}, "l": [{"o": 1}]}},
        {"f:free": {"f:l": {}, "f:m": {".": {}, "f:n": {}}}},
        {"f:free": {".": {}, "f:l": {}, "f:m": {".": {}, "f:n": {}}}},
    ),
    ("repeated items", {"tags": ["a", "a"]}, {"f:tags": {'v:"a"': {}}}, {"f:tags": {".": {}, 'v:"a"': {}}}),
    (
        "repeated keys",
        {"ports": [{"port": 80}, {"port": 80}]},
        {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {}}},
        {"f:ports": {".": {}, 'k:{"port":80,"protocol":"TCP"}': {}}},
    ),
    ("wrong shapes", {"tags": "no", "image": {"a": 1}}, {"f:image": {}}, {"f:image": {}, "f:tags": {}}),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "stated"), [case[1:3] for case in CASES], ids=[case[0] for case in CASES])
def test_a_configuration_states_its_leaves(spec: dict[str, Any], stated: dict[str, Any]) -> None:
    assert fields_of(widget(spec), SCHEMA).trie == ({"f:spec": stated} if stated else {})


@pytest.mark.parametrize(("spec", "came"), [(case[1], case[3]) for case in CASES], ids=[case[0] for case in CASES])
def test_a_creator_owns_leaves_and_containers(spec: dict[str, Any], came: dict[str, Any]) -> None:
    assert created(widget(spec), SCHEMA) == {"f:spec": {".": {}, **came}}


def test_what_the_server_fills_in_belongs_to_nobody() -> None:
    filled = ("namespace", "uid", "resourceVersion", "creationTimestamp", "selfLink", "clusterName")
    meta = {**dict.fromkeys(filled, "x"), "generation": 1, "managedFields": [{}]}
    assert created(widget(metadata=meta), SCHEMA) == {}
    assert not fields_of(widget(metadata=meta), SCHEMA)
    assert created(widget(metadata={**meta, "generateName": "w-"}), SCHEMA) == {"f:metadata": {"f:generateName": {}}}


def test_metadata_is_divided_as_in_kubernetes() -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u-1"}
    meta = {"labels": {"a": "b"}, "finalizers": ["x/y"], "ownerReferences": [owner]}
    assert fields_of(widget(metadata=meta), SCHEMA).to_fields_v1() == {
        "f:metadata": {
            "f:finalizers": {'v:"x/y"': {}},
            "f:labels": {"f:a": {}},
            "f:ownerReferences": {'k:{"uid":"u-1"}': {}},
        }
    }


def test_doors_keep_their_writers_out_of_what_they_reset() -> None:
    obj = widget({"replicas": 1}, status={"ready": 1}, metadata={"labels": {"a": "b"}})
    front, status = reset_fields(), reset_fields("status")
    assert fields_of(obj, SCHEMA, front) == FieldSet.of(("metadata", "labels", "a"), ("spec", "replicas"))
    assert fields_of(obj, SCHEMA, status) == FieldSet.of(("status", "ready"))
    assert created(obj, SCHEMA, front).keys() == {"f:metadata", "f:spec"}
    assert reset_fields(has_status=False) == NOTHING
    assert reset_fields("scale") == NOTHING


def test_an_object_without_schema_is_divided_by_its_own_shape() -> None:
    assert fields_of(widget({"a": {"b": [1, {"c": 2}], "d": None}}), FREE).to_fields_v1() == {
        "f:spec": {".": {}, "f:a": {".": {}, "f:b": {}, "f:d": {}}}
    }


def test_damaged_metadata_owns_nothing() -> None:
    assert created({"metadata": None}, SCHEMA) == {}
    assert created({"metadata": [1]}, TypedSchema()) == {}
