"""Somebody deletes the NodeFeatureRule of an installed cluster: the runtime stays, a condition and an event say what is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fastness.app.embedded import PlaneOptions, running
from fastness.formats.yaml import load_documents
from fastness.kinds.kata import names
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names as mco
from fastness.kinds.objects import annotations_of, condition, labels_of
from fastness.kinds.registry import find
from fastness.kube.port import Cluster, PatchType
from tests.component.workloads.kata.story import (
    CLASS,
    KATA,
    feature_gates,
    is_done,
    is_gone,
    kata_config,
    until,
    until_equal,
    until_told,
)
from tests.component.workloads.kata.test_virtual_machines import BOTH, NODE, extensions, ready

DISCOVERY = find("nfd.openshift.io", "v1", "nodefeaturediscoveries").resource
RULE = find("nfd.openshift.io", "v1alpha1", "nodefeaturerules").resource
POD = find("", "v1", "pods").resource
MANIFESTS = Path(__file__).parents[3] / "manual" / "manifests"


def manifest(name: str) -> JsonObject:
    """One of the manual's manifests."""
    document: JsonObject = load_documents((MANIFESTS / name).read_bytes())[0].value
    return document


async def labelled(cluster: Cluster) -> list[bool]:
    """Whether each worker has the label that the check asks for."""
    workers = [node for node in (await cluster.list(NODE)).items if node["metadata"]["name"] in BOTH]
    return [labels_of(node).get(names.BASE_LABEL) == "true" for node in workers]


async def touched(cluster: Cluster) -> list[object]:
    """Everything by which a node would be drained, rebooted or stripped, and the classes."""
    nodes: list[object] = [
        (node["metadata"]["name"], (node.get("spec") or {}).get("unschedulable"), names.ROLE_LABEL in labels_of(node),
         labels_of(node).get(names.STATE_LABEL), annotations_of(node).get(mco.DESIRED_CONFIG))
        for node in (await cluster.list(NODE)).items
    ]  # fmt: skip
    return [*nodes, sorted(runtime_class["metadata"]["name"] for runtime_class in (await cluster.list(CLASS)).items)]


def held(config: JsonObject) -> str:
    return str((condition(config, "RemovalHeld") or {}).get("reason", ""))


@pytest.mark.row("001-79")
@pytest.mark.parametrize("mode", ["MachineConfig", "DaemonSet"])
async def test_a_deleted_rule_takes_the_runtime_off_no_node(tmp_path: Path, mode: str) -> None:
    async with running(PlaneOptions(tmp_path / "state", machines=2, profile="containers")) as plane:
        cluster = plane.server.cluster
        await until_equal(lambda: ready(cluster), BOTH)
        await cluster.create(DISCOVERY, manifest("my-nfd.yaml"))
        rule = await cluster.create(RULE, manifest("my-nodefeaturerule.yaml"))
        await until_equal(lambda: labelled(cluster), [True, True])
        await feature_gates(cluster, deploymentMode=mode)
        await cluster.create(KATA, kata_config(checkNodeEligibility=True))
        await until(cluster, is_done)
        spec = {"runtimeClassName": "kata", "nodeName": "worker-0", "containers": [{"name": "c", "image": "i"}]}
        meta = {"name": "guest", "namespace": "default"}
        made = await cluster.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
        before = await touched(cluster)
        await cluster.delete(RULE, rule["metadata"]["name"], rule["metadata"].get("namespace", ""))
        await until_equal(lambda: labelled(cluster), [False, False])
        config = await until(cluster, lambda config: held(config) == "LabelsLost")
        assert is_done(config)
        assert config["status"]["kataNodes"] == {"nodeCount": 2, "readyNodeCount": 2, "installed": BOTH}
        assert await touched(cluster) == before
        await until_told(cluster, "LabelsLost")

        # Taking nodes out on purpose is as guarded as a deletion: worker-1 goes, worker-0 waits for its pod.
        nobody = {"spec": {"kataConfigPoolSelector": {"matchLabels": {"no": "node"}}}}
        await cluster.patch(KATA, "example-kataconfig", nobody, PatchType.MERGE)
        await until(cluster, lambda config: held(config) == "BlockedByExistingKataPods")
        config = await until(cluster, is_done)
        assert config["status"]["kataNodes"]["installed"] == ["worker-0"]
        assert (await cluster.get(POD, "guest", "default"))["metadata"]["uid"] == made["metadata"]["uid"]
        packages = await asyncio.to_thread(extensions, plane)
        assert packages[0] == [names.EXTENSION]
        assert mode == "DaemonSet" or packages[1] == []
        await cluster.delete(POD, "guest", "default")
        await cluster.delete(KATA, "example-kataconfig")
        await is_gone(cluster)
