"""A broker over TLS with a judge that tests command, and machines that speak to it as guests in the field do."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from fastness.apiserver import ApiServer, ServerOptions, open_apiserver
from fastness.app.product import PRODUCT
from fastness.attestation.live.attempt import Attempt, Judgement
from fastness.attestation.loops.door_certificates import issuing
from fastness.crypto import jwe
from fastness.crypto.aead import KeyRing, SealKey
from fastness.crypto.jwk import public_jwk
from fastness.crypto.keys import PrivateKey
from fastness.crypto.x509 import Credential
from fastness.http.limits import Limits
from fastness.keys.errors import RecordError, ReplayedChallenge
from fastness.kinds.fastness_dev.resource_binding import RESOURCE_BINDING
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kinds.trusted_execution.subject import Subject
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.protocol import kbs
from fastness.record.entry import RecordEntry
from fastness.release.door.broker.server import BrokerDoor, BrokerOptions, broker
from fastness.release.live.admins import ROLES, mint
from fastness.release.live.settings import PolicyDecider
from fastness.release.live.tokens import unseen
from fastness.runtime.clock import Clock, SystemClock, SystemEntropy
from tests.patience import PATIENCE

ENTROPY = SystemEntropy()
VECTOR = {"instance-identity": 2, "configuration": 2, "executables": 3, "hardware": 2}


def subject(name: str = "a", pool: str = "worker", tenant: str = "", **more: Any) -> Subject:
    """A machine that enrolled."""
    digit = format(sum(name.encode()) % 16, "x")
    more = {"tee": "tpm", "endorsement": "ek-certificate", **more}
    return Subject(
        digit * 8 + "-0000-4000-8000-000000000000", f"machine-{name}", "sha256:" + digit * 64, pool, tenant, **more
    )


def verdict(name: str = "verdict-1") -> JsonObject:
    """A verdict as far as the broker looks at it."""
    return {"metadata": {"name": name}, "spec": {"policyVersion": "p1"}}


@dataclass
class Judge:
    """A verifier that says what it is told to, checks the binding as a real one does, and spends challenges."""

    clock: Clock = field(default_factory=SystemClock)
    attempts: list[Attempt] = field(default_factory=list)
    spent: set[str] = field(default_factory=set)
    answer: Judgement | Exception | None = None
    gate: asyncio.Event | None = None

    async def appraise(self, attempt: Attempt) -> Judgement:
        """Judge by the evidence: it names the subject, and carries the binding."""
        self.attempts.append(attempt)
        if self.gate is not None:
            await self.gate.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        if self.answer is not None:
            return self.answer
        if attempt.evidence.get("binding") != kbs.binding(attempt.tee, attempt.runtime).hex():
            return Judgement(False, "binding", "the evidence is bound to something else")
        if attempt.nonce in self.spent:
            raise ReplayedChallenge("answered before", "Ask for a new challenge.")
        self.spent.add(attempt.nonce)
        who = Subject(**attempt.evidence["subject"])
        claims = {
            attempt.tee: {"pcr04": "00" * 32, "uefi_event_logs": [{"digest": "x" * 100}] * 10},
            "report_data": "ab",
        }
        return Judgement(True, "", "", who, verdict(), VECTOR, claims)


@dataclass
class Ledger:
    """A record in memory that can fail."""

    entries: list[RecordEntry] = field(default_factory=list)
    broken: bool = False

    async def append(self, entry: RecordEntry) -> None:
        """Keep an entry."""
        if self.broken:
            raise RecordError("the disk is full", "Make room.")
        self.entries.append(entry)


@dataclass
class Revoked:
    """Revocations by machine."""

    machines: set[str] = field(default_factory=set)

    def revoked(self, claims: Mapping[str, Any]) -> bool:
        """Whether the machine is in the set."""
        return claims["fastness"]["machine"] in self.machines

    async def ended(self, claims: Mapping[str, Any], look: Callable[[Machine], None] = unseen) -> bool:
        """The same, as the API would say."""
        return self.revoked(claims)

    def enrolled(self, thumbprint: str) -> bool:
        """Everybody who names a key is known here."""
        return bool(thumbprint)


class Guest:
    """A machine: a key for this boot, a cookie jar, evidence that names its subject."""

    def __init__(self, http: httpx.AsyncClient, who: Subject, key: PrivateKey | None = None) -> None:
        self.http = http
        self.who = who
        self.key = key or PrivateKey.generate(ENTROPY)
        self.jwk = public_jwk(self.key)
        self.token = ""

    async def challenge(self, tee: str = "tpm") -> str:
        """Ask for a challenge; the nonce."""
        answer = await self.http.post("/kbs/v0/auth", content=kbs.request_message(tee))
        assert answer.status_code == 200, answer.text
        return str(answer.json()["nonce"])

    def evidence(self, nonce: str, tee: str = "tpm") -> kbs.KbsAttestation:
        """Evidence that answers a challenge."""
        bound = kbs.binding(tee, kbs.runtime_data(nonce, self.jwk, "")).hex()
        names = ("machine", "name", "thumbprint", "pool", "tenant", "simulated", "tee", "endorsement")
        return kbs.KbsAttestation(
            nonce, self.jwk, {"binding": bound, "subject": {name: getattr(self.who, name) for name in names}}
        )

    async def send(self, attestation: kbs.KbsAttestation) -> httpx.Response:
        """Answer the challenge."""
        return await self.http.post("/kbs/v0/attest", content=kbs.attestation_message(attestation))

    async def attest(self, tee: str = "tpm") -> httpx.Response:
        """A whole handshake."""
        answer = await self.send(self.evidence(await self.challenge(tee), tee))
        if answer.status_code == 200:
            self.token = answer.json()["token"]
        return answer

    async def get(self, path: str, **more: Any) -> httpx.Response:
        """Ask for a resource."""
        return await self.http.get(f"/kbs/v0/resource/{path}", **more)

    async def read(self, path: str) -> bytes:
        """A resource, opened."""
        answer = await self.get(path)
        assert answer.status_code == 200, answer.text
        return jwe.opened(answer.content, self.key).reveal()


@dataclass
class BrokeredCluster:
    """A cluster, a broker, and those behind it."""

    cluster: Cluster
    door: BrokerDoor
    judge: Judge
    ledger: Ledger
    revoked: Revoked
    stack: AsyncExitStack
    clock: Clock
    behind: dict[str, Any]
    server: ApiServer | None = None

    def kubeconfig(self) -> bytes:
        """How the administrator of an embedded cluster reaches it."""
        assert self.server is not None
        return self.server.kubeconfig()

    async def replica(self, cluster: Cluster | None = None) -> BrokerDoor:
        """Another broker of the same cluster, with caches of its own."""
        cluster = cluster or self.cluster
        informers = await self.stack.enter_async_context(Informers(cluster, clock=self.clock, entropy=ENTROPY))
        return await self.stack.enter_async_context(broker(cluster, informers, self.clock, ENTROPY, **self.behind))

    async def client(self, door: BrokerDoor | None = None, credential: Credential | None = None) -> httpx.AsyncClient:
        """A client of the broker, with a cookie jar of its own."""
        door = door or self.door
        context = ssl.create_default_context(cadata=door.doors.bundle)
        if credential is not None:
            from fastness.http.certificates import load

            load(context, credential)
        made = httpx.AsyncClient(base_url=f"https://127.0.0.1:{door.port}", verify=context, timeout=PATIENCE)
        return await self.stack.enter_async_context(made)

    async def guest(self, who: Subject | None = None, **more: Any) -> Guest:
        """A machine that has not done anything yet."""
        return Guest(await self.client(), who or subject(), **more)

    async def admin(self, *scopes: str, lifetime: timedelta = timedelta(minutes=5), now: datetime | None = None) -> str:
        """The header of an administrator."""
        made = await mint(self.cluster, ENTROPY, now or self.clock.now(), "tester", scopes or ROLES["admin"], lifetime)
        return f"Bearer {made.reveal()}"

    async def judged(self) -> bool:
        """Whether the judge was asked."""
        return bool(self.judge.attempts)

    async def put(self, path: str, value: bytes) -> None:
        """Write a resource as an administrator."""
        http = await self.client()
        headers = {"authorization": await self.admin()}
        answer = await http.post(f"/kbs/v0/resource/{path}", content=value, headers=headers)
        assert answer.status_code == 200, answer.text

    async def bind(self, name: str, resource: str, **subjects: list[str]) -> None:
        """Let somebody read a resource."""
        spec = {"resource": resource, "subjects": subjects}
        made = {
            "apiVersion": "fastness.dev/v1alpha1",
            "kind": "ResourceBinding",
            "metadata": {"name": name},
            "spec": spec,
        }
        await self.cluster.create(RESOURCE_BINDING.resource, made)


@asynccontextmanager
async def brokered_cluster(
    directory: Path,
    *,
    limits: Limits | None = None,
    policies: PolicyDecider | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[BrokeredCluster]:
    """An embedded cluster with a broker, for the time of the block."""
    async with (
        open_apiserver(ServerOptions(directory), PRODUCT) as server,
        brokered(server.cluster, limits=limits, policies=policies, clock=clock) as site,
    ):
        site.server = server
        yield site


@asynccontextmanager
async def brokered(
    cluster: Cluster,
    *,
    limits: Limits | None = None,
    policies: PolicyDecider | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[BrokeredCluster]:
    """A broker in front of a cluster for the time of the block."""
    clock = clock or SystemClock()
    judge, ledger, revoked = Judge(clock), Ledger(), Revoked()
    cipher = KeyRing([SealKey.generate(ENTROPY)], ENTROPY)
    behind: dict[str, Any] = {
        "verifier": judge, "record": ledger, "revocations": revoked, "cipher": cipher, "policies": policies,
    }  # fmt: skip
    async with AsyncExitStack() as stack:
        informers = await stack.enter_async_context(Informers(cluster, clock=clock, entropy=ENTROPY))
        await stack.enter_async_context(issuing(cluster, informers, clock, ENTROPY))
        options = BrokerOptions(limits=limits or Limits())
        door = await stack.enter_async_context(broker(cluster, informers, clock, ENTROPY, options, **behind))
        site = BrokeredCluster(cluster, door, judge, ledger, revoked, AsyncExitStack(), clock, behind)
        await stack.enter_async_context(site.stack)
        yield site


async def until(check: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something to become true, with a bound."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if await check():
                return
            await asyncio.sleep(0.02)
