"""The protobuf tables describe the same objects as the schemas that a real API server publishes.

The two come from different places: the tables from the protobuf descriptions of Kubernetes, the schemas from a running
server. Walking both from every kind, member by member, proves that no JSON name, type or message is missing or misspelt.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from fastness.formats.protobuf import schema, supported_kinds
from fastness.formats.protobuf.kinds import message_of
from fastness.kinds.kubernetes import definitions

_SPECIAL_DEFINITIONS = {
    "Time": "time",
    "MicroTime": "microtime",
    "Quantity": "quantity",
    "IntOrString": "intorstring",
    "FieldsV1": "rawjson",
}


def _shape(property_: Any) -> tuple[str, str, str]:
    """Shape, type in the words of the tables, and the definition that it refers to."""
    if property_.get("type") == "array":
        inner, type_, reference = _shape(property_["items"])
        return ("strings" if inner == "list" else "list"), type_, reference
    if property_.get("type") == "object" and "additionalProperties" in property_:
        inner, type_, reference = _shape(property_["additionalProperties"])
        return "map", "strings" if inner == "list" else type_, reference
    reference = property_.get("$ref") or next(
        (part["$ref"] for part in property_.get("allOf", ()) if "$ref" in part), ""
    )
    if reference:
        name = reference.removeprefix(definitions.REFERENCE)
        return "one", _SPECIAL_DEFINITIONS.get(name.rsplit(".", 1)[1], "message"), name
    if property_.get("type") == "string":
        return "one", "bytes" if property_.get("format") == "byte" else "string", ""
    return "one", {"integer": "int", "boolean": "bool"}[property_["type"]], ""


def _members(message: str) -> Iterator[schema.Field]:
    for field in schema.message(message).values():
        if field.inline:
            yield from _members(field.type)
        else:
            yield field


def _compare(message: str, definition: str, visited: set[str]) -> None:
    if message in visited:
        return
    visited.add(message)
    properties = dict(definitions.definition(definition)["properties"])
    for name in ("apiVersion", "kind"):
        if name not in {field.name for field in _members(message)}:
            properties.pop(name, None)
    fields = {field.name: field for field in _members(message)}
    assert set(fields) == set(properties), f"{message} and {definition}"
    for name, field in fields.items():
        shape, type_, reference = _shape(properties[name])
        assert field.shape == shape, f"{message}.{name}"
        if type_ == "message":
            assert field.type.rsplit(".", 1)[1] == reference.rsplit(".", 1)[1], f"{message}.{name}"
            _compare(field.type, reference, visited)
        else:
            assert field.type == type_, f"{message}.{name}"


@pytest.mark.parametrize(("api_version", "kind"), [*supported_kinds(), ("v1", "DeleteOptions")])
def test_a_kind_has_the_same_members_in_both(api_version: str, kind: str) -> None:
    group, _, version = api_version.rpartition("/")
    visited: set[str] = set()
    _compare(message_of(api_version, kind), definitions.definition_for(group, version, kind), visited)
    assert visited
