"""The tables and the discovery of the embedded API, held against a real kube-apiserver.

Every sample object is created on the real server, which then prints it; our printer gets the object as the real server stores
it. Cells must be equal, ages apart. The same for columns of a custom kind, whose rules are in no document.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from fastness.apiserver.catalog import Catalog, Served, crd_status, default_crd
from fastness.apiserver.documents.discovery import Discovery
from fastness.apiserver.tables import Include, ListMeta, TableRequest, render_table
from fastness.kinds.kind import Kind
from tests.embedded.fixtures import Embedded
from tests.realkube import RealKube
from tests.unit.apiserver.samples import NATIVES, crd, native
from tests.unit.apiserver.tables.native_samples import SAMPLES, Sample

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
NAMESPACE = "tables-like-real"
AGE = re.compile(r"\d+[smhdy](\d+[smhd])?")
STORED_OLD = "customresourcedefinitions"  # a real server stores them in a version that it no longer serves


@pytest.fixture(scope="module")
def admin(real_kube: RealKube) -> Iterator[httpx.Client]:
    with real_kube.client() as client:
        client.post("/api/v1/namespaces", json={"metadata": {"name": NAMESPACE}}).raise_for_status()
        yield client


def collection(kind: Kind) -> str:
    return kind.resource.path(NAMESPACE)


def create(admin: httpx.Client, kind: Kind, name: str, body: dict[str, Any]) -> dict[str, Any]:
    """The object as the server stores it, with its status."""
    meta = {"name": name, **body.get("metadata", {})}
    full = {**body, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
    answer = admin.post(collection(kind), json=full)
    assert answer.status_code == 201, answer.text
    if body.get("status"):
        answer = admin.patch(
            f"{collection(kind)}/{name}/status",
            json={"status": body["status"]},
            headers={"Content-Type": "application/merge-patch+json"},
        )
        assert answer.status_code == 200, answer.text
    stored: dict[str, Any] = admin.get(f"{collection(kind)}/{name}").json()
    return stored


def masked(cells: list[Any]) -> list[Any]:
    return [AGE.sub("<age>", cell) if isinstance(cell, str) else cell for cell in cells]


def headers(table: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [
        tuple(column[key] for key in ("name", "type", "format", "priority"))
        for column in table["columnDefinitions"] or ()
    ]


def ours(served: Served, obj: dict[str, Any]) -> dict[str, Any]:
    meta = ListMeta(obj["metadata"]["resourceVersion"])
    return render_table(served.printer, [obj], TableRequest(), meta, datetime.now(UTC))


def assert_same_table(table: dict[str, Any], real: dict[str, Any]) -> None:
    assert headers(table) == headers(real)
    assert masked(table["rows"][0]["cells"]) == masked(real["rows"][0]["cells"])
    assert table["rows"][0]["object"] == real["rows"][0]["object"]
    assert {key: table[key] for key in ("kind", "apiVersion", "metadata")} == {
        key: real[key] for key in ("kind", "apiVersion", "metadata")
    }


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.plural}-{sample.name}")
def test_native_object_prints_the_same(admin: httpx.Client, sample: Sample) -> None:
    kind = native(sample.group, sample.plural)
    obj = create(admin, kind, sample.name, sample.body)
    real = admin.get(f"{collection(kind)}/{sample.name}", headers=TABLE).json()
    # Only in its memory a real server keeps the generation of a DaemonSet's template outside the annotations.
    obj["metadata"].get("annotations", {}).pop("deprecated.daemonset.template.generation", None)
    real["rows"][0]["object"]["metadata"].setdefault("annotations", obj["metadata"].get("annotations"))
    obj["metadata"].setdefault("annotations", None)
    assert_same_table(ours(Served(kind), obj), real)


VALUES: dict[str, Any] = {
    "text": "t", "empty": "", "int": 5, "float": 0.25, "whole": 2.0, "large": 1e20, "huge": 1e21, "yes": True, "null": None,
    "object": {"b": 1, "a": ["<&>", None]}, "list": [1, "x"], "time": "2001-01-01T00:00:00Z", "fraction": 7.9,
    "notime": "soon", "odd": 1234567.5, "small": 0.00001234, "edge": 0.0001, "minus": -1e7,
    "dotted.name/x": "d", "items": [{"n": "a", "w": 1}, {"n": "b", "w": 2}],
}  # fmt: skip
PATHS = [
    *(f".spec.{name}" for name in VALUES if name.isalpha()),
    ".spec.missing", ".spec['dotted.name/x']", r".spec['dotted\.name/x']", r".spec.dotted\.name/x",
    ".spec.items[0].n", ".spec.items[-1].n",
    ".spec.items[5].n", ".spec.items[*].n", ".spec.items[1:].n", ".spec.items[:1].n", '.spec.items[?(@.n=="b")].w',
    ".spec.items[?(@.w>1)].n", ".spec.items[?(@.w)].n", '.spec.items[?(@.w=="1")].n', ".spec.text[0]", ".spec.text.deeper",
    ".spec..w", ".spec.items[0,1].n", ".spec.items[0]['n','w']", ".metadata.name", ".spec.list[9:]", ".spec.list[1:1]",
]  # fmt: skip


def test_columns_of_a_custom_kind_print_the_same(admin: httpx.Client) -> None:
    types = ("string", "integer", "number", "boolean", "date")
    columns = [
        {"name": f"{kind} {path}", "type": kind, "jsonPath": path, "priority": index % 2}
        for kind in types
        for index, path in enumerate(PATHS)
    ]
    version = {
        "name": "v1", "served": True, "storage": True, "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }  # fmt: skip
    manifest = default_crd(crd("columns", "Column", "tables.example.com", versions=[version]))
    served = Catalog.build(()).with_crd(manifest).require("tables.example.com", "v1", "columns")
    established(admin, manifest)
    obj = create(admin, served.kind, "c", {"spec": VALUES})
    real = admin.get(f"{collection(served.kind)}/c", headers=TABLE).json()
    table = ours(served, obj)
    differences = {
        header[0]: (mine, theirs)
        for header, mine, theirs in zip(
            headers(real)[1:], masked(table["rows"][0]["cells"])[1:], masked(real["rows"][0]["cells"])[1:], strict=True
        )
        if mine != theirs
        or isinstance(mine, bool) is not isinstance(theirs, bool)  # 1e20 may be written with all its digits
    }
    assert differences == {}
    assert_same_table(table, real)


def established(admin: httpx.Client, manifest: dict[str, Any]) -> dict[str, Any]:
    """Create the definition and wait, by watching, until the server serves it."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    answer = admin.post(path, json=manifest)
    assert answer.status_code == 201, answer.text
    name = manifest["metadata"]["name"]
    query = {"watch": "true", "fieldSelector": f"metadata.name={name}", "timeoutSeconds": "30"}
    with admin.stream("GET", path, params=query, timeout=40) as events:
        for line in events.iter_lines():
            if '"Established","status":"True"' in line:
                break
    plural, _, group = name.partition(".")
    for _ in range(200):
        if admin.get(f"/apis/{group}/v1/{plural}").status_code == 200:
            break
    definition: dict[str, Any] = admin.get(f"{path}/{name}").json()
    return definition


def test_status_of_a_definition_reads_the_same(admin: httpx.Client) -> None:
    manifest = default_crd(crd("gadgets", "Gadget", "status.example.com"))
    real = established(admin, manifest)["status"]
    mine = crd_status(manifest, Catalog.build(()), datetime.now(UTC))
    assert mine["acceptedNames"] == real["acceptedNames"]
    assert mine["storedVersions"] == real["storedVersions"]

    def condition_facts(status: dict[str, Any]) -> set[tuple[str, ...]]:
        return {tuple(entry[key] for key in ("type", "status", "reason", "message")) for entry in status["conditions"]}

    assert condition_facts(mine) == condition_facts(real)


def test_discovery_of_native_groups_reads_the_same(admin: httpx.Client) -> None:
    discovery = Discovery(Catalog.build(NATIVES))
    for group, version in sorted({(kind.group, kind.version) for kind in NATIVES}):
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        answer, real = discovery.answer(path), admin.get(path).json()
        assert answer is not None
        mine = httpx.Response(200, content=answer.body).json()
        assert {key: value for key, value in mine.items() if key != "resources"} == {
            key: value for key, value in real.items() if key != "resources"
        }
        rows = {row["name"]: row for row in real["resources"]}
        for row in mine["resources"]:
            if row["name"] == STORED_OLD:
                row["storageVersionHash"] = rows[STORED_OLD]["storageVersionHash"]
            assert {**row, "verbs": sorted(row["verbs"])} == {
                **rows[row["name"]],
                "verbs": sorted(rows[row["name"]]["verbs"]),
            }


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_aggregated_discovery_reads_the_same(admin: httpx.Client, path: str) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    answer, real = Discovery(Catalog.build(NATIVES)).answer(path, accept), admin.get(path, headers={"Accept": accept})
    assert answer is not None
    assert answer.content_type == real.headers["Content-Type"]
    mine = httpx.Response(200, content=answer.body).json()
    assert {key: mine[key] for key in ("kind", "apiVersion", "metadata")} == {
        key: real.json()[key] for key in ("kind", "apiVersion", "metadata")
    }
    groups = {item["metadata"].get("name"): item for item in real.json()["items"]}
    order = [name for name in groups if name in {item["metadata"].get("name") for item in mine["items"]}]
    assert [item["metadata"].get("name") for item in mine["items"]] == order
    for item in mine["items"]:
        there = {entry["version"]: entry for entry in groups[item["metadata"].get("name")]["versions"]}
        for version in item["versions"]:
            rows = {row["resource"]: row for row in there[version["version"]]["resources"]}
            for row in version["resources"]:
                assert row == rows[row["resource"]]


def test_lists_and_watches_have_tables_of_the_same_form(admin: httpx.Client) -> None:
    kind = native("coordination.k8s.io", "leases")
    for name in ("list-a", "list-b", "list-c"):
        create(admin, kind, name, {"metadata": {"labels": {"form": "list"}}, "spec": {"holderIdentity": name}})
    query = {"labelSelector": "form=list"}
    answer = admin.get(collection(kind), headers=TABLE, params=query)
    assert answer.headers["Content-Type"] == "application/json"
    real, plain = answer.json(), admin.get(collection(kind), params=query).json()
    objects = [{"apiVersion": kind.api_version, "kind": kind.kind, **listed} for listed in plain["items"]]
    meta = ListMeta(real["metadata"]["resourceVersion"])
    mine = render_table(Served(kind).printer, objects, TableRequest(), meta, datetime.now(UTC))
    assert headers(mine) == headers(real)
    assert [masked(row["cells"]) for row in mine["rows"]] == [masked(row["cells"]) for row in real["rows"]]
    assert [row["object"] for row in mine["rows"]] == [row["object"] for row in real["rows"]]
    assert mine["metadata"] == real["metadata"]

    watch = {**query, "watch": "true", "timeoutSeconds": "1"}
    with admin.stream("GET", collection(kind), headers=TABLE, params=watch) as events:
        tables = [httpx.Response(200, content=line).json()["object"] for line in events.iter_lines()]
    assert len(tables) == 3
    for index, (obj, table) in enumerate(zip(objects, tables, strict=True)):
        meta = ListMeta(obj["metadata"]["resourceVersion"])
        row_table = render_table(
            Served(kind).printer, [obj], TableRequest(), meta, datetime.now(UTC), headers=index == 0
        )
        assert headers(row_table) == headers({"columnDefinitions": table["columnDefinitions"] or []})
        assert row_table["metadata"] == table["metadata"]
        assert [row["object"] for row in row_table["rows"]] == [row["object"] for row in table["rows"]]


@pytest.mark.parametrize("form", ["Table", "PartialObjectMetadataList"])
async def test_other_forms_are_plain_json_in_both_worlds(
    admin: httpx.Client, embedded_server: Embedded, form: str
) -> None:
    accept = {"Accept": f"application/json;as={form};v=v1;g=meta.k8s.io"}
    watched = {"watch": "true", "timeoutSeconds": "1"}
    real = await asyncio.to_thread(admin.get, "/api/v1/namespaces", headers=accept)
    real_stream = await asyncio.to_thread(admin.get, "/api/v1/namespaces", headers=accept, params=watched)
    async with embedded_server.client() as client:
        mine = await client.get("/api/v1/namespaces", headers=accept)
        stream = await client.get("/api/v1/namespaces", headers=accept, params=watched)
    assert mine.headers["Content-Type"] == real.headers["Content-Type"]
    assert stream.headers["Content-Type"] == real_stream.headers["Content-Type"]
    assert (mine.json()["kind"], mine.json()["apiVersion"]) == (real.json()["kind"], real.json()["apiVersion"])


def test_a_page_of_a_table_says_what_is_left(admin: httpx.Client) -> None:
    kind = native("", "configmaps")
    for name in ("page-a", "page-b"):
        create(admin, kind, name, {})
    real = admin.get(collection(kind), headers=TABLE, params={"limit": "1"}).json()["metadata"]
    assert set(ListMeta("1", "token", 1).to_json()) == set(real)


@pytest.mark.parametrize("include", ["None", "Metadata", "Object"])
def test_rows_carry_what_include_object_asks(admin: httpx.Client, include: str) -> None:
    kind = native("", "configmaps")
    obj = create(admin, kind, f"include-{include.lower()}", {"data": {"a": "b"}})
    path = f"{collection(kind)}/{obj['metadata']['name']}"
    real = admin.get(path, headers=TABLE, params={"includeObject": include}).json()
    mine = render_table(
        Served(kind).printer, [obj], TableRequest(include=Include(include)), ListMeta(), datetime.now(UTC)
    )
    assert mine["rows"][0]["object"] == real["rows"][0]["object"]
