"""A door of enrolment for tests: a cluster, a real TLS listener, machines of a simulated vendor that knock.

    async with doors(cluster, mode="Enforce", simulated=True) as world:
        ticket = await world.ticket(uses=1)
        enrolled = await world.enrol(world.machine("tpm"), ticket)

The clock is the system's, moved by hand: certificates are checked by OpenSSL against the real time.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import httpx

from fastness.agent.boot.attester import Attester
from fastness.agent.boot.enrol import (
    Enrolled,
    HttpTransport,
    RetryBudget,
    enrol,
    first_message,
    read_offer,
    second_message,
)
from fastness.attestation.evidence.roots import SimulatedMaker
from fastness.attestation.loops.door_certificates import issuing
from fastness.crypto.secret import SecretText
from fastness.enrolment.door.server import EnrolServer, enrol_server
from fastness.enrolment.live.tickets import join_ticket, mint, ticket_hash
from fastness.formats import json
from fastness.keys.errors import RecordError
from fastness.keys.mac_keys import MacKeys
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.trusted_execution.approvals import ATTESTATION_KEY
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import AlreadyExists, Conflict, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.record.entry import RecordEntry
from fastness.runtime.clock import SystemClock, SystemEntropy
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.vendor import SimVendor
from tests.lowering import lowered
from tests.patience import PATIENCE

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", False)
ENTROPY = SystemEntropy()
NOBODY = "fst_" + "x" * 43  # the shape of a ticket, and none


class MovedClock(SystemClock):
    """The system's clock, moved by hand."""

    def __init__(self) -> None:
        self.ahead = timedelta()
        self.back = timedelta()
        """By how much somebody set the time of day back; a clock that only goes on does not follow."""

    def now(self) -> datetime:
        """The time, moved."""
        return super().now() + self.ahead - self.back

    def monotonic(self) -> float:
        """The same for waiting."""
        return super().monotonic() + self.ahead.total_seconds()


class BareTpm(SimAttester):
    """A TPM whose maker wrote no certificate into it."""

    async def ek_certificates(self) -> list[bytes]:
        """None."""
        return []


@dataclass
class MemoryRecord:
    """The record as a list; `broken` refuses every entry."""

    entries: list[RecordEntry] = field(default_factory=list)
    broken: bool = False

    async def append(self, entry: RecordEntry) -> None:
        """Keep an entry."""
        if self.broken:
            raise RecordError("the disk is full", "Make room.")
        self.entries.append(entry)

    def of(self, what: str) -> list[RecordEntry]:
        """The entries of one kind."""
        return [entry for entry in self.entries if entry.what == what]


@dataclass
class World:
    """A cluster, a door and a vendor."""

    cluster: Cluster
    door: EnrolServer
    http: httpx.AsyncClient
    trust: ssl.SSLContext
    clock: MovedClock
    record: MemoryRecord
    vendor: SimVendor
    informers: Informers

    @property
    def url(self) -> str:
        """Where the door listens."""
        return f"https://127.0.0.1:{self.door.port}"

    def machine(self, tee: str = "tpm", *, certified: bool = True, **options: Any) -> SimAttester:
        """A machine on a chip of its own."""
        booted = self.vendor.chip(tee, **options).boot()
        return SimAttester(booted) if certified else BareTpm(booted)

    async def ticket(self, pool: str = "worker", uses: int = 0, lifetime: timedelta = timedelta(hours=1)) -> SecretText:
        """A ticket that the door has heard of."""
        made = mint(ENTROPY)
        name = f"t-{ticket_hash(made)[-12:]}"
        await self.cluster.create(
            JOIN_TICKET.resource, join_ticket(name, made, pool, self.clock.now() + lifetime, uses)
        )
        tickets = self.door.enrolments.sources.tickets
        await until(lambda: tickets.get("", name) is not None)
        return made

    async def enrol(self, machine: Attester, ticket: SecretText, seconds: float = PATIENCE) -> Enrolled:
        """The agent's way in."""
        async with HttpTransport(self.url, self.trust) as transport:
            return await enrol(transport, machine, ticket, RetryBudget(self.clock, ENTROPY, seconds, pause=0.1))

    async def post(self, path: str, body: Any, ticket: str | SecretText = "", **headers: str) -> httpx.Response:
        """A request by hand."""
        bearer = ticket.reveal() if isinstance(ticket, SecretText) else ticket
        own_headers = {"content-type": "application/json", **({"authorization": f"Bearer {bearer}"} if bearer else {})}
        content = body if isinstance(body, bytes) else json.encode(body)
        return await self.http.post(path, content=content, headers={**own_headers, **headers})

    async def begin(self, machine: Attester, ticket: str | SecretText, pool: str = "") -> httpx.Response:
        """The first message."""
        return await self.post("/v1/enrol", await first_message(machine, pool), ticket)

    async def proof(self, machine: Attester, begun: httpx.Response) -> JsonObject:
        """The second message."""
        assert begun.status_code == 200, begun.text
        message: JsonObject = json.decode(await second_message(machine, read_offer(begun.content)))
        return message

    async def complete(self, machine: Attester, begun: httpx.Response) -> httpx.Response:
        """The second message, sent."""
        return await self.post("/v1/enrol/complete", await self.proof(machine, begun))

    async def machines(self) -> list[JsonObject]:
        """All Machines."""
        return (await self.cluster.list(MACHINE.resource)).items

    async def keys(self) -> list[JsonObject]:
        """All AttestationKeys."""
        return (await self.cluster.list(ATTESTATION_KEY.resource)).items

    async def ticket_object(self, ticket: SecretText) -> JsonObject:
        """The JoinTicket of a ticket."""
        return await self.cluster.get(JOIN_TICKET.resource, f"t-{ticket_hash(ticket)[-12:]}")


def code(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of a refusal."""
    assert len(answer.content) <= 300
    return answer.status_code, str(answer.json()["code"])


async def settle_cluster(cluster: Cluster, spec: JsonObject) -> None:
    """A ConfidentialCluster with this spec, and our namespace."""
    with suppress(AlreadyExists):
        await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    body = {
        "apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind,
        "metadata": {"name": "cluster"}, "spec": spec,
    }  # fmt: skip
    with suppress(AlreadyExists):
        await cluster.create(CONFIDENTIAL_CLUSTER.resource, body)


async def change_cluster(world: World, **spec: Any) -> None:
    """Change the ConfidentialCluster, with the confirmation that lowering needs, and wait until the door knows."""
    changed = await lowered(world.cluster, spec)
    version = changed["metadata"]["resourceVersion"]
    confidential = world.door.enrolments.sources.confidential
    await until(lambda: (confidential.get("", "cluster") or {})["metadata"]["resourceVersion"] == version)


@asynccontextmanager
async def doors(
    cluster: Cluster, spec: JsonObject | None = None, vendor: SimVendor | None = None
) -> AsyncIterator[World]:
    """A door in front of a cluster, for the time of the block."""
    await settle_cluster(cluster, spec or {"mode": "Enforce", "simulated": True})
    vendor, clock, record = vendor or SimVendor(ENTROPY), MovedClock(), MemoryRecord()
    async with (
        Informers(cluster, clock=clock, entropy=ENTROPY) as informers,
        issuing(cluster, informers, clock, ENTROPY),
    ):
        keys = await MacKeys.open("enrolment", cluster, informers, clock, ENTROPY)
        works = vendor.tpm
        simulated = SimulatedMaker.of(vendor.roots.tpm, works.authority.certificate, works.root.certificate)
        async with enrol_server(cluster, informers, keys, record, clock, ENTROPY, simulated=lambda: simulated) as door:
            trust = ssl.create_default_context(cadata=door.doors.bundle)
            async with httpx.AsyncClient(
                base_url=f"https://127.0.0.1:{door.port}", verify=trust, timeout=PATIENCE
            ) as http:
                yield World(cluster, door, http, trust, clock, record, vendor, informers)


async def until(true: Callable[[], bool]) -> None:
    """Wait for a cache to hear of something, with a bound."""
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110  # caches tell handlers, not tests
            await asyncio.sleep(0.005)


async def forget(cluster: Cluster, machine: str) -> None:
    """Delete a Machine."""
    with suppress(NotFound, Conflict):
        await cluster.delete(MACHINE.resource, machine, NAMESPACE)


async def nothing_was_made(world: World) -> None:
    """No Machine, no key, no use."""
    assert await world.machines() == []
    assert await world.keys() == []
    assert not world.record.of("enrol")
