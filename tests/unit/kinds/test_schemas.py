"""Schemas accept what they should, refuse what they should, and are structural."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
import pytest

from fastness.formats.patch.merge import apply_merge_patch
from fastness.kinds import registry
from fastness.kinds.crd.manifest import full_schema
from fastness.kinds.fastness_dev import GROUP
from fastness.kinds.kind import JsonObject, Kind
from tests.unit.kinds.examples import EXAMPLES, FASTNESS, Refusal
from tests.unit.kinds.refusals import REFUSALS

CUSTOM = registry.custom_kinds()
SCHEMA_FAULTS = [refusal for refusal in REFUSALS if refusal.by == "schema"]


def label(kind: Kind) -> str:
    """How a kind is called in the names of tests."""
    return f"{kind.crd_name}/{kind.version}"


def plain(schema: Any) -> Any:
    """The schema for a plain validator, which does not know `nullable`."""
    if isinstance(schema, list):
        return [plain(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    converted = {key: plain(value) for key, value in schema.items()}
    if converted.pop("nullable", None) is True:
        return {"anyOf": [converted, {"type": "null"}]}
    return converted


def faults(obj: JsonObject) -> list[str]:
    """Field paths at which an object breaks the structural schema of its kind."""
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = registry.find(group, version, obj["kind"])
    validator = jsonschema_rs.Draft202012Validator(plain(full_schema(kind)), validate_formats=True)
    return [field_of(error) for error in validator.iter_errors(obj)]


def field_of(error: jsonschema_rs.ValidationError) -> str:
    """The path as Kubernetes writes it; a missing field is named itself, as Kubernetes does."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
    missing = f".{error.message.split(chr(34))[1]}" if "is a required property" in error.message else ""
    return (path + missing).lstrip(".")


@pytest.mark.parametrize("crd", EXAMPLES)
def test_full_example_is_accepted(crd: str) -> None:
    assert faults(EXAMPLES[crd]) == []


def test_every_kind_of_ours_has_an_example() -> None:
    assert {kind.crd_name for kind in CUSTOM if kind.group == GROUP} == FASTNESS.keys()


def test_every_kind_of_ours_that_has_a_schema_has_a_refusal() -> None:
    assert {refusal.crd for refusal in REFUSALS} >= FASTNESS.keys() - {"tenantclusters.fastness.dev"}


@pytest.mark.parametrize("refusal", SCHEMA_FAULTS, ids=str)
def test_wrong_value_is_refused_at_its_field(refusal: Refusal) -> None:
    changed = apply_merge_patch(EXAMPLES[refusal.crd], refusal.change)
    assert any(refusal.field in fault for fault in faults(changed)), faults(changed)


def nodes(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every node of a schema that describes a value, with its path."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from nodes(schema["additionalProperties"], f"{path}{{}}")


@pytest.mark.parametrize("kind", CUSTOM, ids=label)
def test_every_node_is_typed_and_structural(kind: Kind) -> None:
    for path, node in nodes(full_schema(kind)):
        assert "type" in node or node.get("x-kubernetes-int-or-string"), path
        assert not ("type" in node and "anyOf" in node), path
        assert not ("properties" in node and "additionalProperties" in node), path
        assert set(node.get("required", ())) <= node.get("properties", {}).keys(), path


@pytest.mark.parametrize("kind", CUSTOM, ids=label)
def test_keys_of_list_maps_are_always_there(kind: Kind) -> None:
    for path, node in nodes(full_schema(kind)):
        for key in node.get("x-kubernetes-list-map-keys", ()):
            item = node["items"]
            assert key in item["required"] or "default" in item["properties"][key], f"{path}: {key}"


@pytest.mark.parametrize("kind", [kind for kind in CUSTOM if kind.group == GROUP], ids=label)
def test_every_field_of_our_kinds_explains_itself(kind: Kind) -> None:
    for path, node in nodes(full_schema(kind)):
        inner = path.endswith(("[]", "{}"))
        assert inner or path == ".metadata" or node.get("description", "").endswith("."), path


@pytest.mark.parametrize("kind", CUSTOM, ids=label)
def test_defaults_are_valid_values(kind: Kind) -> None:
    for path, node in nodes(full_schema(kind)):
        if "default" in node:
            assert jsonschema_rs.Draft202012Validator(plain(node)).is_valid(node["default"]), path


@pytest.mark.parametrize("kind", CUSTOM, ids=label)
def test_columns_of_the_schema_lead_to_fields_that_exist(kind: Kind) -> None:
    schema = full_schema(kind)
    for column in kind.columns:
        if column.path.startswith(".metadata."):
            continue
        assert _leads_somewhere(schema, column.path), f"{column.name}: {column.path}"


def _leads_somewhere(schema: Mapping[str, Any], path: str) -> bool:
    node: Mapping[str, Any] = schema
    for step in path.replace("[?", "\0").split("\0")[0].strip(".").replace("[", ".[").split("."):
        if node.get("x-kubernetes-preserve-unknown-fields"):
            return True
        node = node["items"] if step.startswith("[") else node.get("properties", {}).get(step, {})
        if not node:
            return False
    return True
