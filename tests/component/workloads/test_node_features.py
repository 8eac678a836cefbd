"""Features and rules on Nodes: what they get, when it goes, who may write what, and bad input."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from fastness.agent.host.features import discover
from fastness.agent.host.host_tree import recorded
from fastness.agent.kata.features import node_feature, report
from fastness.apiserver import LocalCluster
from fastness.formats.yaml import load_documents
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.nfd.discovery import NODE_FEATURE_DISCOVERY
from fastness.kinds.nfd.feature import NODE_FEATURE, NODE_NAME_LABEL
from fastness.kinds.nfd.rule import NODE_FEATURE_RULE
from fastness.kube.access import User
from fastness.kube.access.user import AUTHENTICATED, NODE_PREFIX
from fastness.kube.access.user import NODES as NODE_GROUP
from fastness.kube.controllers.fenced import FencedCluster
from fastness.kube.controllers.runner import Runner
from fastness.kube.errors import Forbidden
from fastness.kube.events import EVENTS
from fastness.kube.informers import Informers
from fastness.kube.places import EMBEDDED
from fastness.kube.port import PatchType, WriteOptions
from fastness.runtime.clock import SystemClock
from fastness.workloads.features.discovered import Features
from fastness.workloads.features.ownership import LABELS, RESOURCES
from fastness.workloads.loops.features import NodeFeatures
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE
from tests.virtual import SeededEntropy

RULES = Path(__file__).parents[1] / "cli" / "data" / "tee-rules.yaml"
NAMESPACE = "openshift-nfd"
TDX = "intel.feature.node.kubernetes.io/tdx"
KEYS = "tdx.intel.com/keys"


class World:
    """A cluster with the loop running for real."""

    def __init__(self, embedded: Embedded) -> None:
        self.cluster = embedded.cluster
        self.store = embedded.server.api.store

    async def node(self, name: str, machine: str = "", **meta: Any) -> None:
        await self.cluster.create(
            NODE.resource, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **meta}}
        )
        if machine:
            await report(self.cluster, node_feature(name, discover(recorded(machine))))

    async def rules(self) -> None:
        for document in load_documents(RULES.read_bytes()):
            await self.rule(document.value)

    async def rule(self, obj: JsonObject) -> None:
        await self.cluster.create(NODE_FEATURE_RULE.resource, obj)

    async def discovery(self, **spec: Any) -> None:
        obj = {"apiVersion": "nfd.openshift.io/v1", "kind": "NodeFeatureDiscovery",
               "metadata": {"name": "nfd-instance", "namespace": NAMESPACE}, "spec": spec}  # fmt: skip
        await self.cluster.create(NODE_FEATURE_DISCOVERY.resource, obj)

    async def until(self, name: str, holds: Callable[[JsonObject], bool]) -> JsonObject:
        async with asyncio.timeout(PATIENCE):
            while not holds(node := await self.cluster.get(NODE.resource, name)):  # noqa: ASYNC110  # state, no event
                await asyncio.sleep(0.02)
        return node

    async def settled(self, marker: str) -> None:
        """The loop has done what was to do: it labels a machine that came later."""
        await self.node(marker, "tdx-host")
        await self.until(marker, lambda node: TDX in _labels(node))

    async def event(self, reason: str) -> JsonObject:
        async with asyncio.timeout(PATIENCE):
            while True:
                events = [event for event in (await self.cluster.list(EVENTS)).items if event["reason"] == reason]
                if events:
                    return events[0]
                await asyncio.sleep(0.02)


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[World]:
    """The loop over a fresh API."""
    here = World(embedded_server)
    async with _running(here):
        yield here


@asynccontextmanager
async def _running(here: World) -> AsyncIterator[None]:
    clock, entropy = SystemClock(), SeededEntropy(1)
    async with Informers(here.cluster, clock=clock, entropy=entropy, places=EMBEDDED) as informers:
        fenced = FencedCluster(here.cluster, NodeFeatures.name, NodeFeatures.writes)
        runner = Runner([NodeFeatures(fenced, informers, clock)], informers, clock=clock, entropy=entropy)
        task = asyncio.create_task(runner.run())
        yield
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _labels(node: JsonObject) -> dict[str, str]:
    return dict(node["metadata"].get("labels") or {})


async def test_nodes_get_labels_and_resources_and_lose_them_with_the_rule(world: World) -> None:
    await world.discovery()
    await world.rules()
    await world.node("a", "tdx-host", labels={"mine": "1"})
    node = await world.until("a", lambda node: TDX in _labels(node))
    assert node["status"]["capacity"][KEYS] == node["status"]["allocatable"][KEYS] == "31"
    assert _labels(node)["feature.node.kubernetes.io/cpu-security.tdx.enabled"] == "true"
    assert TDX in node["metadata"]["annotations"][LABELS].split(",")
    await world.cluster.delete(NODE_FEATURE_RULE.resource, "consolidated-hardware-features")
    node = await world.until("a", lambda node: TDX not in _labels(node))
    assert KEYS not in node["status"]["capacity"]
    assert _labels(node)["mine"] == "1"
    assert RESOURCES not in node["metadata"]["annotations"]


async def test_nothing_is_written_without_a_discovery_and_all_goes_with_the_last(world: World) -> None:
    await world.rules()
    await world.node("a", "snp-host")
    await asyncio.sleep(0.3)
    assert not any("feature.node" in name for name in _labels(await world.cluster.get(NODE.resource, "a")))
    await world.discovery()
    await world.until("a", lambda node: "amd.feature.node.kubernetes.io/snp" in _labels(node))
    await world.cluster.delete(NODE_FEATURE_DISCOVERY.resource, "nfd-instance", NAMESPACE)
    node = await world.until("a", lambda node: not any("feature.node" in name for name in _labels(node)))
    assert LABELS not in (node["metadata"].get("annotations") or {})


async def test_a_change_of_the_machine_relabels_it(world: World) -> None:
    await world.discovery()
    await world.rules()
    await world.node("a", "plain-vm")
    await world.until("a", lambda node: "feature.node.kubernetes.io/kernel-version.major" in _labels(node))
    await report(world.cluster, node_feature("a", discover(recorded("tdx-host"))))
    await world.until("a", lambda node: TDX in _labels(node))


async def test_at_rest_nothing_is_written(world: World) -> None:
    await world.discovery()
    await world.rules()
    await world.node("a", "h100-host")
    await world.until("a", lambda node: KEYS in (node.get("status", {}).get("capacity") or {}) and TDX in _labels(node))
    await world.settled("b")
    before = (await world.cluster.get(NODE.resource, "a"))["metadata"]["resourceVersion"]
    assert not await report(world.cluster, node_feature("a", discover(recorded("h100-host"))))
    await world.settled("c")
    assert (await world.cluster.get(NODE.resource, "a"))["metadata"]["resourceVersion"] == before


async def test_a_node_tells_about_itself_and_about_nobody_else(embedded_server: Embedded, world: World) -> None:
    for name in ("a", "b"):
        await world.node(name)
    host = LocalCluster(embedded_server.server.api, User(f"{NODE_PREFIX}a", (NODE_GROUP, AUTHENTICATED)))
    assert await report(host, node_feature("a", Features()))
    assert not await report(host, node_feature("a", Features()))
    lie = node_feature("b", Features())
    with pytest.raises(Forbidden, match="only the NodeFeature of its own name"):
        await host.create(NODE_FEATURE.resource, lie)
    with pytest.raises(Forbidden, match="may tell only about itself"):
        patch = {"metadata": {"labels": {NODE_NAME_LABEL: "b"}}}
        await host.patch(NODE_FEATURE.resource, "a", patch, PatchType.MERGE, NAMESPACE)
    with pytest.raises(Forbidden, match=r"may not ask for these labels: attested.fastness.dev/tee"):
        patch = {"spec": {"labels": {"attested.fastness.dev/tee": "tdx"}}}
        await host.patch(NODE_FEATURE.resource, "a", patch, PatchType.MERGE, NAMESPACE)


async def test_a_host_cannot_write_attested_properties_or_roles(world: World) -> None:
    await world.discovery()
    await world.node("a")
    lie = node_feature("a", Features())
    lie["spec"]["labels"] = {
        "attested.fastness.dev/tee": "tdx", "node-role.kubernetes.io/master": "", "example.com/rack": "7", "plain": "x",
    }  # fmt: skip
    await world.cluster.create(NODE_FEATURE.resource, lie)
    rule = {"name": "r", "labels": {"attested.fastness.dev/simulated": "false", "example.com/ok": "1"}}
    await world.rule(
        {
            "metadata": {"name": "lie"},
            "apiVersion": "nfd.openshift.io/v1alpha1",
            "kind": "NodeFeatureRule",
            "spec": {"rules": [rule]},
        }
    )
    node = await world.until("a", lambda node: {"example.com/rack", "example.com/ok"} <= set(_labels(node)))
    assert not any("attested" in name or "node-role" in name for name in _labels(node))
    assert _labels(node)["feature.node.kubernetes.io/plain"] == "x"
    assert "denied" in (await world.event("FeaturesLeftOut"))["message"]


async def test_a_label_that_somebody_changed_is_put_right_again(world: World) -> None:
    await world.discovery()
    await world.rules()
    await world.node("a", "tdx-host")
    await world.until("a", lambda node: TDX in _labels(node))
    await world.cluster.patch(NODE.resource, "a", {"metadata": {"labels": {TDX: None}}}, PatchType.MERGE)
    await world.until("a", lambda node: TDX in _labels(node))
    await world.cluster.patch(
        NODE.resource,
        "a",
        {"status": {"capacity": {KEYS: "99"}}},
        PatchType.MERGE,
        "",
        WriteOptions(subresource="status"),
    )
    await world.until("a", lambda node: node["status"]["capacity"].get(KEYS) == "31")


async def test_a_broken_rule_is_told_and_the_others_work(world: World) -> None:
    await world.discovery(enableTaints=True)
    await world.node("a", "plain-vm")
    bad = {"name": "bad", "labels": {"x": "1"}, "matchFeatures": [
        {"feature": "kernel.version", "matchExpressions": {"full": {"op": "Gt", "value": ["1"]}}}]}  # fmt: skip
    taint = {"name": "taint", "taints": [{"key": "example.com/t", "effect": "PreferNoSchedule"}]}
    wrong = {"name": "wrong", "labels": {"y": "1"}, "matchFeatures": [{"feature": "cpu"}]}
    await world.rule({"apiVersion": "nfd.openshift.io/v1alpha1", "kind": "NodeFeatureRule", "metadata": {"name": "b"},
                      "spec": {"rules": [bad, taint, wrong]}})  # fmt: skip
    node = await world.until("a", lambda node: bool((node.get("spec") or {}).get("taints")))
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["example.com/t"]
    assert "not an integer" in (await world.event("FeaturesLeftOut"))["message"]
    assert "'cpu' is not <domain>.<feature>" in (await world.event("BadRule"))["message"]
    await world.cluster.delete(NODE_FEATURE_RULE.resource, "b")
    await world.until("a", lambda node: not (node.get("spec") or {}).get("taints"))


async def test_features_of_nodes_that_are_gone_stop_nothing(world: World) -> None:
    await world.discovery()
    await world.rules()
    await report(world.cluster, node_feature("ghost", discover(recorded("tdx-host"))))
    await world.node("a", "tdx-host")
    await world.until("a", lambda node: TDX in _labels(node))
    await world.cluster.delete(NODE.resource, "a")
    await world.node("b", "snp-host")
    await world.until("b", lambda node: "amd.feature.node.kubernetes.io/snp" in _labels(node))
