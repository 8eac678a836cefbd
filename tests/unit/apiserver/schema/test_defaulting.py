"""Missing fields get their defaults, at every depth, and nobody's object or schema is changed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from fastness.apiserver.schema import CompiledSchema
from tests.unit.apiserver.schema.generation import schemas_with_objects

ONE = {"type": "integer", "default": 1}


def filled(properties: dict[str, Any], obj: dict[str, Any], *, native: bool = False) -> Any:
    return CompiledSchema({"type": "object", "properties": properties}, native=native).default(obj)


@pytest.mark.parametrize(
    ("schema", "before", "after"),
    [
        (ONE, {}, {"a": 1}),
        (ONE, {"a": 2}, {"a": 2}),
        (ONE, {"a": None}, {"a": 1}),
        ({**ONE, "nullable": True}, {"a": None}, {"a": None}),
        ({"type": "integer"}, {"a": None}, {}),
        ({"type": "integer", "nullable": True}, {"a": None}, {"a": None}),
        ({"type": "boolean", "default": False}, {}, {"a": False}),
        ({"type": "object", "properties": {"b": ONE}}, {}, {}),
        ({"type": "object", "properties": {"b": ONE}}, {"a": {}}, {"a": {"b": 1}}),
        ({"type": "object", "default": {}, "properties": {"b": ONE}}, {}, {"a": {"b": 1}}),
        ({"type": "array", "items": {"type": "object", "properties": {"b": ONE}}}, {"a": [{}, {"b": 2}]},
        {"a": [{"b": 1}, {"b": 2}]}),
        ({"type": "object", "additionalProperties": {"type": "object", "properties": {"b": ONE}}}, {"a": {"k": {}}},
        {"a": {"k": {"b": 1}}}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": {"k": None, "l": 1}}, {"a": {"l": 1}}),
        ({"type": "array", "items": {"type": "string"}}, {"a": [None]}, {"a": [None]}),
        ({"type": "array", "items": {"type": "string", "nullable": True}}, {"a": [None]}, {"a": [None]}),
        ({"x-kubernetes-preserve-unknown-fields": True}, {"a": {"x": None}}, {"a": {"x": None}}),
    ],
)  # fmt: skip
def test_default_and_null(schema: dict[str, Any], before: dict[str, Any], after: dict[str, Any]) -> None:
    assert filled({"a": schema}, before) == after


def test_an_object_with_nothing_missing_comes_back_itself() -> None:
    obj = {"a": 1}
    assert filled({"a": ONE}, obj) is obj


def test_defaults_are_not_shared_between_objects() -> None:
    compiled = CompiledSchema({"type": "object", "properties": {"a": {"type": "array", "items": ONE, "default": [1]}}})
    compiled.default({})["a"].append(2)
    assert compiled.default({}) == {"a": [1]}


def test_zero_defaults_of_native_kinds_are_what_go_has_anyway() -> None:
    schema = {
        "name": {"type": "string", "default": ""},
        "spec": {"type": "object", "default": {}},
        "n": {"type": "integer", "default": 3},
    }
    assert filled(schema, {}, native=True) == {"n": 3}


@given(schemas_with_objects())
def test_defaulting_is_idempotent_and_changes_nothing_in_place(case: tuple[dict[str, Any], Any]) -> None:
    schema, obj = case
    before, schema_before = copy.deepcopy(obj), copy.deepcopy(schema)
    compiled = CompiledSchema(schema)
    once = compiled.default(obj)
    assert (obj, schema) == (before, schema_before)
    assert compiled.default(once) == once
    assert compiled.prune(compiled.default(compiled.prune(obj)[0]))[1] == []
