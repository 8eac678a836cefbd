"""Render, render again, serve cold, plan: CPU of pure functions, in a process of its own.

`python -m bench.rendering ROUNDS` prints the figures that `figures` reads: lists of milliseconds by name.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from bench import configs
from bench.figures import RENDER, Progress, Single, Spread
from fastness.machineconfig.render.inputs import Defaults
from fastness.machineconfig.render.render import Rendered, Setting, render
from fastness.machineconfig.render.validate import Examined, examine
from fastness.machineconfig.rollout.plan import Proposal, State, plan
from fastness.machineconfig.serving import document

NODES = 5000
UPSTREAM_RENDER_MS, UPSTREAM_SERVE_MS = 116.0, 118.0  # the best of its figures; see the page
RERENDER = "render again after one of 20 configs changed: CPU"
LARGE = "render 100 configs, 1,500 files, 300 units: CPU"
COLD = "first answer after a new config (encoded once, then kept): CPU"
PLAN = "plan for 5,000 nodes and 5,000 pods: CPU"
ROOT = Path(__file__).resolve().parent.parent


def figures(say: Progress, rounds: int) -> list[Single]:
    """Every figure, measured in a process that does nothing else."""
    say("render and plan")
    command = [sys.executable, "-m", "bench.rendering", str(max(5, 3 * rounds))]
    done = subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    spreads = {name: Spread.of(values) for name, values in orjson.loads(done.stdout).items()}
    times = spreads[LARGE].median / spreads[RENDER].median
    return [
        Single(RENDER, spreads[RENDER], "ms", 12.0, peer=UPSTREAM_RENDER_MS),
        Single(LARGE, spreads[LARGE], "ms"),
        Single("five times as many configs and files cost", Spread(times, times, times), "×", 7.5),
        Single(RERENDER, spreads[RERENDER], "ms"),
        Single(COLD, spreads[COLD], "ms", peer=UPSTREAM_SERVE_MS),
        Single(PLAN, spreads[PLAN], "ms", 1000.0),
    ]


def measured(rounds: int) -> dict[str, list[float]]:
    """Milliseconds of CPU by name, every round with objects that nobody has seen before."""
    small = orjson.dumps(configs.machine_configs(20, 300, 60))
    large = orjson.dumps(configs.machine_configs(100, 1500, 300))
    pool = configs.pool()
    first = _rendered(pool, orjson.loads(small))
    manifest = orjson.dumps(first.manifest(pool, Defaults()))
    return {
        RENDER: _each(rounds, lambda: orjson.loads(small), lambda parsed: render(pool, parsed)),
        LARGE: _each(rounds, lambda: orjson.loads(large), lambda parsed: render(pool, parsed)),
        RERENDER: _each(
            rounds, lambda: _known(orjson.loads(small)), lambda prepared: render(pool, prepared[0], prepared[1])
        ),
        COLD: _each(rounds, lambda: orjson.loads(manifest), lambda parsed: document(parsed, "3.4.0")),
        PLAN: _each(max(3, rounds // 3), lambda: _planning(orjson.loads(small)), lambda prepared: plan(*prepared)),
    }


def _each(rounds: int, prepare: Callable[[], Any], work: Callable[[Any], Any]) -> list[float]:
    spent = []
    for _ in range(rounds):
        given = prepare()
        began = time.process_time()
        work(given)
        spent.append(1000 * (time.process_time() - began))
    return spent


def _rendered(pool: configs.Object, machine_configs: list[configs.Object]) -> Rendered:
    result = render(pool, machine_configs)
    assert isinstance(result, Rendered), result
    return result


def _known(machine_configs: list[configs.Object]) -> tuple[list[configs.Object], Setting]:
    """All configs examined before, as the controller keeps them; then one is replaced."""
    examined: dict[int, Examined] = {id(config): examine(config) for config in machine_configs}
    changed = configs.machine_config("50-bench-007", [configs.file(f"/etc/changed/{n}") for n in range(15)])

    def remembered(config: Any, trust: Any) -> Examined:
        return examined.get(id(config)) or examine(config, trust)

    after = [changed if config["metadata"]["name"] == "50-bench-007" else config for config in machine_configs]
    return after, Setting(examine=remembered)


def _planning(machine_configs: list[configs.Object]) -> tuple[State, Proposal]:
    """A cluster of 5,000 machines with a pod on each, and a change of one file."""
    bare = configs.pool()
    now = _rendered(bare, machine_configs).manifest(bare, Defaults())
    current = now["metadata"]["name"]
    nodes = [configs.node(number, current) for number in range(NODES)]
    pods = [configs.pod(number, f"node-{number:05}") for number in range(NODES)]
    budgets = [
        {"metadata": {"name": f"app-{n}", "namespace": "default"},
         "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": f"app-{n}"}}}}
        for n in range(10)
    ]  # fmt: skip
    state = State([configs.pool(current)], [*machine_configs, now], nodes, pods, budgets)
    return state, Proposal([configs.machine_config("60-new", [configs.file("/etc/motd", "hello")])])


if __name__ == "__main__":
    sys.stdout.buffer.write(orjson.dumps(measured(int(sys.argv[1]))))
