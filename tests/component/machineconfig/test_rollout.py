"""From a MachineConfig to told nodes: render, rollout and drain on the embedded API, agents played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fastness.cluster.clock import SystemClock, SystemEntropy
from fastness.cluster.embedded.inventory import Inventory
from fastness.cluster.errors import NotFound
from fastness.cluster.informers import Informers
from fastness.cluster.port import Cluster, PatchType, WriteOptions
from fastness.controllers.engine import Runner
from fastness.controllers.kube.plane import kube_loops
from fastness.controllers.machineconfig.plane import Around
from fastness.controllers.machineconfig.timing import Timing
from fastness.controllers.plane import product_loops
from fastness.model.kind import JsonObject
from fastness.model.machineconfiguration import names
from fastness.model.objects import annotations_of, condition
from fastness.model.registry import find
from tests.embedded.fixtures import Embedded

MCO = "machineconfiguration.openshift.io"
CONFIG = find(MCO, "v1", "machineconfigs").resource
POOL = find(MCO, "v1", "machineconfigpools").resource
CONFIG_NODE = find(MCO, "v1", "machineconfignodes").resource
NODE = find("", "v1", "nodes").resource
POD = find("", "v1", "pods").resource
BUDGET = find("policy", "v1", "poddisruptionbudgets").resource
QUICK = Timing(
    render_delay=0.01, rollout_delay=0.01, drain_delay=0.01, drain_retry=0.05, evict_retry=0.05, prune_every=0.2
)
PATIENCE = 15.0
BASE = {"00-worker", "01-worker-container-runtime", "01-worker-kubelet"}


def config(name: str, path: str = "/etc/motd", content: str = "hello", role: str = "worker", **spec: Any) -> JsonObject:
    source = "data:," + content
    files = [{"path": path, "mode": 420, "contents": {"source": source}}]
    ignition = {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}
    meta = {"name": name, "labels": {names.ROLE_LABEL: role}}
    return {"apiVersion": f"{MCO}/v1", "kind": "MachineConfig", "metadata": meta, "spec": {"config": ignition, **spec}}


async def until(check: Callable[[], Any], what: str) -> Any:
    """Wait for something to become true, with a bound."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = await check()
            if found:
                return found
            await asyncio.sleep(0.02)
    raise AssertionError(what)


class World:
    """An API with all loops, nodes, and agents that the test plays."""

    def __init__(self, cluster: Cluster, runner: Runner) -> None:
        self.cluster = cluster
        self.runner = runner
        self.broken: set[str] = set()
        self.breaks_at = "before drain"
        self.most_unavailable = 0

    async def add_node(self, name: str, zone: str = "") -> None:
        labels = {f"{names.NODE_ROLE_PREFIX}worker": "", **({names.ZONE_LABEL: zone} if zone else {})}
        await self.cluster.create(
            NODE, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        )

    async def pool(self) -> JsonObject:
        return await self.cluster.get(POOL, "worker")

    async def goal(self) -> str:
        try:
            found = (await self.pool())["spec"].get("configuration") or {}
        except NotFound:
            return ""
        return str(found.get("name") or "")

    async def play_agents(self) -> None:
        """Every node does at once what it was told; broken configs degrade it."""
        while True:
            for node in (await self.cluster.list(NODE)).items:
                await self._step(node)
            await asyncio.sleep(0.02)

    async def _step(self, node: JsonObject) -> None:
        notes, name = annotations_of(node), node["metadata"]["name"]
        desired = notes.get(names.DESIRED_CONFIG, "")
        if not notes.get(names.CURRENT_CONFIG):
            goal = await self.goal()
            if goal:
                await self._note(name, {names.CURRENT_CONFIG: goal, names.DESIRED_CONFIG: goal, names.STATE: "Done"})
            return
        if not desired or desired == notes[names.CURRENT_CONFIG]:
            back = f"{names.UNCORDON}-{notes[names.CURRENT_CONFIG]}"
            drained = notes.get(names.DESIRED_DRAIN, back) != back
            if notes.get(names.STATE) != "Done" or drained:
                more = {names.DESIRED_DRAIN: back} if drained else {}
                await self._note(name, {names.STATE: "Done", names.REASON: "", **more})
            return
        wanted = f"{names.DRAIN}-{desired}"
        drained = notes.get(names.LAST_APPLIED_DRAIN) == wanted
        if desired in self.broken and (self.breaks_at == "before drain" or drained):
            if notes.get(names.STATE) != "Degraded":
                await self._note(name, {names.STATE: "Degraded", names.REASON: "the config is broken"})
            return
        if desired in self.broken and self.breaks_at == "during drain" and notes.get(names.DESIRED_DRAIN) == wanted:
            await self._note(name, {names.STATE: "Degraded", names.REASON: "the config is broken"})
            return
        if notes.get(names.DESIRED_DRAIN) != wanted:
            await self._note(name, {names.DESIRED_DRAIN: wanted, names.STATE: "Working"})
        elif drained:
            back = f"{names.UNCORDON}-{desired}"
            await self._note(name, {names.CURRENT_CONFIG: desired, names.STATE: "Done", names.DESIRED_DRAIN: back})

    async def _note(self, name: str, notes: dict[str, str]) -> None:
        await self.cluster.patch(NODE, name, {"metadata": {"annotations": notes}}, PatchType.MERGE)

    async def settled(self, goal_is_not: str = "") -> JsonObject:
        """Wait until the pool says that everything is updated."""

        async def done() -> JsonObject | None:
            if not await self.goal():
                return None
            pool = await self.pool()
            status = pool.get("status") or {}
            unavailable = int(status.get("unavailableMachineCount") or 0)
            self.most_unavailable = max(self.most_unavailable, unavailable)
            goal = (pool["spec"].get("configuration") or {}).get("name")
            sources = {one["name"] for one in (pool["spec"].get("configuration") or {}).get("source") or ()}
            if not sources.issuperset(BASE):
                return None  # the first configs of a role come one after the other, and each may be rendered
            updated = condition(pool, "Updated")
            at_goal = goal and goal != goal_is_not and (status.get("configuration") or {}).get("name") == goal
            return pool if at_goal and updated and updated["status"] == "True" else None

        return await until(done, "the pool does not settle")  # type: ignore[no-any-return]


@asynccontextmanager
async def running(embedded: Embedded) -> AsyncIterator[World]:
    clock, entropy, cluster = SystemClock(), SystemEntropy(), embedded.cluster
    async with Informers(cluster, clock=clock, entropy=entropy) as informers:
        loops = kube_loops(cluster, Inventory(embedded.server.api), clock, "ca")
        controllers = [*loops.controllers, *product_loops(cluster, informers, Around(clock, entropy, QUICK))]
        runner = Runner(controllers, informers, clock, entropy, feeds=loops.feeds)
        world = World(cluster, runner)
        async with asyncio.TaskGroup() as tasks:
            work = [tasks.create_task(runner.run()), tasks.create_task(world.play_agents())]
            try:
                yield world
            finally:
                for task in work:
                    task.cancel()


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[World]:
    # One task holds the whole world: task groups must end in the task that began them, and a fixture has two.
    ready: asyncio.Future[World] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def hold() -> None:
        async with running(embedded_server) as found:
            ready.set_result(found)
            await over.wait()

    holding = asyncio.create_task(hold())
    yield await ready
    over.set()
    await holding


async def test_a_config_reaches_every_node_one_at_a_time_and_leaves_again(world: World) -> None:
    for name in ("a", "b", "c"):
        await world.add_node(name)
    before = await world.settled()
    first = before["spec"]["configuration"]["name"]
    world.most_unavailable = 0
    await world.cluster.create(CONFIG, config("50-motd"))
    after = await world.settled(goal_is_not=first)
    assert [one["name"] for one in after["spec"]["configuration"]["source"]] == [
        "00-worker", "01-worker-container-runtime", "01-worker-kubelet", "50-motd",
    ]  # fmt: skip
    assert after["status"]["updatedMachineCount"] == 3
    assert world.most_unavailable <= 1
    await world.cluster.delete(CONFIG, "50-motd")
    back = await world.settled(goal_is_not=after["spec"]["configuration"]["name"])
    assert back["spec"]["configuration"]["name"] == first, "the same sources give the same name"
    for node in (await world.cluster.list(NODE)).items:
        assert annotations_of(node)[names.CURRENT_CONFIG] == first
        assert not (node["spec"] or {}).get("unschedulable")


async def test_a_bad_config_degrades_the_pool_names_the_guilty_and_moves_nothing(world: World) -> None:
    await world.add_node("a")
    good = (await world.settled())["spec"]["configuration"]["name"]
    await world.cluster.create(CONFIG, config("60-bad", kernelType="steam"))

    async def degraded() -> Any:
        said = condition(await world.pool(), "RenderDegraded")
        return said if said and said["status"] == "True" else None

    said = await until(degraded, "the pool does not say so")
    assert said["message"].startswith("Failed to render configuration for pool worker: ")
    assert "60-bad" in said["message"]
    assert await world.goal() == good
    folded = condition(await world.pool(), "Degraded")
    assert folded is not None
    assert folded["status"] == "True"
    await world.cluster.delete(CONFIG, "60-bad")

    async def healed() -> bool:
        now = condition(await world.pool(), "RenderDegraded")
        return now is not None and now["status"] == "False"

    assert await until(healed, "the pool does not recover")


@pytest.mark.parametrize("stage", ["before drain", "during drain", "after drain"])
async def test_taking_back_a_config_that_breaks_nodes_brings_all_of_them_back(world: World, stage: str) -> None:
    world.breaks_at = stage
    for name in ("a", "b", "c"):
        await world.add_node(name)
    good = (await world.settled())["spec"]["configuration"]["name"]
    await world.cluster.create(CONFIG, config("70-breaks", content="bad"))

    async def pointed() -> str:
        goal = await world.goal()
        if goal != good:
            world.broken.add(goal)
        return goal if goal != good else ""

    await until(pointed, "not rendered")

    async def degraded() -> bool:
        said = condition(await world.pool(), "NodeDegraded")
        return said is not None and said["status"] == "True"

    assert await until(degraded, "no node degraded")
    targeted = [
        n for n in (await world.cluster.list(NODE)).items if annotations_of(n).get(names.DESIRED_CONFIG) != good
    ]
    assert len(targeted) == 1, "a config that breaks machines stops by itself"
    await world.cluster.delete(CONFIG, "70-breaks")
    pool = await world.settled(goal_is_not=next(iter(world.broken)))
    assert pool["spec"]["configuration"]["name"] == good
    assert pool["status"]["degradedMachineCount"] == 0

    async def at_work() -> bool:
        nodes = (await world.cluster.list(NODE)).items
        return not any(
            (node.get("spec") or {}).get("unschedulable") or (node.get("spec") or {}).get("taints") for node in nodes
        )

    assert await until(at_work, "a node is not put back to work")


async def test_a_paused_pool_waits_and_goes_on(world: World) -> None:
    await world.add_node("a")
    good = (await world.settled())["spec"]["configuration"]["name"]
    await world.cluster.patch(POOL, "worker", {"spec": {"paused": True}}, PatchType.MERGE)
    await world.cluster.create(CONFIG, config("50-motd"))

    async def rendered() -> bool:
        return bool(await world.goal() != good)

    await until(rendered, "not rendered")
    await asyncio.sleep(0.3)
    node = await world.cluster.get(NODE, "a")
    assert annotations_of(node)[names.DESIRED_CONFIG] == good
    await world.cluster.patch(POOL, "worker", {"spec": {"paused": False}}, PatchType.MERGE)
    assert await world.settled(goal_is_not=good)


async def test_a_budget_blocks_the_drain_until_it_allows_it(world: World) -> None:
    await world.add_node("a")
    good = (await world.settled())["spec"]["configuration"]["name"]
    meta = {"name": "web", "namespace": "default", "labels": {"app": "web"}}
    spec = {"nodeName": "a", "containers": [{"name": "c", "image": "i"}]}
    await world.cluster.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await world.cluster.patch(POD, "web", ready, PatchType.MERGE, "default", WriteOptions(subresource="status"))
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }  # fmt: skip
    await world.cluster.create(BUDGET, budget)
    await world.cluster.create(CONFIG, config("50-motd"))

    async def cordoned() -> bool:
        return bool(((await world.cluster.get(NODE, "a")).get("spec") or {}).get("unschedulable"))

    await until(cordoned, "not cordoned")
    await asyncio.sleep(0.3)
    assert await world.cluster.get(POD, "web", "default"), "the budget holds"
    await world.cluster.delete(BUDGET, "keep", "default")
    assert await world.settled(goal_is_not=good)
    assert (await world.cluster.list(POD)).items == []


async def test_every_node_has_its_config_node_and_unused_configs_are_pruned(world: World) -> None:
    await world.add_node("a")
    await world.settled()
    for number in range(9):
        before = await world.goal()
        await world.cluster.patch(
            CONFIG, "50-motd", config("50-motd", content=str(number)), PatchType.APPLY, "", WriteOptions(force=True)
        )
        await world.settled(goal_is_not=before)

    async def in_step() -> bool:
        found = await world.cluster.get(CONFIG_NODE, "a")
        return bool(
            found["spec"]["configVersion"]["desired"] == await world.goal()
            and found["spec"]["pool"]["name"] == "worker"
        )

    assert await until(in_step, "the MachineConfigNode lags")

    async def pruned() -> bool:
        every = [c["metadata"]["name"] for c in (await world.cluster.list(CONFIG)).items]
        return bool(sum(name.startswith("rendered-worker-") for name in every) <= 6)

    assert await until(pruned, "nothing is pruned")
