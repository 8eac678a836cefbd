"""Figures that need no peer beside them: starting, resting, the command line, creating in process.

* Time to ready, idle memory and idle CPU come from several starts of `fastness up` on new directories.
* The cost of the command is CPU above a Python that does nothing, so it is the same on a busy machine.
* `create_in_process` runs in a process of its own: the engine without HTTP, durable, with 64 tasks.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson

from bench.accounting import child_cpu
from bench.cases import OBJECT, PATH
from bench.figures import Progress, Single, Spread
from bench.targets import Target, ours

STARTS = 3
IDLE_SECONDS = 4.0
RUNS = 10
TASKS = 64
MIB = 1024 * 1024


def starting(directory: Path, say: Progress, peer: Target | None) -> list[Single]:
    """Time to ready, memory and CPU of a control plane that nobody talks to."""
    ready: list[float] = []
    memory: list[float] = []
    idle: list[float] = []
    spent: list[float] = []
    for number in range(STARTS):
        say(f"start {number + 1} of {STARTS}")
        with ours(directory / f"start-{number}") as target:
            ready.append(target.ready_seconds)
            before = target.cpu()
            spent.append(before)
            time.sleep(IDLE_SECONDS)
            idle.append(1000 * (target.cpu() - before) / IDLE_SECONDS)
            memory.append(target.memory() / MIB)
    return [
        Single("time to ready", Spread.of(ready), "s", 2.0, peer=peer.ready_seconds if peer else None),
        Single("CPU until ready, with the account of the load", Spread.of(spent), "s"),
        Single("memory, idle", Spread.of(memory), "MiB", 150.0, peer=peer.memory() / MIB if peer else None),
        Single("CPU, idle", Spread.of(idle), "ms per s"),
    ]


def command_line(say: Progress) -> list[Single]:
    """CPU of `fastness --help` above bare Python."""
    say("fastness --help")
    command = [str(Path(sys.executable).with_name("fastness")), "--help"]
    bare = [sys.executable, "-c", "pass"]
    above = [1000 * (child_cpu(command) - child_cpu(bare)) for _ in range(RUNS)]
    return [Single("fastness --help, CPU above bare Python", Spread.of(above), "ms", 120.0)]


def in_process(say: Progress, count: int, peer_rate: float | None) -> list[Single]:
    """Creates per second without HTTP, and how many times the peer's rate over HTTPS that is."""
    say("create in process")
    command = [sys.executable, "-m", "bench.solo", str(count)]
    done = subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).resolve().parent.parent)
    rounds = orjson.loads(done.stdout)
    rate = Spread.of([measured["rate"] for measured in rounds])
    figures = [
        Single("create in process, 64 tasks", rate, "per s", peer=peer_rate),
        Single("create in process, CPU", Spread.of([measured["cpu_us"] for measured in rounds]), "µs"),
    ]
    if peer_rate:
        times = Spread(rate.median / peer_rate, rate.low / peer_rate, rate.high / peer_rate)
        figures.append(Single("create in process over the peer's HTTPS rate", times, "×", 4.0, at_most=False))
    return figures


async def create_in_process(count: int, rounds: int = 5) -> list[dict[str, float]]:
    """Rate and CPU of durable creates through the engine, round by round."""
    from fastness.apiserver.call import Call
    from fastness.app.embedded import PlaneOptions, running
    from fastness.kube.access import User

    user = User("system:serviceaccount:default:bench", ("system:authenticated",))
    results = []
    with tempfile.TemporaryDirectory(prefix="fastness-bench-") as directory:
        async with running(PlaneOptions(state=Path(directory))) as plane:
            await plane.wait_ready(60.0)
            api = plane.server.api
            group, version, plural = PATH.split("/")[2:]
            served = api.served(group, version, plural)

            async def create_all(bodies: list[str]) -> None:
                for body in bodies:
                    await api.create(Call(user=user, manager="bench"), served, "", orjson.loads(body))

            for number in range(rounds):
                texts = [(OBJECT % "blue").replace("{n}", f"{number * count + each:06d}") for each in range(count)]
                began, spent = time.monotonic(), time.process_time()
                async with asyncio.TaskGroup() as group_of_tasks:
                    for task in range(TASKS):
                        group_of_tasks.create_task(create_all(texts[task::TASKS]))
                seconds, cpu = time.monotonic() - began, time.process_time() - spent
                results.append({"rate": count / seconds, "cpu_us": 1e6 * cpu / count})
    return results


def main() -> None:
    """`python -m bench.solo COUNT`: what `in_process` reads."""
    import uvloop

    sys.stdout.buffer.write(orjson.dumps(uvloop.run(create_in_process(int(sys.argv[1])))))


if __name__ == "__main__":
    main()
