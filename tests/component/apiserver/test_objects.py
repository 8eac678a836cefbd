"""Objects on the embedded API: what a write does, through the in-process adapter."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kinds.registry import find
from fastness.kube.errors import AlreadyExists, BadRequest, Conflict, Expired, Forbidden, Invalid, NotFound
from fastness.kube.port import DeleteOptions, EventType, PatchType, Propagation, Scope, WriteOptions
from tests.embedded.fixtures import Embedded

CONFIG_MAP = find("", "v1", "configmaps").resource
NAMESPACE = find("", "v1", "namespaces").resource
SECRET = find("", "v1", "secrets").resource
POOL = find("machineconfiguration.openshift.io", "v1", "machineconfigpools").resource
CRD = find("apiextensions.k8s.io", "v1", "customresourcedefinitions").resource


def config_map(name: str = "a", namespace: str = "default", **data: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def pool(name: str = "infra", **spec: Any) -> JsonObject:
    selector = {
        "matchExpressions": [{"key": "machineconfiguration.openshift.io/role", "operator": "In", "values": ["worker"]}]
    }
    return {
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool", "metadata": {"name": name},
        "spec": {"machineConfigSelector": selector, **spec},
    }  # fmt: skip


async def test_a_created_object_has_the_servers_fields(embedded_server: Embedded) -> None:
    made = await embedded_server.cluster.create(POOL, {**pool(), "status": {"machineCount": 9}})
    meta = made["metadata"]
    assert meta["uid"]
    assert meta["creationTimestamp"].endswith("Z")
    assert meta["generation"] == 1
    assert int(meta["resourceVersion"]) > 0
    assert "status" not in made, "status is written through its own subresource"
    assert [entry["manager"] for entry in meta["managedFields"]] == ["fastness"]


async def test_the_servers_fields_cannot_be_set_by_a_client(embedded_server: Embedded) -> None:
    sent = pool()
    sent["metadata"] |= {"uid": "mine", "generation": 7, "creationTimestamp": "2001-01-01T00:00:00Z"}
    made = await embedded_server.cluster.create(POOL, sent)
    assert made["metadata"]["uid"] != "mine"
    assert made["metadata"]["generation"] == 1
    assert made["metadata"]["creationTimestamp"] > "2025"


async def test_a_name_is_taken_once(embedded_server: Embedded) -> None:
    await embedded_server.cluster.create(CONFIG_MAP, config_map())
    with pytest.raises(AlreadyExists) as refused:
        await embedded_server.cluster.create(CONFIG_MAP, config_map())
    assert refused.value.name == "a"
    assert refused.value.kind == "configmaps"


async def test_of_two_creates_at_once_one_wins(embedded_server: Embedded) -> None:
    outcomes = await asyncio.gather(
        *(embedded_server.cluster.create(CONFIG_MAP, config_map()) for _ in range(8)), return_exceptions=True
    )
    assert sum(isinstance(outcome, dict) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, AlreadyExists) for outcome in outcomes) == 7


async def test_generation_counts_changes_of_the_spec_only(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    await cluster.create(POOL, pool())
    labelled = await cluster.patch(POOL, "infra", {"metadata": {"labels": {"a": "b"}}}, PatchType.MERGE)
    assert labelled["metadata"]["generation"] == 1
    paused = await cluster.patch(POOL, "infra", {"spec": {"paused": True}}, PatchType.MERGE)
    assert paused["metadata"]["generation"] == 2
    status = WriteOptions(subresource="status")
    counted = await cluster.patch(POOL, "infra", {"status": {"machineCount": 3}}, PatchType.MERGE, options=status)
    assert counted["metadata"]["generation"] == 2
    assert counted["status"]["machineCount"] == 3


async def test_status_and_spec_are_written_through_different_doors(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    await cluster.create(POOL, pool())
    ignored = await cluster.patch(POOL, "infra", {"status": {"machineCount": 3}}, PatchType.MERGE)
    assert "status" not in ignored
    status = WriteOptions(subresource="status")
    both = {"spec": {"paused": True}, "status": {"machineCount": 3}}
    written = await cluster.patch(POOL, "infra", both, PatchType.MERGE, options=status)
    assert not written["spec"].get("paused")
    assert written["status"]["machineCount"] == 3


async def test_a_change_that_changes_nothing_is_not_written(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    made = await cluster.create(CONFIG_MAP, config_map(x="y"))
    again = await cluster.patch(CONFIG_MAP, "a", {"data": {"x": "y"}}, PatchType.MERGE, "default")
    assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_a_patch_with_an_old_version_is_a_conflict(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    made = await cluster.create(CONFIG_MAP, config_map(x="1"))
    await cluster.patch(CONFIG_MAP, "a", {"data": {"x": "2"}}, PatchType.MERGE, "default")
    stale = {"metadata": {"resourceVersion": made["metadata"]["resourceVersion"]}, "data": {"x": "3"}}
    with pytest.raises(Conflict):
        await cluster.patch(CONFIG_MAP, "a", stale, PatchType.MERGE, "default")
    assert (await cluster.get(CONFIG_MAP, "a", "default"))["data"] == {"x": "2"}


async def test_a_patch_of_another_incarnation_is_refused(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    await cluster.create(CONFIG_MAP, config_map())
    with pytest.raises(Invalid):
        await cluster.patch(
            CONFIG_MAP, "a", {"metadata": {"uid": "other"}, "data": {"x": "y"}}, PatchType.MERGE, "default"
        )


async def test_every_problem_is_a_cause_with_its_field(embedded_server: Embedded) -> None:
    bad = pool(maxUnavailable="x%", paused="yes")
    bad["metadata"]["name"] = "Not A Name"
    with pytest.raises(Invalid) as refused:
        await embedded_server.cluster.create(POOL, bad)
    fields = {cause.field for cause in refused.value.causes}
    assert {"metadata.name", "spec.paused"} <= fields


async def test_unknown_fields_are_dropped_and_unknown_kinds_refused(embedded_server: Embedded) -> None:
    made = await embedded_server.cluster.create(POOL, pool(unheard="of"))
    assert "unheard" not in made["spec"]
    with pytest.raises(BadRequest, match="does not match"):
        await embedded_server.cluster.create(POOL, {**config_map(), "metadata": {"name": "x"}})


async def test_finalizers_hold_an_object_until_the_last_is_gone(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    held = config_map()
    held["metadata"]["finalizers"] = ["example.com/a", "example.com/b"]
    await cluster.create(CONFIG_MAP, held)
    marked = await cluster.delete(CONFIG_MAP, "a", "default")
    assert marked["metadata"]["deletionTimestamp"]
    less = {"metadata": {"finalizers": ["example.com/b"]}}
    assert await cluster.patch(CONFIG_MAP, "a", less, PatchType.MERGE, "default")
    with pytest.raises(Invalid):
        more = {"metadata": {"finalizers": ["example.com/b", "example.com/c"]}}
        await cluster.patch(CONFIG_MAP, "a", more, PatchType.MERGE, "default")
    await cluster.patch(CONFIG_MAP, "a", {"metadata": {"finalizers": None}}, PatchType.MERGE, "default")
    with pytest.raises(NotFound):
        await cluster.get(CONFIG_MAP, "a", "default")


async def test_a_delete_with_a_precondition_misses_another_incarnation(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    made = await cluster.create(CONFIG_MAP, config_map())
    with pytest.raises(Conflict):
        await cluster.delete(CONFIG_MAP, "a", "default", DeleteOptions(uid="another"))
    await cluster.delete(CONFIG_MAP, "a", "default", DeleteOptions(uid=made["metadata"]["uid"]))


async def test_propagation_is_left_to_the_collector_as_a_finalizer(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    for name, propagation, finalizer in (
        ("a", Propagation.FOREGROUND, "foregroundDeletion"),
        ("b", Propagation.ORPHAN, "orphan"),
    ):
        await cluster.create(CONFIG_MAP, config_map(name))
        marked = await cluster.delete(CONFIG_MAP, name, "default", DeleteOptions(propagation=propagation))
        assert marked["metadata"]["finalizers"] == [finalizer]


async def test_nothing_is_created_in_a_namespace_that_is_missing_or_going(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    with pytest.raises(NotFound):
        await cluster.create(CONFIG_MAP, config_map(namespace="nowhere"))
    await cluster.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "going"}})
    await cluster.delete(NAMESPACE, "going")
    assert (await cluster.get(NAMESPACE, "going"))["status"]["phase"] == "Terminating"
    with pytest.raises(Forbidden):
        await cluster.create(CONFIG_MAP, config_map(namespace="going"))


async def test_pages_are_consistent_while_objects_come_and_go(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    for number in range(10):
        await cluster.create(CONFIG_MAP, config_map(f"c{number}"))
    here = Scope("default")
    first = await cluster.list(CONFIG_MAP, here, limit=4)
    assert first.remaining == 6
    await cluster.delete(CONFIG_MAP, "c9", "default")
    await cluster.create(CONFIG_MAP, config_map("c5a"))
    names = [obj["metadata"]["name"] for obj in first.items]
    token = first.next
    while token:
        page = await cluster.list(CONFIG_MAP, here, limit=4, token=token)
        assert page.resource_version == first.resource_version
        names += [obj["metadata"]["name"] for obj in page.items]
        token = page.next
    assert names == [f"c{number}" for number in range(10)]


async def test_a_token_that_the_log_has_forgotten_is_expired_and_offers_another(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    for number in range(4):
        await cluster.create(CONFIG_MAP, config_map(f"c{number}"))
    first = await cluster.list(CONFIG_MAP, Scope("default"), limit=2)
    await cluster.create(CONFIG_MAP, config_map("z"))
    await embedded_server.server.api.store.compact()
    with pytest.raises(Expired) as refused:
        await cluster.list(CONFIG_MAP, Scope("default"), limit=2, token=first.next)
    rest = await cluster.list(CONFIG_MAP, Scope("default"), token=refused.value.continue_token)
    assert [obj["metadata"]["name"] for obj in rest.items] == ["c2", "c3", "z"]


async def test_a_watcher_sees_objects_enter_and_leave_its_selection(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    start = (await cluster.list(CONFIG_MAP)).resource_version
    chosen = {"metadata": {"labels": {"pick": "me"}}}
    await cluster.create(CONFIG_MAP, config_map())
    await cluster.patch(CONFIG_MAP, "a", chosen, PatchType.MERGE, "default")
    await cluster.patch(CONFIG_MAP, "a", {"data": {"x": "y"}}, PatchType.MERGE, "default")
    await cluster.patch(CONFIG_MAP, "a", {"metadata": {"labels": None}}, PatchType.MERGE, "default")
    changes = []
    async with cluster.watch(CONFIG_MAP, Scope(labels="pick=me"), since=start) as events:
        async for event in events:
            changes.append(event.type)
            if len(changes) == 3:
                break
    assert changes == [EventType.ADDED, EventType.MODIFIED, EventType.DELETED]


async def test_an_initial_watch_ends_its_state_with_a_bookmark(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    await cluster.create(CONFIG_MAP, config_map())
    async with cluster.watch(CONFIG_MAP, Scope("default"), initial=True) as events:
        first = await anext(events)
        mark = await anext(events)
    assert (first.type, first.object["metadata"]["name"]) == (EventType.ADDED, "a")
    assert (mark.type, mark.synced) == (EventType.BOOKMARK, True)


async def test_a_secret_is_sealed_on_disk_and_plain_in_answers(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    canary = "canary-8c1f4be2"
    secret = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"},
        "stringData": {"token": canary},
    }  # fmt: skip
    made = await cluster.create(SECRET, secret)
    assert "stringData" not in made
    assert made["data"]["token"]
    files = b"".join(path.read_bytes() for path in embedded_server.directory.glob("state.db*"))
    assert canary.encode() not in files
    assert made["data"]["token"].encode() not in files


async def test_a_built_in_definition_is_shown_and_cannot_be_changed(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    name = "machineconfigs.machineconfiguration.openshift.io"
    definition = await cluster.get(CRD, name)
    assert any(entry["type"] == "Established" for entry in definition["status"]["conditions"])
    with pytest.raises(Forbidden, match="built in"):
        await cluster.delete(CRD, name)
    with pytest.raises(Forbidden, match="built in"):
        await cluster.patch(CRD, name, {"spec": {"names": {"shortNames": ["x"]}}}, PatchType.MERGE)


async def test_a_users_definition_is_served_until_it_is_gone(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }  # fmt: skip
    await cluster.create(CRD, definition)
    served = embedded_server.server.api.served("example.com", "v1", "widgets")
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": "three"}}
    with pytest.raises(Invalid):
        await cluster.create(served.resource, widget)
    await cluster.create(served.resource, {**widget, "spec": {"size": 3}})
    await cluster.delete(CRD, "widgets.example.com")
    assert (await cluster.get(CRD, "widgets.example.com"))["metadata"]["deletionTimestamp"]
    assert (await cluster.get(served.resource, "w"))["spec"] == {"size": 3}
