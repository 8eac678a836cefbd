"""What the server checks and guards in metadata, and in requests that make no sense."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kube.errors import ApiError, BadRequest, Forbidden, Invalid, NotFound, Timeout
from fastness.kube.port import Cluster, PatchType, Scope
from tests.contract.kinds import CONFIG_MAP, NAMESPACE, TICKET, config_map, ticket

FUTURE = "999999999999"


@pytest.mark.parametrize(
    ("meta", "field"),
    [
        ({"labels": {"a b": "x"}}, "metadata.labels"),
        ({"labels": {"a": "x y"}}, "metadata.labels"),
        ({"labels": {"a": "x" * 64}}, "metadata.labels"),
        ({"annotations": {"a b": "x"}}, "metadata.annotations"),
        ({"annotations": {"a": "x" * 262145}}, "metadata.annotations"),
        ({"finalizers": ["not qualified!"]}, "metadata.finalizers"),
        ({"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": ""}]}, "metadata.ownerReferences"),
        ({"ownerReferences": [{"apiVersion": "v1", "kind": "", "name": "x", "uid": "u"}]}, "metadata.ownerReferences"),
    ],
)  # fmt: skip
async def test_bad_metadata_is_invalid_and_the_cause_says_where(
    cluster: Cluster, unique: str, meta: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as caught:
        await cluster.create(TICKET, ticket(unique, **meta))
    # A last cause may say that rules were not evaluated.
    assert caught.value.causes[0].field.startswith(field)


@pytest.mark.parametrize(
    "change", [{"generation": 99}, {"creationTimestamp": "2001-01-01T00:00:00Z"}, {"selfLink": "/x"}]
)
async def test_fields_of_the_server_are_not_for_clients(cluster: Cluster, unique: str, change: dict[str, Any]) -> None:
    made = await cluster.create(TICKET, ticket(unique, **change))
    assert made["metadata"]["generation"] == 1
    assert not made["metadata"]["creationTimestamp"].startswith("2001")
    after = await cluster.patch(TICKET, unique, {"metadata": {**change, "uid": None}}, PatchType.MERGE)
    assert {**after["metadata"], "managedFields": 0} == {**made["metadata"], "managedFields": 0}


@pytest.mark.parametrize(
    ("patch", "kind", "code"),
    [
        ([1, 2], PatchType.MERGE, 400),
        ("text", PatchType.MERGE, 400),
        ([{"op": "remove", "path": "/metadata/labels/absent"}], PatchType.JSON, 422),
        ([{"op": "replace", "path": "/nowhere/deep", "value": 1}], PatchType.JSON, 422),
        ({"metadata": {"labels": ["a"]}}, PatchType.MERGE, 422),
    ],
)
async def test_a_patch_that_makes_no_sense_is_refused(
    cluster: Cluster, namespace: str, patch: Any, kind: PatchType, code: int
) -> None:
    made = await cluster.create(CONFIG_MAP, config_map(namespace, "one"))
    with pytest.raises(ApiError) as caught:
        await cluster.patch(CONFIG_MAP, "one", patch, kind, namespace)
    assert caught.value.code == code
    assert await cluster.get(CONFIG_MAP, "one", namespace) == made


async def test_a_value_of_the_wrong_type_in_a_native_kind_is_a_bad_request(cluster: Cluster, namespace: str) -> None:
    body = config_map(namespace, "one")
    body["data"] = {"a": 1}
    with pytest.raises(BadRequest):
        await cluster.create(CONFIG_MAP, body)


async def test_a_list_from_the_future_times_out(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(Timeout, match="Too large resource version"):
        await cluster.list(CONFIG_MAP, Scope(namespace), version=FUTURE)


async def test_a_namespace_that_ends_takes_nothing_new(cluster: Cluster, unique: str) -> None:
    name = f"ending-{unique}"
    meta = {"name": name, "finalizers": ["example.com/hold"]}
    await cluster.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    ending = await cluster.delete(NAMESPACE, name)
    assert ending["status"]["phase"] == "Terminating"
    with pytest.raises(Forbidden) as caught:
        await cluster.create(CONFIG_MAP, config_map(name, "late"))
    assert [cause.reason for cause in caught.value.causes] == ["NamespaceTerminating"]
    await cluster.patch(NAMESPACE, name, {"metadata": {"finalizers": None}}, PatchType.MERGE)


async def test_a_namespace_starts_active_with_its_finalizer_and_its_label(cluster: Cluster, namespace: str) -> None:
    made = await cluster.get(NAMESPACE, namespace)
    assert made["status"]["phase"] == "Active"
    assert made["spec"]["finalizers"] == ["kubernetes"]
    assert made["metadata"]["labels"]["kubernetes.io/metadata.name"] == namespace


async def test_names_are_case_sensitive(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAP, config_map(namespace, "one"))
    with pytest.raises(NotFound):
        await cluster.get(CONFIG_MAP, "ONE", namespace)


async def test_an_immutable_config_map_stays_as_it_is(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAP, {**config_map(namespace, "one", {"a": "1"}), "immutable": True})
    with pytest.raises(Invalid):
        await cluster.patch(CONFIG_MAP, "one", {"data": {"a": "2"}}, PatchType.MERGE, namespace)
