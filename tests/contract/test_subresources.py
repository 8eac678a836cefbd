"""POST to what is not part of an object: evictions, bindings."""

from __future__ import annotations

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kinds.registry import find
from fastness.kube.errors import ApiError, BadRequest, Conflict, NotFound, TooManyRequests
from fastness.kube.port import Cluster, PatchType, WriteOptions
from tests.contract.kinds import CONFIG_MAP, POD, config_map

BUDGET = find("policy", "v1", "poddisruptionbudgets").resource


def pod(namespace: str, name: str) -> JsonObject:
    """A pod that nobody runs."""
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name, "labels": {"app": "x"}},
        "spec": {"containers": [{"name": "c", "image": "example.com/x"}]},
    }  # fmt: skip


def eviction(namespace: str, name: str) -> JsonObject:
    """What is posted to evict a pod."""
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": namespace, "name": name}}


def binding(namespace: str, name: str, node: str) -> JsonObject:
    """What is posted to place a pod."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"namespace": namespace, "name": name}, "target": target,
    }  # fmt: skip


async def test_an_eviction_deletes_the_pod(cluster: Cluster, namespace: str) -> None:
    await cluster.create(POD, pod(namespace, "one"))
    answer = await cluster.connect(POD, "one", namespace, "eviction", eviction(namespace, "one"))
    assert (answer["kind"], answer["status"]) == ("Status", "Success")
    with pytest.raises(NotFound):
        await cluster.get(POD, "one", namespace)


async def test_a_budget_without_room_blocks_an_eviction(cluster: Cluster, namespace: str) -> None:
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"namespace": namespace, "name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}},
    }  # fmt: skip
    await cluster.create(BUDGET, budget)
    await cluster.create(POD, pod(namespace, "one"))
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await cluster.patch(POD, "one", ready, PatchType.MERGE, namespace, WriteOptions(subresource="status"))
    with pytest.raises(TooManyRequests) as caught:
        await cluster.connect(POD, "one", namespace, "eviction", eviction(namespace, "one"))
    assert [cause.reason for cause in caught.value.causes] == ["DisruptionBudget"]
    await cluster.get(POD, "one", namespace)


async def test_a_binding_places_a_pod_once(cluster: Cluster, namespace: str) -> None:
    await cluster.create(POD, pod(namespace, "one"))
    await cluster.connect(POD, "one", namespace, "binding", binding(namespace, "one", "node-1"))
    placed = await cluster.get(POD, "one", namespace)
    assert placed["spec"]["nodeName"] == "node-1"
    with pytest.raises(Conflict):
        await cluster.connect(POD, "one", namespace, "binding", binding(namespace, "one", "node-2"))


async def test_an_eviction_of_a_missing_pod_is_not_found(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(NotFound):
        await cluster.connect(POD, "absent", namespace, "eviction", eviction(namespace, "absent"))


async def test_an_eviction_of_another_name_is_refused(cluster: Cluster, namespace: str) -> None:
    await cluster.create(POD, pod(namespace, "one"))
    with pytest.raises(BadRequest):
        await cluster.connect(POD, "one", namespace, "eviction", eviction(namespace, "two"))


async def test_a_subresource_that_does_not_exist_is_not_found(cluster: Cluster, namespace: str) -> None:
    await cluster.create(CONFIG_MAP, config_map(namespace, "one"))
    with pytest.raises(ApiError) as caught:
        await cluster.connect(CONFIG_MAP, "one", namespace, "eviction", {})
    assert caught.value.code == 404
