"""From a ticket to a configuration: a storm of machines that boot at once, and what one attested fetch costs.

One process is the cluster: embedded API, all controllers, config server, enrolment, broker, gate. Another one is the machines of
a simulated vendor, of all three kinds, some dozens under way at any time; each enrols, attests and fetches 200 KiB through the
gate, over connections of its own. The CPU of both counts together. The attested fetch is asked for by the load generator, with
one live token and one proof, over new TLS connections, beside the bare config server with a join ticket: as many bytes from the
same process, which is one of doors alone; the API behind them is not counted for either.

    python -m bench.delivery serve       opens the doors, says where they are, does what it is told until its input ends
    python -m bench.delivery doors       a config server and a gate of their own against that API, for the fetches
    python -m bench.delivery machines    reads that, and boots as many machines as it is told
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
from contextlib import ExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import orjson
import uvloop

from bench.accounting import cpu_seconds
from bench.cases import Bench
from bench.figures import ATTESTED, STORM, Progress, Single, Spread
from bench.loadgen import Job, run
from fastness.cluster.clock import SystemClock, SystemEntropy
from fastness.crypto.secret import SecretText

if TYPE_CHECKING:
    from fastness.agent.boot import BootedConfig
    from fastness.cluster.port import Cluster
    from fastness.services.limits import Limits
    from fastness.sim.tee.attester import SimAttester

ROOT = Path(__file__).resolve().parent.parent
POOL, BARE = "worker", "master"
SIZES = (100, 300, 1000)
STORM_SIZE = 1000
AT_ONCE = 48
FETCHES, FETCHERS = 1500, 48  # as many as a rack has under way; doors write the record for all who wait at once
KNOWN = 5000
IDLE_SECONDS = 10.0
REVOCATIONS = 20
PATIENCE = 300.0
TEES = ("tpm", "snp", "tdx")
ENTROPY = SystemEntropy()


def figures(bench: Bench, say: Progress, rounds: int) -> list[Single]:
    """Every figure; raises RuntimeError when a machine is refused."""
    with ExitStack() as stack:
        server = stack.enter_context(Started("serve"))
        machines = stack.enter_context(Started("machines"))
        where = server.hear()
        machines.tell(where)
        found = [_storm(server, machines, size, say) for size in SIZES]
        token = machines.ask({"token": True})
        say("attested fetches beside the bare config server")
        doors = stack.enter_context(Started("doors"))
        ratios, kept = asyncio.run(_fetches(bench, doors, {**where, **doors.ask(where)}, token, rounds))
        say("how soon a revocation holds")
        held = [_revocation(server, machines) for _ in range(REVOCATIONS)]
        say(f"idle with {KNOWN:,} machines")
        idle = _idle(server)
    costs = [1000 * spent / size for size, spent, _ in found]
    return [
        Single(STORM, Spread.of([spent for size, spent, _ in found if size == STORM_SIZE]), "s"),
        *(
            Single(f"boot storm of {size:,}: CPU per machine, machines and doors together", Spread.of([cost]), "ms")
            for (size, _, _), cost in zip(found, costs, strict=True)
        ),
        *(
            Single(f"boot storm of {size:,}: time until the last has its config", Spread.of([took]), "s")
            for size, _, took in found
            if size == STORM_SIZE
        ),
        Single(ATTESTED, Spread.of(ratios), "×"),
        Single("attested fetches of 200 KiB with keep-alive, per second", Spread.of(kept), "per s", at_most=False),
        Single("time until a revocation holds at gate and broker", Spread.of(held), "ms", 1000.0),
        Single(f"idle CPU with {KNOWN:,} machines", Spread.of([idle]), "ms per s"),
    ]


def _storm(server: Started, machines: Started, size: int, say: Progress) -> tuple[int, float, float]:
    """CPU seconds of both processes, and seconds, for so many new machines."""
    say(f"boot storm of {size:,} machines")
    before, began = cpu_seconds([server.pid, machines.pid]), time.monotonic()
    booted = machines.ask({"boot": size})["booted"]
    if booted != size:
        raise RuntimeError(f"{size - booted} of {size} machines were refused")
    return size, cpu_seconds([server.pid, machines.pid]) - before, time.monotonic() - began


async def _fetches(
    bench: Bench, server: Started, where: Any, token: Any, rounds: int
) -> tuple[list[float], list[float]]:
    """The gate's CPU over that of the config server, round by round, and fetches per second on kept connections."""
    ratios, kept = [], []
    for _ in range(rounds):
        proof = _proof(where, token)
        spent = {}
        for name, job in (
            ("bare", _job(where, where["configs"], {"Authorization": f"Bearer {where['open']}"}, BARE)),
            ("gate", _job(where, where["gate"], proof)),
        ):
            spent[name], _ = await _load(bench, server, job)
        ratios.append(spent["gate"] / spent["bare"])
        kept.append((await _load(bench, server, _job(where, where["gate"], _proof(where, token), fresh=False)))[1])
    return ratios, kept


def _job(where: Any, port: int, headers: dict[str, str], pool: str = POOL, *, fresh: bool = True) -> Job:
    return Job(
        address=f"127.0.0.1:{port}", ca=where["ca"], token="", method="GET", path=f"/config/{pool}", count=FETCHES,
        extra=headers, accept=where["accept"], connections=FETCHERS, fresh=fresh,
    )  # fmt: skip


async def _load(bench: Bench, server: Started, job: Job) -> tuple[float, float]:
    """CPU seconds of the server, and requests per second."""
    spent: list[float] = []
    outcome = await run(
        bench.program,
        job,
        lambda: spent.append(cpu_seconds([server.pid])),
        lambda: spent.append(cpu_seconds([server.pid])),
    )
    return spent[1] - spent[0], outcome.done / outcome.seconds


def _proof(where: Any, token: Any) -> dict[str, str]:
    """The headers of an attested request: one proof counts for as long as its nonce."""
    import httpx

    from fastness.crypto.jwk import public_jwk
    from fastness.crypto.keys import PrivateKey
    from fastness.crypto.secret import SecretBytes
    from fastness.domain.attestation.dpop import Demand, make_proof

    key = PrivateKey.from_pem(SecretBytes(token["key"].encode()))
    url = f"https://127.0.0.1:{where['gate']}/config/{POOL}"
    shown = {"Authorization": f"DPoP {token['token']}"}
    trust = ssl.create_default_context(cadata=where["ca"])
    nonce = httpx.get(url, headers=shown, verify=trust, trust_env=False).headers["dpop-nonce"]
    made = make_proof(
        key, dict(public_jwk(key)), Demand("GET", url, token["token"]), nonce, datetime.now(UTC), ENTROPY.uid()
    )
    return {**shown, "DPoP": made}


def _revocation(server: Started, machines: Started) -> float:
    """Milliseconds from a quarantine that is written to the first refusal of gate and of broker, the later of the two."""
    name = machines.ask({"watch": True})["machine"]
    at = server.ask({"quarantine": name})["at"]
    return 1000 * max(0.0, float(machines.hear()["refused"]) - float(at))


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


def _say(message: Any) -> None:
    os.write(1, orjson.dumps(message) + b"\n")


async def serve(told: IO[bytes]) -> None:
    """The cluster, until its input ends."""
    from fastness.cli.collector import settle_memory
    from fastness.cluster.port import PatchType
    from fastness.domain.attestation.membership import NAMESPACE
    from fastness.model.trusted_execution.machine import MACHINE

    with tempfile.TemporaryDirectory() as directory:
        async with opened(Path(directory)) as (cluster, where):
            settle_memory()  # as the product does when it is ready
            _say(where)
            while line := await asyncio.to_thread(told.readline):
                message = orjson.loads(line)
                if name := message.get("quarantine"):
                    patch = {"spec": {"approval": "Quarantined"}}
                    await cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE)
                    _say({"at": time.monotonic()})
                else:
                    await _fill(cluster, int(message["fill"]))
                    _say({})


@asynccontextmanager
async def opened(directory: Path) -> AsyncIterator[tuple[Cluster, dict[str, Any]]]:
    """A confidential cluster whose pool hands out 200 KiB, and where its doors are."""
    from fastness.cluster.informers import Informers
    from fastness.controllers.engine import Runner
    from fastness.controllers.machineconfig.plane import Around as Beside
    from fastness.controllers.plane import product_loops
    from fastness.services.api.server import EmbeddedServer, ServerOptions
    from fastness.services.attesting import Around, AttestingOptions, attesting
    from fastness.services.configserver.server import ListenOptions, config_server
    from fastness.services.enrol.app import Pace
    from fastness.services.gate.configs import LocalConfigs
    from fastness.services.gate.server import gate
    from fastness.trust.enrolment import DoorUrls
    from fastness.trust.record import ClusterRecord
    from fastness.trust.tiles import FileTiles

    clock, listen, urls = SystemClock(), ListenOptions(rust=True), [DoorUrls()]
    server = await EmbeddedServer.open(ServerOptions(directory / "state"))
    try:
        cluster = server.cluster
        where = await _settled(cluster)
        async with Informers(cluster, clock=clock, entropy=ENTROPY) as informers:
            beside = Beside(clock, ENTROPY, tiles=FileTiles(directory / "record"))
            runner = asyncio.create_task(
                Runner(product_loops(cluster, informers, beside), informers, clock, ENTROPY).run()
            )
            try:
                async with config_server(cluster, informers, clock, ENTROPY, listen) as configs:
                    source = LocalConfigs(configs.replies)
                    around = Around(clock, ENTROPY, server.vault, configs=source, urls=lambda: urls[0])
                    record = ClusterRecord(cluster, clock, ENTROPY, "gate")
                    async with (
                        attesting(cluster, informers, around, AttestingOptions(listen, pace=Pace.of(1e6))) as doors,
                        gate(cluster, informers, source, record, clock, ENTROPY, listen, _limits()) as keeper,
                    ):
                        ports = {"enrolment": doors.enrolment.port, "broker": doors.broker.port, "gate": keeper.port}
                        urls[0] = DoorUrls(f"https://127.0.0.1:{doors.broker.port}", f"https://127.0.0.1:{keeper.port}")
                        await _rendered(source)
                        keys = keeper.signer.jwks()
                        (directory / "kubeconfig").write_bytes(server.kubeconfig())
                        yield (
                            cluster,
                            {
                                **where,
                                **ports,
                                "configs": configs.port,
                                "ca": configs.doors.bundle,
                                "configKeys": keys,
                                "kubeconfig": str(directory / "kubeconfig"),
                            },
                        )
            finally:
                runner.cancel()
                await asyncio.wait([runner])
    finally:
        await server.close()


async def doors(told: IO[bytes]) -> None:
    """A config server and a gate against the API of the other process, until the input ends."""
    from fastness.cli.collector import settle_memory
    from fastness.cluster.informers import Informers
    from fastness.cluster.kube import Surroundings, connect, find
    from fastness.services.configserver.server import ListenOptions, config_server
    from fastness.services.gate.configs import LocalConfigs
    from fastness.services.gate.server import gate
    from fastness.trust.record import ClusterRecord

    where, clock = orjson.loads(await asyncio.to_thread(told.readline)), SystemClock()
    listen = ListenOptions(rust=True)
    found = find(Surroundings({}, Path.home()), kubeconfig=Path(where["kubeconfig"]), context="")
    async with (
        connect(found) as cluster,
        Informers(cluster, clock=clock, entropy=ENTROPY) as informers,
        config_server(cluster, informers, clock, ENTROPY, listen) as configs,
    ):
        source, record = LocalConfigs(configs.replies), ClusterRecord(cluster, clock, ENTROPY, "gate")
        async with gate(cluster, informers, source, record, clock, ENTROPY, listen, _limits()) as keeper:
            await _rendered(source)
            settle_memory()  # as the product does when it is ready
            _say({"configs": configs.port, "gate": keeper.port})
            await asyncio.to_thread(told.read)


def _limits() -> Limits:
    """No bound for one machine: here a few stand for many."""
    from fastness.services.limits import Limits, Rate

    return Limits(machine=Rate(1e9, 1e9), machine_in_flight=512)


async def _settled(cluster: Cluster) -> dict[str, Any]:
    """A simulated cluster that enforces, with values, a vendor, a config of 200 KiB and tickets."""
    from bench.serving import ACCEPT, _config
    from fastness.cluster.errors import AlreadyExists
    from fastness.model.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
    from fastness.model.fastness_dev.join_ticket import JOIN_TICKET
    from fastness.model.fastness_dev.reference_values import REFERENCE_VALUE_SET
    from fastness.model.kind import Kind
    from fastness.model.registry import find
    from fastness.sim.announce import announce_vendor
    from fastness.sim.tee import SimVendor, default_image
    from fastness.trust.tickets import join_ticket, mint

    async def make(kind: Kind, name: str, spec: Any) -> None:
        made = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}
        with suppress(AlreadyExists):
            await cluster.create(kind.resource, made)

    now, ticket, bare = datetime.now(UTC), mint(ENTROPY), mint(ENTROPY)
    pools = [{"name": BARE, "trustModel": "None"}]
    await make(CONFIDENTIAL_CLUSTER, "cluster", {"mode": "Enforce", "simulated": True, "pools": pools})
    await announce_vendor(cluster, SimVendor(), now)
    for tee in TEES:
        await make(REFERENCE_VALUE_SET, tee, {"source": "manual", "values": default_image().reference_values(tee)})
    for name, made, pool in (("storm", ticket, POOL), ("bare", bare, BARE)):
        await cluster.create(JOIN_TICKET.resource, join_ticket(name, made, pool, now + timedelta(days=1), 0))
    configs = find("machineconfiguration.openshift.io", "v1", "machineconfigs").resource
    for pool in (POOL, BARE):
        config = _config()
        labels = {"machineconfiguration.openshift.io/role": pool}
        await cluster.create(configs, {**config, "metadata": {"name": f"50-bench-{pool}", "labels": labels}})
    return {"ticket": ticket.reveal(), "open": bare.reveal(), "accept": ACCEPT}


async def _rendered(source: Any) -> None:
    """Wait until the pool hands out the config of the benchmark."""
    from bench.serving import ACCEPT, WANTED
    from fastness.services.refusals import Refusal

    async with asyncio.timeout(PATIENCE):
        while True:
            with suppress(Refusal):
                if all([len((await source.fetch(pool, ACCEPT, "")).body) > WANTED // 2 for pool in (POOL, BARE)]):
                    return
            await asyncio.sleep(0.05)


async def _fill(cluster: Cluster, count: int) -> None:
    """Machines that exist and do nothing, up to so many in all."""
    from fastness.cluster.port import PatchType, WriteOptions
    from fastness.domain.attestation.membership import NAMESPACE
    from fastness.model.trusted_execution.machine import MACHINE

    known = (await cluster.list(MACHINE.resource)).items
    pattern = next(one for one in known if one["spec"].get("approval") != "Quarantined")
    for number in range(count - len(known)):
        digest = f"{number:064x}"
        name = f"machine-idle-{number:05}"
        body = {
            "apiVersion": MACHINE.api_version, "kind": MACHINE.kind, "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {**pattern["spec"], "id": ENTROPY.uid()},
        }  # fmt: skip
        await cluster.create(MACHINE.resource, body)
        status = {**pattern["status"], "keyThumbprint": f"sha256:{digest}", "nodeName": f"idle-{number}"}
        options = WriteOptions(subresource="status")
        await cluster.patch(MACHINE.resource, name, {"status": status}, PatchType.MERGE, NAMESPACE, options)


class Machines:
    """The machines and what they know."""

    def __init__(self, where: Any) -> None:
        from fastness.agent.boot import Ask
        from fastness.agent.enrol import Patience
        from fastness.agent.imagetrust import ImageTrust
        from fastness.formats import json
        from fastness.sim.tee import SimVendor

        self._vendor, self._made = SimVendor(), 0
        self._patience = Patience(SystemClock(), ENTROPY, PATIENCE, pause=0.5)
        self._trust = ImageTrust.parse(json.encode({"ca": where["ca"], "configKeys": where["configKeys"]}))
        server = f"https://127.0.0.1:{where['enrolment']}"
        self._ask = Ask(POOL, SecretText(where["ticket"]), server, where["accept"])
        self._where = where
        self._last: tuple[SimAttester, BootedConfig] | None = None

    async def boot(self, count: int) -> int:
        """Boot so many new machines; how many got their config."""
        from fastness.agent.errors import AgentError

        waiting, booted = iter(range(count)), 0

        async def some() -> None:
            nonlocal booted
            for _ in waiting:
                try:
                    await self._one()
                    booted += 1
                except AgentError as error:
                    print(f"refused: {error}", file=sys.stderr)

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(some())
        return booted

    async def _one(self) -> None:
        from fastness.agent.boot import boot_once
        from fastness.sim.tee import default_image
        from fastness.sim.tee.attester import SimAttester

        self._made += 1
        attester = SimAttester(self._vendor.chip(TEES[self._made % 3]).boot(default_image()))
        self._last = attester, await boot_once(attester, self._ask, self._trust, self._patience)

    async def token(self) -> dict[str, str]:
        """A live token and its key, of a new machine."""
        from fastness.agent.prove import BrokerClient

        await self._one()
        assert self._last is not None
        async with BrokerClient(
            f"https://127.0.0.1:{self._where['broker']}", self._trust.tls, self._last[0], ENTROPY
        ) as broker:
            await broker.attest()
            return {"token": broker.token.reveal(), "key": broker.key.to_pem().reveal().decode()}

    async def refused(self) -> float:
        """Ask gate and broker with a live token until both refuse; when the later did."""
        from fastness.agent.fetch import from_gate
        from fastness.agent.prove import BrokerClient, DoorRefused
        from fastness.formats.delivered import Question

        await self._one()
        assert self._last is not None
        attester, booted = self._last
        url, gate = (f"https://127.0.0.1:{self._where[name]}" for name in ("broker", "gate"))
        async with BrokerClient(url, self._trust.tls, attester, ENTROPY) as broker:
            await broker.attest()
            _say({"machine": booted.machine.name})
            for ask in (
                lambda: broker.resource("default/attestation-status/status"),
                lambda: from_gate(gate, self._trust.tls, broker, POOL, Question("n" * 24), lambda: datetime.now(UTC)),
            ):
                with suppress(DoorRefused):
                    while True:
                        await ask()
        return time.monotonic()


async def machines(told: IO[bytes]) -> None:
    """The machines, until the input ends."""
    made = Machines(orjson.loads(await asyncio.to_thread(told.readline)))
    while line := await asyncio.to_thread(told.readline):
        message = orjson.loads(line)
        if "boot" in message:
            _say({"booted": await made.boot(message["boot"])})
        elif "token" in message:
            _say(await made.token())
        else:
            _say({"refused": await made.refused()})


if __name__ == "__main__":
    uvloop.run({"serve": serve, "doors": doors, "machines": machines}[sys.argv[1]](sys.stdin.buffer))
