"""Virtual machines: how long until so many have booted, proved themselves and joined, and what they cost.

A machine counts from the moment its agent runs, which is after enrolment, attestation, the first configuration and the node; so a
figure is the whole way of all machines through the real protocol, in one process with the control plane that they talk to.
Memory is compared with the same process without machines.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.accounting import cpu_seconds, queued_seconds, resident_bytes
from bench.figures import Progress, Single, Spread
from bench.targets import TargetError
from fastness.sim.control_client import ask_control

USUAL, MANY = 50, 1000
AIM_SECONDS, AIM_BYTES = 10.0, 700_000_000
PATIENCE = 900.0
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Boot:
    """One run until all machines ran: seconds by the clock, of CPU, and spent ready without a processor; then bytes resident
    and CPU per second when idle."""

    seconds: float
    cpu: float
    queued: float
    resident: int
    idle: float


def figures(directory: Path, say: Progress, rounds: int, *, many: bool) -> list[Single]:
    """Everything about virtual machines; a thousand of them only where somebody has the time."""
    say(f"{USUAL} virtual machines")
    alone = booted(directory / "alone", 0).resident
    runs = [booted(directory / f"some-{number}", USUAL) for number in range(max(1, rounds))]
    singles = _singles(USUAL, runs, alone, AIM_SECONDS, AIM_BYTES)
    if many:
        say(f"{MANY} virtual machines")
        singles += _singles(MANY, [booted(directory / "many", MANY)], alone)
    return singles


def _singles(
    count: int, runs: list[Boot], alone: int, seconds: float | None = None, size: float | None = None
) -> list[Single]:
    what = f"{count} virtual machines"
    return [
        Single(f"{what}: until all are attested and run", Spread.of([boot.seconds for boot in runs]), "s", seconds),
        Single(f"{what}: CPU until then", Spread.of([boot.cpu for boot in runs]), "s"),
        Single(f"{what}: without a processor until then", Spread.of([boot.queued for boot in runs]), "s"),
        Single(f"{what}: memory beyond that without them", _memory(runs, alone), "MB", size and size / _MB),
        Single(f"{what}: CPU when nothing happens", Spread.of([boot.idle * 1000 for boot in runs]), "ms/s"),
    ]


def _memory(runs: list[Boot], alone: int) -> Spread:
    return Spread.of([(boot.resident - alone) / _MB for boot in runs])


def booted(directory: Path, count: int) -> Boot:
    """Start so many machines on a new state directory, wait until all run, and end; raises TargetError."""
    directory.mkdir(parents=True)
    started = time.monotonic()
    with _up(directory, count) as child:
        while not _all_run(directory / "state", count):
            if child.poll() is not None or time.monotonic() - started > PATIENCE:
                raise TargetError(f"{count} machines did not come up: {(directory / 'log').read_text()[-400:]}")
            time.sleep(0.05)
        seconds, cpu, queued = time.monotonic() - started, cpu_seconds((child.pid,)), queued_seconds(child.pid)
        time.sleep(3.0)  # what is left to do after a join: labels, reports, the record
        resident, before = resident_bytes((child.pid,)), cpu_seconds((child.pid,))
        time.sleep(2.0)
        return Boot(seconds, cpu, queued, resident, (cpu_seconds((child.pid,)) - before) / 2.0)


def _all_run(state: Path, count: int) -> bool:
    if not count:
        return (state / "endpoints.json").exists()
    try:
        machines = ask_control(state, {"verb": "list"})["machines"]
    except OSError:
        return False
    return len(machines) == count and all(machine["running"] for machine in machines)


@contextmanager
def _up(directory: Path, count: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [str(Path(sys.executable).with_name("fastness")), "up", "--port", "0", "--machines", str(count)]
    with (directory / "log").open("wb") as log, subprocess.Popen(
        command, cwd=directory, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True
    ) as child:  # fmt: skip
        try:
            yield child
        finally:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(60.0)
            except subprocess.TimeoutExpired:
                child.kill()
