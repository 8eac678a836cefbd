"""Feature rules: CPU of a thousand rules on five thousand nodes, and of one node's change; in a process of its own.

`python -m bench.features ROUNDS` prints microseconds by name. No two nodes agree: each has flags, modules, attributes and devices
of its own, so that nothing but what rules name can be shared between them. The rules are of all kinds that the field uses.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import orjson

from bench.figures import RULES as ALL
from bench.figures import RULES_TWICE as TWICE
from bench.figures import Progress, Single, Spread
from fastness.workloads.features.book import RuleBook
from fastness.workloads.features.discovered import Features
from fastness.workloads.features.operators import Expression
from fastness.workloads.features.rules import Rule, Term

RULES, NODES = 1000, 5000
AIM_SECONDS = 4.0
HALF = f"the same on {NODES // 2} nodes: CPU"
ONE = f"{RULES} feature rules on one node that changed: CPU"
COMPILE = f"compile {RULES} feature rules: CPU"
ROOT = Path(__file__).resolve().parent.parent


def figures(say: Progress, rounds: int) -> list[Single]:
    """Every figure, measured in a process that does nothing else."""
    say("feature rules")
    command = [sys.executable, "-m", "bench.features", str(max(3, rounds))]
    done = subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    spreads = {name: Spread.of(values) for name, values in orjson.loads(done.stdout).items()}
    return [
        Single(ALL, spreads[ALL], "s", AIM_SECONDS),
        Single(HALF, spreads[HALF], "s"),
        Single(TWICE, spreads[TWICE], "×"),
        Single(ONE, spreads[ONE], "µs"),
        Single(COMPILE, spreads[COMPILE], "s"),
    ]


def rules(count: int, seed: int = 1) -> list[Rule]:
    """Rules on flags, modules, attributes and devices; some match on most nodes, most on few."""
    dice = random.Random(seed)
    return [_rule(number, dice) for number in range(count)]


def _rule(number: int, dice: random.Random) -> Rule:
    flags = tuple((f"FLAG{dice.randrange(400)}", Expression("Exists")) for _ in range(dice.choice((1, 2, 3))))
    modules = ((f"module_{dice.randrange(400)}", Expression(dice.choice(("Exists", "Exists", "DoesNotExist")))),)
    device = (
        ("vendor", Expression("In", (f"{dice.randrange(64):04x}",))),
        ("class", Expression("In", ("0300", "0302"))),
    )
    major = (("major", Expression("Ge", (str(dice.randrange(4, 8)),))),)
    terms = dice.choice(
        (
            (Term("cpu.cpuid", flags), Term("kernel.loadedmodule", modules)),
            (Term("cpu.cpuid", flags), Term("kernel.version", major)),
            (Term("pci.device", device),),
            (Term("kernel.config", ((f"OPTION_{dice.randrange(600)}", Expression("In", ("y", "m"))),)),),
        )
    )
    either = ((Term("cpu.cpuid", flags),), (Term("kernel.loadedmodule", modules),)) if number % 5 == 0 else ()
    resources = {f"example.com/r{number}": "@cpu.security.keys"} if number % 50 == 0 else {}
    return Rule(f"rule-{number}", {f"example.com/l{number}": "true"}, terms=terms, any_of=either, resources=resources)


def nodes(count: int, seed: int = 2) -> list[Features]:
    """Nodes of which no two agree."""
    dice = random.Random(seed)
    return [_node(number, dice) for number in range(count)]


def _node(number: int, dice: random.Random) -> Features:
    devices = tuple(
        {
            "class": dice.choice(("0300", "0302", "0200", "0604")),
            "vendor": f"{dice.randrange(64):04x}",
            "device": f"{at:04x}",
        }
        for at in range(8)
    )
    return Features(
        {
            "cpu.cpuid": frozenset(f"FLAG{flag}" for flag in dice.sample(range(400), 120)),
            "kernel.loadedmodule": frozenset(f"module_{module}" for module in dice.sample(range(400), 100)),
        },
        {
            "kernel.version": {"major": str(dice.randrange(4, 8)), "full": f"6.1.{number}"},
            "kernel.config": {f"OPTION_{option}": dice.choice("ym") for option in dice.sample(range(2000), 300)},
            "cpu.security": {"keys": str(number)},
            "system.name": {"nodename": f"node-{number}"},
        },
        {"pci.device": devices},
    )  # fmt: skip


def measured(rounds: int) -> dict[str, list[float]]:
    """Seconds or microseconds of CPU by name, and how much more twice the nodes cost."""
    result: dict[str, list[float]] = {ALL: [], HALF: [], ONE: [], COMPILE: []}
    given, machines = rules(RULES), nodes(NODES)
    for _ in range(rounds):
        began = time.process_time()
        book = RuleBook(given)
        result[COMPILE].append(time.process_time() - began)
        began = time.process_time()
        labels = sum(len(book.run(machine).labels) for machine in machines[: NODES // 2])
        result[HALF].append(time.process_time() - began)
        book = RuleBook(given)
        began = time.process_time()
        labels = sum(len(book.run(machine).labels) for machine in machines)
        result[ALL].append(time.process_time() - began)
        assert labels > NODES, "the rules match too little to measure anything"
        began = time.process_time()
        for machine in machines[:50]:
            book.run(machine)
        result[ONE].append(1e6 * (time.process_time() - began) / 50)
    return {**result, TWICE: [whole / half for whole, half in zip(result[ALL], result[HALF], strict=True)]}


if __name__ == "__main__":
    sys.stdout.buffer.write(orjson.dumps(measured(int(sys.argv[1]))))
