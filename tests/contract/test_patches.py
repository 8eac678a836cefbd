"""Merge and JSON patches, conditions on versions, status, and fields that nobody here knows."""

from __future__ import annotations

import pytest

from fastness.kube.errors import ApiError, BadRequest, Conflict, Invalid, NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions
from tests.contract.kinds import CONFIG_MAP, POOL, TICKET, VALUES, config_map, pool, ticket, value_set

STATUS = WriteOptions(subresource="status")


async def test_merge_patch_changes_adds_and_removes(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAP, config_map(namespace, "one", {"keep": "1", "change": "2", "drop": "3"}))
    patch = {"data": {"change": "x", "drop": None, "new": "y"}}
    after = await cluster.patch(CONFIG_MAP, "one", patch, PatchType.MERGE, namespace)
    assert after["data"] == {"keep": "1", "change": "x", "new": "y"}
    assert await cluster.get(CONFIG_MAP, "one", namespace) == after


async def test_every_change_moves_the_version_and_only_spec_changes_the_generation(
    cluster: Cluster, unique: str
) -> None:
    made = await cluster.create(POOL, pool(unique))
    labelled = await cluster.patch(POOL, unique, {"metadata": {"labels": {"a": "b"}}}, PatchType.MERGE)
    paused = await cluster.patch(POOL, unique, {"spec": {"paused": True}}, PatchType.MERGE)
    versions = [int(obj["metadata"]["resourceVersion"]) for obj in (made, labelled, paused)]
    assert versions == sorted(set(versions))
    assert [obj["metadata"]["generation"] for obj in (made, labelled, paused)] == [1, 1, 2]


async def test_a_patch_that_changes_nothing_keeps_the_version(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(CONFIG_MAP, config_map(namespace, "one", {"a": "1"}))
    again = await cluster.patch(CONFIG_MAP, "one", {"data": {"a": "1"}}, PatchType.MERGE, namespace)
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_a_patch_with_the_present_version_passes(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(CONFIG_MAP, config_map(namespace, "one"))
    patch = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"a": "2"}}
    assert (await cluster.patch(CONFIG_MAP, "one", patch, PatchType.MERGE, namespace))["data"] == {"a": "2"}


async def test_a_patch_with_an_old_version_conflicts_and_changes_nothing(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(CONFIG_MAP, config_map(namespace, "one", {"a": "1"}))
    now = await cluster.patch(CONFIG_MAP, "one", {"data": {"a": "2"}}, PatchType.MERGE, namespace)
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"a": "3"}}
    with pytest.raises(Conflict) as caught:
        await cluster.patch(CONFIG_MAP, "one", stale, PatchType.MERGE, namespace)
    assert caught.value.name == "one"
    assert "the object has been modified" in caught.value.message
    assert await cluster.get(CONFIG_MAP, "one", namespace) == now


async def test_a_patch_with_another_uid_is_refused(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAP, config_map(namespace, "one"))
    patch = {"metadata": {"uid": "00000000-0000-4000-8000-000000000000"}}
    with pytest.raises(Invalid) as caught:
        await cluster.patch(CONFIG_MAP, "one", patch, PatchType.MERGE, namespace)
    assert {cause.field for cause in caught.value.causes} == {"metadata.uid"}


async def test_json_patch_tests_and_edits_in_order(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAP, config_map(namespace, "one", {"a": "1"}))
    patch = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "replace", "path": "/data/a", "value": "2"},
        {"op": "add", "path": "/data/b", "value": "3"},
    ]
    assert (await cluster.patch(CONFIG_MAP, "one", patch, PatchType.JSON, namespace))["data"] == {"a": "2", "b": "3"}


async def test_a_json_patch_whose_test_fails_changes_nothing(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(CONFIG_MAP, config_map(namespace, "one", {"a": "1"}))
    patch = [{"op": "replace", "path": "/data/a", "value": "2"}, {"op": "test", "path": "/data/a", "value": "9"}]
    with pytest.raises(Invalid):
        await cluster.patch(CONFIG_MAP, "one", patch, PatchType.JSON, namespace)
    assert await cluster.get(CONFIG_MAP, "one", namespace) == made


async def test_a_json_patch_that_is_no_list_is_a_bad_request(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAP, config_map(namespace, "one"))
    with pytest.raises(BadRequest):
        await cluster.patch(CONFIG_MAP, "one", {"op": "add"}, PatchType.JSON, namespace)


async def test_strategic_patch_merges_lists_of_native_kinds_by_key(cluster: Cluster, namespace: str) -> None:
    owner = await cluster.create(CONFIG_MAP, config_map(namespace, "owner"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    await cluster.create(CONFIG_MAP, config_map(namespace, "one", ownerReferences=[reference]))
    patch = {"metadata": {"ownerReferences": [{"uid": reference["uid"], "blockOwnerDeletion": True}]}}
    after = await cluster.patch(CONFIG_MAP, "one", patch, PatchType.STRATEGIC, namespace)
    assert after["metadata"]["ownerReferences"] == [{**reference, "blockOwnerDeletion": True}]


async def test_strategic_patches_of_custom_kinds_are_refused(cluster: Cluster, unique: str) -> None:
    await cluster.create(TICKET, ticket(unique))
    with pytest.raises(ApiError) as caught:
        await cluster.patch(TICKET, unique, {"metadata": {"labels": {"a": "b"}}}, PatchType.STRATEGIC)
    assert caught.value.code == 415


async def test_a_patch_of_a_missing_object_is_not_found(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(NotFound):
        await cluster.patch(CONFIG_MAP, "absent", {"data": {}}, PatchType.MERGE, namespace)


async def test_a_patch_is_validated(cluster: Cluster, unique: str) -> None:
    await cluster.create(TICKET, ticket(unique))
    with pytest.raises(Invalid) as caught:
        await cluster.patch(TICKET, unique, {"spec": {"uses": 5000}}, PatchType.MERGE)
    assert [cause.field for cause in caught.value.causes] == ["spec.uses"]


async def test_immutable_fields_stay(cluster: Cluster, unique: str) -> None:
    await cluster.create(TICKET, ticket(unique))
    with pytest.raises(Invalid):
        await cluster.patch(TICKET, unique, {"spec": {"pool": "other"}}, PatchType.MERGE)


async def test_a_patch_cannot_rename_an_object(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAP, config_map(namespace, "one"))
    with pytest.raises((BadRequest, Invalid)):
        await cluster.patch(CONFIG_MAP, "one", {"metadata": {"name": "two"}}, PatchType.MERGE, namespace)


async def test_a_dry_run_patch_answers_with_the_change_and_keeps_nothing(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(CONFIG_MAP, config_map(namespace, "one", {"a": "1"}))
    options = WriteOptions(dry_run=True)
    tried = await cluster.patch(CONFIG_MAP, "one", {"data": {"a": "2"}}, PatchType.MERGE, namespace, options)
    assert tried["data"] == {"a": "2"}
    assert await cluster.get(CONFIG_MAP, "one", namespace) == made


async def test_status_is_written_through_its_own_door_only(cluster: Cluster, unique: str) -> None:
    made = await cluster.create(POOL, pool(unique))
    ignored = await cluster.patch(POOL, unique, {"status": {"machineCount": 1}}, PatchType.MERGE)
    assert "status" not in ignored
    patch = {"status": {"machineCount": 2}, "spec": {"paused": True}}
    after = await cluster.patch(POOL, unique, patch, PatchType.MERGE, options=STATUS)
    assert after["status"] == {"machineCount": 2}
    assert after["spec"] == made["spec"]
    assert after["metadata"]["generation"] == 1


async def test_status_is_validated(cluster: Cluster, unique: str) -> None:
    await cluster.create(POOL, pool(unique))
    with pytest.raises(Invalid) as caught:
        await cluster.patch(POOL, unique, {"status": {"machineCount": "two"}}, PatchType.MERGE, options=STATUS)
    # Rules between fields are not asked about a value of the wrong type, and that is told beside it.
    assert [cause.field for cause in caught.value.causes] == ["status.machineCount", "<nil>"]


async def test_a_status_patch_with_an_old_version_conflicts(cluster: Cluster, unique: str) -> None:
    made = await cluster.create(POOL, pool(unique))
    await cluster.patch(POOL, unique, {"spec": {"paused": True}}, PatchType.MERGE)
    patch = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "status": {"machineCount": 1}}
    with pytest.raises(Conflict):
        await cluster.patch(POOL, unique, patch, PatchType.MERGE, options=STATUS)


async def test_status_of_a_kind_without_it_is_not_found(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAP, config_map(namespace, "one"))
    with pytest.raises(NotFound):
        await cluster.patch(CONFIG_MAP, "one", {"status": {}}, PatchType.MERGE, namespace, STATUS)


async def test_fields_of_others_survive_a_patch(cluster: Cluster, unique: str) -> None:
    body = value_set(unique, ("pcr4", "00"), ("pcr7", "11"))
    body["metadata"] |= {"labels": {"theirs": "1"}, "annotations": {"note": "kept"}}
    body["spec"]["validity"] = {"notBefore": "2026-01-01T00:00:00Z"}
    made = await cluster.create(VALUES, body)
    after = await cluster.patch(VALUES, unique, {"metadata": {"labels": {"ours": "1"}}}, PatchType.MERGE)
    assert after["spec"] == made["spec"]
    assert after["metadata"]["annotations"] == {"note": "kept"}
    assert after["metadata"]["labels"] == {"theirs": "1", "ours": "1"}
