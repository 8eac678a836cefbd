"""From a ticket to a configuration: a storm of machines that boot at once, and what one attested fetch costs.

One process is the cluster: embedded API, all controllers, config server, enrolment, broker, gate. Another one is the machines of
a simulated vendor, of all three kinds, some dozens under way at any time; each enrols, attests and fetches 200 KiB through the
gate, over connections of its own. The CPU of both counts together.

The attested fetch is asked for by the load generator, over new TLS connections, by a rack of machines with a live token each and
a proof of its own for every request. Beside it stands the bare config server with a join ticket: as many bytes, from the same
process, which is one of doors alone. The gate counts what that process spends. Every release is on the record before it leaves;
what the API behind the doors spends on that is told beside it.

    python -m bench.delivery serve       opens the doors, says where they are, does what it is told until its input ends
    python -m bench.delivery doors       a config server and a gate of their own against that API, for the fetches
    python -m bench.delivery machines    reads that, and boots as many machines as it is told
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import uvloop

from bench.accounting import cpu_seconds
from bench.cases import Bench
from bench.deliverydoors import doors, serve
from bench.deliverymachines import machines
from bench.deliverytalk import BARE, ENTROPY, POOL
from bench.figures import ATTESTED, STORM, Progress, Single, Spread
from bench.loadgen import Job, run

ROOT = Path(__file__).resolve().parent.parent
SIZES = (100, 1000)
MOST = 5000
STORM_SIZE = 1000
FETCHES, FETCHERS = 1500, 48  # as many as a rack has under way; doors write the record for all who wait at once
KNOWN = 5000
IDLE_SECONDS = 10.0
REVOCATIONS = 20


@dataclass(frozen=True, slots=True)
class Round:
    """Microseconds of CPU for one fetch: of the doors, and of the API behind them; and fetches per second."""

    doors: float
    api: float
    rate: float


def figures(bench: Bench, say: Progress, rounds: int, *, full: bool = False) -> list[Single]:
    """Every figure, with `full` also a storm of 5,000; raises RuntimeError when a machine is refused."""
    with ExitStack() as stack:
        server = stack.enter_context(Started("serve"))
        fleet = stack.enter_context(Started("machines"))
        where = server.hear()
        fleet.tell(where)
        storms = [_storm(server, fleet, size, say) for size in SIZES]
        say("attested fetches beside the bare config server")
        apart = stack.enter_context(Started("doors"))
        tokens = fleet.ask({"tokens": FETCHERS})
        fetched = asyncio.run(_fetches(bench, apart, server, {**where, **apart.ask(where)}, tokens, rounds))
        say("how soon a revocation holds")
        held = [_revocation(server, fleet) for _ in range(REVOCATIONS)]
        storms += [_storm(server, fleet, MOST, say)] if full else []
        say(f"idle with {KNOWN:,} machines")
        idle = _idle(server)
    return [
        *_storm_figures(storms),
        *_fetch_figures(fetched),
        Single("time until a revocation holds at gate and broker", Spread.of(held), "ms", 1000.0),
        Single(f"idle CPU with {KNOWN:,} machines", Spread.of([idle]), "ms per s"),
    ]


def _storm_figures(storms: list[tuple[int, float, float]]) -> list[Single]:
    each = "boot storm of {:,}: CPU per machine, machines and doors together"
    return [
        *(Single(STORM, Spread.of([spent]), "s") for size, spent, _ in storms if size == STORM_SIZE),
        *(Single(each.format(size), Spread.of([1000 * spent / size]), "ms") for size, spent, _ in storms),
        *(
            Single(f"boot storm of {size:,}: time until the last has its config", Spread.of([took]), "s")
            for size, _, took in storms
            if size == STORM_SIZE
        ),
    ]


def _fetch_figures(fetched: list[dict[str, Round]]) -> list[Single]:
    ratios = [rates["gate"].doors / rates["bare"].doors for rates in fetched]
    whole = [(rates["gate"].doors + rates["gate"].api) / (rates["bare"].doors + rates["bare"].api) for rates in fetched]
    return [
        Single(ATTESTED, Spread.of(ratios), "×"),
        Single("the same with what the API spends on the record", Spread.of(whole), "×"),
        Single("attested fetch over a new TLS connection: CPU of the doors", _spread(fetched, "gate", "doors"), "µs"),
        Single("attested fetch: CPU of the API, for the record", _spread(fetched, "gate", "api"), "µs"),
        Single("fetch from the bare config server: CPU", _spread(fetched, "bare", "doors"), "µs"),
        Single(
            "attested fetches of 200 KiB with keep-alive, per second", _spread(fetched, "kept", "rate"), "per s",
            at_most=False,
        ),
    ]  # fmt: skip


def _spread(fetched: list[dict[str, Round]], what: str, measure: str) -> Spread:
    return Spread.of([getattr(rates[what], measure) for rates in fetched])


def _storm(server: Started, machines: Started, size: int, say: Progress) -> tuple[int, float, float]:
    """CPU seconds of both processes, and seconds, for so many new machines."""
    say(f"boot storm of {size:,} machines")
    before, began = cpu_seconds([server.pid, machines.pid]), time.monotonic()
    booted = machines.ask({"boot": size})["booted"]
    if booted != size:
        raise RuntimeError(f"{size - booted} of {size} machines were refused")
    return size, cpu_seconds([server.pid, machines.pid]) - before, time.monotonic() - began


async def _fetches(
    bench: Bench, apart: Started, server: Started, where: Any, tokens: Any, rounds: int
) -> list[dict[str, Round]]:
    """Bare, through the gate, and through the gate on kept connections, in turns."""
    ticket = ({"Authorization": f"Bearer {where['open']}"},)
    fetched = []
    for _ in range(rounds):
        rates = {}
        rates["bare"] = await _load(bench, apart, server, _job(where, where["configs"], ticket, BARE))
        rates["gate"] = await _load(bench, apart, server, _job(where, where["gate"], _proofs(where, tokens)))
        on_kept_connections = _job(where, where["gate"], _proofs(where, tokens), fresh=False)
        rates["kept"] = await _load(bench, apart, server, on_kept_connections)
        fetched.append(rates)
    return fetched


def _job(where: Any, port: int, each: Any, pool: str = POOL, *, fresh: bool = True) -> Job:
    return Job(
        address=f"127.0.0.1:{port}", ca=where["ca"], token="", method="GET", path=f"/config/{pool}", count=FETCHES,
        each=each, accept=where["accept"], connections=FETCHERS, fresh=fresh,
    )  # fmt: skip


async def _load(bench: Bench, apart: Started, server: Started, job: Job) -> Round:
    """What one job cost."""
    spent: list[tuple[float, float]] = []

    def look() -> None:
        spent.append((cpu_seconds([apart.pid]), cpu_seconds([server.pid])))

    outcome = await run(bench.program, job, look, look)
    (doors, api), (doors_after, api_after) = spent
    scale = 1e6 / outcome.done
    return Round((doors_after - doors) * scale, (api_after - api) * scale, outcome.done / outcome.seconds)


def _proofs(where: Any, tokens: Any) -> list[dict[str, str]]:
    """The headers of attested requests: the machines in turns, and a proof for every request."""
    import httpx

    from fastness.crypto.jwk import public_jwk
    from fastness.crypto.keys import PrivateKey
    from fastness.crypto.secret import SecretBytes
    from fastness.protocol.dpop import Demand, make_proof

    url = f"https://127.0.0.1:{where['gate']}/config/{POOL}"
    trust = ssl.create_default_context(cadata=where["ca"])
    headers = {"Authorization": f"DPoP {tokens[0]['token']}"}
    nonce = httpx.get(url, headers=headers, verify=trust, trust_env=False).headers["dpop-nonce"]
    keys = [PrivateKey.from_pem(SecretBytes(token["key"].encode())) for token in tokens]
    publics, now, made = [dict(public_jwk(key)) for key in keys], datetime.now(UTC), []
    for number in range(FETCHES):
        turn = number % len(tokens)
        token = tokens[turn]["token"]
        proof = make_proof(keys[turn], publics[turn], Demand("GET", url, token), nonce, now, ENTROPY.uid())
        made.append({"Authorization": f"DPoP {token}", "DPoP": proof})
    return made


def _revocation(server: Started, fleet: Started) -> float:
    """Milliseconds from a quarantine that is written to the first refusal of gate and of broker, the later of the two."""
    name = fleet.ask({"watch": True})["machine"]
    at = server.ask({"quarantine": name})["at"]
    return 1000 * max(0.0, float(fleet.hear()["refused"]) - float(at))


def _idle(server: Started) -> float:
    server.ask({"fill": KNOWN})
    time.sleep(3.0)
    before = cpu_seconds([server.pid])
    time.sleep(IDLE_SECONDS)
    return 1000 * (cpu_seconds([server.pid]) - before) / IDLE_SECONDS


class Started:
    """One of our processes for the time of the block; speaks lines of JSON."""

    def __init__(self, role: str) -> None:
        command = [sys.executable, "-m", "bench.delivery", role]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
        self.pid = self._process.pid

    def tell(self, message: Any) -> None:
        """Say something."""
        assert self._process.stdin is not None
        self._process.stdin.write(orjson.dumps(message) + b"\n")
        self._process.stdin.flush()

    def hear(self) -> Any:
        """What it says next; raises RuntimeError when it ended."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a process of the benchmark ended early; its error is above")
        return orjson.loads(line)

    def ask(self, message: Any) -> Any:
        """Say something and wait for the answer."""
        self.tell(message)
        return self.hear()

    def __enter__(self) -> Started:
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self._process.stdin, self._process.stdout):
            if end is not None:
                end.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


if __name__ == "__main__":
    uvloop.run({"serve": serve, "doors": doors, "machines": machines}[sys.argv[1]](sys.stdin.buffer))
