"""CustomResourceDefinitions: what is refused, what the status says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.apiserver.catalog import Catalog, check_crd, check_crd_update, crd_status, default_crd, is_established
from tests.unit.apiserver.samples import MACHINE, NOW, POD, crd

CATALOG = Catalog.build([MACHINE, POD])


def version(**changes: Any) -> dict[str, Any]:
    return {**crd()["spec"]["versions"][0], **changes}


def names(**changes: Any) -> dict[str, Any]:
    return {**crd()["spec"]["names"], **changes}


def causes(manifest: dict[str, Any]) -> set[tuple[str, str]]:
    return {(cause.field, cause.reason) for cause in check_crd(manifest, CATALOG)}


def test_a_plain_definition_is_accepted() -> None:
    assert causes(crd()) == set()


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({"group": ""}, "spec.group", "FieldValueRequired"),
        ({"group": "Example.com"}, "spec.group", "FieldValueInvalid"),
        ({"group": "example"}, "spec.group", "FieldValueInvalid"),
        ({"scope": "Galaxy"}, "spec.scope", "FieldValueNotSupported"),
        ({"scope": None}, "spec.scope", "FieldValueRequired"),
        ({"preserveUnknownFields": True}, "spec.preserveUnknownFields", "FieldValueInvalid"),
        ({"names": None}, "spec.names", "FieldValueRequired"),
        ({"names": names(plural="")}, "spec.names.plural", "FieldValueRequired"),
        ({"names": names(singular="Big")}, "spec.names.singular", "FieldValueInvalid"),
        ({"names": names(listKind="Widget")}, "spec.names.listKind", "FieldValueInvalid"),
        ({"names": names(shortNames=["ok", "Not_ok"])}, "spec.names.shortNames[1]", "FieldValueInvalid"),
        ({"names": names(plural="other")}, "metadata.name", "FieldValueInvalid"),
        ({"versions": []}, "spec.versions", "FieldValueInvalid"),
        ({"versions": "v1"}, "spec.versions", "FieldValueRequired"),
        ({"versions": [version(storage=False)]}, "spec.versions", "FieldValueInvalid"),
        ({"versions": [version(), version(name="v2")]}, "spec.versions", "FieldValueInvalid"),
        ({"versions": [version(), version(storage=False)]}, "spec.versions", "FieldValueInvalid"),
        ({"versions": [version(name="V1")]}, "spec.versions[0].name", "FieldValueInvalid"),
        ({"versions": [version(schema=None)]}, "spec.versions[0].schema.openAPIV3Schema", "FieldValueRequired"),
        (
            {"versions": [version(additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": ".a["}])]},
            "spec.versions[0].additionalPrinterColumns[0].jsonPath",
            "FieldValueInvalid",
        ),
        (
            {"versions": [version(additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": ".a"}])]},
            "spec.versions[0].additionalPrinterColumns[0].type",
            "FieldValueInvalid",
        ),
        (
            {"versions": [version(subresources={"scale": {"specReplicasPath": ".spec.replicas"}})]},
            "spec.versions[0].subresources.scale.statusReplicasPath",
            "FieldValueRequired",
        ),
        (
            {
                "versions": [
                    version(subresources={"scale": {"specReplicasPath": ".a.b", "statusReplicasPath": ".status.r"}})
                ]
            },
            "spec.versions[0].subresources.scale.specReplicasPath",
            "FieldValueInvalid",
        ),
        ({"conversion": {"strategy": "Webhook"}}, "spec.conversion.strategy", "FieldValueNotSupported"),
        ({"conversion": {"strategy": "Magic"}}, "spec.conversion.strategy", "FieldValueNotSupported"),
    ],
)
def test_a_wrong_definition_names_the_field(spec: dict[str, Any], field: str, reason: str) -> None:
    assert (field, reason) in causes(crd(**spec))


def test_a_webhook_conversion_is_refused_with_the_way_out() -> None:
    (cause,) = check_crd(crd(conversion={"strategy": "Webhook"}), CATALOG)
    assert "strategy None" in cause.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PLACES = (
    ("metadata",), ("metadata", "name"), ("spec",), ("spec", "group"), ("spec", "scope"), ("spec", "names"),
    ("spec", "names", "kind"), ("spec", "names", "plural"), ("spec", "names", "shortNames"), ("spec", "conversion"),
    ("spec", "conversion", "strategy"), ("spec", "versions"), ("spec", "versions", 0), ("spec", "versions", 0, "name"),
    ("spec", "versions", 0, "schema"), ("spec", "versions", 0, "additionalPrinterColumns"),
    ("spec", "versions", 0, "additionalPrinterColumns", 0), ("spec", "versions", 0, "subresources"),
    ("spec", "versions", 0, "subresources", "scale"),
)  # fmt: skip


@given(place=st.sampled_from(PLACES), value=JSON)
def test_any_value_anywhere_is_judged_and_never_trips(place: tuple[Any, ...], value: Any) -> None:
    manifest = crd(
        conversion={"strategy": "None"},
        names=names(shortNames=["w"]),
        versions=[
            version(
                additionalPrinterColumns=[{"name": "A", "type": "string", "jsonPath": ".a"}], subresources={"scale": {}}
            )
        ],
    )
    *before, last = place
    target: Any = manifest
    for step in before:
        target = target[step]
    target[last] = value
    for cause in check_crd(default_crd(manifest), CATALOG):
        assert cause.field
        assert cause.reason.startswith("FieldValue")


def test_a_definition_without_spec_is_refused() -> None:
    assert causes({"metadata": {"name": "x"}}) == {("spec", "FieldValueRequired")}


def test_scope_and_stored_versions_do_not_change() -> None:
    old = crd()
    old["status"] = {"storedVersions": ["v1"]}
    new = crd(scope="Cluster", versions=[version(name="v2")])
    fields = {cause.field for cause in check_crd_update(old, new, CATALOG)}
    assert fields == {"spec.scope", "status.storedVersions[0]"}
    assert check_crd_update(old, crd(), CATALOG) == []


def test_defaults_fill_in_the_names_and_the_conversion() -> None:
    bare = crd(names={"plural": "widgets", "kind": "Widget"})
    spec = default_crd(bare)["spec"]
    assert spec["names"] == {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"}
    assert spec["conversion"] == {"strategy": "None"}
    assert "conversion" not in bare["spec"]


def test_a_fresh_definition_is_accepted_and_established() -> None:
    status = crd_status(crd(), CATALOG, NOW)
    assert [(entry["type"], entry["status"], entry["reason"]) for entry in status["conditions"]] == [
        ("NamesAccepted", "True", "NoConflicts"),
        ("Established", "True", "InitialNamesAccepted"),
    ]
    assert status["acceptedNames"] == crd()["spec"]["names"]
    assert status["storedVersions"] == ["v1"]


def test_status_is_stable_once_it_is_right() -> None:
    manifest = crd()
    manifest["status"] = crd_status(manifest, CATALOG, NOW)
    catalog = CATALOG.with_crd(manifest)
    assert crd_status(manifest, catalog, NOW + timedelta(hours=1)) == manifest["status"]


def test_a_taken_kind_keeps_a_definition_from_being_established() -> None:
    catalog = CATALOG.with_crd(crd())
    manifest = crd("others", "Widget")
    manifest["status"] = crd_status(manifest, catalog, NOW)
    by_type = {entry["type"]: entry for entry in manifest["status"]["conditions"]}
    assert (
        by_type["NamesAccepted"]["reason"] == "KindConflict" or by_type["NamesAccepted"]["reason"] == "SingularConflict"
    )
    assert by_type["NamesAccepted"]["status"] == "False"
    assert by_type["Established"]["status"] == "False"
    assert not is_established(manifest)
    after = crd_status(manifest, catalog.without_crd("widgets.example.com"), NOW)
    assert {entry["status"] for entry in after["conditions"]} == {"True"}


def test_storing_in_a_new_version_remembers_the_old_one() -> None:
    manifest = crd(versions=[version(storage=False), version(name="v2")])
    manifest["status"] = {"storedVersions": ["v1"]}
    assert crd_status(manifest, CATALOG, NOW)["storedVersions"] == ["v1", "v2"]
