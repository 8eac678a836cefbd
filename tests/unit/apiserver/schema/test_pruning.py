"""Unknown fields go, known ones stay, and nobody's object is changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from fastness.apiserver.schema import CompiledSchema
from tests.unit.apiserver.schema.generation import schemas_with_objects

TEXT = {"type": "string"}


def pruned(properties: dict[str, Any], obj: dict[str, Any]) -> tuple[Any, list[str]]:
    return CompiledSchema({"type": "object", "properties": properties}).prune(obj)


def test_unknown_fields_are_dropped_and_named_as_kubernetes_names_them() -> None:
    schema = {"spec": {"type": "object", "properties": {
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": TEXT}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": TEXT}}},
    }}}  # fmt: skip
    obj = {"top": 1, "spec": {"foo": 1, "list": [{"a": "x", "bar": 2}], "map": {"k": {"baz": 3}}}}
    out, unknown = pruned(schema, obj)
    assert out == {"spec": {"list": [{"a": "x"}], "map": {"k": {}}}}
    assert unknown == ["spec.foo", "spec.list[0].bar", "spec.map.k.baz", "top"]


def test_identity_of_the_root_stays_though_the_schema_does_not_name_it() -> None:
    obj = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "anything": 1}}
    assert pruned({}, obj) == (obj, [])


def test_a_clean_object_comes_back_itself() -> None:
    obj = {"spec": {"a": "x"}}
    out, _ = pruned({"spec": {"type": "object", "properties": {"a": TEXT}}}, obj)
    assert out is obj


def test_preserved_fields_survive_and_what_is_specified_below_is_pruned() -> None:
    preserving = {"type": "object", "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"known": {"type": "object", "properties": {"a": TEXT}}}}  # fmt: skip
    out, unknown = pruned({"spec": preserving}, {"spec": {"free": {"x": [1]}, "known": {"a": "1", "b": 2}}})
    assert out == {"spec": {"free": {"x": [1]}, "known": {"a": "1"}}}
    assert unknown == ["spec.known.b"]


def test_entries_of_a_preserving_list_keep_their_fields() -> None:
    preserving = {
        "type": "array",
        "x-kubernetes-preserve-unknown-fields": True,
        "items": {"type": "object", "properties": {"a": TEXT}},
    }
    assert pruned({"spec": preserving}, {"spec": [{"b": 1}]}) == ({"spec": [{"b": 1}]}, [])


def test_additional_properties_true_admits_keys_but_nothing_inside_of_them() -> None:
    schema = {"spec": {"type": "object", "additionalProperties": True}}
    assert pruned(schema, {"spec": {"a": 1, "b": {"c": 2}}}) == ({"spec": {"a": 1, "b": {}}}, ["spec.b.c"])


def test_embedded_resource_keeps_its_identity_and_loses_unknown_metadata() -> None:
    schema = {"spec": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"data": TEXT}}}
    obj = {"spec": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "odd": 1}, "data": "d", "more": 1}}
    out, unknown = pruned(schema, obj)
    assert out == {"spec": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "data": "d"}}
    assert unknown == ["spec.metadata.odd", "spec.more"]


@pytest.mark.parametrize("value", [None, 1, "x", [], [[{"a": 1}]]])
def test_values_of_another_type_than_the_schema_says_are_left_to_validation(value: Any) -> None:
    out, _ = pruned({"spec": {"type": "object", "properties": {"a": TEXT}}}, {"spec": value})
    assert type(out["spec"]) is type(value)


def test_native_kind_without_structure_holds_any_json_and_metadata_is_pruned_by_its_schema() -> None:
    schema = {"type": "object", "properties": {"raw": {"type": "object"}, "metadata": {"$ref": "meta"}}}
    compiled = CompiledSchema(schema, resolve=lambda _: {"type": "object", "properties": {"name": TEXT}}, native=True)
    obj = {"apiVersion": "v1", "raw": {"a": {"b": 1}}, "metadata": {"name": "x", "odd": 1}}
    assert compiled.prune(obj) == (
        {"apiVersion": "v1", "raw": {"a": {"b": 1}}, "metadata": {"name": "x"}},
        ["metadata.odd"],
    )


def test_recursive_references_are_followed() -> None:
    props = {"type": "object", "properties": {"type": TEXT, "items": {"$ref": "#/props"}}}
    compiled = CompiledSchema({"type": "object", "properties": {"spec": {"$ref": "#/props"}}}, resolve=lambda _: props)
    deep = {"spec": {"items": {"items": {"type": "x", "odd": 1}}}}
    assert compiled.prune(deep) == ({"spec": {"items": {"items": {"type": "x"}}}}, ["spec.items.items.odd"])
    assert compiled.validate({"spec": {"items": {"items": {"type": 5}}}})[0].field == "spec.items.items.type"


def test_a_reference_that_nothing_resolves_is_an_error() -> None:
    with pytest.raises(ValueError, match="resolve"):
        CompiledSchema({"type": "object", "properties": {"a": {"$ref": "#/x"}}})


def known_paths(node: dict[str, Any], value: Any, path: str = "") -> set[str]:
    """The paths of a value that the schema knows, by a definition of its own."""
    paths: set[str] = set()
    if isinstance(value, dict):
        for name, below in value.items():
            schema = node.get("properties", {}).get(name) or node.get("additionalProperties")
            if schema:
                paths |= {f"{path}.{name}"} | known_paths(schema, below, f"{path}.{name}")
            elif node.get("x-kubernetes-preserve-unknown-fields"):
                paths |= {f"{path}.{name}"} | all_paths(below, f"{path}.{name}")
    elif isinstance(value, list):
        for i, entry in enumerate(value):
            paths |= known_paths(node.get("items", {}), entry, f"{path}[{i}]")
    return paths


def all_paths(value: Any, path: str = "") -> set[str]:
    if isinstance(value, dict):
        return {p for name, below in value.items() for p in {f"{path}.{name}"} | all_paths(below, f"{path}.{name}")}
    if isinstance(value, list):
        return {p for i, entry in enumerate(value) for p in all_paths(entry, f"{path}[{i}]")}
    return set()


@given(schemas_with_objects())
def test_pruning_keeps_exactly_the_known_fields_is_idempotent_and_changes_nothing(
    case: tuple[dict[str, Any], Any],
) -> None:
    schema, obj = case
    before = copy.deepcopy(obj)
    compiled = CompiledSchema(schema)
    out, unknown = compiled.prune(obj)
    assert obj == before
    assert all_paths(out) == known_paths(schema, obj)
    assert compiled.prune(out) == (out, [])
    assert bool(unknown) == (out != obj)
