"""Delete: conditions, finalizers, what is answered, and what namespaces do."""

from __future__ import annotations

import pytest

from fastness.kube.errors import Conflict, Forbidden, Invalid, NotFound
from fastness.kube.port import Cluster, DeleteOptions, PatchType, Propagation
from tests.contract.kinds import CONFIG_MAP, TICKET, config_map, ticket

HELD = ["example.com/hold"]
NOBODY = "00000000-0000-4000-8000-000000000000"


async def test_delete_removes_and_answers_with_a_status(cluster: Cluster, unique: str) -> None:
    made = await cluster.create(TICKET, ticket(unique))
    answer = await cluster.delete(TICKET, unique)
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    assert answer["details"]["uid"] == made["metadata"]["uid"]
    with pytest.raises(NotFound):
        await cluster.get(TICKET, unique)


async def test_delete_of_a_missing_object_is_not_found(cluster: Cluster, unique: str) -> None:
    with pytest.raises(NotFound):
        await cluster.delete(TICKET, unique)


async def test_delete_under_another_uid_conflicts(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAP, config_map(namespace, "one"))
    with pytest.raises(Conflict):
        await cluster.delete(CONFIG_MAP, "one", namespace, DeleteOptions(uid=NOBODY))
    await cluster.get(CONFIG_MAP, "one", namespace)


async def test_delete_at_an_old_version_conflicts(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(CONFIG_MAP, config_map(namespace, "one"))
    version = made["metadata"]["resourceVersion"]
    await cluster.patch(CONFIG_MAP, "one", {"data": {"a": "2"}}, PatchType.MERGE, namespace)
    with pytest.raises(Conflict):
        await cluster.delete(CONFIG_MAP, "one", namespace, DeleteOptions(resource_version=version))


async def test_delete_under_the_right_uid_and_version_passes(cluster: Cluster, namespace: str) -> None:
    meta = (await cluster.create(CONFIG_MAP, config_map(namespace, "one")))["metadata"]
    options = DeleteOptions(uid=meta["uid"], resource_version=meta["resourceVersion"])
    await cluster.delete(CONFIG_MAP, "one", namespace, options)
    with pytest.raises(NotFound):
        await cluster.get(CONFIG_MAP, "one", namespace)


async def test_a_dry_run_delete_keeps_the_object(cluster: Cluster, unique: str) -> None:
    made = await cluster.create(TICKET, ticket(unique))
    await cluster.delete(TICKET, unique, options=DeleteOptions(dry_run=True))
    assert await cluster.get(TICKET, unique) == made


async def test_a_finalizer_holds_a_deleted_object_and_marks_it(cluster: Cluster, unique: str) -> None:
    made = await cluster.create(TICKET, ticket(unique, finalizers=HELD))
    answer = await cluster.delete(TICKET, unique)
    held = await cluster.get(TICKET, unique)
    assert held["metadata"]["deletionTimestamp"]
    assert held["metadata"]["deletionGracePeriodSeconds"] == 0
    assert held["metadata"]["generation"] == made["metadata"]["generation"] + 1
    assert answer["metadata"]["deletionTimestamp"] == held["metadata"]["deletionTimestamp"]


async def test_removing_the_last_finalizer_removes_a_deleted_object(cluster: Cluster, unique: str) -> None:
    await cluster.create(TICKET, ticket(unique, finalizers=HELD))
    await cluster.delete(TICKET, unique)
    await cluster.patch(TICKET, unique, {"metadata": {"finalizers": None}}, PatchType.MERGE)
    with pytest.raises(NotFound):
        await cluster.get(TICKET, unique)


async def test_removing_a_finalizer_of_a_living_object_keeps_it(cluster: Cluster, unique: str) -> None:
    await cluster.create(TICKET, ticket(unique, finalizers=HELD))
    after = await cluster.patch(TICKET, unique, {"metadata": {"finalizers": None}}, PatchType.MERGE)
    assert "finalizers" not in after["metadata"]
    await cluster.get(TICKET, unique)


async def test_deleting_again_changes_nothing(cluster: Cluster, unique: str) -> None:
    await cluster.create(TICKET, ticket(unique, finalizers=HELD))
    await cluster.delete(TICKET, unique)
    first = await cluster.get(TICKET, unique)
    await cluster.delete(TICKET, unique)
    assert await cluster.get(TICKET, unique) == first


async def test_a_deleted_object_takes_no_new_finalizer(cluster: Cluster, unique: str) -> None:
    await cluster.create(TICKET, ticket(unique, finalizers=HELD))
    await cluster.delete(TICKET, unique)
    patch = {"metadata": {"finalizers": [*HELD, "example.com/late"]}}
    with pytest.raises((Forbidden, Invalid)) as caught:
        await cluster.patch(TICKET, unique, patch, PatchType.MERGE)
    assert caught.value.code == 422


async def test_a_deletion_cannot_be_taken_back(cluster: Cluster, unique: str) -> None:
    await cluster.create(TICKET, ticket(unique, finalizers=HELD))
    await cluster.delete(TICKET, unique)
    after = await cluster.patch(TICKET, unique, {"metadata": {"deletionTimestamp": None}}, PatchType.MERGE)
    assert after["metadata"]["deletionTimestamp"]


async def test_foreground_propagation_holds_the_owner_by_a_finalizer(cluster: Cluster, unique: str) -> None:
    await cluster.create(TICKET, ticket(unique, finalizers=HELD))
    await cluster.delete(TICKET, unique, options=DeleteOptions(propagation=Propagation.FOREGROUND))
    assert "foregroundDeletion" in (await cluster.get(TICKET, unique))["metadata"]["finalizers"]


async def test_orphan_propagation_holds_the_owner_by_a_finalizer(cluster: Cluster, unique: str) -> None:
    await cluster.create(TICKET, ticket(unique, finalizers=HELD))
    options = DeleteOptions(propagation=Propagation.ORPHAN, dry_run=True)
    answer = await cluster.delete(TICKET, unique, options=options)
    assert "orphan" in answer["metadata"]["finalizers"]


async def test_background_propagation_adds_no_finalizer(cluster: Cluster, unique: str) -> None:
    await cluster.create(TICKET, ticket(unique, finalizers=HELD))
    await cluster.delete(TICKET, unique, options=DeleteOptions(propagation=Propagation.BACKGROUND))
    assert (await cluster.get(TICKET, unique))["metadata"]["finalizers"] == HELD


async def test_a_name_is_free_again_after_its_object_is_gone(cluster: Cluster, unique: str) -> None:
    first = await cluster.create(TICKET, ticket(unique))
    await cluster.delete(TICKET, unique)
    second = await cluster.create(TICKET, ticket(unique))
    assert second["metadata"]["uid"] != first["metadata"]["uid"]
