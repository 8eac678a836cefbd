"""Definitions say what kinds say, and kinds come back out of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.kinds import registry
from fastness.kinds.crd import from_manifest, manifest, manifests
from fastness.kinds.errors import BadDefinition
from fastness.kinds.kind import AGE, ALL_VERBS, Column, JsonObject, Kind, Scope

CUSTOM = registry.custom_kinds()


def label(kind: Kind) -> str:
    """How a kind is called in the names of tests."""
    return f"{kind.crd_name}/{kind.version}"


@pytest.mark.parametrize("kind", CUSTOM, ids=label)
def test_kind_comes_back_out_of_its_definition(kind: Kind) -> None:
    # A definition has no word for a shared storage, for a view, or for names of former days; everything else survives.
    expected = replace(kind, storage=(kind.group, kind.plural), verbs=ALL_VERBS, renamed={})
    assert expected in from_manifest(orjson.loads(orjson.dumps(manifest(kind))))


def test_there_is_one_definition_per_resource() -> None:
    names = [crd["metadata"]["name"] for crd in manifests()]
    assert names == sorted(set(names), key=names.index)
    assert set(names) == {kind.crd_name for kind in CUSTOM}


def test_versions_of_one_resource_are_in_one_definition_with_one_stored() -> None:
    crd = manifest(registry.find("nfd.openshift.io", "v1", "nodefeaturerules"))
    assert [(version["name"], version["storage"]) for version in crd["spec"]["versions"]] == [
        ("v1", False),
        ("v1alpha1", True),
    ]


def test_schema_explains_the_envelope() -> None:
    schema = manifest(registry.find("fastness.dev", "v1alpha1", "verdicts"))["spec"]["versions"][0]["schema"]
    properties = schema["openAPIV3Schema"]["properties"]
    assert list(properties) == ["apiVersion", "kind", "metadata", "spec"]
    assert properties["kind"]["description"]


def test_definition_of_an_unregistered_kind_stands_alone() -> None:
    kind = Kind(group="example.com", version="v1", kind="Thing", plural="things", scope=Scope.NAMESPACED)
    assert from_manifest(manifest(kind)) == [replace(kind, schema={"type": "object"})]


def users_definition() -> JsonObject:
    """A definition as a user would write it, with everything that can be said."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "crontabs.stable.example.com", "labels": {"team": "blue"}},
        "spec": {
            "group": "stable.example.com",
            "scope": "Namespaced",
            "names": {"plural": "crontabs", "kind": "CronTab", "shortNames": ["ct"], "categories": ["all"]},
            "conversion": {"strategy": "None"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "description": "A schedule.",
                            "properties": {
                                "apiVersion": {"type": "string"},
                                "metadata": {
                                    "type": "object",
                                    "properties": {"name": {"type": "string", "maxLength": 10}},
                                },
                                "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                            },
                        }
                    },
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                    },
                    "additionalPrinterColumns": [
                        {
                            "name": "Spec",
                            "type": "string",
                            "jsonPath": ".spec.cronSpec",
                            "priority": 1,
                            "description": "When.",
                        },
                        {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "format": "int32"},
                    ],
                    "selectableFields": [{"jsonPath": ".spec.replicas"}],
                },
                {
                    "name": "v1beta1",
                    "served": False,
                    "storage": False,
                    "deprecated": True,
                    "deprecationWarning": "use v1",
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                },
            ],
        },
    }


def test_users_definition_becomes_a_kind_per_version() -> None:
    v1, beta = from_manifest(users_definition())
    assert (v1.kind, v1.singular, v1.list_kind, v1.short_names) == ("CronTab", "crontab", "CronTabList", ("ct",))
    assert v1.categories == ("all",)
    assert v1.labels == {"team": "blue"}
    assert v1.subresources == ("status", "scale")
    assert v1.scale == {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    assert v1.columns == (
        Column("Spec", ".spec.cronSpec", priority=1, description="When."),
        Column("Replicas", ".spec.replicas", "integer", format="int32"),
    )
    assert v1.selectable_fields == (".spec.replicas",)
    assert v1.description == "A schedule."
    assert (beta.served, beta.storage_version, beta.deprecated, beta.deprecation_warning) == (
        False,
        False,
        True,
        "use v1",
    )
    assert beta.columns == (AGE,)
    assert beta.storage == v1.storage == ("stable.example.com", "crontabs")


def test_rules_on_the_name_are_kept_and_the_rest_of_the_envelope_is_not() -> None:
    v1, _ = from_manifest(users_definition())
    assert list(v1.schema["properties"]) == ["metadata", "spec"]


def changed(path: str, value: Any) -> JsonObject:
    """The user's definition with one field replaced, or removed for None."""
    document = users_definition()
    holder: Any = document
    *steps, last = path.split(".")
    for step in steps:
        holder = holder[int(step)] if step.isdigit() else holder[step]
    key = int(last) if last.isdigit() else last
    if value is None:
        del holder[key]
    else:
        holder[key] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("spec", None, "spec"),
        ("metadata.name", "wrong.example.com", "metadata.name"),
        ("metadata.labels", ["x"], "metadata.labels"),
        ("spec.group", None, "spec.group"),
        ("spec.names", "crontabs", "spec.names"),
        ("spec.names.kind", None, "spec.names.kind"),
        ("spec.names.shortNames", "ct", "spec.names.shortNames"),
        ("spec.names.singular", 1, "spec.names.singular"),
        ("spec.scope", "Galaxy", "spec.scope"),
        ("spec.conversion", {"strategy": "Webhook"}, "spec.conversion.strategy"),
        ("spec.versions", [], "spec.versions"),
        ("spec.versions", {"v1": {}}, "spec.versions"),
        ("spec.versions.1.storage", True, "spec.versions"),
        ("spec.versions.0.storage", False, "spec.versions"),
        ("spec.versions.1.name", "v1", "spec.versions"),
        ("spec.versions.0.name", None, "spec.versions[0].name"),
        ("spec.versions.0.schema", None, "spec.versions[0].schema"),
        ("spec.versions.0.schema.openAPIV3Schema", [], "spec.versions[0].schema.openAPIV3Schema"),
        ("spec.versions.0.schema.openAPIV3Schema.properties", [], "spec.versions[0].schema.openAPIV3Schema.properties"),
        ("spec.versions.0.subresources", [], "spec.versions[0].subresources"),
        ("spec.versions.0.subresources.scale", 3, "spec.versions[0].subresources.scale"),
        ("spec.versions.0.additionalPrinterColumns", {}, "spec.versions[0].additionalPrinterColumns"),
        ("spec.versions.0.additionalPrinterColumns.0.type", "text", "spec.versions[0].additionalPrinterColumns[0].type"),
        ("spec.versions.0.additionalPrinterColumns.1.jsonPath", None,
         "spec.versions[0].additionalPrinterColumns[1].jsonPath"),
        ("spec.versions.0.additionalPrinterColumns.0.priority", "high",
         "spec.versions[0].additionalPrinterColumns[0].priority"),
        ("spec.versions.0.selectableFields", [{}], "spec.versions[0].selectableFields[0].jsonPath"),
    ],
)  # fmt: skip
def test_bad_definition_is_refused_at_its_field(path: str, value: Any, field: str) -> None:
    with pytest.raises(BadDefinition) as caught:
        from_manifest(changed(path, value))
    assert caught.value.path == field


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, member in inner for place in places(member, (*path, key)))]


@given(place=st.sampled_from(places(users_definition())[1:]), value=json_values)
def test_whatever_a_user_writes_is_a_kind_or_a_bad_definition(place: tuple[Any, ...], value: Any) -> None:
    document = users_definition()
    holder: Any = document
    for step in place[:-1]:
        holder = holder[step]
    holder[place[-1]] = value
    try:
        outcome = [kind.plural for kind in from_manifest(document)]
    except BadDefinition as error:
        outcome = [error.path]
    assert all(outcome)
    assert outcome
