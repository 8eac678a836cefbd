"""The table of native types is complete in itself, and holds facts without prose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fastness.kinds.kubernetes import definitions
from fastness.kinds.kubernetes.definitions import REFERENCE


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all schemas inside it."""
    yield schema
    for child in schema.get("properties", {}).values():
        yield from nodes(child)
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            yield from nodes(schema[keyword])
    for keyword in ("allOf", "anyOf", "oneOf"):
        for child in schema.get(keyword, ()):
            yield from nodes(child)


def test_every_reference_leads_to_a_definition() -> None:
    names = definitions.names()
    dangling = {
        (name, node["$ref"])
        for name in names
        for node in nodes(definitions.definition(name))
        if "$ref" in node and node["$ref"].removeprefix(REFERENCE) not in names
    }
    assert not dangling


def test_no_schema_carries_prose() -> None:
    prose = [
        name for name in definitions.names() for node in nodes(definitions.definition(name)) if "description" in node
    ]
    assert not prose


def test_property_that_is_called_description_is_kept() -> None:
    schema = definitions.definition(definitions.definition_for("scheduling.k8s.io", "v1", "PriorityClass"))
    assert schema["properties"]["description"] == {"type": "string"}


def test_every_resource_has_a_definition_of_its_kind_and_list() -> None:
    for entry in definitions.resources():
        assert definitions.definition_for(entry.group, entry.version, entry.kind) in definitions.names()
        if "list" in entry.verbs:
            assert definitions.definition_for(entry.group, entry.version, f"{entry.kind}List") in definitions.names()


def test_whatever_can_be_listed_has_columns_and_one_names_the_object() -> None:
    for entry in definitions.resources():
        columns = definitions.columns(entry.group, entry.plural)
        assert bool(columns) == ("list" in entry.verbs), entry
        if columns:
            assert [column.name for column in columns if column.format == "name"] == ["Name"]


def test_lists_of_maps_name_the_keys_that_their_items_have() -> None:
    for name in definitions.names():
        for node in nodes(definitions.definition(name)):
            if node.get("x-kubernetes-list-type") == "map":
                item = resolve(node["items"])
                assert set(node["x-kubernetes-list-map-keys"]) <= item["properties"].keys(), name


def resolve(schema: dict[str, Any]) -> Any:
    """The schema itself, or what its only reference leads to."""
    inner = schema.get("allOf", [schema])[0]
    return definitions.definition(inner["$ref"].removeprefix(REFERENCE)) if "$ref" in inner else inner


@pytest.mark.parametrize(
    ("field", "keys", "merge"),
    [("containers", ["name"], "name"), ("tolerations", None, None), ("volumes", ["name"], "name")],
)
def test_pod_spec_says_how_its_lists_merge(field: str, keys: list[str] | None, merge: str | None) -> None:
    schema = definitions.definition("io.k8s.api.core.v1.PodSpec")["properties"][field]
    assert schema.get("x-kubernetes-list-map-keys") == keys
    assert schema.get("x-kubernetes-patch-merge-key") == merge


def test_subresources_speak_the_kind_of_their_own_group_or_another() -> None:
    subresources = {
        (entry.plural, child.name): child for entry in definitions.resources() for child in entry.subresources
    }
    status, scale = subresources["deployments", "status"], subresources["deployments", "scale"]
    assert (status.group, status.version, status.kind) == ("apps", "v1", "Deployment")
    assert (scale.group, scale.version, scale.kind) == ("autoscaling", "v1", "Scale")
    assert subresources["pods", "eviction"].group == "policy"
    assert subresources["serviceaccounts", "token"].kind == "TokenRequest"


def test_default_roles_hold_what_their_names_promise() -> None:
    roles = {role["metadata"]["name"]: role for role in definitions.default_roles() if role["kind"] == "ClusterRole"}
    assert {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]} in roles["cluster-admin"]["rules"]
    written = [rule["verbs"] for rule in roles["view"]["rules"] if set(rule["verbs"]) - {"get", "list", "watch"}]
    assert not written
    assert all(rule in roles["admin"]["rules"] for rule in roles["edit"]["rules"])


def test_every_default_binding_refers_to_a_default_role() -> None:
    roles = definitions.default_roles()
    names = {role["metadata"]["name"] for role in roles if role["kind"] == "ClusterRole"}
    bound = {role["roleRef"]["name"] for role in roles if role["kind"] == "ClusterRoleBinding"}
    assert bound
    assert bound <= names


def test_roles_carry_nothing_that_a_server_makes_up() -> None:
    for role in definitions.default_roles():
        assert role["metadata"].keys() <= {"name", "labels", "annotations"}


def test_kind_that_is_not_native_is_not_found() -> None:
    with pytest.raises(KeyError):
        definitions.definition_for("fastness.dev", "v1alpha1", "Verdict")
    assert definitions.columns("fastness.dev", "verdicts") == ()
