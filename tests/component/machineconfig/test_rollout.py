"""From a MachineConfig to told nodes: render, rollout and drain on the embedded API, agents played by the test."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, condition
from fastness.kube.port import PatchType, WriteOptions
from tests.component.machineconfig.worker_pool import (
    BUDGET,
    CONFIG,
    CONFIG_NODE,
    NODE,
    POD,
    POOL,
    WorkerPool,
    config,
    until,
)


async def test_a_config_reaches_every_node_one_at_a_time_and_leaves_again(workers: WorkerPool) -> None:
    for name in ("a", "b", "c"):
        await workers.add_node(name)
    before = await workers.settled()
    first = before["spec"]["configuration"]["name"]
    workers.most_unavailable = 0
    await workers.cluster.create(CONFIG, config("50-motd"))
    after = await workers.settled(goal_is_not=first)
    assert [source["name"] for source in after["spec"]["configuration"]["source"]] == [
        "00-worker", "01-worker-container-runtime", "01-worker-kubelet", "50-motd",
    ]  # fmt: skip
    assert after["status"]["updatedMachineCount"] == 3
    assert workers.most_unavailable <= 1
    await workers.cluster.delete(CONFIG, "50-motd")
    back = await workers.settled(goal_is_not=after["spec"]["configuration"]["name"])
    assert back["spec"]["configuration"]["name"] == first, "the same sources give the same name"
    for node in (await workers.cluster.list(NODE)).items:
        assert annotations_of(node)[names.CURRENT_CONFIG] == first
        assert not (node["spec"] or {}).get("unschedulable")


async def test_a_bad_config_degrades_the_pool_names_the_guilty_and_moves_nothing(workers: WorkerPool) -> None:
    await workers.add_node("a")
    good = (await workers.settled())["spec"]["configuration"]["name"]
    await workers.cluster.create(CONFIG, config("60-bad", kernelType="steam"))

    async def degraded() -> Any:
        state = condition(await workers.pool(), "RenderDegraded")
        return state if state and state["status"] == "True" else None

    reported = await until(degraded, "the pool does not say so")
    assert reported["message"].startswith("Failed to render configuration for pool worker: ")
    assert "60-bad" in reported["message"]
    assert await workers.goal() == good
    folded = condition(await workers.pool(), "Degraded")
    assert folded is not None
    assert folded["status"] == "True"
    await workers.cluster.delete(CONFIG, "60-bad")

    async def healed() -> bool:
        now = condition(await workers.pool(), "RenderDegraded")
        return now is not None and now["status"] == "False"

    assert await until(healed, "the pool does not recover")


@pytest.mark.parametrize("stage", ["before drain", "during drain", "after drain"])
async def test_taking_back_a_config_that_breaks_nodes_brings_all_of_them_back(workers: WorkerPool, stage: str) -> None:
    workers.breaks_at = stage
    for name in ("a", "b", "c"):
        await workers.add_node(name)
    good = (await workers.settled())["spec"]["configuration"]["name"]
    await workers.cluster.create(CONFIG, config("70-breaks", content="bad"))

    async def pointed() -> str:
        goal = await workers.goal()
        if goal != good:
            workers.broken.add(goal)
        return goal if goal != good else ""

    await until(pointed, "not rendered")

    async def degraded() -> bool:
        state = condition(await workers.pool(), "NodeDegraded")
        return state is not None and state["status"] == "True"

    assert await until(degraded, "no node degraded")
    targeted = [
        n for n in (await workers.cluster.list(NODE)).items if annotations_of(n).get(names.DESIRED_CONFIG) != good
    ]
    assert len(targeted) == 1, "a config that breaks machines stops by itself"
    await workers.cluster.delete(CONFIG, "70-breaks")
    pool = await workers.settled(goal_is_not=next(iter(workers.broken)))
    assert pool["spec"]["configuration"]["name"] == good
    assert pool["status"]["degradedMachineCount"] == 0

    async def at_work() -> bool:
        nodes = (await workers.cluster.list(NODE)).items
        return not any(
            (node.get("spec") or {}).get("unschedulable") or (node.get("spec") or {}).get("taints") for node in nodes
        )

    assert await until(at_work, "a node is not put back to work")


async def test_a_paused_pool_waits_and_goes_on(workers: WorkerPool) -> None:
    await workers.add_node("a")
    good = (await workers.settled())["spec"]["configuration"]["name"]
    await workers.cluster.patch(POOL, "worker", {"spec": {"paused": True}}, PatchType.MERGE)
    await workers.cluster.create(CONFIG, config("50-motd"))

    async def rendered() -> bool:
        return bool(await workers.goal() != good)

    await until(rendered, "not rendered")
    await asyncio.sleep(0.3)
    node = await workers.cluster.get(NODE, "a")
    assert annotations_of(node)[names.DESIRED_CONFIG] == good
    await workers.cluster.patch(POOL, "worker", {"spec": {"paused": False}}, PatchType.MERGE)
    assert await workers.settled(goal_is_not=good)


async def test_a_budget_blocks_the_drain_until_it_allows_it(workers: WorkerPool) -> None:
    await workers.add_node("a")
    good = (await workers.settled())["spec"]["configuration"]["name"]
    meta = {"name": "web", "namespace": "default", "labels": {"app": "web"}}
    spec = {"nodeName": "a", "containers": [{"name": "c", "image": "i"}]}
    await workers.cluster.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await workers.cluster.patch(POD, "web", ready, PatchType.MERGE, "default", WriteOptions(subresource="status"))
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }  # fmt: skip
    await workers.cluster.create(BUDGET, budget)
    await workers.cluster.create(CONFIG, config("50-motd"))

    async def cordoned() -> bool:
        return bool(((await workers.cluster.get(NODE, "a")).get("spec") or {}).get("unschedulable"))

    await until(cordoned, "not cordoned")
    await asyncio.sleep(0.3)
    assert await workers.cluster.get(POD, "web", "default"), "the budget holds"
    await workers.cluster.delete(BUDGET, "keep", "default")
    assert await workers.settled(goal_is_not=good)
    assert (await workers.cluster.list(POD)).items == []


async def test_every_node_has_its_config_node_and_unused_configs_are_pruned(workers: WorkerPool) -> None:
    await workers.add_node("a")
    await workers.settled()
    for number in range(9):
        before = await workers.goal()
        await workers.cluster.patch(
            CONFIG, "50-motd", config("50-motd", content=str(number)), PatchType.APPLY, "", WriteOptions(force=True)
        )
        await workers.settled(goal_is_not=before)

    async def in_step() -> bool:
        config_node = await workers.cluster.get(CONFIG_NODE, "a")
        return bool(
            config_node["spec"]["configVersion"]["desired"] == await workers.goal()
            and config_node["spec"]["pool"]["name"] == "worker"
        )

    assert await until(in_step, "the MachineConfigNode lags")

    async def pruned() -> bool:
        every = [c["metadata"]["name"] for c in (await workers.cluster.list(CONFIG)).items]
        return bool(sum(name.startswith("rendered-worker-") for name in every) <= 6)

    assert await until(pruned, "nothing is pruned")
