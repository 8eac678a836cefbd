"""What is served, looked up in every way, across generations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fastness.apiserver.catalog import Catalog, Served, Source
from fastness.kinds.kind import Kind
from fastness.kinds.registry import all_kinds
from fastness.kube.errors import Forbidden, Invalid, NotFound
from tests.unit.apiserver.samples import DEPLOYMENT, MACHINE, NOW, POD, crd


@pytest.fixture
def catalog() -> Catalog:
    return Catalog.build([DEPLOYMENT, MACHINE, POD])


def kind_of(served: Served | None) -> Kind | None:
    return served.kind if served else None


def test_kinds_are_found_by_coordinates_and_by_kind(catalog: Catalog) -> None:
    assert kind_of(catalog.find("", "v1", "pods")) is POD
    assert kind_of(catalog.by_kind("apps", "v1", "Deployment")) is DEPLOYMENT
    assert catalog.find("", "v2", "pods") is None
    with pytest.raises(NotFound):
        catalog.require("apps", "v1", "pods")


@pytest.mark.parametrize("name", ["pods", "pod", "po", "Pod"])
def test_people_may_use_any_name(catalog: Catalog, name: str) -> None:
    assert kind_of(catalog.by_name(name)) is POD


def test_qualified_names_choose_group_and_version(catalog: Catalog) -> None:
    assert kind_of(catalog.by_name("deployments.apps")) is DEPLOYMENT
    assert kind_of(catalog.by_name("deploy.v1.apps")) is DEPLOYMENT
    assert catalog.by_name("deployments.example.com") is None
    assert catalog.by_name("unheard") is None


def test_a_definition_is_served_from_the_next_generation_on(catalog: Catalog) -> None:
    following = catalog.with_crd(crd())
    assert following.generation == catalog.generation + 1
    assert catalog.find("example.com", "v1", "widgets") is None
    served = following.require("example.com", "v1", "widgets")
    assert (served.source, served.storage_key) == (Source.CRD, ("example.com", "widgets"))
    assert following.without_crd("widgets.example.com").find("example.com", "v1", "widgets") is None


def test_generations_share_what_did_not_change(catalog: Catalog) -> None:
    first = catalog.with_crd(crd())
    second = first.with_crd(crd("gadgets", "Gadget"))
    assert second.require("", "v1", "pods") is catalog.require("", "v1", "pods")
    assert second.require("example.com", "v1", "widgets") is first.require("example.com", "v1", "widgets")


def test_a_changed_definition_is_compiled_anew(catalog: Catalog) -> None:
    first = catalog.with_crd(crd())
    second = first.with_crd(crd(scope="Cluster"))
    assert first.require("example.com", "v1", "widgets").kind.namespaced
    assert not second.require("example.com", "v1", "widgets").kind.namespaced


def test_versions_share_storage_and_the_best_is_preferred(catalog: Catalog) -> None:
    base = crd()["spec"]["versions"][0]
    versions = [
        {**base, "name": "v1alpha1", "storage": False},
        {**base, "name": "v1beta1"},
        {**base, "name": "v1", "storage": False},
        {**base, "name": "v0", "storage": False, "served": False},
    ]
    following = catalog.with_crd(crd(versions=versions))
    group = following.group("example.com")
    assert group is not None
    assert group.versions == ("v1", "v1beta1", "v1alpha1")
    assert group.preferred == "v1"
    stored = {served.storage_api_version for served in following.versions_of("example.com", "widgets")}
    assert stored == {"example.com/v1beta1"}
    assert following.require("example.com", "v1", "widgets").api_versions == {
        "example.com/v1", "example.com/v1beta1", "example.com/v1alpha1",
    }  # fmt: skip


def test_a_name_that_is_taken_in_the_group_is_not_served_until_it_is_free(catalog: Catalog) -> None:
    first = catalog.with_crd(crd())
    clash = crd("others", "Widget")
    both = first.with_crd(clash)
    assert both.find("example.com", "v1", "others") is None
    assert "others.example.com" in both.crds
    assert both.without_crd("widgets.example.com").find("example.com", "v1", "others") is not None


def test_built_in_kinds_cannot_be_defined_again(catalog: Catalog) -> None:
    with pytest.raises(Invalid, match="built in"):
        catalog.with_crd(crd("machines", "Machine", "fastness.dev"))
    with pytest.raises(Invalid, match="belongs to Kubernetes"):
        Catalog.build([replace(DEPLOYMENT, group="apps.k8s.io")]).with_crd(crd(group="apps.k8s.io"))
    with pytest.raises(Forbidden, match="built into the server"):
        catalog.refuse_builtin("machines.fastness.dev")
    catalog.refuse_builtin("widgets.example.com")


def test_a_new_kind_beside_ours_is_allowed(catalog: Catalog) -> None:
    assert catalog.with_crd(crd("helpers", "Helper", "fastness.dev")).find("fastness.dev", "v1", "helpers")


def test_our_kinds_show_as_established_definitions(catalog: Catalog) -> None:
    crds = catalog.builtin_crds(NOW)
    assert [crd["metadata"]["name"] for crd in crds] == ["machines.fastness.dev"]
    assert crds == catalog.builtin_crds(NOW)
    status = crds[0]["status"]
    assert {entry["type"]: entry["status"] for entry in status["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert status["acceptedNames"]["plural"] == "machines"
    assert status["storedVersions"] == ["v1alpha1"]


def test_every_registered_kind_is_served_with_its_printer() -> None:
    catalog = Catalog.build(all_kinds())
    for kind in all_kinds():
        if kind.served:
            served = catalog.require(kind.group, kind.version, kind.plural)
            assert served.printer.headers
            assert catalog.by_kind(kind.group, kind.version, kind.kind) is served


def test_many_definitions_are_indexed_together(catalog: Catalog) -> None:
    many = [crd(f"kind{number}s", f"Kind{number}") for number in range(60)]
    built = Catalog.build([MACHINE, POD], many)
    grown = catalog
    for manifest in many:
        grown = grown.with_crd(manifest)
    assert {served.kind.plural for served in built.kinds("example.com", "v1")} == {
        served.kind.plural for served in grown.kinds("example.com", "v1")
    }
    assert grown.generation == catalog.generation + len(many)
    assert kind_of(built.by_name("kind7")) is not None
