"""Asking for the pods of a node gives what reading all of them would give, whatever happened before."""

from __future__ import annotations

import random

import pytest

from fastness.apiserver.verbs import reads, selection
from fastness.apiserver.verbs.reads import ListQuery
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.registry import find
from fastness.kube.errors import NotFound
from fastness.kube.port import DeleteOptions, PatchType, Scope
from tests.embedded.fixtures import Embedded

PODS = find("", "v1", "pods").resource
NAMESPACES = find("", "v1", "namespaces").resource
NODES = ("a", "b", "")


def pod(name: str, namespace: str, node: str) -> JsonObject:
    spec: JsonObject = {"containers": [{"name": "c", "image": "i"}], **({"nodeName": node} if node else {})}
    meta = {"name": name, "namespace": namespace, "labels": {"app": name[-1]}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def pods_on(embedded: Embedded, namespace: str, labels: str, node: str) -> list[bytes]:
    api = embedded.server.api
    served = api.served("", "v1", "pods")
    chosen = selection.parse(served.kind, namespace, labels, f"spec.nodeName={node}")
    indexed = api.list(served, chosen, ListQuery())
    scanned = reads.list_objects(api.store, served, chosen, ListQuery())
    assert (list(indexed.bodies), indexed.revision) == (list(scanned.bodies), scanned.revision)
    return list(indexed.bodies)


@pytest.mark.parametrize("seed", range(3))
async def test_the_index_never_differs_from_a_scan(embedded_server: Embedded, seed: int) -> None:
    chance, cluster = random.Random(seed), embedded_server.cluster
    await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    for step in range(60):
        name, namespace = f"pod-{chance.randrange(8)}", chance.choice(("default", "other"))
        try:
            stored = await cluster.get(PODS, name, namespace)
        except NotFound:
            await cluster.create(PODS, pod(name, namespace, chance.choice(NODES)))
        else:
            if chance.random() < 0.6:
                await cluster.delete(PODS, name, namespace, DeleteOptions(grace_seconds=0))
            else:
                patch = {
                    "metadata": {
                        "annotations": {"step": str(step)},
                        "resourceVersion": stored["metadata"]["resourceVersion"],
                    }
                }
                await cluster.patch(PODS, name, patch, PatchType.MERGE, namespace)
        for node in NODES:
            pods_on(embedded_server, chance.choice(("", "default", "other")), chance.choice(("", "app=1")), node)


async def test_a_pod_that_is_bound_appears_on_its_node_and_goes_with_it(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    assert pods_on(embedded_server, "", "", "a") == []
    await cluster.create(PODS, pod("one", "default", ""))
    assert pods_on(embedded_server, "", "", "a") == []
    target = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "one"},
        "target": {"kind": "Node", "name": "a"},
    }
    await cluster.connect(PODS, "one", "default", "binding", target)
    [body] = pods_on(embedded_server, "", "", "a")
    assert json.decode(body)["metadata"]["name"] == "one"
    page = await cluster.list(PODS, Scope(fields="spec.nodeName=a"))
    assert [entry["metadata"]["name"] for entry in page.items] == ["one"]
    await cluster.delete(PODS, "one", "default", DeleteOptions(grace_seconds=0))
    assert pods_on(embedded_server, "", "", "a") == []


async def test_pages_and_the_past_are_read_the_ordinary_way(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    for number in range(3):
        await cluster.create(PODS, pod(f"pod-{number}", "default", "a"))
    page = await cluster.list(PODS, Scope(fields="spec.nodeName=a"), limit=2)
    assert len(page.items) == 2
    rest = await cluster.list(PODS, Scope(fields="spec.nodeName=a"), limit=2, token=page.next)
    assert [entry["metadata"]["name"] for entry in rest.items] == ["pod-2"]
