"""The key broker: CPU of a whole handshake over keep-alive TLS, with everything behind it that a cluster has.

A handshake is a challenge, TPM evidence with a whole event log, a verdict, a token, and one sealed resource. The server is a
process of its own: embedded API, verifier, record, both doors. The machines of a simulated vendor are in another process, and
their cost is not counted. Beside it stands what cannot be saved: the cryptographic operations of one handshake alone.

Memory is watched apart, over many handshakes and with the controllers that take away what a handshake leaves. What is kept for a
while by intention (spent challenges for ten minutes after their end, the history of the store for fifteen) is kept for seconds
there, so that a short run sees its end: whatever still grows then is a leak. `--full`, and `make soak`, follow 100,000.

What neighbours on the machine cost is not ours: each round has several stretches, and the cheapest of them counts.

    python -m bench.broker serve         opens the doors, says where they are, serves until its input ends
    python -m bench.broker keep          the same with the loops that sweep challenges and order the record
    python -m bench.broker machines      reads that, enrols machines, and does as many handshakes as it is told
    python -m bench.broker alone         the cryptographic operations alone
"""

from __future__ import annotations

import asyncio
import os
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import orjson

from bench.accounting import cpu_seconds, resident_bytes
from bench.figures import Progress, Single, Spread
from fastness.app.product import PRODUCT
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.runtime.clock import SystemClock, SystemEntropy

if TYPE_CHECKING:
    from fastness.kube.informers import Informers
    from fastness.kube.port import Cluster

ROOT = Path(__file__).resolve().parent.parent
MACHINES = 8
HANDSHAKES = 200
IN_ROUND = 5
WARM = 40
ROUNDS = 3
AIM_US = 5000.0  # 200 handshakes per second and core
SECONDS = 4 * 3600  # a process of the benchmark that nobody ended ends by itself
HANDSHAKE = "a whole handshake with TPM evidence, over keep-alive TLS: CPU of the server"
ALONE = "the cryptographic operations of a handshake alone: CPU"
MEMORY = "resident memory gained per handshake, controllers running, once challenges run out"
RESIDENT = "resident memory after {:,} handshakes, controllers running"
LONG = 10_000
VERY_LONG = 100_000
STRETCHES = 5
SHORT_LIVED = "10s"
SHORT = 10.0
STATUS = "default/attestation-status/status"
ENTROPY = SystemEntropy()


def figures(say: Progress, rounds: int, *, full: bool = False) -> list[Single]:
    """Every figure."""
    say("the key broker")
    spent = measured(max(1, rounds))
    done = subprocess.run([sys.executable, "-m", "bench.broker", "alone"], check=True, capture_output=True, cwd=ROOT)
    alone = Spread.of(orjson.loads(done.stdout))
    return [
        Single(HANDSHAKE, Spread.of(spent), "µs", AIM_US),
        Single(ALONE, alone, "µs"),
        *remembered(say, VERY_LONG if full else LONG),
    ]


def remembered(say: Progress, handshakes: int = LONG) -> list[Single]:
    """How memory grows over many handshakes."""
    say(f"the key broker, {handshakes:,} handshakes")
    stretch, curve = handshakes // STRETCHES, followed(handshakes)
    gained = [(after - before) / stretch for before, after in pairwise(curve[1:])]
    curve_figures = [
        Single(RESIDENT.format((number + 1) * stretch), Spread.of([value / 1024]), "MiB")
        for number, value in enumerate(curve)
    ]
    return [*curve_figures, Single(MEMORY, Spread.of(gained), "KiB")]


def followed(handshakes: int, stretches: int = STRETCHES) -> list[float]:
    """Resident KiB of the server after each of so many stretches."""
    curve = []
    with ExitStack() as stack:
        server = stack.enter_context(Started("keep"))
        machines = stack.enter_context(Started("machines"))
        _tell(machines, _heard(server))
        for _ in range(stretches):
            _tell(machines, {"handshakes": handshakes // stretches})
            _heard(machines)
            curve.append(resident_bytes([server.pid]) / 1024)
    return curve


def measured(rounds: int = ROUNDS) -> list[float]:
    """Microseconds of the server's CPU per handshake, round by round."""
    with ExitStack() as stack:
        server = stack.enter_context(Started("serve"))
        machines = stack.enter_context(Started("machines"))
        _tell(machines, _heard(server))
        _tell(machines, {"handshakes": WARM})
        _heard(machines)
        return [min(_stretch(server, machines) for _ in range(IN_ROUND)) for _ in range(rounds)]


def _stretch(server: subprocess.Popen[bytes], machines: subprocess.Popen[bytes]) -> float:
    cpu = cpu_seconds([server.pid])
    _tell(machines, {"handshakes": HANDSHAKES})
    _heard(machines)
    return 1e6 * (cpu_seconds([server.pid]) - cpu) / HANDSHAKES


class Started:
    """One of our processes for the time of the block."""

    def __init__(self, role: str) -> None:
        command = [sys.executable, "-m", "bench.broker", role]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)

    def __enter__(self) -> subprocess.Popen[bytes]:
        return self._process

    def __exit__(self, *_: object) -> None:
        for end in (self._process.stdin, self._process.stdout):
            if end is not None:
                end.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _tell(process: subprocess.Popen[bytes], message: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(orjson.dumps(message) + b"\n")
    process.stdin.flush()


def _heard(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise RuntimeError("a process of the benchmark ended early; its error is above")
    return orjson.loads(line)


async def keep(orders: IO[bytes]) -> None:
    """The server with the loops that clean up behind it, until its input ends."""
    await serve(orders, loops=True)


async def serve(orders: IO[bytes], *, loops: bool = False) -> None:
    """The server, until its input ends."""
    from fastness.apiserver import ServerOptions, open_apiserver
    from fastness.apiserver.store.records import StoreSettings
    from fastness.attestation.loops.door_certificates import issuing
    from fastness.crypto.aead import KeyRing, SealKey
    from fastness.enrolment.door.server import enrolment_door
    from fastness.enrolment.live.tickets import join_ticket, mint
    from fastness.http.limits import Limits, Rate
    from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
    from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
    from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
    from fastness.kinds.kind import Kind
    from fastness.kube.errors import AlreadyExists
    from fastness.kube.informers import Informers
    from fastness.release.door.broker.opening import broker_door
    from fastness.release.door.broker.server import BrokerOptions
    from fastness.runtime.memory import settle_memory
    from fastness.sim.announce import announce_vendor
    from fastness.sim.tee import SimVendor, default_image

    clock, ticket = SystemClock(), mint(ENTROPY)
    with tempfile.TemporaryDirectory() as directory:
        history = StoreSettings(log_seconds=SHORT) if loops else None
        async with open_apiserver(ServerOptions(Path(directory) / "state", store=history), PRODUCT) as server:
            cluster = server.cluster

            async def make(kind: Kind, name: str, spec: Any) -> None:
                made = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}
                await cluster.create(kind.resource, made)

            with suppress(AlreadyExists):
                lifetime = {"attestation": {"challengeLifetime": SHORT_LIVED}} if loops else {}
                await make(CONFIDENTIAL_CLUSTER, "cluster", {"mode": "Enforce", "simulated": True, **lifetime})
            await announce_vendor(cluster, SimVendor(), clock.now())
            values = {"source": "manual", "values": default_image().reference_values("tpm")}
            await make(REFERENCE_VALUE_SET, "values", values)
            expires = clock.now() + timedelta(hours=1)
            await cluster.create(JOIN_TICKET.resource, join_ticket("bench", ticket, "worker", expires, 0))
            cipher = KeyRing([SealKey.generate(ENTROPY)], ENTROPY)
            # No bound for one machine: here a few stand for many.
            options = BrokerOptions(limits=Limits(machine=Rate(1e9, 1e9), machine_in_flight=512))
            async with (
                Informers(cluster, clock=clock, entropy=ENTROPY) as informers,
                issuing(cluster, informers, clock, ENTROPY),
                enrolment_door(cluster, informers, clock, ENTROPY) as enrolment,
                broker_door(cluster, informers, clock, ENTROPY, options, cipher=cipher) as (broker, _),
                _controlled(cluster, informers, Path(directory) if loops else None),
            ):
                settle_memory()  # as the product does when it is ready
                message = {
                    "broker": broker.port, "enrolment": enrolment.port, "ticket": ticket.reveal(),
                    "ca": broker.doors.bundle,
                }  # fmt: skip
                os.write(1, orjson.dumps(message) + b"\n")
                await asyncio.to_thread(orders.read)


@asynccontextmanager
async def _controlled(cluster: Cluster, informers: Informers, directory: Path | None) -> AsyncIterator[None]:
    """The controllers of the product beside the doors; none without a directory for their tiles."""
    if directory is None:
        yield
        return
    from fastness.app.controllers import product_loops
    from fastness.app.other_operators import FAMILIES
    from fastness.attestation.loops import challenges
    from fastness.attestation.loops import door_certificates as certificates
    from fastness.kube.controllers import Runner
    from fastness.record.live.tiles import FileTiles

    challenges.SKEW = timedelta(seconds=SHORT)
    clock, tiles = SystemClock(), FileTiles(directory / "record")
    without = (*FAMILIES, certificates.FAMILY)
    loops = product_loops(cluster, informers, clock, ENTROPY, tiles=tiles, without=without)
    runner = asyncio.create_task(Runner(loops, informers, clock, ENTROPY).run())
    try:
        yield
    finally:
        runner.cancel()
        await asyncio.wait([runner])


async def machines(orders: IO[bytes]) -> None:
    """Machines that enrol and then do handshakes, side by side, as they are told."""
    from fastness.agent.boot.enrol import HttpTransport, RetryBudget, enrol
    from fastness.agent.boot.prove import BrokerClient
    from fastness.sim.tee import SimVendor, default_image
    from fastness.sim.tee.attester import SimAttester

    where = orjson.loads(await asyncio.to_thread(orders.readline))
    trust, vendor = ssl.create_default_context(cadata=where["ca"]), SimVendor()
    patience = RetryBudget(SystemClock(), ENTROPY, 20, pause=0.1)

    async def work(broker: BrokerClient, times: int) -> None:
        for _ in range(times):
            await broker.attest()
            await broker.resource(STATUS)

    async with AsyncExitStack() as stack:
        url = f"https://127.0.0.1:{where['enrolment']}"
        transport = await stack.enter_async_context(HttpTransport(url, trust))
        brokers = []
        for _ in range(MACHINES):
            machine = SimAttester(vendor.chip("tpm").boot(default_image()))
            await enrol(transport, machine, SecretText(where["ticket"]), patience)
            client = BrokerClient(f"https://127.0.0.1:{where['broker']}", trust, machine, ENTROPY)
            brokers.append(await stack.enter_async_context(client))
        while line := await asyncio.to_thread(orders.readline):
            share = orjson.loads(line)["handshakes"] // MACHINES
            async with asyncio.TaskGroup() as group:
                for broker in brokers:
                    group.create_task(work(broker, share))
            os.write(1, b"{}\n")


def alone() -> list[float]:
    """Microseconds of the operations that every handshake needs: check the quote, sign the token, seal the answer."""
    from fastness.crypto import jwe
    from fastness.crypto.jwk import public_jwk, public_key
    from fastness.crypto.jws import SigningKey
    from fastness.crypto.keys import PrivateKey
    from fastness.crypto.silicon.verify import AttestationKey
    from fastness.formats.evidence.tpm.envelope import parse_envelope
    from fastness.sim.tee import SimVendor, default_image

    guest: Any = SimVendor().chip("tpm").boot(default_image())
    quote = parse_envelope(orjson.dumps(guest.quote(bytes(32))))
    key, signature = AttestationKey(guest.identity_key.public_der()), quote.signature
    signed = (signature.scheme.name, signature.hash.name, signature.numbers, quote.quote.message)
    token, to = SigningKey.generate(ENTROPY), public_key(public_jwk(PrivateKey.generate(ENTROPY)))
    claims = {"sub": "x" * 64, "submods": {"cpu0": {str(number): "00" * 32 for number in range(24)}}}
    spent = []
    for _ in range(10):
        began = time.process_time()
        for _ in range(50):
            assert key.signed(*signed)
            token.sign(claims)
            jwe.sealed(SecretBytes(b"success"), to, ENTROPY)
        spent.append(1e6 * (time.process_time() - began) / 50)
    return spent


def main(role: str) -> None:
    """Be one of the processes."""
    import uvloop

    if role == "alone":
        sys.stdout.buffer.write(orjson.dumps(alone()))
        return
    work = {"serve": serve, "keep": keep, "machines": machines}[role]
    uvloop.run(asyncio.wait_for(work(sys.stdin.buffer), SECONDS))


if __name__ == "__main__":
    main(sys.argv[1])
