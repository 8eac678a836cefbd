"""Schemas that a CRD may not have, each refused at its field; the real API server is asked in
`tests/component/apiserver/schema`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from fastness.apiserver.schema import structural_problems
from tests.component.apiserver.schema.specimen import SCHEMA, SCHEMAS
from tests.unit.apiserver.schema.generation import anything, schemas

REQUIRED, INVALID, FORBIDDEN, UNSUPPORTED = (
    "FieldValueRequired", "FieldValueInvalid", "FieldValueForbidden", "FieldValueNotSupported",
)  # fmt: skip
A = "properties[a]"
RULE = f"{A}.x-kubernetes-validations[0]"

EXPECTED: dict[str, list[tuple[str, str]]] = {
    "no type at the root": [("type", REQUIRED)],
    "root is a list": [("type", INVALID)],
    "field without a type": [(f"{A}.type", REQUIRED)],
    "array without items": [(f"{A}.items", REQUIRED)],
    "items without a type": [(f"{A}.items.type", REQUIRED)],
    "unknown type": [(f"{A}.type", UNSUPPORTED)],
    "additionalProperties at the root": [("additionalProperties", FORBIDDEN)],
    "additionalProperties beside properties": [(f"{A}.additionalProperties", FORBIDDEN)],
    "type in an alternative": [(f"{A}.anyOf[0].type", FORBIDDEN)],
    "default in an alternative": [(f"{A}.allOf[0].default", FORBIDDEN)],
    "description in an alternative": [(f"{A}.not.description", FORBIDDEN)],
    "int-or-string with its anyOf": [],
    "int-or-string that preserves": [(f"{A}.x-kubernetes-preserve-unknown-fields", INVALID)],
    "embedded resource that is no object": [(f"{A}.type", INVALID), (f"{A}.properties", REQUIRED)],
    "map without keys": [(f"{A}.x-kubernetes-list-map-keys", REQUIRED)],
    "map with an optional key": [(f"{A}.items.properties[k].default", REQUIRED)],
    "unknown list type": [(f"{A}.x-kubernetes-list-type", UNSUPPORTED)],
    "set of granular objects": [(f"{A}.items.x-kubernetes-map-type", INVALID)],
    "uniqueItems": [(f"{A}.uniqueItems", FORBIDDEN)],
    "bad pattern": [(f"{A}.pattern", INVALID)],
    "pattern that looks ahead": [(f"{A}.pattern", INVALID)],
    "default of the wrong type": [(f"{A}.default", "FieldValueTypeInvalid")],
    "default with unknown fields": [(f"{A}.default", INVALID)],
    "default that breaks a rule": [(f"{A}.default", INVALID)],
    "metadata that restricts the name": [],
    "metadata beyond names": [("properties[metadata]", FORBIDDEN)],
    "rule that does not parse": [("x-kubernetes-validations[0].rule", INVALID)],
    "rule on an unknown field": [("x-kubernetes-validations[0].rule", INVALID)],
    "rule that is no truth": [(f"{RULE}.rule", INVALID)],
    "rule with an unknown function": [(f"{RULE}.rule", INVALID)],
    "rule without text": [(f"{RULE}.rule", REQUIRED)],
    "rule with a broken message": [(f"{RULE}.messageExpression", INVALID)],
    "rule with an unknown reason": [(f"{RULE}.reason", UNSUPPORTED)],
    "rule with a path to nowhere": [(f"{RULE}.fieldPath", INVALID)],
    "oldSelf in an atomic list": [(f"{A}.items.x-kubernetes-validations[0].rule", INVALID)],
    "optionalOldSelf without oldSelf": [(f"{RULE}.optionalOldSelf", INVALID)],
    "rule in an alternative": [(f"{A}.allOf[0].x-kubernetes-validations", FORBIDDEN)],
    "everything in order": [],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_schema_is_refused_at_its_field(name: str) -> None:
    assert [(cause.field, cause.reason) for cause in structural_problems(SCHEMAS[name])] == EXPECTED[name]


def test_paths_stand_below_the_given_one() -> None:
    (cause,) = structural_problems(
        {"type": "object", "properties": {"a": {}}}, "spec.versions[0].schema.openAPIV3Schema"
    )
    assert cause.field == "spec.versions[0].schema.openAPIV3Schema.properties[a].type"


@pytest.mark.parametrize(
    "schema",
    [5, {"type": 5}, {"type": "object", "properties": []}, {"type": "object", "allOf": {}}, {"type": "object",
    "properties": {"a": 5}},
     {"type": "object", "not": 3}, {"type": "object", "x-kubernetes-validations": {}}, {"type": "object",
     "anyOf": [5]}],
)  # fmt: skip
def test_what_is_not_even_a_schema_is_refused(schema: Any) -> None:
    assert all(cause.reason == INVALID for cause in structural_problems(schema))
    assert structural_problems(schema)


def test_a_message_of_several_lines_and_a_blank_one_are_refused() -> None:
    def problems(**rule: Any) -> list[tuple[str, str]]:
        schema = {"type": "object", "x-kubernetes-validations": [rule]}
        return [
            (cause.field.removeprefix("x-kubernetes-validations[0]."), cause.reason)
            for cause in structural_problems(schema)
        ]

    assert problems(rule="true", message="a\nb") == [("message", INVALID)]
    assert problems(rule="true", message=" ") == [("message", INVALID)]
    assert problems(rule="true ||\n false") == [("message", REQUIRED)]
    assert problems(rule="true", messageExpression=" ") == [("messageExpression", REQUIRED)]
    assert problems(rule="true", fieldPath=" ") == [("fieldPath", INVALID)]
    assert problems(rule="true", fieldPath="spec") == [("fieldPath", INVALID)]


@given(schemas())
def test_what_we_generate_is_structural(schema: dict[str, Any]) -> None:
    assert structural_problems(schema) == []


@given(anything())
def test_no_value_breaks_the_checks(value: Any) -> None:
    structural_problems({**SCHEMA, "properties": {"a": value}, "default": value})
