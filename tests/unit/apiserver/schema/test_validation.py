"""Every way a value can be wrong, with the field and the reason an API server gives."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given

from fastness.apiserver.schema import CompiledSchema
from fastness.apiserver.schema.accept import acceptor
from fastness.apiserver.schema.node import build
from fastness.apiserver.schema.validation import problems
from tests.unit.apiserver.schema.generation import schemas_with_objects

REQUIRED, INVALID, TYPE = "FieldValueRequired", "FieldValueInvalid", "FieldValueTypeInvalid"
UNSUPPORTED, LONG, MANY, DUPLICATE = (
    "FieldValueNotSupported",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueDuplicate",
)
TEXT = {"type": "string"}
A, NIL = "spec.a", "<nil>"


def verdict(schema: dict[str, Any], value: Any, old: Any = None) -> list[tuple[str, str]]:
    compiled = CompiledSchema(
        {"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": schema}}}}
    )
    before = None if old is None else {"spec": {"a": old}}
    return [(cause.field, cause.reason) for cause in compiled.validate({"spec": {"a": value}}, before)]


WRONG: list[tuple[dict[str, Any], Any, list[tuple[str, str]]]] = [
    (TEXT, 1, [(A, TYPE)]),
    (TEXT, None, [(A, TYPE)]),
    ({"type": "integer"}, "1", [(A, TYPE)]),
    ({"type": "integer"}, True, [(A, TYPE)]),
    ({"type": "integer"}, 1.5, [(A, TYPE), (NIL, INVALID)]),
    ({"type": "integer"}, 2**63, [(A, TYPE), (NIL, INVALID)]),
    ({"type": "integer", "format": "int32"}, 2**31, [(NIL, INVALID)]),
    ({"type": "number", "format": "float"}, 1e39, [(NIL, INVALID)]),
    ({"type": "boolean"}, 1, [(A, TYPE)]),
    ({"type": "object"}, [], [(A, TYPE)]),
    ({"type": "array", "items": TEXT}, {}, [(A, TYPE)]),
    ({"type": "array", "items": TEXT}, ["x", 1, None], [("spec.a[1]", TYPE), ("spec.a[2]", TYPE)]),
    ({"x-kubernetes-int-or-string": True}, 1.5, [(A, TYPE)]),
    ({"type": "string", "maxLength": 2}, "äöü", [(A, LONG)]),
    ({"type": "string", "minLength": 2}, "a", [(A, INVALID)]),
    ({"type": "string", "pattern": "^a"}, "b", [(A, INVALID)]),
    ({"type": "string", "maxLength": 1, "pattern": "^a"}, "bb", [(A, LONG)]),
    ({"type": "string", "format": "date"}, "x", [(A, TYPE)]),
    ({"type": "string", "enum": ["a"]}, "b", [(A, UNSUPPORTED)]),
    ({"type": "string", "enum": ["a"], "nullable": True}, None, [(A, UNSUPPORTED)]),
    ({"type": "integer", "minimum": 1}, 0, [(A, INVALID)]),
    ({"type": "integer", "maximum": 1}, 2, [(A, INVALID)]),
    ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, 1, [(A, INVALID)]),
    ({"type": "number", "maximum": 1, "exclusiveMaximum": True}, 1.0, [(A, INVALID)]),
    ({"type": "integer", "multipleOf": 3}, 4, [(A, INVALID)]),
    ({"type": "number", "multipleOf": 0.1}, 0.25, [(A, INVALID)]),
    ({"type": "array", "items": TEXT, "maxItems": 1}, ["a", "b"], [(A, MANY)]),
    ({"type": "array", "items": TEXT, "minItems": 1}, [], [(A, INVALID)]),
    ({"type": "array", "items": TEXT, "uniqueItems": True}, ["a", "a"], [(A, INVALID)]),
    ({"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}, ["a", "b", "a", "a"], [("spec.a[2]",
    DUPLICATE)]),
    ({"type": "object", "additionalProperties": TEXT, "maxProperties": 1}, {"x": "", "y": ""}, [(A, MANY)]),
    ({"type": "object", "additionalProperties": TEXT, "minProperties": 1}, {}, [(A, INVALID)]),
    ({"type": "object", "additionalProperties": TEXT}, {"x.y": 1}, [("spec.a.x.y", TYPE)]),
    ({"type": "object", "additionalProperties": False}, {"x": 1}, [(A, INVALID)]),
    ({"type": "object", "properties": {"b": TEXT}, "required": ["b", "c"]}, {}, [("spec.a.b", REQUIRED), ("spec.a.c",
    REQUIRED)]),
    ({"type": "string", "not": {"enum": ["x"]}}, "x", [(NIL, INVALID)]),
    ({"type": "integer", "allOf": [{"minimum": 2}, {"maximum": 9}]}, 1, [(A, INVALID), (NIL, INVALID)]),
    ({"type": "object", "oneOf": [{"required": ["x"]}, {"required": ["y"]}]}, {}, [(NIL, INVALID), ("spec.a.x",
    REQUIRED)]),
    ({"type": "object", "properties": {"x": TEXT, "y": TEXT}, "oneOf": [{"required": ["x"]}, {"required": ["y"]}]},
     {"x": "", "y": ""}, [(NIL, INVALID)]),
    ({"type": "integer", "anyOf": [{"minimum": 9}, {"maximum": 1}]}, 5, [(NIL, INVALID), (A, INVALID)]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "expected"), WRONG)
def test_a_wrong_value_is_refused_for_its_reason(
    schema: dict[str, Any], value: Any, expected: list[tuple[str, str]]
) -> None:
    assert verdict(schema, value) == expected


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "integer"}, 1.0), ({"type": "number"}, 1), ({"type": "integer", "format": "int64"}, 2**63 - 1),
        ({"type": "string", "nullable": True}, None), ({"x-kubernetes-int-or-string": True}, "1%"),
        ({"x-kubernetes-int-or-string": True}, 5), ({"type": "string", "maxLength": 3}, "äöü"),
        ({"type": "string", "format": "made-up"}, "x"), ({"x-kubernetes-preserve-unknown-fields": True},
        {"any": [None]}),
        ({"type": "string", "pattern": "(?i)ABC"}, "xabc"), ({"type": "integer", "minimum": 1.5}, 1),
        ({"type": "number", "multipleOf": 0.1}, 0.3), ({"type": "array", "items": TEXT,
        "x-kubernetes-list-type": "set"}, ["1", "2"]),
        ({"type": "object", "properties": {"b": {"type": "integer"}},
        "anyOf": [{"properties": {"b": {"minimum": 3}}}]}, {"b": 4}),
    ],
)  # fmt: skip
def test_a_right_value_is_accepted(schema: dict[str, Any], value: Any) -> None:
    assert verdict(schema, value) == []


def test_messages_carry_the_value_and_the_limit() -> None:
    compiled = CompiledSchema({"type": "object", "properties": {"a": {"type": "integer", "maximum": 3}}})
    (cause,) = compiled.validate({"a": 7})
    assert cause.message == "Invalid value: 7: a must be at most 3"


def test_long_values_are_cut_in_messages() -> None:
    compiled = CompiledSchema({"type": "object", "properties": {"a": {"type": "string", "enum": ["x"]}}})
    (cause,) = compiled.validate({"a": "y" * 100_000})
    assert len(cause.message) < 400


def keyed(*entries: Any) -> list[tuple[str, str]]:
    items = {"type": "object", "properties": {"k": TEXT, "z": TEXT, "v": {"type": "integer", "maximum": 3}}}
    schema = {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k", "z"],
    }
    return verdict(schema, list(entries))


def test_map_lists_are_unique_by_all_their_keys() -> None:
    assert keyed({"k": "a", "z": "1"}, {"k": "a", "z": "2"}) == []
    assert keyed({"k": "a"}, {"k": "b"}, {"k": "a", "v": 1}) == [("spec.a[2]", DUPLICATE)]
    assert keyed({}, {}) == [("spec.a[1]", DUPLICATE)]
    assert keyed("x") == [("spec.a[0]", TYPE), ("spec.a[0]", INVALID)]


def test_lists_inside_of_maps_are_named_in_brackets() -> None:
    inner = {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}
    assert verdict({"type": "object", "additionalProperties": inner}, {"x": ["a", "a"]}) == [
        ("spec.a[x][1]", DUPLICATE)
    ]


def test_duplicates_that_were_there_before_are_forgiven() -> None:
    schema = {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}
    assert verdict(schema, ["a", "a", "b"], ["a", "a"]) == []
    assert verdict(schema, ["a", "a"], ["a"]) == [("spec.a[1]", DUPLICATE)]


RATCHETED = {"type": "object", "properties": {
    "x": {"type": "string", "maxLength": 1}, "y": TEXT,
    "l": {"type": "array", "items": {"type": "string", "maxLength": 1}},
    "m": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
          "items": {"type": "object", "properties": {"k": TEXT, "v": {"type": "string", "maxLength": 1}}}},
}}  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "fields"),
    [
        ({"x": "long"}, {"x": "long", "y": "new"}, []),
        ({"x": "long"}, {"x": "longer"}, ["spec.a.x"]),
        ({}, {"x": "long"}, ["spec.a.x"]),
        ({"l": ["long"]}, {"l": ["long"], "y": "new"}, []),
        ({"l": ["long"]}, {"l": ["long", "b"]}, ["spec.a.l[0]"]),
        ({"m": [{"k": "a", "v": "long"}]}, {"m": [{"k": "b"}, {"k": "a", "v": "long"}]}, []),
        ({"m": [{"k": "a", "v": "long"}]}, {"m": [{"k": "b", "v": "long"}]}, ["spec.a.m[0].v"]),
        ({"x": True}, {"x": 1}, ["spec.a.x"]),
    ],
)
def test_problems_of_unchanged_places_are_forgiven_on_update(old: Any, new: Any, fields: list[str]) -> None:
    assert [field for field, _ in verdict(RATCHETED, new, old)] == fields


EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "labels": {"a/b": "c"}}}, []),
        ({}, [("spec.a.apiVersion", REQUIRED), ("spec.a.kind", REQUIRED)]),
        ({"apiVersion": "a/b/c", "kind": "9"}, [("spec.a.apiVersion", INVALID), ("spec.a.kind", INVALID)]),
        ({"apiVersion": "", "kind": ""}, [("spec.a.apiVersion", INVALID), ("spec.a.kind", INVALID)]),
        ({"apiVersion": "v1", "kind": "P", "metadata": {"name": ".."}}, [("spec.a.metadata.name", INVALID)]),
        (
            {"apiVersion": "v1", "kind": "P", "metadata": {"generateName": "a/"}},
            [("spec.a.metadata.generateName", INVALID)],
        ),
        ({"apiVersion": "v1", "kind": "P", "metadata": {"namespace": "Bad"}}, [("spec.a.metadata.namespace", INVALID)]),
        ({"apiVersion": "v1", "kind": "P", "metadata": {"labels": {"-": "x"}}}, [("spec.a.metadata.labels", INVALID)]),
        (
            {"apiVersion": "v1", "kind": "P", "metadata": {"labels": {"a": "b c"}}},
            [("spec.a.metadata.labels", INVALID)],
        ),
        (
            {"apiVersion": "v1", "kind": "P", "metadata": {"annotations": {"a b": "x"}}},
            [("spec.a.metadata.annotations", INVALID)],
        ),
    ],
)
def test_embedded_resources_have_an_identity(value: Any, expected: list[tuple[str, str]]) -> None:
    assert verdict(EMBEDDED, value) == expected


@pytest.mark.parametrize("value", [{"apiVersion": 1, "kind": "P"}, {"metadata": "x"}, {"metadata": {"labels": []}}])
def test_embedded_identity_of_the_wrong_type_does_not_decode(value: Any) -> None:
    compiled = CompiledSchema({"type": "object", "properties": {"a": EMBEDDED}})
    assert compiled.type_errors({"a": value})
    assert compiled.type_errors({"a": {"apiVersion": "v1", "kind": "P"}}) == []


NATIVE = {"type": "object", "properties": {
    "n": {"type": "integer", "format": "int32"}, "s": TEXT, "b": {"type": "string", "format": "byte"},
    "t": {"type": "string", "format": "date-time"},
    "f": {"type": "number"}, "o": {"type": "boolean"}, "p": {"format": "int-or-string", "type": "string"},
    "q": {"oneOf": [{"type": "string"}, {"type": "number"}]}, "l": {"type": "array", "items": TEXT},
    "m": {"type": "object", "additionalProperties": TEXT},
}}  # fmt: skip


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        ({"n": 1, "s": "x", "b": "YQ==", "f": 1, "o": True, "p": 5, "q": 1.5, "l": ["x"], "m": {"a": "b"}}, []),
        ({"n": None, "s": None, "l": None}, []), ({"n": "1"}, ["n"]), ({"n": 1.5}, ["n"]), ({"n": 2**31}, ["n"]),
        ({"s": 1}, ["s"]),
        ({"b": "?"}, ["b"]), ({"t": "yesterday"}, ["t"]), ({"t": ""}, []), ({"f": "x"}, ["f"]), ({"o": "x"}, ["o"]),
        ({"p": 1.5}, ["p"]), ({"q": []}, ["q"]), ({"l": {}}, ["l"]), ({"l": [1]}, ["l[0]"]), ({"m": []}, ["m"]),
        ({"m": {"a": 1}}, ["m.a"]),
    ],
)  # fmt: skip
def test_native_kinds_say_what_does_not_decode(obj: Any, fields: list[str]) -> None:
    assert [cause.field for cause in CompiledSchema(NATIVE, native=True).type_errors(obj)] == fields


@given(schemas_with_objects())
def test_the_fast_yes_is_never_laxer_than_the_exact_no(case: tuple[dict[str, Any], Any]) -> None:
    schema, obj = case
    root = build(schema)
    if acceptor(root)(obj):
        assert problems(root, obj) == []


def as_json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    out = {
        word: value
        for word, value in schema.items()
        if word not in ("nullable", "default") and not word.startswith("x-")
    }
    if "x-kubernetes-int-or-string" in schema:
        out["type"] = ["integer", "string"]
    elif schema.get("nullable"):
        out["type"] = [schema["type"], "null"]
    if "properties" in schema:
        out["properties"] = {name: as_json_schema(below) for name, below in schema["properties"].items()}
    for word in ("items", "additionalProperties"):
        if word in schema:
            out[word] = as_json_schema(schema[word])
    return out


@given(schemas_with_objects())
def test_the_exact_no_agrees_with_json_schema(case: tuple[dict[str, Any], Any]) -> None:
    schema, obj = case
    assert (problems(build(schema), obj) == []) == jsonschema_rs.Draft7Validator(as_json_schema(schema)).is_valid(obj)
