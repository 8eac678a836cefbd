"""OpenAPI v3 as kubectl reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fastness.apiserver.catalog import Catalog
from fastness.apiserver.documents.openapi import OpenApi
from tests.unit.apiserver.samples import DEPLOYMENT, MACHINE, NATIVES, POD, crd

GVK = "x-kubernetes-group-version-kind"


@pytest.fixture(scope="module")
def openapi() -> OpenApi:
    return OpenApi(Catalog.build([DEPLOYMENT, MACHINE, POD]).with_crd(crd()))


def body(openapi: OpenApi, path: str) -> dict[str, Any]:
    document = openapi.answer(path)
    assert document is not None
    parsed: dict[str, Any] = json.loads(document.body)
    return parsed


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, child in value.items():
            if key == "$ref" and isinstance(child, str):  # a property of JSONSchemaProps has that name, too
                yield child
            else:
                yield from references(child)
    elif isinstance(value, list):
        for child in value:
            yield from references(child)


def test_index_names_every_group_version_with_its_digest(openapi: OpenApi) -> None:
    paths = body(openapi, "/openapi/v3")["paths"]
    assert list(paths) == ["api/v1", "apis/apps/v1", "apis/example.com/v1", "apis/fastness.dev/v1alpha1"]
    for entry in paths.values():
        path, _, digest = entry["serverRelativeURL"].partition("?hash=")
        document = openapi.answer(path, digest)
        assert document is not None
        assert document.digest == digest
        assert "immutable" in document.headers["Cache-Control"]


def test_an_old_digest_is_sent_on_to_the_present_document(openapi: OpenApi) -> None:
    document = openapi.answer("/openapi/v3/api/v1", "OLD")
    assert document is not None
    assert document.location == f"/openapi/v3/api/v1?hash={document.digest}"


@pytest.mark.parametrize(
    "path", ["/openapi/v3/api/v2", "/openapi/v3/apis/none/v1", "/openapi/v3/x", "/openapi/v3/apis//v1"]
)
def test_other_documents_do_not_exist(openapi: OpenApi, path: str) -> None:
    assert openapi.answer(path) is None


def test_every_reference_leads_somewhere() -> None:
    catalog = Catalog.build([*NATIVES, MACHINE])
    openapi = OpenApi(catalog)
    for group in catalog.groups():
        for version in group.versions:
            name = f"apis/{group.name}/{version}" if group.name else f"api/{version}"
            document = body(openapi, f"/openapi/v3/{name}")
            pointers = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
            assert set(references(document)) <= pointers


def test_kubectl_finds_field_validation_on_patch(openapi: OpenApi) -> None:
    for path, kind in (("/openapi/v3/api/v1", "Pod"), ("/openapi/v3/apis/fastness.dev/v1alpha1", "Machine")):
        operations = [entry["patch"] for entry in body(openapi, path)["paths"].values() if "patch" in entry]
        patch_operation = next(operation for operation in operations if operation[GVK]["kind"] == kind)
        assert {"fieldValidation", "dryRun", "fieldManager", "force"} <= {
            entry["name"] for entry in patch_operation["parameters"]
        }
        assert patch_operation["x-kubernetes-action"] == "patch"


def test_explain_finds_the_schema_of_a_kind_by_its_path(openapi: OpenApi) -> None:
    document = body(openapi, "/openapi/v3/apis/fastness.dev/v1alpha1")
    gvk = document["paths"]["/apis/fastness.dev/v1alpha1/machines"]["get"][GVK]
    (name,) = [name for name, definition in document["components"]["schemas"].items() if gvk in definition.get(GVK, [])]
    assert name == "dev.fastness.v1alpha1.Machine"
    schema = document["components"]["schemas"][name]
    assert schema["description"] == "A machine."
    assert schema["properties"]["spec"]["properties"]["pool"]["description"] == "Pool of the machine."
    assert list(references(schema["properties"]["metadata"])) == [
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    ]


def test_native_kinds_keep_their_names_and_patch_rules(openapi: OpenApi) -> None:
    schemas = body(openapi, "/openapi/v3/apis/apps/v1")["components"]["schemas"]
    assert schemas["io.k8s.api.apps.v1.Deployment"][GVK] == [{"group": "apps", "kind": "Deployment", "version": "v1"}]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"


def test_paths_follow_scope_verbs_and_subresources(openapi: OpenApi) -> None:
    paths = body(openapi, "/openapi/v3/api/v1")["paths"]
    assert set(paths["/api/v1/namespaces/{namespace}/pods"]) == {"get", "post", "delete", "parameters"}
    assert set(paths["/api/v1/pods"]) == {"get", "parameters"}
    assert set(paths["/api/v1/namespaces/{namespace}/pods/{name}"]) == {"get", "put", "patch", "delete", "parameters"}
    assert paths["/api/v1/namespaces/{namespace}/pods/{name}/eviction"]["post"][GVK]["kind"] == "Eviction"
    machines = body(openapi, "/openapi/v3/apis/fastness.dev/v1alpha1")["paths"]
    assert "/apis/fastness.dev/v1alpha1/machines/{name}/status" in machines
    types = machines["/apis/fastness.dev/v1alpha1/machines/{name}"]["patch"]["requestBody"]["content"]
    assert "application/strategic-merge-patch+json" not in types


def test_operation_ids_are_distinct() -> None:
    openapi = OpenApi(Catalog.build(NATIVES))
    for path in ("/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1"):
        identifiers = [
            operation["operationId"]
            for entry in body(openapi, path)["paths"].values()
            for method, operation in entry.items()
            if method != "parameters"
        ]
        assert len(identifiers) == len(set(identifiers))


def test_the_old_document_is_an_empty_one_in_protobuf(openapi: OpenApi) -> None:
    document = openapi.answer("/openapi/v2")
    assert document is not None
    assert document.content_type == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert document.body == b"\n\x032.0\x12\x0e\n\x08Fastness\x12\x02v1B\x00"
