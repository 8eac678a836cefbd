"""A rollout in an enforcing pool, doors included: what the control plane spends per node when every machine fetches at the gate.

The world is that of `bench.rollouts`: embedded API, store on disk, all controllers, virtual time; beside them config server,
enrolment, broker and gate, in one process as in `fastness up`. The machines are a process of their own: before the rollout each
enrols and attests over the real protocol, and in it each fetches its rendered config from the gate over a connection of its own,
with its token and a proof for this request, and checks the signature. What the rest of an agent tells the API is played in the
first process, as in `bench.rollouts`.

    python -m bench.enforcing NODES        one figure: CPU of the first process per node, and of the machines beside it
    python -m bench.enforcing machines     the machines; reads what to do from its input

Tokens and proofs outlive the rollout here, so no machine attests within it: `bench.delivery` tells what an attestation costs.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import orjson

from bench import configs
from bench.accounting import cpu_seconds
from bench.deliverytalk import ENTROPY, PATIENCE, POOL, TEES, say
from bench.figures import Progress, Single, Spread
from bench.rollouts import AGENTS, CONFIGS, NODES, PODS, POOLS, ROOT, Calendar, Machines, World, settled_memory
from bench.serving import ACCEPT
from fastness.agent.boot.boot import BootRequest, boot_once
from fastness.agent.boot.configs import AttestedConfigs
from fastness.agent.boot.enrol import Doors, RetryBudget
from fastness.agent.boot.image_trust import ImageTrust
from fastness.apiserver import ApiServer, ServerOptions, open_apiserver
from fastness.apiserver.inventory import Inventory
from fastness.apiserver.loops.controllers import kube_loops
from fastness.app.controllers import product_loops
from fastness.app.product import PRODUCT
from fastness.attestation.admission.trusted_objects import WITHOUT_OWNERS
from fastness.attestation.loops.door_certificates import FAMILY, issuing
from fastness.crypto.secret import SecretText
from fastness.enrolment.door.pace import Pace
from fastness.enrolment.door.server import enrolment_door
from fastness.enrolment.live.enrolments import DoorUrls
from fastness.enrolment.live.tickets import join_ticket, mint
from fastness.formats import json
from fastness.http.opening import ListenOptions
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject, Kind
from fastness.kinds.machineconfiguration import names
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.controllers import Runner
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster, PatchType
from fastness.record.live.record import ClusterRecord
from fastness.record.live.tiles import FileTiles
from fastness.release.door.broker.opening import broker_door
from fastness.release.door.config_server.server import config_server
from fastness.release.door.gate.server import gate
from fastness.runtime.clock import SystemClock
from fastness.sim.announce import announce_vendor
from fastness.sim.tee import SimVendor, default_image
from fastness.sim.tee.attester import SimAttester

SIZE, ROUNDS = 500, 3
TARGET_MS = 18.0
LONG = "24h"  # tokens and proofs: longer than any rollout here takes
AT_ONCE = 24


def figures(say: Progress, size: int = SIZE, rounds: int = ROUNDS) -> list[Single]:
    """CPU per node with doors, beside the same rollout in a pool that does not enforce, in turns."""
    enforcing: list[dict[str, float]] = []
    plain: list[dict[str, float]] = []
    for number in range(rounds):
        say(f"rollout over {size:,} nodes of an enforcing pool, doors included, round {number + 1} of {rounds}")
        for module, results in (("bench.enforcing", enforcing), ("bench.rollouts", plain)):
            command = [sys.executable, "-m", module, str(size)]
            results.append(orjson.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout))
    name = f"rollout over {size:,} nodes that enforce, doors included"
    costs = [figure["ms_per_node"] for figure in enforcing]
    ratios = [figure["ms_per_node"] / other["ms_per_node"] for figure, other in zip(enforcing, plain, strict=True)]
    return [
        Single(f"{name}: CPU per node", Spread.of(costs), "ms", TARGET_MS),
        Single("the same in the round that cost least", Spread.of([min(costs)]), "ms"),
        Single("beside the same in a pool that does not enforce", Spread.of(ratios), "×"),
        Single(
            "the machines' own CPU in it, per node", Spread.of([figure["machines_ms"] for figure in enforcing]), "ms"
        ),
    ]


class Fleet:
    """The machines' process, as the first one talks to it: many requests at a time, each with a number."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._count = 0
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    @asynccontextmanager
    async def started(cls) -> AsyncIterator[Self]:
        """The process, for the time of the block."""
        command = (sys.executable, "-m", "bench.enforcing", "machines")
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, cwd=ROOT, limit=2**24)
        fleet = cls(process)
        try:
            yield fleet
        finally:
            fleet._listening.cancel()
            process.kill()
            await process.wait()

    async def ask(self, **message: Any) -> Any:
        """Let the machines do something, and wait for what comes of it."""
        self._count += 1
        answer = self._waiting[self._count] = asyncio.get_running_loop().create_future()
        assert self.process.stdin is not None
        self.process.stdin.write(orjson.dumps({**message, "id": self._count}) + b"\n")
        return await answer

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            message = orjson.loads(line)
            self._waiting.pop(message["id"]).set_result(message["answer"])
        for answer in self._waiting.values():
            answer.set_exception(RuntimeError("the machines have ended"))


class FetchingMachines(Machines):
    """Machines whose agents get a rendered config from the gate before they ask for a drain."""

    def __init__(self, cluster: Cluster, nodes: Informer, fleet: Fleet, calendar: Calendar) -> None:
        super().__init__(cluster, nodes)
        self._fleet = fleet
        self._calendar = calendar

    async def prepare(self, name: str, notes: Mapping[str, str]) -> None:
        """Fetch the config that the node was told to go to."""
        verb, _, rendered = notes.get(names.DESIRED_DRAIN, "").partition("-")
        if verb == names.DRAIN:
            await self.fetch(name, rendered)

    async def fetch(self, name: str, rendered: str) -> None:
        """Let the machine of a node fetch a rendered config."""
        await self._fleet.ask(fetch=name, rendered=rendered, now=self._calendar.now().timestamp())


async def roll_out(size: int) -> dict[str, float]:
    """One rollout; CPU per node of the control plane with its doors, and of the machines."""
    calendar = Calendar(datetime.now(UTC), flows=True)
    with tempfile.TemporaryDirectory(prefix="fastness-bench-") as directory:
        async with (
            open_apiserver(ServerOptions(Path(directory) / "state"), PRODUCT) as server,
            AsyncExitStack() as stack,
        ):
            return await _measured(stack, server, Path(directory), calendar, size)


async def _measured(
    stack: AsyncExitStack, server: ApiServer, directory: Path, calendar: Calendar, size: int
) -> dict[str, float]:
    cluster, enter = server.cluster, stack.enter_async_context
    ticket = await _furnish(cluster, calendar.now())
    informers = await enter(Informers(cluster, clock=calendar, entropy=ENTROPY))
    await enter(issuing(cluster, informers, calendar, ENTROPY))
    where = await _doors(stack, server, informers, calendar)
    loops = kube_loops(cluster, Inventory(server.api), calendar, server.pki.bundle.decode(), WITHOUT_OWNERS)
    tiles = FileTiles(directory / "record")
    product = product_loops(cluster, informers, calendar, ENTROPY, tiles=tiles, without=(FAMILY,))
    runner = Runner([*loops.controllers, *product], informers, calendar, ENTROPY, feeds=loops.feeds)
    fleet = await enter(Fleet.started())
    machines = FetchingMachines(cluster, informers.of(NODES), fleet, calendar)
    world = World(cluster, calendar, lambda: runner.idle and machines.idle, informers)
    tasks = [asyncio.create_task(runner.run()), *(asyncio.create_task(machines.play()) for _ in range(AGENTS))]
    try:
        first = await _installed(world, machines, fleet, {**where, "ticket": ticket}, size)
        return await _rolled_out(world, machines, fleet, first, size)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _furnish(cluster: Cluster, now: datetime) -> str:
    """A simulated cluster that enforces, what its machines boot, and a ticket for them."""

    async def make(kind: Kind, name: str, spec: Any) -> None:
        meta = {"name": name}
        await cluster.create(
            kind.resource, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}
        )

    attestation = {"tokenLifetime": LONG, "reattestInterval": LONG}
    await make(CONFIDENTIAL_CLUSTER, "cluster", {"mode": "Enforce", "simulated": True, "attestation": attestation})
    await announce_vendor(cluster, SimVendor(), now)
    for tee in TEES:
        await make(REFERENCE_VALUE_SET, tee, {"source": "manual", "values": default_image().reference_values(tee)})
    ticket = mint(ENTROPY)
    await cluster.create(JOIN_TICKET.resource, join_ticket("storm", ticket, POOL, now + timedelta(days=1), 0))
    return ticket.reveal()


async def _doors(stack: AsyncExitStack, server: ApiServer, informers: Informers, clock: Calendar) -> dict[str, Any]:
    """All doors of machines, as `fastness up` has them; where they are, and whom an image believes."""
    cluster, enter, urls = server.cluster, stack.enter_async_context, [DoorUrls()]
    authorities = lambda: server.pki.client_authorities  # noqa: E731
    served = await enter(config_server(cluster, informers, clock, ENTROPY, ListenOptions(), authorities))
    pace = Pace.of(1e6)
    enrolment = await enter(enrolment_door(cluster, informers, clock, ENTROPY, urls=lambda: urls[0], pace=pace))
    broker, _ = await enter(broker_door(cluster, informers, clock, ENTROPY, cipher=server.vault, configs=served.served))
    record = ClusterRecord(cluster, clock, ENTROPY, "gate")
    keeper = await enter(gate(cluster, informers, served.served, record, clock, ENTROPY, ListenOptions()))
    urls[0] = DoorUrls(f"https://127.0.0.1:{broker.port}", f"https://127.0.0.1:{keeper.port}")
    return {
        "enrolment": f"https://127.0.0.1:{enrolment.port}", "broker": urls[0].broker, "gate": urls[0].gate,
        "trust": {"ca": served.doors.bundle, "configKeys": served.served.signer.jwks()},
    }  # fmt: skip


async def _installed(world: World, machines: FetchingMachines, fleet: Fleet, where: JsonObject, size: int) -> str:
    """Machines that attested and joined, each with a live token and a pod; the config that they have."""
    for config in configs.machine_configs(5, 50, 10):
        await world.cluster.create(CONFIGS, config)
    await world.until(lambda: len(world.configuration().get("source") or ()) >= 8)
    await world.cluster.patch(POOLS, configs.ROLE, {"spec": {"maxUnavailable": "10%"}}, PatchType.MERGE)
    first = str(world.configuration()["name"])
    booting = asyncio.create_task(fleet.ask(boot=size, where=where))
    while not booting.done():
        world.calendar.wake()
        await asyncio.sleep(0.02)
    for number, name in enumerate(booting.result()):
        node = configs.node(number, first)
        node["metadata"]["name"] = name
        await world.cluster.create(NODES, node)
        await world.cluster.create(PODS, configs.pod(number, name))
    objects = world.informers.of(MACHINE.resource)

    def assigned() -> bool:
        return (
            sum(bool((machine.get("status") or {}).get("desiredConfig") == first) for machine in objects.list()) == size
        )

    await world.until(lambda: world.updated() == size and world.has(first) and assigned())
    for some in _batches(booting.result()):
        await asyncio.gather(*(machines.fetch(name, first) for name in some))
    return first


async def _rolled_out(
    world: World, machines: FetchingMachines, fleet: Fleet, first: str, size: int
) -> dict[str, float]:
    settled_memory()
    machines.begin()
    began, day = time.monotonic(), world.calendar.monotonic()
    spent, theirs = time.process_time(), cpu_seconds([fleet.process.pid])
    await world.cluster.create(CONFIGS, configs.machine_config("60-new", [configs.file("/etc/motd", "hello")]))
    await world.until(lambda: world.configuration()["name"] != first)
    goal = str(world.configuration()["name"])
    await world.until(lambda: world.updated() == size and world.has(goal))
    return {
        "ms_per_node": 1000 * (time.process_time() - spent) / size,
        "machines_ms": 1000 * (cpu_seconds([fleet.process.pid]) - theirs) / size,
        "seconds": time.monotonic() - began,
        "virtual_minutes": (world.calendar.monotonic() - day) / 60,
    }


def _batches(items: Sequence[str]) -> list[Sequence[str]]:
    return [items[start : start + AT_ONCE] for start in range(0, len(items), AT_ONCE)]


class ToldClock(SystemClock):
    """The time of the control plane, as it was told last."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def tell(self, now: float) -> None:
        """It is this late there."""
        self._ahead = now - time.time()

    def now(self) -> datetime:
        """The time there."""
        return super().now() + timedelta(seconds=self._ahead)


class Rack:
    """The machines themselves: real agents' code, simulated chips."""

    def __init__(self) -> None:
        self._clock = ToldClock()
        self._configs: dict[str, AttestedConfigs] = {}

    async def boot(self, count: int, where: JsonObject) -> list[str]:
        """Boot so many machines; the names of their nodes."""
        vendor, trust = SimVendor(), ImageTrust.parse(json.encode(where["trust"]))
        ask = BootRequest(POOL, SecretText(where["ticket"]), where["enrolment"], ACCEPT)
        doors = Doors(where["broker"], where["gate"])
        patience, numbers = RetryBudget(SystemClock(), ENTROPY, PATIENCE, pause=0.5), iter(range(count))

        async def some() -> None:
            for number in numbers:
                attester = SimAttester(vendor.chip(TEES[number % len(TEES)]).boot(default_image()))
                booted = await boot_once(attester, ask, trust, patience)
                self._configs[booted.node_name] = AttestedConfigs(
                    attester, lambda: doors, lambda: trust, self._clock, ENTROPY
                )

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(some())
        return sorted(self._configs)

    async def fetch(self, node: str, rendered: str, now: float) -> str:
        """Fetch a rendered config as the agent of a node does; its name."""
        self._clock.tell(now)
        return str((await self._configs[node].fetch(rendered))["metadata"]["name"])


async def machines() -> None:
    """The machines, until the input ends."""
    rack = Rack()
    settled_memory()

    async def do(message: JsonObject) -> None:
        if "boot" in message:
            answer: Any = await rack.boot(message["boot"], message["where"])
        else:
            answer = await rack.fetch(message["fetch"], message["rendered"], message["now"])
        say({"id": message["id"], "answer": answer})

    reader = asyncio.StreamReader(limit=2**24)
    pipe = os.fdopen(0, "rb", buffering=0)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    async with asyncio.TaskGroup() as group:
        while line := await reader.readline():
            group.create_task(do(orjson.loads(line)))


def main() -> None:
    """`python -m bench.enforcing NODES`: what `figures` reads."""
    import uvloop

    if sys.argv[1] == "machines":
        uvloop.run(machines())
        return
    sys.stdout.buffer.write(orjson.dumps(uvloop.run(roll_out(int(sys.argv[1])))))


if __name__ == "__main__":
    main()
