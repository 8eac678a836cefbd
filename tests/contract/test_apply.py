"""Server-side apply: ownership of fields, conflicts, force, and giving fields up."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kube.errors import BadRequest, Conflict, Invalid
from fastness.kube.port import Cluster, PatchType, WriteOptions
from tests.contract.kinds import CONFIG_MAP, POOL, VALUES, config_map, pool, value_set


async def apply(cluster: Cluster, obj: JsonObject, manager: str, **options: Any) -> JsonObject:
    """Apply a ConfigMap as a manager."""
    meta = obj["metadata"]
    choice = WriteOptions(manager=manager, **options)
    return await cluster.patch(CONFIG_MAP, meta["name"], obj, PatchType.APPLY, meta["namespace"], choice)


async def test_apply_creates_what_is_not_there(cluster: Cluster, namespace: str) -> None:
    made = await apply(cluster, config_map(namespace, "one", {"a": "1"}), "ann")
    assert await cluster.get(CONFIG_MAP, "one", namespace) == made
    assert [(entry["manager"], entry["operation"]) for entry in made["metadata"]["managedFields"]] == [("ann", "Apply")]


async def test_apply_of_the_same_again_changes_nothing(cluster: Cluster, namespace: str) -> None:
    first = await apply(cluster, config_map(namespace, "one", {"a": "1"}), "ann")
    again = await apply(cluster, config_map(namespace, "one", {"a": "1"}), "ann")
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_apply_removes_what_its_manager_no_longer_names(cluster: Cluster, namespace: str) -> None:
    await apply(cluster, config_map(namespace, "one", {"a": "1", "b": "2"}), "ann")
    after = await apply(cluster, config_map(namespace, "one", {"a": "1"}), "ann")
    assert after["data"] == {"a": "1"}


async def test_managers_keep_their_own_fields(cluster: Cluster, namespace: str) -> None:
    await apply(cluster, config_map(namespace, "one", {"a": "1"}), "ann")
    after = await apply(cluster, config_map(namespace, "one", {"b": "2"}), "bob")
    assert after["data"] == {"a": "1", "b": "2"}


async def test_another_managers_field_conflicts_and_the_causes_name_it(cluster: Cluster, namespace: str) -> None:
    await apply(cluster, config_map(namespace, "one", {"a": "1"}), "ann")
    with pytest.raises(Conflict) as caught:
        await apply(cluster, config_map(namespace, "one", {"a": "2"}), "bob")
    assert [(cause.field, cause.reason) for cause in caught.value.causes] == [(".data.a", "FieldManagerConflict")]
    assert caught.value.causes[0].message.startswith('conflict with "ann"')
    assert (await cluster.get(CONFIG_MAP, "one", namespace))["data"] == {"a": "1"}


async def test_the_same_value_from_two_managers_is_no_conflict(cluster: Cluster, namespace: str) -> None:
    await apply(cluster, config_map(namespace, "one", {"a": "1"}), "ann")
    await apply(cluster, config_map(namespace, "one", {"a": "1"}), "bob")
    after = await apply(cluster, config_map(namespace, "one", {"x": "1"}), "ann")
    assert after["data"] == {"a": "1", "x": "1"}, "bob still owns a"


async def test_force_takes_the_field_over(cluster: Cluster, namespace: str) -> None:
    await apply(cluster, config_map(namespace, "one", {"a": "1"}), "ann")
    after = await apply(cluster, config_map(namespace, "one", {"a": "2"}), "bob", force=True)
    assert after["data"] == {"a": "2"}
    with pytest.raises(Conflict):
        await apply(cluster, config_map(namespace, "one", {"a": "1"}), "ann")


async def test_a_patch_takes_ownership_from_an_apply(cluster: Cluster, namespace: str) -> None:
    await apply(cluster, config_map(namespace, "one", {"a": "1"}), "ann")
    await cluster.patch(
        CONFIG_MAP, "one", {"data": {"a": "2"}}, PatchType.MERGE, namespace, WriteOptions(manager="bob")
    )
    with pytest.raises(Conflict) as caught:
        await apply(cluster, config_map(namespace, "one", {"a": "3"}), "ann")
    assert 'conflict with "bob"' in caught.value.causes[0].message


async def test_apply_with_an_old_version_conflicts(cluster: Cluster, namespace: str) -> None:
    made = await apply(cluster, config_map(namespace, "one", {"a": "1"}), "ann")
    await apply(cluster, config_map(namespace, "one", {"b": "1"}), "bob")
    stale = config_map(namespace, "one", {"a": "2"}, resourceVersion=made["metadata"]["resourceVersion"])
    with pytest.raises(Conflict):
        await apply(cluster, stale, "ann")


async def test_apply_as_a_dry_run_keeps_nothing(cluster: Cluster, namespace: str) -> None:
    made = await apply(cluster, config_map(namespace, "one", {"a": "1"}), "ann")
    tried = await apply(cluster, config_map(namespace, "one", {"a": "2"}), "ann", dry_run=True)
    assert tried["data"] == {"a": "2"}
    assert await cluster.get(CONFIG_MAP, "one", namespace) == made


async def test_apply_needs_kind_and_version(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(BadRequest):
        await cluster.patch(CONFIG_MAP, "one", {"data": {"a": "1"}}, PatchType.APPLY, namespace)


async def test_apply_refuses_managed_fields(cluster: Cluster, namespace: str) -> None:
    body = config_map(namespace, "one", managedFields=[{"manager": "x", "operation": "Apply", "apiVersion": "v1"}])
    with pytest.raises(BadRequest):
        await apply(cluster, body, "ann")


async def test_apply_merges_keyed_lists_of_custom_kinds_item_by_item(cluster: Cluster, unique: str) -> None:
    for manager, item in (("ann", ("pcr4", "00")), ("bob", ("pcr7", "11"))):
        body = value_set(unique, item)
        after = await cluster.patch(VALUES, unique, body, PatchType.APPLY, options=WriteOptions(manager=manager))
    assert [(value["name"], value["value"]) for value in after["spec"]["values"]] == [("pcr4", "00"), ("pcr7", "11")]
    gone = {**value_set(unique), "spec": {"source": "manual", "values": []}}
    after = await cluster.patch(VALUES, unique, gone, PatchType.APPLY, options=WriteOptions(manager="ann"))
    assert [value["name"] for value in after["spec"]["values"]] == ["pcr7"]


async def test_apply_of_status_owns_status_only(cluster: Cluster, unique: str) -> None:
    await cluster.create(POOL, pool(unique), WriteOptions(manager="user"))
    body = {
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
        "metadata": {"name": unique}, "status": {"machineCount": 4},
    }  # fmt: skip
    options = WriteOptions(manager="rollout", subresource="status")
    after = await cluster.patch(POOL, unique, body, PatchType.APPLY, options=options)
    assert after["status"] == {"machineCount": 4}
    entries = {(entry["manager"], entry.get("subresource", "")) for entry in after["metadata"]["managedFields"]}
    assert entries == {("user", ""), ("rollout", "status")}


async def test_apply_is_validated(cluster: Cluster, unique: str) -> None:
    body = value_set(unique, ("pcr4", "00"))
    body["spec"]["source"] = "guess"
    with pytest.raises(Invalid) as caught:
        await cluster.patch(VALUES, unique, body, PatchType.APPLY)
    assert "spec.source" in {cause.field for cause in caught.value.causes}
