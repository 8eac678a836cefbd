"""KataConfig against a real kube-apiserver: the same story, the same objects, and none of them left behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastness.app.controllers import product_loops
from fastness.kinds.crd import manifests
from fastness.kinds.kata import names
from fastness.kinds.kata.names import InstallState
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import labels_of
from fastness.kinds.registry import find as kind
from fastness.kube.client.client import connect
from fastness.kube.client.config import Surroundings, find
from fastness.kube.controllers import Runner
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, Scope
from fastness.runtime.clock import SystemClock, SystemEntropy
from fastness.workloads.kata.inputs import covers
from fastness.workloads.loops.kata.loop import KataConfigs
from tests.component.machineconfig.worker_pool import CONFIG, NODE, POOL, QUICK, WorkerPool, open_worker_pool
from tests.component.workloads.kata.story import (
    CLASS,
    KATA,
    feature_gates,
    follow_story,
    in_progress,
    is_done,
    is_gone,
    kata_config,
    until,
    until_equal,
)
from tests.e2e.machineconfig.test_on_real_kubernetes import install_definitions
from tests.embedded.fixtures import Embedded
from tests.node_facts import state_node_facts
from tests.realkube.cluster import RealKube

BOTH = ("worker-0", "worker-1")
SPACE = kind("", "v1", "namespaces").resource
MADE = (
    CLASS, POOL, kind("machineconfiguration.openshift.io", "v1", "containerruntimeconfigs").resource,
    kind("apps", "v1", "daemonsets").resource, kind("security.openshift.io", "v1", "securitycontextconstraints").resource,
)  # fmt: skip


async def made(cluster: Cluster) -> dict[tuple[str, str], JsonObject]:
    """What an installation made, without what a server adds to every object."""
    objects = {
        (resource.kind, obj["metadata"]["name"]): obj
        for resource in MADE
        for obj in (await cluster.list(resource)).items
    }
    config = await cluster.get(CONFIG, names.EXTENSION_CONFIG)
    with_config = {**objects, ("MachineConfig", names.EXTENSION_CONFIG): config}
    return {key: _ours(obj) for key, obj in with_config.items() if key[1] not in ("master", "worker", "privileged")}


def _ours(obj: JsonObject) -> JsonObject:
    meta = {key: obj["metadata"].get(key) for key in ("labels", "finalizers")}
    spec = {key: value for key, value in (obj.get("spec") or {}).items() if key != "configuration"}
    rest = {key: value for key, value in obj.items() if key not in ("metadata", "spec", "status", "apiVersion", "kind")}
    return {"metadata": meta, "spec": spec, **rest}


async def exists(cluster: Cluster) -> bool:
    """Whether the operator's namespace is still there."""
    return names.NAMESPACE in [namespace["metadata"]["name"] for namespace in (await cluster.list(SPACE)).items]


async def story(workers: WorkerPool) -> tuple[list[Any], dict[tuple[str, str], JsonObject]]:
    """Install and remove on two nodes with TDX; what was told, and what was made meanwhile."""
    cluster = workers.cluster
    for name in BOTH:
        await workers.add_node(name)
    await workers.settled()
    for name in BOTH:
        labels = {names.BASE_LABEL: "true", names.TDX_LABEL: "true"}
        await cluster.patch(NODE, name, {"metadata": {"labels": labels}}, PatchType.MERGE)
    await until_equal(lambda: exists(cluster), False)
    await feature_gates(cluster, confidential="true")
    async with follow_story(cluster) as heard:
        await cluster.create(KATA, kata_config(checkNodeEligibility=True, logLevel="debug"))
        await until(cluster, is_done)
        objects = await made(cluster)
        await cluster.delete(KATA, "example-kataconfig")
        await is_gone(cluster)
    assert heard.most_moving == 1
    assert (await cluster.list(CLASS)).items == []
    return heard.reasons, objects


@asynccontextmanager
async def on(kube: RealKube, home: Path) -> AsyncIterator[WorkerPool]:
    """Our loops against a real server."""
    clock, entropy = SystemClock(), SystemEntropy()
    async with (
        connect(find(Surroundings({}, home), kubeconfig=kube.kubeconfig)) as cluster,
        Informers(cluster, clock=clock, entropy=entropy) as informers,
        asyncio.TaskGroup() as tasks,
    ):
        await state_node_facts(cluster, kube.url, runtime="crio")
        loops = product_loops(cluster, informers, clock, entropy, timing=QUICK)
        runner = Runner(loops, informers, clock, entropy)
        workers = WorkerPool(cluster, runner)
        work = [tasks.create_task(runner.run()), tasks.create_task(workers.play_agents())]
        try:
            yield workers
        finally:
            for task in work:
                task.cancel()


def install_without_machine_configs(kube: RealKube) -> None:
    """Our definitions but those of machine configuration, as in a cluster of another distribution."""
    with kube.client("admin") as client:
        for manifest in manifests():
            if manifest["spec"]["group"] != "machineconfiguration.openshift.io":
                path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
                assert client.post(path, json=manifest).status_code in (201, 409)
        while client.get("/apis/kataconfiguration.openshift.io/v1/kataconfigs").status_code != 200:
            time.sleep(0.1)


NEXT: dict[str | None, InstallState] = {
    None: InstallState.WAITING_TO_INSTALL, InstallState.INSTALLING: InstallState.INSTALLED,
    InstallState.UNINSTALLING: InstallState.WAITING_FOR_REBOOT, InstallState.WAITING_FOR_REBOOT: InstallState.UNINSTALLED,
}  # fmt: skip


async def play_pods(cluster: Cluster) -> None:
    """What the pods of the DaemonSets say, where the DaemonSets are."""
    while True:
        await asyncio.sleep(0.1)
        sets = (await cluster.list(MADE[3], Scope(namespace=names.NAMESPACE))).items
        for node in (await cluster.list(NODE)).items if sets else ():
            state = labels_of(node).get(names.STATE_LABEL)
            if names.ROLE_LABEL in labels_of(node) and state in NEXT:
                patch = {"metadata": {"labels": {names.STATE_LABEL: str(NEXT[state])}}}
                await cluster.patch(NODE, node["metadata"]["name"], patch, PatchType.MERGE)


async def test_without_machine_configs_the_fallback_installs_by_daemon_set(bare_kube: RealKube, tmp_path: Path) -> None:
    await asyncio.to_thread(install_without_machine_configs, bare_kube)
    clock, entropy = SystemClock(), SystemEntropy()
    async with (
        connect(find(Surroundings({}, tmp_path), kubeconfig=bare_kube.kubeconfig)) as cluster,
        Informers(cluster, clock=clock, entropy=entropy) as informers,
        asyncio.TaskGroup() as tasks,
    ):
        runner = Runner([KataConfigs(cluster, informers, clock, QUICK)], informers, clock, entropy)
        work = [tasks.create_task(runner.run()), tasks.create_task(play_pods(cluster))]
        for name in ("plain-0", "plain-1"):
            meta = {"name": name, "labels": {"node-role.kubernetes.io/worker": ""}}
            await cluster.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
        await cluster.create(KATA, kata_config())
        config = await until(cluster, lambda config: in_progress(config) == ("False", "DeploymentModeUnavailable"))
        assert (
            "deployment mode is MachineConfig but it is not available" in config["status"]["conditions"][0]["message"]
        )
        # Without a webhook two can be made; the oldest counts, and the other one is told so.
        await asyncio.sleep(1)
        await cluster.create(KATA, kata_config("younger"))
        await until(cluster, lambda config: in_progress(config) == ("False", "Duplicate"), "younger")
        await cluster.delete(KATA, "younger")
        await feature_gates(cluster, deploymentMode="DaemonSetFallback")
        async with follow_story(cluster) as heard:
            await until(cluster, is_done)
            await cluster.delete(KATA, "example-kataconfig")
            await is_gone(cluster)
        assert heard.most_moving == 1
        for node in (await cluster.list(NODE)).items:
            assert not {names.ROLE_LABEL, names.STATE_LABEL} & labels_of(node).keys()
            await cluster.delete(NODE, node["metadata"]["name"])
        assert (await cluster.list(MADE[3])).items == []
        await cluster.delete(SPACE, names.NAMESPACE)
        for task in work:
            task.cancel()


async def test_the_story_and_the_objects_are_the_same_on_both(
    bare_kube: RealKube, embedded_server: Embedded, tmp_path: Path
) -> None:
    await asyncio.to_thread(install_definitions, bare_kube)
    async with on(bare_kube, tmp_path) as workers:
        real, real_objects = await story(workers)
    async with open_worker_pool(embedded_server) as workers:
        embedded, embedded_objects = await story(workers)
    assert real == embedded == [("True", "Installing"), ("False", ""), ("True", "Uninstalling")]
    assert real_objects.keys() == embedded_objects.keys()
    assert {
        ("RuntimeClass", "kata-cc"),
        ("MachineConfigPool", "kata-oc"),
        ("DaemonSet", names.MONITOR),
    } <= real_objects.keys()
    for key, obj in embedded_objects.items():
        # A real server fills in defaults of the DaemonSet's pods that ours leaves out.
        assert obj == real_objects[key] or covers(real_objects[key], obj), key
