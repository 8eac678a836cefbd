"""Where an object may be divided: what schemas say, and what follows where they are silent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fastness.apiserver.fields.schema import DEDUCED, SCALAR, UNTYPED, ListType, MapType, Node, TypedSchema


def root(schema: Mapping[str, Any], **options: Any) -> MapType:
    map_type = TypedSchema(schema, **options).root.map
    assert map_type is not None
    return map_type


def place(raw: Mapping[str, Any], **options: Any) -> Node:
    return root({"type": "object", "properties": {"x": raw}}, **options).field("x")


def list_at(raw: Mapping[str, Any]) -> ListType:
    list_type = place(raw).list
    assert list_type is not None
    return list_type


def test_lists_are_atomic_unless_told_otherwise() -> None:
    assert list_at({"type": "array", "items": {"type": "string"}}).atomic
    assert list_at({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"}).atomic
    assert not list_at({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}).atomic


def test_patch_strategy_of_native_definitions_divides_lists() -> None:
    merging = {"type": "array", "items": {"type": "object"}, "x-kubernetes-patch-strategy": "merge"}
    assert list_at({**merging, "x-kubernetes-patch-merge-key": "name"}).keys == ("name",)
    assert list_at(merging).keys == ()
    assert not list_at(merging).atomic
    assert list_at({**merging, "x-kubernetes-patch-strategy": "retainKeys"}).atomic
    assert list_at({**merging, "x-kubernetes-list-type": "atomic"}).atomic


def test_maps_are_granular_unless_told_otherwise() -> None:
    free = {"type": "object", "additionalProperties": {"type": "string"}}
    granular, atomic = place(free).map, place({**free, "x-kubernetes-map-type": "atomic"}).map
    assert granular is not None
    assert not granular.atomic
    assert atomic is not None
    assert atomic.atomic
    assert granular.field("any").scalar == "string"
    assert not granular.declares("any")


def test_structs_know_their_fields_and_have_no_others() -> None:
    struct = place({"type": "object", "properties": {"a": {"type": "string"}}}).map
    assert struct is not None
    assert struct.declares("a")
    assert not struct.declares("b")
    assert struct.element is None
    assert struct.field("b") is DEDUCED
    assert struct.field("a") is struct.field("a")


@pytest.mark.parametrize(
    "raw",
    [
        {"type": "object"},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        {"type": "object", "additionalProperties": True},
        {"type": "object", "properties": {"a": {"type": "string"}}, "x-kubernetes-preserve-unknown-fields": True},
    ],
)
def test_unknown_fields_are_deduced_where_they_may_exist(raw: dict[str, Any]) -> None:
    entries = place(raw).map
    assert entries is not None
    assert entries.element is DEDUCED


def test_preserving_unknown_fields_holds_for_everything_below() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    outer = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"inner": inner}}
    entries = place(outer).map
    assert entries is not None
    below = entries.field("inner").map
    assert below is not None
    assert below.element is DEDUCED


def test_preserving_unknown_fields_ends_at_a_reference() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    outer = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"inner": {"$ref": "#/defs/Inner"}},
    }
    entries = place(outer, lookup=lambda _: inner).map
    assert entries is not None
    below = entries.field("inner").map
    assert below is not None
    assert below.element is None


def test_additional_properties_false_closes_a_map() -> None:
    entries = place({"type": "object", "additionalProperties": False}).map
    assert entries is not None
    assert entries.element is None


def test_deduced_places_divide_maps_and_keep_lists_whole_at_every_depth() -> None:
    free = TypedSchema().root.map
    assert free is not None
    below = free.field("anything").map
    assert below is not None
    assert not below.atomic
    assert below.field("deeper") is DEDUCED
    assert DEDUCED.list is not None
    assert DEDUCED.list.atomic
    assert UNTYPED.map is not None
    assert UNTYPED.map.atomic


def test_a_place_without_type_takes_every_shape_and_int_or_string_only_scalars() -> None:
    anything = place({"description": "what you like"})
    assert anything.scalar
    assert anything.list is not None
    assert anything.map is not None
    assert place({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}) is SCALAR


def test_scalars_have_a_type_and_formatted_strings_take_any() -> None:
    kinds = {"string": "string", "integer": "numeric", "number": "numeric", "boolean": "boolean"}
    assert {kind: place({"type": kind}).scalar for kind in kinds} == kinds
    assert place({"type": "string", "format": "date-time"}).scalar == "untyped"
    assert place({"type": "string", "format": "byte"}).scalar == "string"
    assert place({"type": "integer", "format": "int64"}).scalar == "numeric"


def test_references_are_followed_also_to_themselves() -> None:
    tree = {"type": "object", "properties": {"name": {"type": "string"}, "sub": {"$ref": "#/components/schemas/Tree"}}}
    lookups: list[str] = []

    def lookup(name: str) -> dict[str, Any]:
        lookups.append(name)
        return {"Tree": tree}[name]

    schema = root({"type": "object", "properties": {"top": {"allOf": [{"$ref": "#/defs/Tree"}]}}}, lookup=lookup)
    assert lookups == []
    node = schema.field("top")
    for _ in range(5):
        assert node.map is not None
        node = node.map.field("sub")
    assert lookups == ["Tree", "Tree"]  # once for each spelling of the reference


def test_a_reference_may_be_made_atomic_where_it_is_used() -> None:
    selector = {"type": "object", "properties": {"a": {"type": "string"}}}
    raw = {"$ref": "#/defs/Selector", "x-kubernetes-map-type": "atomic"}
    atomic, granular = (place(each, lookup=lambda _: selector).map for each in (raw, {"$ref": "#/defs/Selector"}))
    assert atomic is not None
    assert atomic.atomic
    assert granular is not None
    assert not granular.atomic


def test_quantities_are_scalars_and_raw_extensions_are_whole() -> None:
    assert place({"$ref": "#/defs/io.k8s.apimachinery.pkg.api.resource.Quantity"}) is SCALAR
    assert place({"$ref": "#/defs/io.k8s.apimachinery.pkg.runtime.RawExtension"}) is UNTYPED


def test_a_reference_without_definitions_is_an_error_that_names_it() -> None:
    with pytest.raises(LookupError, match="Lost"):
        place({"$ref": "#/defs/Lost"})


def test_items_are_named_by_their_keys_with_defaults() -> None:
    item = {
        "type": "object",
        "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}},
    }
    ports = list_at(
        {
            "type": "array",
            "items": item,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port", "protocol"],
        }
    )
    assert ports.step({"port": 80, "extra": 1}) == 'k:{"port":80,"protocol":"TCP"}'
    assert ports.step({"protocol": "UDP"}) == 'k:{"protocol":"UDP"}'
    for bad in (None, 7, [1]):
        with pytest.raises(ValueError, match="associative list with keys"):
            ports.step(bad)


def test_an_item_without_any_key_is_refused() -> None:
    raw = {
        "type": "array",
        "items": {"type": "object"},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }
    with pytest.raises(ValueError, match='omits all key fields \\["name"\\]'):
        list_at(raw).step({"other": 1})


@pytest.mark.parametrize("bad", [None, {}, []])
def test_sets_hold_scalars_only(bad: object) -> None:
    raw = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    with pytest.raises(ValueError, match="associative list"):
        list_at(raw).step(bad)


def test_every_object_has_kubernetes_metadata_and_so_do_embedded_ones() -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    inner = place(embedded).map
    assert inner is not None
    for entries in (root({"type": "object", "properties": {"metadata": {"type": "string"}}}), inner):
        meta = entries.field("metadata").map
        assert meta is not None
        owners, finalizers = meta.field("ownerReferences").list, meta.field("finalizers").list
        assert owners is not None
        assert owners.keys == ("uid",)
        assert owners.element.map is not None
        assert owners.element.map.atomic
        assert finalizers is not None
        assert not finalizers.atomic


def test_native_structs_exist_before_anybody_writes_them() -> None:
    raw = {
        "type": "object",
        "required": ["items", "name"],
        "properties": {
            "spec": {"type": "object", "properties": {"a": {"type": "string"}}, "default": {}},
            "items": {"type": "array", "items": {"type": "string"}},
            "name": {"type": "string", "default": ""},
            "optional": {"type": "object"},
        },
    }
    assert root(raw, native=True).implied == {"spec": {}, "items": None}
    assert root(raw).implied == {}
