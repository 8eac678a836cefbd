"""What is done to both servers: one function per row, on a collection of 5,000 small objects.

Rows leave the collection as they found it: what a round creates it deletes, and an apply changes a value to and fro. The
object is a ResourceBinding of about 330 bytes with a validation rule, as users write them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bench import loadgen
from bench.figures import Progress, Row, Sample, per_operation
from bench.loadgen import Job, Outcome
from bench.targets import OURS, Target

PATH = "/apis/fastness.dev/v1alpha1/resourcebindings"
OBJECT = (
    '{"apiVersion":"fastness.dev/v1alpha1","kind":"ResourceBinding","metadata":{"name":"bench-{n}",'
    '"labels":{"app":"bench","tier":"gold"},"annotations":{"example.com/note":"a small object of a benchmark"}},'
    '"spec":{"resource":"default/credential/bench-{n}","subjects":{"pools":["worker","infra"],"tenants":["%s"]}}}'
)
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
APPLY = "application/apply-patch+yaml"
BASE = 5000
CLIENTS = 64
FIRST_NEW = 100_000  # numbers of objects that come and go


@dataclass(frozen=True, slots=True)
class Bench:
    """The generator, and how much of everything."""

    program: Path
    scale: float = 1.0

    def count(self, usual: int) -> int:
        """How many requests a row sends."""
        return max(CLIENTS, int(usual * self.scale))

    async def run(self, target: Target, job: Job) -> tuple[Sample, Outcome]:
        """Do a job and say what it cost the server."""
        spent: list[float] = []
        outcome = await loadgen.run(
            self.program, job, lambda: spent.append(target.cpu()), lambda: spent.append(target.cpu())
        )
        return per_operation(outcome.seconds, outcome.done, outcome.latency, spent[1] - spent[0]), outcome


def job(target: Target, method: str, path: str, count: int) -> Job:
    """A job on a target, with its credentials."""
    return Job(address=target.address, ca=target.ca, token=target.token, method=method, path=path, count=count)


def creating(target: Target, first: int, count: int) -> Job:
    """Create objects, numbered from `first`."""
    return replace(job(target, "POST", PATH, count), body=OBJECT % "blue", first=first, expect=201)


def deleting(target: Target, first: int, count: int) -> Job:
    """Delete what `creating` made."""
    return replace(job(target, "DELETE", f"{PATH}/bench-{{n}}", count), first=first)


async def fill(bench: Bench, target: Target, first: int, count: int) -> None:
    """Objects that are simply there."""
    if count:
        await bench.run(target, creating(target, first, count))


async def create_64(bench: Bench, target: Target, _: int) -> Sample:
    """64 clients create; what they made is deleted unmeasured."""
    count = bench.count(1500)
    sample, _outcome = await bench.run(target, creating(target, FIRST_NEW, count))
    await bench.run(target, deleting(target, FIRST_NEW, count))
    return sample


async def create_1(bench: Bench, target: Target, _: int) -> Sample:
    """One client creates, one object after the other."""
    count = bench.count(200)
    sample, _outcome = await bench.run(target, replace(creating(target, FIRST_NEW, count), connections=1))
    await bench.run(target, deleting(target, FIRST_NEW, count))
    return sample


async def delete_64(bench: Bench, target: Target, _: int) -> Sample:
    """64 clients delete what was created unmeasured."""
    count = bench.count(1500)
    await bench.run(target, creating(target, FIRST_NEW, count))
    return (await bench.run(target, deleting(target, FIRST_NEW, count)))[0]


async def get_64(bench: Bench, target: Target, _: int) -> Sample:
    """64 clients read single objects."""
    load = replace(job(target, "GET", f"{PATH}/bench-{{n}}", bench.count(4000)), wrap=BASE)
    return (await bench.run(target, load))[0]


async def apply_64(bench: Bench, target: Target, number: int) -> Sample:
    """64 clients change one value by server-side apply; every round changes it to something else."""
    path = f"{PATH}/bench-{{n}}?fieldManager=bench&force=true"
    load = replace(
        job(target, "PATCH", path, bench.count(1500)),
        body=OBJECT % f"round-{number}", headers={"Content-Type": APPLY}, wrap=BASE,
    )  # fmt: skip
    return (await bench.run(target, load))[0]


async def list_5000(bench: Bench, target: Target, _: int) -> Sample:
    """One client lists the whole collection as objects."""
    return (await bench.run(target, replace(job(target, "GET", PATH, 10), connections=1)))[0]


async def table_5000(bench: Bench, target: Target, _: int) -> Sample:
    """One client lists the whole collection as the table that `kubectl get` prints."""
    load = replace(job(target, "GET", PATH, 5), connections=1, accept=TABLE)
    return (await bench.run(target, load))[0]


async def watch_64(bench: Bench, target: Target, _: int) -> Sample:
    """One client creates, 64 watch: the time from request to event, and CPU per event delivered."""
    count = bench.count(100)
    with target.client() as client:
        version = client.get(f"{PATH}?limit=1").raise_for_status().json()["metadata"]["resourceVersion"]
    load = replace(
        creating(target, FIRST_NEW, count), connections=1, watchers=CLIENTS,
        watch_path=f"{PATH}?watch=true&resourceVersion={version}",
    )  # fmt: skip
    sample, outcome = await bench.run(target, load)
    await bench.run(target, deleting(target, FIRST_NEW, count))
    return Sample(
        outcome.events / outcome.seconds, outcome.delivery[0], outcome.delivery[2],
        sample.cpu_us * outcome.done / outcome.events,
    )  # fmt: skip


Case = Callable[[Bench, Target, int], Awaitable[Sample]]
CASES: dict[str, tuple[Case, str, str]] = {
    "create-64": (create_64, "create", "create, 64 clients"),
    "create-1": (create_1, "create", "create, 1 client"),
    "get-64": (get_64, "get", "get, 64 clients"),
    "apply-64": (apply_64, "apply", "server-side apply, 64 clients"),
    "delete-64": (delete_64, "delete", "delete, 64 clients"),
    "list-5000": (list_5000, "list", "list of 5,000, 1 client"),
    "table-5000": (table_5000, "list", "list of 5,000 as a table, 1 client"),
    "watch-64": (watch_64, "watch", "watch, 64 watchers, per event"),
}
FAMILIES = tuple(dict.fromkeys(family for _, family, _ in CASES.values()))


async def side_by_side(
    bench: Bench, targets: list[Target], families: set[str], rounds: int, say: Progress
) -> list[Row]:
    """Every row in turns: ours and the peer in each round, who begins changes."""
    for target in targets:
        await fill(bench, target, 0, BASE)
    rows = []
    for name, (case, family, what) in CASES.items():
        if family not in families:
            continue
        row = Row(name, what)
        for number in range(rounds):
            say(f"{what}: round {number + 1} of {rounds}")
            for target in targets if number % 2 == 0 else reversed(targets):
                (row.ours if target.name == OURS else row.peer).append(await case(bench, target, number))
        rows.append(row)
    return rows
