"""Ownership that was recorded under an older schema."""

from __future__ import annotations

from typing import Any

from fastness.apiserver.fields import TypedSchema
from fastness.apiserver.fields.tracking import reconciled
from tests.unit.apiserver.fields.examples import SCHEMA, applied, created, owned, updated, widget


def schema_of(part: dict[str, Any]) -> TypedSchema:
    return TypedSchema({"type": "object", "properties": {"spec": {"type": "object", "properties": {"x": part}}}})


SET = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
WHOLE = {"type": "array", "items": {"type": "string"}}
MAP = {"type": "object", "additionalProperties": {"type": "string"}}
WHOLE_MAP = {**MAP, "x-kubernetes-map-type": "atomic"}


def test_a_list_that_became_atomic_is_owned_as_a_whole_by_all_who_owned_parts() -> None:
    live = applied(None, widget({"x": ["a"]}), "a", schema=schema_of(SET)).obj
    live = applied(live, widget({"x": ["b"]}), "b", schema=schema_of(SET)).obj
    done = applied(live, widget({"x": ["a", "b"]}), "b", schema=schema_of(WHOLE))
    assert owned(done.obj, "a") == owned(done.obj, "b") == {"f:spec": {"f:x": {}}}


def test_a_map_that_became_atomic_goes_over_to_who_changes_it() -> None:
    live = created(widget({"x": {"a": "1"}}), "maker", schema_of(MAP))
    new = updated(live, "other", schema=schema_of(WHOLE_MAP), spec={"x": {"a": "1", "b": "2"}})
    assert owned(new, "maker") == {"f:spec": {}}
    assert owned(new, "other") == {"f:spec": {"f:x": {}}}


def test_what_became_granular_is_divided_by_the_next_write() -> None:
    live = created(widget({"x": ["a"]}), "maker", schema_of(WHOLE))
    new = updated(live, "other", schema=schema_of(SET), spec={"x": ["a", "b"]})
    assert owned(new, "maker") == {"f:spec": {".": {}, "f:x": {}}}
    assert owned(new, "other") == {"f:spec": {"f:x": {'v:"b"': {}}}}


def test_a_fitting_trie_is_returned_as_it_is() -> None:
    trie = {
        "f:spec": {
            "f:ports": {'k:{"port":1}': {".": {}, "f:port": {}}},
            "f:free": {"f:a": {"f:b": {}}},
            "f:lost": {"f:a": {}},
        }
    }
    assert reconciled(trie, SCHEMA.root) is trie


def test_paths_below_items_are_reconciled_too() -> None:
    item = {"type": "object", "properties": {"sel": WHOLE_MAP}}
    ports = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}
    old: dict[str, Any] = {"f:spec": {"f:x": {'k:{"n":1}': {".": {}, "f:sel": {".": {}, "f:a": {}}}}}}
    assert reconciled(old, schema_of(ports).root) == {"f:spec": {"f:x": {'k:{"n":1}': {".": {}, "f:sel": {}}}}}
