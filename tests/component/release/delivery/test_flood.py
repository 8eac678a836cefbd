"""A flood of strangers beside machines that proved themselves, over real sockets and from the very same address.

What is asserted are counts: every attested request is answered, and what a stranger can make a door compute and write is
bounded by the limits instead of by how often it asks.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from fastness.agent.boot.boot import boot_once
from fastness.agent.boot.fetch import from_broker, from_gate
from fastness.agent.boot.prove import BrokerClient
from fastness.crypto import jwk, jws
from fastness.crypto.keys import PrivateKey
from fastness.http.limits import Limits
from fastness.keys.mac_keys import MacKeys
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.protocol import dpop
from fastness.protocol.delivered import Question
from fastness.sim.tee.images import default_image
from tests.delivering import ENTROPY, DeliveringWorld, delivering_world
from tests.embedded.fixtures import Embedded

QUESTION = Question("n" * 24)
MACHINES, STRANGERS, EACH, FETCHES = 3, 10, 40, 5
LIMITS = Limits()


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[DeliveringWorld]:
    async with delivering_world(embedded_server.cluster) as delivering:
        await delivering.publish(default_image().reference_values("tpm"))
        yield delivering


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the signature of a token, and that of a proof, was computed."""
    count: Counter[str] = Counter()
    check, signed = jws.VerifyingKey.check, jwk.PublicJwk.signed

    def token(self: jws.VerifyingKey, text: str) -> bytes:
        count["token"] += 1
        return check(self, text)

    def proof(self: jwk.PublicJwk, signature: bytes, message: bytes) -> bool:
        count["proof"] += 1
        return signed(self, signature, message)

    monkeypatch.setattr(jws.VerifyingKey, "check", token)
    monkeypatch.setattr(jwk.PublicJwk, "signed", proof)
    return count


class Wire:
    """One connection of a stranger, kept open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        self.reader, self.writer, self.port = reader, writer, port

    async def ask(self, path: str, headers: dict[str, str], method: str = "GET") -> tuple[int, bytes]:
        """One request: the code and the body of its answer."""
        lines = [
            f"{method} {path} HTTP/1.1",
            f"host: 127.0.0.1:{self.port}",
            *(f"{k}: {v}" for k, v in headers.items()),
        ]
        self.writer.write("\r\n".join([*lines, "", ""]).encode())
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length"))
        return int(head.split(b" ", 2)[1]), await self.reader.readexactly(length)


@asynccontextmanager
async def wire(port: int, trust: ssl.SSLContext) -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust, server_hostname="127.0.0.1")
    try:
        yield Wire(reader, writer, port)
    finally:
        writer.close()


def _encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def forged(real: str, number: int, subject: str = "") -> str:
    """A token under the right key's name that nobody signed; about a machine that exists where `subject` is given."""
    claims = {"sub": subject or f"sha256:{number:064x}", "n": number}
    return ".".join([real.split(".")[0], _encoded(claims), "A" * 86])


class Attacks:
    """What strangers send: by number, each another one."""

    def __init__(self, broker: BrokerClient, url: str, world: DeliveringWorld) -> None:
        self.stolen, self.url, self.world = broker.token.reveal(), url, world
        self.thief = PrivateKey.generate(ENTROPY)
        self.jwk = jwk.public_jwk(self.thief)

    def headers(self, number: int) -> dict[str, str]:
        match number % 5:
            case 0:
                return {}
            case 1:
                return {"authorization": "DPoP x.y.z"}
            case 2:
                return {"authorization": f"DPoP {'e30.' * (number + 1)}"}
            case 3:
                return {"authorization": f"DPoP {forged(self.stolen, number)}"}
            case _:
                demand = dpop.Demand("GET", self.url, self.stolen)
                now = self.world.clock.now()
                proof = dpop.make_proof(self.thief, self.jwk, demand, f"nonce-{number}", now, str(number))
                return {"authorization": f"DPoP {self.stolen}", "dpop": proof}


async def attested(world: DeliveringWorld, stack: AsyncExitStack, count: int = MACHINES) -> list[BrokerClient]:
    """Machines with a token that no gate has seen yet."""
    clients = []
    for _ in range(count):
        machine = world.machine()
        await boot_once(machine, await world.ask(), world.trust, world.patience())
        url = f"https://127.0.0.1:{world.doors.broker.port}"
        client = await stack.enter_async_context(BrokerClient(url, world.trust.tls, machine, ENTROPY))
        await client.attest()
        clients.append(client)
    return clients


async def flood(world: DeliveringWorld, port: int, path: str, attacks: Attacks, first: int) -> Counter[int]:
    """One stranger's requests over one connection; the codes."""
    codes: Counter[int] = Counter()
    async with wire(port, world.trust.tls) as line:
        for number in range(first, first + EACH):
            code, body = await line.ask(path, attacks.headers(number))
            assert json.loads(body)["code"]
            codes[code] += 1
    return codes


async def test_a_flood_at_the_gate_costs_next_to_nothing_and_every_attested_fetch_succeeds(
    world: DeliveringWorld, computed: Counter[str]
) -> None:
    gate = f"https://127.0.0.1:{world.gate.port}"
    async with AsyncExitStack() as stack:
        machines = await attested(world, stack)
        attacks, before = Attacks(machines[0], f"{gate}/config/worker", world), len(world.record.entries)
        computed.clear()

        async def fetch(client: BrokerClient) -> int:
            for _ in range(FETCHES):
                delivered = await from_gate(gate, world.trust.tls, client, "worker", QUESTION, world.clock.now)
                assert delivered.config == world.shelf.body
            return FETCHES

        async with asyncio.TaskGroup() as group:
            floods = [
                group.create_task(flood(world, world.gate.port, "/config/worker", attacks, number * EACH))
                for number in range(STRANGERS)
            ]
            fetches = [group.create_task(fetch(client)) for client in machines]
        codes = sum((task.result() for task in floods), Counter[int]())
        served = sum(task.result() for task in fetches)
    assert served == MACHINES * FETCHES
    assert codes.total() == STRANGERS * EACH
    assert set(codes) == {401, 503}
    assert codes[503] > codes.total() / 2
    # One look at the token of each machine; strangers together got no more looks than the limit for one address.
    assert computed["token"] <= MACHINES + LIMITS.wrong.burst + 10 * LIMITS.wrong.per_second
    assert computed["proof"] <= served
    assert len(world.record.entries) == before + served


async def test_a_flood_at_the_broker_leaves_attested_machines_their_configurations(
    world: DeliveringWorld, computed: Counter[str]
) -> None:
    await _via_broker(world)
    async with AsyncExitStack() as stack:
        machines = await attested(world, stack, 2)
        path = "/kbs/v0/resource/pool/worker/config"
        attacks = Attacks(machines[0], f"https://127.0.0.1:{world.doors.broker.port}{path}", world)
        written = await _written(world)
        computed.clear()

        async def fetch(client: BrokerClient) -> int:
            for _ in range(FETCHES):
                assert (await from_broker(client, "worker", QUESTION)).config == world.shelf.body
            return FETCHES

        async with asyncio.TaskGroup() as group:
            floods = [
                group.create_task(flood(world, world.doors.broker.port, path, attacks, number * EACH))
                for number in range(STRANGERS)
            ]
            fetches = [group.create_task(fetch(client)) for client in machines]
        assert sum(task.result() for task in fetches) == 2 * FETCHES
    assert set(sum((task.result() for task in floods), Counter[int]())) == {401, 503}
    assert computed["token"] <= LIMITS.wrong.burst + 10 * LIMITS.wrong.per_second
    assert await _written(world) == written + 2 * FETCHES


async def test_bodies_that_never_end_hold_no_place_of_machines_and_few_of_strangers(world: DeliveringWorld) -> None:
    await _via_broker(world)
    half = {"content-type": "application/json", "content-length": "200"}
    async with AsyncExitStack() as stack:
        (machine,) = await attested(world, stack, 1)
        slow = [await stack.enter_async_context(wire(world.doors.broker.port, world.trust.tls)) for _ in range(80)]
        requests = [asyncio.create_task(connection.ask("/kbs/v0/auth", half, "POST")) for connection in slow]
        done, waiting = await asyncio.wait(requests, timeout=1.0)
        while len(done) < len(requests) - LIMITS.address_reading:
            done, waiting = await asyncio.wait(requests, timeout=1.0)
        assert len(waiting) == LIMITS.address_reading
        assert {task.result()[0] for task in done} == {503}
        for _ in range(FETCHES):
            assert (await from_broker(machine, "worker", QUESTION)).config == world.shelf.body
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def test_tokens_that_name_a_machine_are_doubted_under_its_name_and_cost_nobody_else(
    world: DeliveringWorld, computed: Counter[str]
) -> None:
    gate = f"https://127.0.0.1:{world.gate.port}"
    async with AsyncExitStack() as stack:
        victim, other = await attested(world, stack, 2)
        subject = json.loads(base64.urlsafe_b64decode(victim.token.reveal().split(".")[1] + "=="))["sub"]
        await from_gate(gate, world.trust.tls, victim, "worker", QUESTION, world.clock.now)
        computed.clear()
        async with wire(world.gate.port, world.trust.tls) as line:
            codes: Counter[int] = Counter()
            for number in range(100):
                token = forged(victim.token.reveal(), number, subject)
                codes[(await line.ask("/config/worker", {"authorization": f"DPoP {token}"}))[0]] += 1
        assert computed["token"] == codes[401] <= LIMITS.wrong.burst + 20 * LIMITS.wrong.per_second
        for client in (victim, other):
            await from_gate(gate, world.trust.tls, client, "worker", QUESTION, world.clock.now)


async def test_one_machine_that_asks_too_often_is_asked_to_wait_and_others_are_not(world: DeliveringWorld) -> None:
    gate = f"https://127.0.0.1:{world.gate.port}"
    async with AsyncExitStack() as stack:
        greedy, modest = await attested(world, stack, 2)
        path, codes = "/config/worker", Counter[int]()
        async with wire(world.gate.port, world.trust.tls) as line:
            macs = await MacKeys.open("gate", world.cluster, world.informers, world.clock, ENTROPY)
            nonce = dpop.new_nonce(macs, world.clock.now(), ENTROPY)
            proof = greedy.proof("GET", f"{gate}{path}", nonce, "n" * 24, world.clock.now())
            headers = {"authorization": f"DPoP {greedy.token.reveal()}", "dpop": proof}
            for _ in range(1000):
                code, _body = await line.ask(path, headers)
                codes[code] += 1
                if codes[503] == 10:
                    break
        assert codes[503] == 10
        assert codes[200] >= LIMITS.machine.burst
        delivered = await from_gate(gate, world.trust.tls, modest, "worker", QUESTION, world.clock.now)
        assert delivered.config == world.shelf.body


async def _via_broker(world: DeliveringWorld) -> None:
    from fastness.kube.port import PatchType
    from tests.delivering import until

    patch = {"spec": {"delivery": {"via": "Broker", "sync": "OnDemand"}}}
    await world.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", patch, PatchType.MERGE)
    informer = world.informers.of(CONFIDENTIAL_CLUSTER.resource)
    await until(lambda: ((informer.get("", "cluster") or {})["spec"].get("delivery") or {}).get("via") == "Broker")


async def _written(world: DeliveringWorld) -> int:
    batches = (await world.cluster.list(AUDIT_BATCH.resource)).items
    return sum(len(batch["spec"]["entries"]) for batch in batches)
