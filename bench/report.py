"""Results as a file, as a table on the terminal, and as docs/performance.md.

A result file holds every sample, so that the page and the table can be made again without measuring again.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson

from bench.curves import Point
from bench.figures import Gate, Measure, Row, Sample, Single, Spread, gates
from bench.targets import OURS

MIB = 1024 * 1024


@dataclass(slots=True)
class Results:
    """One run of the benchmark."""

    command: str
    date: str
    machine: dict[str, str]
    rounds: int
    rows: list[Row] = field(default_factory=list)
    singles: list[Single] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)

    @property
    def gates(self) -> list[Gate]:
        """The gates of this run."""
        return gates(self.rows, self.singles)

    def onto(self, earlier: Results) -> Results:
        """This run, with what an earlier one measured and this one did not."""
        rows = {row.name: row for row in [*earlier.rows, *self.rows]}
        singles = {single.name: single for single in [*earlier.singles, *self.singles]}
        command = "\n".join(dict.fromkeys([*earlier.command.splitlines(), self.command]))
        return Results(
            command, self.date, self.machine, self.rounds, list(rows.values()), list(singles.values()),
            self.points or earlier.points,
        )  # fmt: skip

    def to_bytes(self) -> bytes:
        """The result file."""
        document = {
            "command": self.command, "date": self.date, "machine": self.machine, "rounds": self.rounds,
            "gates": [{**asdict(gate), "verdict": gate.verdict} for gate in self.gates],
            "rows": [row.to_json() for row in self.rows],
            "singles": [asdict(single) for single in self.singles],
            "curves": [point.to_json() for point in self.points],
        }  # fmt: skip
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    @classmethod
    def from_bytes(cls, data: bytes) -> Results:
        """A run out of its file."""
        document = orjson.loads(data)
        return cls(
            document["command"], document["date"], document["machine"], document["rounds"],
            [Row.from_json(row) for row in document["rows"]],
            [Single(**{**single, "value": Spread(**single["value"])}) for single in document["singles"]],
            [Point.from_json(point) for point in document["curves"]],
        )  # fmt: skip


def machine() -> dict[str, str]:
    """What the machine is, without its name."""
    models = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": str(os.cpu_count() or 0),
        "memory": f"{memory / MIB:.0f} GiB",
        "kernel": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "load before": f"{os.getloadavg()[0]:.1f}",
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


# ---------------------------------------------------------------- cells


def quantity(value: float) -> str:
    """A number with three digits that matter and a thousands separator."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def duration(microseconds: float) -> str:
    """A time in the unit that fits it."""
    if microseconds >= 1e6:
        return f"{quantity(microseconds / 1e6)} s"
    return f"{quantity(microseconds / 1e3)} ms" if microseconds >= 1000 else f"{quantity(microseconds)} µs"


def times(value: Spread | None, unit: str = "×") -> str:
    """A ratio, or what else a gate measures, with its spread."""
    return "–" if value is None else f"{value.median:.2f}{unit} ({value.low:.2f}–{value.high:.2f})"


def _cells(row: Row, samples: Sequence[Sample]) -> list[str]:
    if not samples:
        return ["–", "–", "–", "–"]
    columns: tuple[Measure, ...] = ("p50_us", "p99_us", "cpu_us")
    rate = quantity(row.spread(samples, "rate").median)
    return [rate, *(duration(row.spread(samples, column).median) for column in columns)]


def row_table(rows: Sequence[Row]) -> list[list[str]]:
    """Header and one line per server and row, with the ratios on ours."""
    table = [["operation", "server", "per s", "p50", "p99", "CPU", "rate, ours/peer", "CPU, ours/peer"]]
    for row in rows:
        table.append([row.what, OURS, *_cells(row, row.ours), times(row.ratio("rate")), times(row.ratio("cpu_us"))])
        if row.peer:
            table.append(["", row.against, *_cells(row, row.peer), "", ""])
    return table


def single_table(singles: Sequence[Single]) -> list[list[str]]:
    """Header and one line per figure that stands for itself."""
    table = [["figure", "ours", "lowest–highest", "target", "peer"]]
    for each in singles:
        sign = "≤" if each.at_most else "≥"
        met = {True: "met", False: "missed", None: ""}[each.met]
        target = f"{sign} {quantity(each.target)} {each.unit}: {met}" if each.target is not None else "–"
        table.append([
            each.name, f"{quantity(each.value.median)} {each.unit}",
            f"{quantity(each.value.low)}–{quantity(each.value.high)}", target,
            f"{quantity(each.peer)} {each.unit}" if each.peer is not None else "–",
        ])  # fmt: skip
    return table


def curve_table(points: Sequence[Point]) -> list[list[str]]:
    """Header and one line per size and server."""
    head = ["objects", "server", "create per s", "create CPU", "get CPU", "list p50", "list CPU", "memory"]
    return [head, *(_curve_line(point) for point in points)]


def _curve_line(point: Point) -> list[str]:
    return [
        f"{point.objects:,}", point.server, quantity(point.create.rate), duration(point.create.cpu_us),
        duration(point.get.cpu_us), duration(point.list.p50_us), duration(point.list.cpu_us),
        f"{point.memory_bytes / MIB:,.0f} MiB",
    ]  # fmt: skip


def gate_table(gates: Sequence[Gate]) -> list[list[str]]:
    """Header and one line per gate."""
    table = [["gate", "bound", "measured", "verdict"]]
    for gate in gates:
        bound = f"{'at least' if gate.at_least else 'at most'} {gate.bound:.1f}{gate.unit}"
        measured = times(gate.value, gate.unit.split()[0] if gate.unit.startswith("×") else gate.unit)
        table.append([gate.name, bound, measured, gate.verdict + (", rounds disagree" if gate.disputed else "")])
    return table


def tables(results: Results) -> list[tuple[str, list[list[str]]]]:
    """All tables that have something in them, with their titles."""
    titled = [("Gates", gate_table(results.gates)), ("Operations", row_table(results.rows))]
    titled += [("By themselves", single_table(results.singles)), ("Curves", curve_table(results.points))]
    return [(title, table) for title, table in titled if len(table) > 1]


def as_text(results: Results) -> str:
    """For a terminal."""
    parts = []
    for title, table in tables(results):
        widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in table]
        parts.append("\n".join([title, *(f"  {line.rstrip()}" for line in lines)]))
    return "\n\n".join(parts) + "\n"


def as_markdown(results: Results) -> str:
    """For the documentation: docs/performance.md as a whole."""
    parts = [
        _PREFACE.format(command=results.command, date=results.date, rounds=results.rounds, machine=_sentence(results))
    ]
    for title, table in tables(results):
        head, *body = ["| " + " | ".join(line) + " |" for line in table]
        parts.append("\n".join([f"## {title}", "", head, "|" + " --- |" * len(table[0]), *body]))
    return "\n\n".join([*parts, _slower(results), _METHOD]) + "\n"


def _sentence(results: Results) -> str:
    return ", ".join(f"{name} {value}" for name, value in results.machine.items())


def _slower(results: Results) -> str:
    """Where the peer is ahead, in words, from the figures."""
    behind = []
    for row in results.rows:
        rate, cpu = row.ratio("rate"), row.ratio("cpu_us")
        if rate is not None and rate.median < 1:
            behind.append(f"- {row.what}: rate {times(rate)} of the peer's.")
        if cpu is not None and cpu.median > 1:
            behind.append(f"- {row.what}: CPU {times(cpu)} of the peer's.")
    missed = [
        f"- {each.name}: {quantity(each.value.median)} {each.unit}." for each in results.singles if each.met is False
    ]
    lines = [*behind, *missed] or ["Nowhere in this run."]
    return "\n".join(["## Where we are slower", "", *lines])


_PREFACE = """# Performance

Measured on {date} with

```
{command}
```

on one machine with clients and servers on the same cores: {machine}. {rounds} rounds of each row unless its
command says otherwise, ours and the peer in turns; the load is that before the last command; figures are
medians, ratios are medians of the ratios of single rounds with the lowest and the highest behind them."""

_METHOD = """## What is compared with what

- Ours is `fastness up` as a user starts it: one Python process with SQLite (WAL, `synchronous=FULL`), its controllers running.
- The peer is a real kube-apiserver with etcd, fsync on, with the same definitions of all kinds. Its controller manager runs
  beside it and is not counted.
- Both are asked over HTTPS in HTTP/1.1 on keep-alive connections, by the same Go client, with a service account token that the
  server issued, authorized by RBAC. The object is a ResourceBinding of about 330 bytes with a validation rule.
- CPU is user and system time of all processes of the server per operation: for the peer kube-apiserver and etcd. Rates on a
  shared machine say who got the cores; CPU says who needs them.
- Ours runs on one core whatever it is given; the peer uses all of them. On a machine with many idle cores and many clients
  the peer's rate grows and ours does not.
- Creating in process is measured after the rows and not in turns with them: its ratio compares two different minutes.
- Tags, heads and seals at rest: a create with 64 writers costs 2.5 µs of CPU more with its tag (a kind that is sealed: 18 µs),
  out of 286 µs in process; alone in its commit 62 µs (84 µs) out of 1.66 ms. That is the store alone, with and without, in
  turns, the best of 20 rounds of 640 creates each on a busy machine; the whole costs are of an older, quiet run. For one writer
  the store's own write is 1.16 times as dear (sealed: 1.22). Whole creates in turns with the version before: 0.98 times
  (0.73–1.37 over six pairs, which is the noise of that machine), so the aim of 1.1 times is not shown yet.
- The config server is `fastness serve --roles configserver --no-node-certificates --no-join-tokens` in a process of its own, its
  TLS in Rust. One that takes node certificates listens in Python, for 1.4 to 1.6 times nginx's CPU as decision 12 measured it and
  not again since; decision 30 says why. A bootstrap token, for which it asks the controllers, is not in these figures. It checks
  a join ticket for every request. nginx has one worker,
  sends the same bytes from a file and checks nothing. Every request of both is a new
  connection with a full handshake. The figures of the upstream machine-config server (Go, main of August 2026, 300 files and
  60 units) are the best that we measured of it, on a machine like this one but not in this run. It renders every answer; ours
  are kept, so what one costs the first time stands beside it.
- Rendering and planning are pure functions, measured with objects that were just parsed, validation and name included.
- A rollout runs on the embedded API with its store on disk and all its controllers, a tenth of the nodes at a time, one pod on
  each to evict, the waiting times of the field, in virtual time. Requests of the machines and playing them are in the figure.
  Each size ran once, so there is no spread; the garbage collector is set as `fastness up` sets it.
- A rollout in an enforcing pool is the same with the doors in the process, as `fastness up` has them. The machines are
  another one, enrolled and attested before; each fetches its config at the gate with a live token, so no attestation is in
  the figure. Its three rounds ran beside other work (load 2 to 23), when the same rollout without enforcing cost 23 to 24 ms
  a node instead of 14. So the ratio says more than the milliseconds: a quiet machine may well need 19 to 21 ms, and the
  bound is not shown to hold.
- A boot storm is one process with API, controllers and all doors and one with the machines, simulated and of all three kinds, 48
  under way at a time; both count. The doors run as they are but for the pace of enrolment, which all machines share here because
  they come from one address. Each size ran once.
- An attested fetch is compared with the config server in the same process, doors alone: new TLS connections, the same bytes.
  Every attested request has a proof of its own, and its release is on the record before it leaves. What the API spends on the
  record is told apart.
- A watch row counts one event at one watcher as one operation; its latency is from sending the create to reading the event."""
