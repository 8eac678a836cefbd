"""The worker pool of an API with all loops; the agents of its nodes are played."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastness.apiserver.inventory import Inventory
from fastness.apiserver.loops.controllers import kube_loops
from fastness.app.controllers import product_loops
from fastness.attestation.admission.trusted_objects import WITHOUT_OWNERS
from fastness.enrolment.trusted_cluster import Doors
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, condition
from fastness.kinds.registry import find
from fastness.kube.controllers import Runner
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType
from fastness.machineconfig.live.registry import RegistryImages
from fastness.machineconfig.loops.controllers import REGISTRIES
from fastness.machineconfig.loops.timing import Timing
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

MCO = "machineconfiguration.openshift.io"
CONFIG = find(MCO, "v1", "machineconfigs").resource
POOL = find(MCO, "v1", "machineconfigpools").resource
CONFIG_NODE = find(MCO, "v1", "machineconfignodes").resource
NODE = find("", "v1", "nodes").resource
POD = find("", "v1", "pods").resource
BUDGET = find("policy", "v1", "poddisruptionbudgets").resource
QUICK = Timing(
    render_delay=0.01, rollout_delay=0.01, drain_delay=0.01, drain_retry=0.05, evict_retry=0.05, prune_every=0.2,
    authority_quiet=0.05, streams_retry=0.05,
)  # fmt: skip
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
            result = await check()
            if result:
                return result
            await asyncio.sleep(0.02)
    raise AssertionError(what)


class WorkerPool:
    """The pool `worker` with its nodes, whose agents are played: what they are told they do, or break at, or never end."""

    def __init__(self, cluster: Cluster, runner: Runner) -> None:
        self.cluster = cluster
        self.runner = runner
        self.broken: set[str] = set()
        self.stuck: set[str] = set()
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
            configuration = (await self.pool())["spec"].get("configuration") or {}
        except NotFound:
            return ""
        return str(configuration.get("name") or "")

    async def play_agents(self) -> None:
        """Every node does at once what it was told; broken configs degrade it, on stuck ones it works for ever."""
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
        overlay = notes.get(names.DESIRED_OVERLAY, notes.get(names.CURRENT_OVERLAY, ""))
        stays = not desired or desired == notes[names.CURRENT_CONFIG]
        if stays and overlay == notes.get(names.CURRENT_OVERLAY, ""):
            back = f"{names.UNCORDON}-{notes[names.CURRENT_CONFIG]}"
            drained = notes.get(names.DESIRED_DRAIN, back) != back
            if notes.get(names.STATE) != "Done" or drained:
                more = {names.DESIRED_DRAIN: back} if drained else {}
                await self._note(name, {names.STATE: "Done", names.REASON: "", **more})
            return
        if desired in self.stuck:
            if notes.get(names.STATE) != "Working":
                await self._note(name, {names.STATE: "Working"})
            return
        drain = f"{names.DRAIN}-{desired}"
        drained = notes.get(names.LAST_APPLIED_DRAIN) == drain
        if desired in self.broken and (self.breaks_at == "before drain" or drained):
            if notes.get(names.STATE) != "Degraded":
                await self._note(name, {names.STATE: "Degraded", names.REASON: "the config is broken"})
            return
        if desired in self.broken and self.breaks_at == "during drain" and notes.get(names.DESIRED_DRAIN) == drain:
            await self._note(name, {names.STATE: "Degraded", names.REASON: "the config is broken"})
            return
        if notes.get(names.DESIRED_DRAIN) != drain:
            await self._note(name, {names.DESIRED_DRAIN: drain, names.STATE: "Working"})
        elif drained:
            back = f"{names.UNCORDON}-{desired}"
            arrived = {names.CURRENT_CONFIG: desired, names.CURRENT_OVERLAY: overlay, names.DESIRED_DRAIN: back}
            await self._note(name, {**arrived, names.STATE: "Done"})

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
            sources = {source["name"] for source in (pool["spec"].get("configuration") or {}).get("source") or ()}
            if not sources.issuperset(BASE):
                return None  # the first configs of a role come one after the other, and each may be rendered
            updated = condition(pool, "Updated")
            at_goal = goal and goal != goal_is_not and (status.get("configuration") or {}).get("name") == goal
            return pool if at_goal and updated and updated["status"] == "True" else None

        return await until(done, "the pool does not settle")  # type: ignore[no-any-return]


def no_doors() -> Doors | None:
    return None


@asynccontextmanager
async def running(
    embedded: Embedded, doors: Callable[[], Doors | None] = no_doors, images: RegistryImages = REGISTRIES
) -> AsyncIterator[WorkerPool]:
    clock, entropy, cluster = SystemClock(), SystemEntropy(), embedded.cluster
    async with Informers(cluster, clock=clock, entropy=entropy) as informers:
        bundle = embedded.server.pki.bundle.decode()
        loops = kube_loops(cluster, Inventory(embedded.server.api), clock, bundle, WITHOUT_OWNERS)
        product = product_loops(cluster, informers, clock, entropy, timing=QUICK, doors=doors, images=images)
        controllers = [*loops.controllers, *product]
        runner = Runner(controllers, informers, clock, entropy, feeds=loops.feeds)
        workers = WorkerPool(cluster, runner)
        async with asyncio.TaskGroup() as tasks:
            work = [tasks.create_task(runner.run()), tasks.create_task(workers.play_agents())]
            try:
                yield workers
            finally:
                for task in work:
                    task.cancel()


@asynccontextmanager
async def open_worker_pool(
    embedded: Embedded, doors: Callable[[], Doors | None] = no_doors, images: RegistryImages = REGISTRIES
) -> AsyncIterator[WorkerPool]:
    """The same in a task of its own: task groups must end in the task that began them, and a fixture has two."""
    ready: asyncio.Future[WorkerPool] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def hold() -> None:
        async with running(embedded, doors, images) as running_pool:
            ready.set_result(running_pool)
            await over.wait()

    holding = asyncio.create_task(hold())
    try:
        yield await ready
    finally:
        over.set()
        await holding


class Bench:
    """A settled pool with one node, and what it has."""

    def __init__(self, workers: WorkerPool, before: JsonObject) -> None:
        self.workers = workers
        self.before = before
        self.goal = before["spec"]["configuration"]["name"]

    async def state_of(self, kind: str = "RenderDegraded", status: str = "True") -> Any:
        async def looked() -> Any:
            state = condition(await self.workers.pool(), kind)
            return state if state and state["status"] == status else None

        return await until(looked, f"{kind} does not become {status}")

    async def refused(self, *configs: JsonObject) -> str:
        """Apply configs, and have the message of the pool; everything else is as it was, also after taking them back."""
        stored = await self._rendered()
        for body in configs:
            await self.workers.cluster.create(CONFIG, body)
        try:
            message = str((await self.state_of())["message"])
            assert (await self.state_of("Degraded"))["status"] == "True"
            assert await self.workers.goal() == self.goal
            assert await self._rendered() == stored
            node = await self.workers.cluster.get(NODE, "a")
            assert annotations_of(node)[names.DESIRED_CONFIG] == self.goal
            assert annotations_of(node)[names.STATE] == "Done"
        finally:
            for body in configs:
                await self.workers.cluster.delete(CONFIG, body["metadata"]["name"])
        await self.state_of(status="False")
        assert await self.workers.goal() == self.goal
        return message

    async def _rendered(self) -> set[str]:
        every = (body["metadata"]["name"] for body in (await self.workers.cluster.list(CONFIG)).items)
        return {name for name in every if name.startswith("rendered-worker-")}
