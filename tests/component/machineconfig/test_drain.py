"""Drains rest on what a node says at the moment of the write: a withdrawn config neither cordons nor empties anything."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE, POD
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import ObjectName, annotations_of
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import PatchType
from fastness.machineconfig.loops.updates.drain import Drains
from fastness.runtime.clock import SystemClock
from tests.embedded.fixtures import Embedded
from tests.virtual import SeededEntropy

OLD, NEW = "rendered-worker-old", "rendered-worker-new"
KEY = ObjectName("", "a")


async def _node(embedded: Embedded, *, desired: str, drain: str, **spec: Any) -> None:
    notes = {names.CURRENT_CONFIG: OLD, names.DESIRED_CONFIG: desired, names.DESIRED_DRAIN: drain}
    node: JsonObject = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a", "annotations": notes},
        "spec": spec,
    }
    await embedded.cluster.create(NODE.resource, node)
    pod = {"nodeName": "a", "containers": [{"name": "c", "image": "i"}]}
    meta = {"name": "web", "namespace": "default"}
    await embedded.cluster.create(POD.resource, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod})


async def _reconciled(embedded: Embedded, cluster: Any = None, times: int = 3) -> JsonObject:
    """The node after the loop looked at it a few times."""
    async with Informers(embedded.cluster, clock=SystemClock(), entropy=SeededEntropy()) as informers:
        drains = Drains(cluster or embedded.cluster, informers, SystemClock())
        for _ in range(times):
            await drains.reconcile(KEY)
    return await embedded.cluster.get(NODE.resource, "a")


async def test_a_drain_for_a_config_that_is_not_desired_any_more_is_not_carried_out(embedded_server: Embedded) -> None:
    await _node(embedded_server, desired=OLD, drain=f"drain-{NEW}")
    node = await _reconciled(embedded_server)
    assert "unschedulable" not in (node.get("spec") or {})
    assert names.LAST_APPLIED_DRAIN not in annotations_of(node)
    await embedded_server.cluster.get(POD.resource, "web", "default")


async def test_a_drain_for_the_desired_config_is_carried_out(embedded_server: Embedded) -> None:
    await _node(embedded_server, desired=NEW, drain=f"drain-{NEW}")
    node = await _reconciled(embedded_server)
    assert node["spec"]["unschedulable"] is True
    with pytest.raises(NotFound):
        await embedded_server.cluster.get(POD.resource, "web", "default")


class Meanwhile:
    """A cluster in which somebody changes the node right after it was read."""

    def __init__(self, embedded: Embedded, change: JsonObject) -> None:
        self._cluster, self._change = embedded.cluster, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> JsonObject:
        """The object as it was a moment ago."""
        earlier = await self._cluster.get(resource, name, namespace)
        if self._change and resource == NODE.resource:
            change, self._change = self._change, {}
            await self._cluster.patch(resource, name, {"metadata": {"annotations": change}}, PatchType.MERGE)
        return earlier


async def test_a_config_that_is_withdrawn_while_the_loop_looks_cordons_nothing(embedded_server: Embedded) -> None:
    await _node(embedded_server, desired=NEW, drain=f"drain-{NEW}")
    meanwhile = Meanwhile(embedded_server, {names.DESIRED_CONFIG: OLD})
    node = await _reconciled(embedded_server, meanwhile)
    assert "unschedulable" not in (node.get("spec") or {})
    await embedded_server.cluster.get(POD.resource, "web", "default")


async def test_a_node_that_asks_for_a_drain_again_is_not_put_back_to_work_for_what_it_asked_before(
    embedded_server: Embedded,
) -> None:
    await _node(embedded_server, desired=NEW, drain=f"uncordon-{OLD}", unschedulable=True)
    meanwhile = Meanwhile(embedded_server, {names.DESIRED_DRAIN: f"drain-{NEW}"})
    node = await _reconciled(embedded_server, meanwhile, times=1)
    assert node["spec"]["unschedulable"] is True
    assert names.LAST_APPLIED_DRAIN not in annotations_of(node)
