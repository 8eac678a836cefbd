"""Discovery in both dialects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fastness.apiserver.catalog import Catalog
from fastness.apiserver.documents.discovery import Discovery
from fastness.kinds.kubernetes import definitions
from tests.unit.apiserver.samples import DEPLOYMENT, MACHINE, NATIVES, POD, crd

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
KUBECTL = f"{AGGREGATED},application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"


@pytest.fixture
def discovery() -> Discovery:
    return Discovery(Catalog.build([DEPLOYMENT, MACHINE, POD]), "127.0.0.1:6443")


def body(discovery: Discovery, path: str, accept: str = "") -> dict[str, Any]:
    document = discovery.answer(path, accept)
    assert document is not None
    parsed: dict[str, Any] = json.loads(document.body)
    return parsed


def test_core_versions(discovery: Discovery) -> None:
    assert body(discovery, "/api") == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
    }


def test_groups_come_with_their_preferred_version(discovery: Discovery) -> None:
    groups = body(discovery, "/apis")["groups"]
    assert [group["name"] for group in groups] == ["apps", "fastness.dev"]
    assert groups[1]["preferredVersion"] == {"groupVersion": "fastness.dev/v1alpha1", "version": "v1alpha1"}
    assert body(discovery, "/apis/apps") == {"kind": "APIGroup", "apiVersion": "v1", **groups[0]}


def test_resources_have_a_row_for_every_subresource(discovery: Discovery) -> None:
    rows = {row["name"]: row for row in body(discovery, "/api/v1")["resources"]}
    assert rows["pods"]["shortNames"] == ["po"]
    assert rows["pods"]["namespaced"] is True
    assert {"group": "policy", "version": "v1", "kind": "Eviction"}.items() <= rows["pods/eviction"].items()
    assert rows["pods/status"]["verbs"] == ["get", "patch", "update"]
    machines = body(discovery, "/apis/fastness.dev/v1alpha1")
    assert machines["groupVersion"] == "fastness.dev/v1alpha1"
    assert [row["name"] for row in machines["resources"]] == ["machines", "machines/status"]


@pytest.mark.parametrize(
    "path", ["/apis/none", "/apis/apps/v2", "/api/v2", "/apis/", "/apis//v1", "/other", "/api/v1/pods/x"]
)
def test_other_paths_are_not_discovery(discovery: Discovery, path: str) -> None:
    assert discovery.answer(path) is None or path == "/apis/"


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
def test_aggregated_discovery_repeats_the_exact_content_type(discovery: Discovery, version: str) -> None:
    accept = AGGREGATED.replace("v=v2", f"v={version}")
    document = discovery.answer("/apis", accept)
    assert document is not None
    assert document.content_type == accept
    value = json.loads(document.body)
    assert value["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    assert [item["metadata"]["name"] for item in value["items"]] == ["apps", "fastness.dev"]


def test_aggregated_discovery_nests_subresources(discovery: Discovery) -> None:
    (core,) = body(discovery, "/api", KUBECTL)["items"]
    (version,) = core["versions"]
    (pods,) = version["resources"]
    assert (pods["resource"], pods["scope"], pods["singularResource"]) == ("pods", "Namespaced", "pod")
    nested = {row["subresource"]: row["responseKind"] for row in pods["subresources"]}
    assert nested["eviction"] == {"group": "policy", "version": "v1", "kind": "Eviction"}


def test_answers_are_encoded_once_per_generation(discovery: Discovery) -> None:
    first = discovery.answer("/apis", KUBECTL)
    assert first is not None
    assert discovery.answer("/apis", KUBECTL) is first
    assert first.known_to(first.etag)
    assert first.known_to(f'"other", W/{first.etag}')
    assert not first.known_to('"other"')


def test_a_new_definition_changes_the_tag() -> None:
    catalog = Catalog.build([MACHINE, POD])
    before = Discovery(catalog).answer("/apis")
    after = Discovery(catalog.with_crd(crd())).answer("/apis")
    again = Discovery(catalog.with_crd(crd()).without_crd("widgets.example.com")).answer("/apis")
    assert before is not None
    assert after is not None
    assert again is not None
    assert before.etag == again.etag != after.etag


def test_native_resources_read_as_a_real_server_wrote_them() -> None:
    discovery = Discovery(Catalog.build(NATIVES))
    for resource in definitions.resources():
        path = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        rows = {row["name"]: row for row in body(discovery, path)["resources"]}
        row = rows[resource.plural]
        assert (row["kind"], row["singularName"], row["verbs"]) == (
            resource.kind,
            resource.singular,
            sorted(resource.verbs),
        )
        for sub in resource.subresources:
            assert rows[f"{resource.plural}/{sub.name}"]["kind"] == sub.kind
