"""A rollout in virtual time: what the control plane spends per node, for clusters of several sizes.

The embedded API, its store on disk and all controllers run as in `fastness up`; only the clock is virtual, with the waiting times
of the field. Machines are played by tasks that do what an agent tells the API in an update: ask for a drain, wait for it,
report the new config, ask to be put back. Every machine has a pod to evict. All of it is in one process, so what the machines'
requests cost the API is in the figure, and so is playing them.

`python -m bench.rollouts NODES` prints one figure; `figures` runs it for every size.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from bench import configs
from bench.figures import Progress, Single, Spread
from fastness.apiserver import ServerOptions, open_apiserver
from fastness.apiserver.inventory import Inventory
from fastness.apiserver.loops.controllers import kube_loops
from fastness.app.controllers import product_loops
from fastness.app.product import PRODUCT
from fastness.attestation.admission.trusted_objects import WITHOUT_OWNERS
from fastness.builds.live.builder import MakeBuilder, nobody_builds
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, object_name
from fastness.kinds.registry import find
from fastness.kube.controllers import Runner
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.runtime.clock import SystemEntropy
from fastness.runtime.memory import COLLECT_AFTER

SIZES = (500, 1000, 2000, 5000)
TARGET_MS = 15.0
AGENTS = 32
PATIENCE = 900.0  # of real time
ROOT = Path(__file__).resolve().parent.parent
NODES, PODS = find("", "v1", "nodes").resource, find("", "v1", "pods").resource
POOLS = find("machineconfiguration.openshift.io", "v1", "machineconfigpools").resource
CONFIGS = find("machineconfiguration.openshift.io", "v1", "machineconfigs").resource
_AGENT = WriteOptions(manager="agent")


def figures(say: Progress, sizes: tuple[int, ...] = SIZES) -> list[Single]:
    """CPU per node for every size, and how much dearer a node is in the largest cluster than in the smallest."""
    by_size: dict[int, dict[str, float]] = {}
    for size in sizes:
        say(f"rollout over {size:,} nodes in virtual time")
        command = [sys.executable, "-m", "bench.rollouts", str(size)]
        by_size[size] = orjson.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)
    singles = [
        Single(
            f"rollout over {size:,} nodes, control plane: CPU per node",
            Spread.of([measured["ms_per_node"]]),
            "ms",
            TARGET_MS,
        )
        for size, measured in by_size.items()
    ]
    growth = by_size[sizes[-1]]["ms_per_node"] / by_size[sizes[0]]["ms_per_node"]
    name = f"a node of {sizes[-1]:,} costs, beside one of {sizes[0]:,}"
    return [*singles, Single(name, Spread.of([growth]), "×", 1.3)] if len(sizes) > 1 else singles


class Calendar:
    """A clock that is moved to whatever happens next as soon as nothing else is to do.

    One that flows also goes on by itself, as it must where others wait for it by their own clocks.
    """

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC), *, flows: bool = False) -> None:
        self._start = start
        self._began = time.monotonic() if flows else None
        self._jumped = 0.0
        self._count = 0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """The wall time."""
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Seconds since the start."""
        return self._jumped + (time.monotonic() - self._began if self._began is not None else 0.0)

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock is there."""
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self.monotonic() + seconds, self._count, wake))
        await wake

    def move(self, window: float = 0.5) -> None:
        """To the next moment at which somebody wakes, and half a second on."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        if not self._sleepers:
            return
        self._jumped += max(0.0, self._sleepers[0][0] + window - self.monotonic())
        self.wake()

    def wake(self) -> None:
        """Wake whoever's time has come."""
        now = self.monotonic()
        while self._sleepers and self._sleepers[0][0] <= now:
            wake = heapq.heappop(self._sleepers)[2]
            if not wake.done():
                wake.set_result(None)


class Machines:
    """All machines: whoever is told something new is served by one of a few tasks."""

    def __init__(self, cluster: Cluster, nodes: Informer) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._told: asyncio.Queue[str] = asyncio.Queue()
        self._waiting: set[str] = set()
        self.busy = 0

    @property
    def idle(self) -> bool:
        """Whether no machine has anything to do now."""
        return not self.busy and self._told.empty()

    def begin(self) -> None:
        """Listen to what nodes are told."""
        self._nodes.subscribe(self._hear)

    def _hear(self, _old: JsonObject | None, new: JsonObject | None) -> None:
        """A node changed."""
        if new is not None and (name := object_name(new).name) not in self._waiting and _next(annotations_of(new)):
            self._waiting.add(name)
            self._told.put_nowait(name)

    async def play(self) -> None:
        """One of the tasks."""
        while True:
            name = await self._told.get()
            self.busy += 1
            self._waiting.discard(name)
            node = self._nodes.get("", name)
            notes = _next(annotations_of(node)) if node is not None else None
            if notes:
                await self.prepare(name, notes)
                await self._cluster.patch(
                    NODES, name, {"metadata": {"annotations": notes}}, PatchType.MERGE, "", _AGENT
                )
            self.busy -= 1

    async def prepare(self, name: str, notes: Mapping[str, str]) -> None:
        """What the agent of a machine does before it says this."""


def _next(notes: dict[str, str] | object) -> dict[str, str]:
    """What the agent of a machine with these annotations says next; nothing when it waits."""
    assert isinstance(notes, dict)
    current, desired = notes.get(names.CURRENT_CONFIG, ""), notes.get(names.DESIRED_CONFIG, "")
    requested, applied = notes.get(names.DESIRED_DRAIN, ""), notes.get(names.LAST_APPLIED_DRAIN, "")
    if desired != current:
        drain = f"{names.DRAIN}-{desired}"
        if requested != drain:
            return {names.DESIRED_DRAIN: drain, names.STATE: names.NodeState.WORKING.value}
        return (
            {names.CURRENT_CONFIG: desired, names.DESIRED_DRAIN: f"{names.UNCORDON}-{desired}"}
            if applied == drain
            else {}
        )
    if notes.get(names.STATE) != names.NodeState.DONE.value and applied == requested:
        return {names.STATE: names.NodeState.DONE.value}
    return {}


async def roll_out(size: int, settle: Callable[[], None] = lambda: None) -> dict[str, float]:
    """One rollout; CPU per node and how long it took in both times. `settle` is called before the clock starts."""
    return await in_world(lambda world, machines: world.measure(size, machines, settle))


async def in_world(
    measure: Callable[[World, Machines], Awaitable[dict[str, float]]], builder: MakeBuilder = nobody_builds
) -> dict[str, float]:
    """What something measures in a control plane of its own, with virtual time and machines that are played."""
    calendar, entropy = Calendar(), SystemEntropy()
    with tempfile.TemporaryDirectory(prefix="fastness-bench-") as directory:
        async with (
            open_apiserver(ServerOptions(Path(directory) / "state"), PRODUCT) as server,
            Informers(server.cluster, clock=calendar, entropy=entropy) as informers,
        ):
            loops = kube_loops(
                server.cluster, Inventory(server.api), calendar, server.pki.bundle.decode(), WITHOUT_OWNERS
            )
            own = product_loops(server.cluster, informers, calendar, entropy, builder=builder)
            controllers = [*loops.controllers, *own]
            runner = Runner(controllers, informers, calendar, entropy, feeds=loops.feeds)
            nodes = informers.of(NODES)
            machines = Machines(server.cluster, nodes)
            tasks = [
                asyncio.create_task(runner.run()),
                *(asyncio.create_task(machines.play()) for _ in range(AGENTS)),
            ]
            world = World(server.cluster, calendar, lambda: runner.idle and machines.idle, informers)
            try:
                return await measure(world, machines)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


class World:
    """The cluster, and the time in it."""

    def __init__(self, cluster: Cluster, calendar: Calendar, idle: Callable[[], bool], informers: Informers) -> None:
        self.cluster = cluster
        self.calendar = calendar
        self.informers = informers
        self._idle = idle
        self._pools = informers.of(POOLS)

    async def measure(self, size: int, machines: Machines, settle: Callable[[], None]) -> dict[str, float]:
        for config in configs.machine_configs(5, 50, 10):
            await self.cluster.create(CONFIGS, config)
        await self.until(lambda: len(self.configuration().get("source") or ()) >= 8)
        await self.cluster.patch(POOLS, configs.ROLE, {"spec": {"maxUnavailable": "10%"}}, PatchType.MERGE)
        first = self.configuration()["name"]
        for number in range(size):
            node = configs.node(number, first)
            await self.cluster.create(NODES, node)
            await self.cluster.create(PODS, configs.pod(number, node["metadata"]["name"]))
        await self.until(lambda: self.updated() == size and self.has(first))
        settle()
        machines.begin()
        began, spent, day = time.monotonic(), time.process_time(), self.calendar.monotonic()
        await self.cluster.create(CONFIGS, configs.machine_config("60-new", [configs.file("/etc/motd", "hello")]))
        await self.until(lambda: self.configuration()["name"] != first)
        goal = self.configuration()["name"]
        await self.until(lambda: self.updated() == size and self.has(goal))
        cpu = time.process_time() - spent
        return {
            "ms_per_node": 1000 * cpu / size,
            "seconds": time.monotonic() - began,
            "virtual_minutes": (self.calendar.monotonic() - day) / 60,
        }

    def _pool(self) -> JsonObject:
        return self._pools.get("", configs.ROLE) or {}

    def configuration(self) -> JsonObject:
        configuration: JsonObject = (self._pool().get("spec") or {}).get("configuration") or {}
        return configuration

    def updated(self) -> int:
        return int((self._pool().get("status") or {}).get("updatedMachineCount") or 0)

    def has(self, config: str) -> bool:
        return ((self._pool().get("status") or {}).get("configuration") or {}).get("name") == config

    async def until(self, holds: Callable[[], bool]) -> None:
        """Let time pass until something holds: real time while there is work, virtual time when there is none."""
        async with asyncio.timeout(PATIENCE):
            quiet = 0
            while not holds():
                quiet = quiet + 1 if self._idle() else 0
                if quiet >= 3:
                    self.calendar.move()
                    quiet = 0
                await asyncio.sleep(0.01 if quiet == 0 else 0.002)


def settled_memory() -> None:
    """What `fastness up` does when it is ready: what is there stays, and the collector comes less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 20, 50)


def main() -> None:
    """`python -m bench.rollouts NODES`: what `figures` reads."""
    import uvloop

    sys.stdout.buffer.write(orjson.dumps(uvloop.run(roll_out(int(sys.argv[1]), settled_memory))))


if __name__ == "__main__":
    main()
