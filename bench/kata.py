"""A KataConfig over many machines in virtual time: what the control plane spends per node until all of them have the runtime.

The same world as in `bench.rollouts`: the embedded API, its store on disk and all controllers as in `fastness up`, a virtual
clock with the waiting times of the field, machines that are played. Every machine is labelled into the pool `kata-oc`,
drained, updated, put back and counted; the KataConfig tells all of it, and the runtime classes appear. A tenth of the pool
may be away, as in the other figure.

`python -m bench.kata NODES` prints one figure; `figures` runs it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import orjson

from bench import configs
from bench.figures import Progress, Single, Spread
from bench.rollouts import CONFIGS, NODES, PODS, POOLS, Machines, World, in_world, settled_memory
from fastness.kinds.kata.config import KATA_CONFIG
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition
from fastness.workloads.kata.objects import kata_pool

SIZE = 500
KATA = KATA_CONFIG.resource
NAME = "bench"
FIGURE = f"KataConfig over {SIZE} machines, control plane: CPU per node"
ROOT = Path(__file__).resolve().parent.parent


def figures(say: Progress) -> list[Single]:
    """CPU per node, in a process that does nothing else."""
    say(f"KataConfig over {SIZE} machines in virtual time")
    command = [sys.executable, "-m", "bench.kata", str(SIZE)]
    measured = orjson.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout)
    return [Single(FIGURE, Spread.of([measured["ms_per_node"]]), "ms")]


async def install(world: World, machines: Machines, size: int, settle: Callable[[], None]) -> dict[str, float]:
    """One installation; CPU per node and how long it took in both times."""
    cluster = world.cluster
    for config in configs.machine_configs(5, 50, 10):
        await cluster.create(CONFIGS, config)
    await world.until(lambda: len(world.configuration().get("source") or ()) >= 8)
    first = world.configuration()["name"]
    for number in range(size):
        node = configs.node(number, first)
        await cluster.create(NODES, node)
        await cluster.create(PODS, configs.pod(number, node["metadata"]["name"]))
    await world.until(lambda: world.updated() == size and world.has(first))
    pool = kata_pool().obj
    await cluster.create(POOLS, {**pool, "spec": {**pool["spec"], "maxUnavailable": "10%"}})
    settle()
    machines.begin()
    kata = world.informers.of(KATA)
    began, spent, day = time.monotonic(), time.process_time(), world.calendar.monotonic()
    body = {"apiVersion": KATA_CONFIG.api_version, "kind": "KataConfig", "metadata": {"name": NAME}, "spec": {}}
    await cluster.create(KATA, body)
    await world.until(lambda: is_done(kata.get("", NAME) or {}, size))
    cpu = time.process_time() - spent
    return {
        "ms_per_node": 1000 * cpu / size,
        "seconds": time.monotonic() - began,
        "virtual_minutes": (world.calendar.monotonic() - day) / 60,
    }


def is_done(config: JsonObject, size: int) -> bool:
    """Whether every machine has the runtime and the config says so."""
    progress = condition(config, "InProgress") or {}
    ready = ((config.get("status") or {}).get("kataNodes") or {}).get("readyNodeCount")
    return (progress.get("status"), progress.get("reason"), ready) == ("False", "", size)


def main() -> None:
    """`python -m bench.kata NODES`: what `figures` reads."""
    import uvloop

    size = int(sys.argv[1])
    sys.stdout.buffer.write(
        orjson.dumps(uvloop.run(in_world(lambda world, machines: install(world, machines, size, settled_memory))))
    )


if __name__ == "__main__":
    main()
