"""What opening disks costs beside proving oneself: a storm of machines that reboot and ask for the keys of their volumes.

One process has API, doors and machines, over TLS on loopback; the machines are simulated and of all three kinds. All enrol, make
their volumes and prove themselves before. Then, in turns and some dozens at a time, each boots anew and either attests, as a
machine without a volume does, or has an unlock session and fetches the key of its volume. The processor time of doors and
machines together is compared: an unlock is one handshake more than nothing, and in its place dearer than an attestation by the
key, its entry on the record and what is looked at before it.

`python -m bench.unlocks MACHINES ROUNDS` prints the rounds.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import orjson

from bench.figures import UNLOCKS, Progress, Single, Spread
from fastness.formats import json
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.protocol.disk_report import DiskReport
from fastness.sim.tee.attester import SimAttester
from tests.attesting import ENTROPY, until
from tests.unlocking import VOLUME, DiskClient, DiskSite, Members, disk_site, leave_initrd, report

T = TypeVar("T")
STORM = 1000
AT_ONCE, NEW_AT_ONCE = 48, 4  # enrolment counts the uses of one ticket in a line
TEES = ("tpm", "snp", "tdx")
ROOT = Path(__file__).resolve().parent.parent


def figures(say: Progress, rounds: int, machines: int = STORM) -> list[Single]:
    """The ratio, and both costs; the machines are made once, and boot anew for every round."""
    say(
        f"{rounds} storms of {machines:,} attestations and as many unlocks; the machines enrol before, which takes minutes"
    )
    command = [sys.executable, "-m", "bench.unlocks", str(machines), str(rounds)]
    measured = orjson.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=ROOT).stdout)
    return [
        Single(UNLOCKS, Spread.of([each["unlock"] / each["attest"] for each in measured]), "×", 1.3),
        Single("an unlock session: CPU of doors and machine", Spread.of([each["unlock"] for each in measured]), "ms"),
        Single("an attestation beside it: CPU of both", Spread.of([each["attest"] for each in measured]), "ms"),
    ]


async def measure(machines: int, rounds: int) -> list[dict[str, float]]:
    """Milliseconds of CPU for one attestation and for one unlock, round by round."""
    with tempfile.TemporaryDirectory(prefix="fastness-bench-") as directory:
        async with disk_site(Path(directory)) as site:
            places = [(TEES[serial % 3], serial) for serial in range(1, machines + 1)]
            made = dict(await abreast([partial(_made, site, *place) for place in places], NEW_AT_ONCE))
            results = []
            for boot in range(2, 2 + 2 * rounds, 2):
                attested = await _storm([partial(_attested, site, *place, boot, made[place[1]]) for place in places])
                unlocked = await _storm(
                    [partial(_unlocked, site, *place, boot + 1, made[place[1]]) for place in places]
                )
                results.append({"attest": 1000 * attested / machines, "unlock": 1000 * unlocked / machines})
    return results


class Made(NamedTuple):
    """A machine with a volume: the uid of its Machine, and what it reports of the volume."""

    uid: str
    opened: DiskReport


async def _made(site: DiskSite, tee: str, serial: int) -> tuple[int, Made]:
    """A machine that enrolled, made its volume and proved itself, by its serial number."""
    machine = site.boot(tee, serial=serial)
    assert (await site.fortress.enrol(machine)).status_code == 201
    await _seen(site, machine, lambda stored: bool((stored.get("status") or {}).get("disks")))
    uid = str((await site.machine(machine))["metadata"]["uid"])
    async with _session(site, machine, Members(machine=uid)) as client:
        answer = await client.resource(f"machine/{uid}/disk-{VOLUME}")
    opened = replace(report(1), generation=json.decode(answer.reveal())["opening"])
    await _seen(site, machine)
    leave_initrd(machine)
    async with _session(site, machine, Members(reports=(opened,))):
        pass
    await _seen(site, machine)
    return serial, Made(uid, opened)


@asynccontextmanager
async def _session(site: DiskSite, machine: SimAttester, members: Members) -> AsyncIterator[DiskClient]:
    """A conversation with the broker and nothing beside it: `DiskSite.session` reads the Machine first."""
    url = f"https://127.0.0.1:{site.world.doors.broker.port}"
    async with DiskClient(url, site.world.trust, machine, ENTROPY) as client:
        client.members = members
        await client.attest()
        yield client


async def _seen(
    site: DiskSite, machine: SimAttester, is_ready: Callable[[JsonObject], bool] = lambda _stored: True
) -> None:
    """Wait until caches have one Machine as it is stored. Comparing all of them for each would take hours for a thousand."""
    cached = site.world.informers.of(MACHINE.resource)

    async def same() -> bool:
        stored = await site.machine(machine)
        seen = cached.get(NAMESPACE, stored["metadata"]["name"]) or {"metadata": {}}
        return is_ready(stored) and seen["metadata"].get("resourceVersion") == stored["metadata"]["resourceVersion"]

    await until(same)


async def _attested(site: DiskSite, tee: str, serial: int, boot: int, made: Made) -> None:
    machine = site.boot(tee, boot, serial=serial)
    leave_initrd(machine)
    async with _session(site, machine, Members(reports=(made.opened,))):
        pass


async def _unlocked(site: DiskSite, tee: str, serial: int, boot: int, made: Made) -> None:
    machine = site.boot(tee, boot, serial=serial)
    async with _session(site, machine, Members(machine=made.uid, identity=False)) as client:
        await client.resource(f"machine/{made.uid}/disk-{VOLUME}")


async def _storm(works: Sequence[Callable[[], Awaitable[None]]]) -> float:
    """CPU seconds of all of it."""
    before = time.process_time()
    await abreast(works)
    return time.process_time() - before


async def abreast(works: Sequence[Callable[[], Awaitable[T]]], at_once: int = AT_ONCE) -> list[T]:
    """All of it, some at a time."""
    turn = asyncio.Semaphore(at_once)

    async def one(work: Callable[[], Awaitable[T]]) -> T:
        async with turn:
            return await work()

    return await asyncio.gather(*map(one, works))


if __name__ == "__main__":
    import uvloop

    sys.stdout.buffer.write(orjson.dumps(uvloop.run(measure(int(sys.argv[1]), int(sys.argv[2])))))
