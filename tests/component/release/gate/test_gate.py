"""The gate over TLS: a configuration for a machine with a live grant, row by row of the doors' table, and nothing else."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx
import pytest

from fastness.crypto.eddsa import Ed25519Verifier
from fastness.crypto.keys import PrivateKey
from fastness.enrolment.live.tickets import TicketCache, TicketCheck, join_ticket, mint
from fastness.http.limits import Limits
from fastness.http.refusals import Refusal
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kinds.trusted_execution.subject import Grant
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import PatchType
from fastness.protocol import dpop
from fastness.protocol.config_proof import HEADER, BadConfigProof, Copied, Served, check
from fastness.protocol.kbs_path import ResourcePath, is_pool_config
from fastness.release.configs import Config
from fastness.release.door.gate.server import GateDoor, gate
from fastness.release.ear import Proved, proven_caller
from fastness.release.live.signed_configs import ServedConfigs
from fastness.release.source import Query
from fastness.sim.tee.attester import SimAttester
from tests.attesting import ENTROPY, AttestingWorld, attesting_world, until
from tests.embedded.fixtures import Embedded
from tests.enrolling import MemoryRecord, code
from tests.patience import PATIENCE

BODY = b'{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/secret"}]}}'


@dataclass
class Shelf:
    """Configurations in memory."""

    requests: list[tuple[str, str]] = field(default_factory=list)
    rendered: list[str] = field(default_factory=list)
    refusal: Refusal | None = None

    def serves(self, path: ResourcePath) -> bool:
        """Configurations of pools."""
        return is_pool_config(path)

    async def read(self, grant: Grant, path: ResourcePath, query: Query) -> Config:
        """The configuration of any pool."""
        self.requests.append((path.type, query["accept"]))
        if self.refusal is not None:
            raise self.refusal
        rendered = query["rendered"]
        if rendered:
            self.rendered.append(rendered)
        return Config(BODY, b'"etag"', rendered or f"rendered-{path.type}-1")


@dataclass
class World:
    """A cluster with all doors, and a client of the gate."""

    attesting: AttestingWorld
    door: GateDoor
    served: ServedConfigs
    shelf: Shelf
    record: MemoryRecord
    http: httpx.AsyncClient

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.door.port}"


class Machine:
    """A machine with a token, which proves that it holds the key of it."""

    def __init__(self, world: World, token: str, key: PrivateKey, recipient: JsonObject, uid: str) -> None:
        self.world, self.token, self.key, self.recipient, self.uid = world, token, key, recipient, uid
        self.nonce = ""

    @property
    def thumbprint(self) -> str:
        """Whose token it is."""
        claims = json.loads(base64.urlsafe_b64decode(self.token.split(".")[1] + "=="))
        return str(claims["sub"])

    def proof(self, path: str, method: str = "GET", **change: Any) -> str:
        now = self.world.attesting.clock.now()
        demand = dpop.Demand(method, change.get("url", f"{self.world.url}{path}"), change.get("token", self.token))
        key, jwk = change.get("key", self.key), change.get("jwk", self.recipient)
        return dpop.make_proof(key, jwk, demand, change.get("nonce", self.nonce), now, change.get("jti", "request-1"))

    async def get(
        self, path: str = "/config/worker", method: str = "GET", query: str = "", **change: Any
    ) -> httpx.Response:
        headers = {"authorization": f"DPoP {self.token}", "dpop": self.proof(path, method, **change)}
        return await self.world.http.request(method, f"{path}{query}", headers=headers)

    async def ready(self) -> Machine:
        """Learn a nonce, as every client does with its first request."""
        answer = await self.get()
        assert (answer.status_code, answer.json()["code"]) == (401, "use-dpop-nonce")
        self.nonce = answer.headers["dpop-nonce"]
        return self


async def proved(world: World, attester: SimAttester) -> Machine:
    async with world.attesting.broker(attester) as broker:
        token = await broker.attest()
        uid = (await world.attesting.machine_object(attester))["metadata"]["uid"]
        return Machine(world, token.reveal(), broker.key, broker.recipient, uid)


@asynccontextmanager
async def gate_world(embedded: Embedded, spec: JsonObject | None = None) -> AsyncIterator[World]:
    async with attesting_world(embedded.cluster, spec) as attesting:
        shelf, record = Shelf(), MemoryRecord()
        clock = attesting.clock
        served = await ServedConfigs.open(attesting.cluster, attesting.informers, clock, ENTROPY, shelf)
        async with gate(attesting.cluster, attesting.informers, served, record, clock, ENTROPY) as door:
            trust = ssl.create_default_context(cadata=door.doors.bundle)
            async with httpx.AsyncClient(
                base_url=f"https://127.0.0.1:{door.port}", verify=trust, timeout=PATIENCE
            ) as http:
                yield World(attesting, door, served, shelf, record, http)


@pytest.fixture
async def here(embedded_server: Embedded) -> AsyncIterator[World]:
    async with gate_world(embedded_server) as world:
        await world.attesting.approve("tpm")
        yield world


@pytest.fixture
async def machine(here: World) -> Machine:
    return await (await proved(here, await here.attesting.enrolled("tpm"))).ready()


async def test_a_proven_machine_gets_its_configuration_signed_for_this_request(here: World, machine: Machine) -> None:
    answer = await machine.get(jti="unique-7")
    assert (answer.status_code, answer.content) == (200, BODY)
    keys = {jwk["kid"]: Ed25519Verifier.from_jwk(jwk) for jwk in here.served.signer.jwks()}
    now = here.attesting.clock.now()
    check(answer.headers[HEADER], Served(BODY, "worker", machine.uid, "unique-7", key=machine.thumbprint), keys, now)
    for other in (
        Served(BODY + b" ", "worker", machine.uid, "unique-7", key=machine.thumbprint),
        Served(BODY, "master", machine.uid, "unique-7", key=machine.thumbprint),
        Served(BODY, "worker", "another", "unique-7", key=machine.thumbprint),
        Served(BODY, "worker", machine.uid, "unique-8", key=machine.thumbprint),
        Served(BODY, "worker", machine.uid, "unique-7", key="sha256:" + "0" * 64),
        Copied(BODY, "worker", "rendered-worker-1"),
    ):
        with pytest.raises(BadConfigProof):
            check(answer.headers[HEADER], other, keys, now)


async def test_every_release_is_on_the_record_with_its_grant_and_verdict(here: World, machine: Machine) -> None:
    await machine.get()
    (entry,) = here.record.entries
    assert (entry.what, entry.resource, entry.detail["config"]) == (
        "release",
        "pool/worker/config",
        "rendered-worker-1",
    )
    assert entry.grant
    assert entry.verdict


async def test_nothing_leaves_when_the_record_cannot_be_written(here: World, machine: Machine) -> None:
    here.record.broken = True
    answer = await machine.get()
    assert code(answer) == (503, "record-failed")
    assert answer.headers["retry-after"]


async def test_head_proves_the_same_and_has_no_body(machine: Machine) -> None:
    answer = await machine.get(method="HEAD")
    assert (answer.status_code, answer.content) == (200, b"")


async def test_another_pool_is_refused_for_good_whether_it_exists_or_not(machine: Machine) -> None:
    for pool in ("master", "nonsense"):
        assert code(await machine.get(f"/config/{pool}")) == (403, "wrong-pool")


async def test_without_a_token_nobody_learns_anything(here: World) -> None:
    for path in ("/config/worker", "/config/nonsense"):
        answer = await here.http.get(path)
        assert code(answer) == (401, "token-required")
    ticket = await here.attesting.ticket()
    with_ticket = await here.http.get("/config/worker", headers={"authorization": f"Bearer {ticket.reveal()}"})
    assert code(with_ticket) == (401, "token-required")
    assert here.shelf.requests == []


async def test_a_stolen_token_is_of_no_use_without_its_key(here: World, machine: Machine) -> None:
    thief = PrivateKey.generate(ENTROPY)
    for change in (
        {"key": thief},
        {"nonce": "made-up"},
        {"url": "https://127.0.0.1:1/config/worker"},
        {"token": "other"},
    ):
        assert (await machine.get(**change)).status_code == 401
    bare = await here.http.get("/config/worker", headers={"authorization": f"DPoP {machine.token}"})
    assert bare.status_code == 401
    twice = await here.http.get(
        "/config/worker",
        headers=[("authorization", f"DPoP {machine.token}"), *[("dpop", machine.proof("/config/worker"))] * 2],
    )
    assert twice.status_code == 401
    assert here.shelf.requests == []


async def test_a_token_that_expired_or_was_changed_is_401(here: World, machine: Machine) -> None:
    changed = machine.token[:-6] + "AAAAAA"
    answer = await here.http.get("/config/worker", headers={"authorization": f"DPoP {changed}", "dpop": "x"})
    assert code(answer) == (401, "bad-token")
    here.attesting.clock.ahead = timedelta(minutes=11)
    assert code(await machine.get()) == (401, "bad-token")


async def test_a_quarantined_machine_gets_nothing_with_a_token_that_is_still_good(
    here: World, machine: Machine
) -> None:
    name = (await here.attesting.cluster.list(MACHINE.resource)).items[0]["metadata"]["name"]
    patch = {"spec": {"approval": "Quarantined"}}
    await here.attesting.cluster.patch(MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE)

    async def revoked() -> bool:
        return (await machine.get()).status_code == 403

    await until(revoked)
    assert code(await machine.get()) == (403, "revoked")


async def test_two_gates_share_nothing_but_the_cluster(here: World, machine: Machine) -> None:
    """A machine may begin at one and go on at the other: nonce, token, signing key and revocation hold at both."""
    around = here.attesting
    async with (
        Informers(around.cluster, clock=around.clock, entropy=ENTROPY) as informers,
        gate(around.cluster, informers, here.served, MemoryRecord(), around.clock, ENTROPY) as door,
        httpx.AsyncClient(
            base_url=f"https://127.0.0.1:{door.port}", verify=ssl.create_default_context(cadata=here.door.doors.bundle)
        ) as http,
    ):
        other = Machine(
            World(around, door, here.served, here.shelf, here.record, http),
            machine.token,
            machine.key,
            machine.recipient,
            "",
        )
        other.nonce = machine.nonce
        answer = await other.get(jti="elsewhere")
        assert (answer.status_code, answer.content) == (200, BODY)
        keys = {jwk["kid"]: Ed25519Verifier.from_jwk(jwk) for jwk in here.served.signer.jwks()}
        check(
            answer.headers[HEADER],
            Served(BODY, "worker", machine.uid, "elsewhere", key=machine.thumbprint),
            keys,
            around.clock.now(),
        )
        name = (await around.cluster.list(MACHINE.resource)).items[0]["metadata"]["name"]
        quarantined = {"spec": {"approval": "Quarantined"}}
        await around.cluster.patch(MACHINE.resource, name, quarantined, PatchType.MERGE, NAMESPACE)

        async def refused_at_both() -> bool:
            return [(await each.get()).status_code for each in (machine, other)] == [403, 403]

        await until(refused_at_both)


async def test_what_the_config_server_lacks_passes_through_as_what_will_pass(here: World, machine: Machine) -> None:
    here.shelf.refusal = Refusal(503, "not-rendered", "the pool has no rendered config yet")
    answer = await machine.get()
    assert code(answer) == (503, "not-rendered")
    assert here.record.entries == []


@pytest.mark.parametrize(
    ("method", "path", "statuses"),
    [
        ("POST", "/config/worker", {405}),
        ("GET", "/", {404}),
        ("GET", "/config/a/b", {404}),
        ("GET", "/config/%2e%2e", {401, 404}),
    ],
)
async def test_other_requests_are_refused_plainly(here: World, method: str, path: str, statuses: set[int]) -> None:
    answer = await here.http.request(method, path)
    assert answer.status_code in statuses
    assert here.shelf.requests == []


async def test_in_audit_mode_a_ticket_is_enough_and_the_grant_says_so(embedded_server: Embedded) -> None:
    async with gate_world(embedded_server, {"mode": "Audit", "simulated": True}) as world:
        ticket = await world.attesting.ticket()
        headers = {"authorization": f"Bearer {ticket.reveal()}"}
        answer = await world.http.get("/config/worker", headers=headers)
        assert (answer.status_code, answer.content) == (200, BODY)
        assert world.record.entries[-1].detail["basis"] == "audit"
        assert code(await world.http.get("/config/master", headers=headers)) == (403, "wrong-pool")
        assert code(await world.http.get("/config/worker", headers={"authorization": "Bearer fst_no"})) == (
            401,
            "ticket-required",
        )
        await world.attesting.cluster.patch(
            CONFIDENTIAL_CLUSTER.resource, "cluster", {"spec": {"mode": "Enforce"}}, PatchType.MERGE
        )

        async def refused() -> bool:
            return (await world.http.get("/config/worker", headers=headers)).status_code == 401

        await until(refused)


async def test_in_audit_mode_a_ticket_counts_from_the_instant_that_it_is_made(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gate's cache hears of nothing here: a ticket that it does not know is looked up before it is refused for good."""
    async with gate_world(embedded_server, {"mode": "Audit", "simulated": True}) as world:
        monkeypatch.setattr(Informer, "_take", lambda _self, _event: None)
        made = mint(ENTROPY)
        expires = world.attesting.clock.now() + timedelta(hours=1)
        await world.attesting.cluster.create(JOIN_TICKET.resource, join_ticket("new", made, "worker", expires))
        headers = {"authorization": f"Bearer {made.reveal()}"}
        assert (await world.http.get("/config/worker", headers=headers)).status_code == 200


async def test_in_audit_mode_a_gate_that_cannot_know_a_ticket_asks_its_machine_to_come_again(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with gate_world(embedded_server, {"mode": "Audit", "simulated": True}) as world:
        credential = {"authorization": f"Bearer {(await world.attesting.ticket()).reveal()}"}
        monkeypatch.setattr(Informer, "in_touch", property(lambda _self: False))
        unknown = await world.http.get("/config/worker", headers={"authorization": f"Bearer {mint(ENTROPY).reveal()}"})
        assert code(unknown) == (503, "cluster-unavailable")
        assert int(unknown.headers["retry-after"]) > 0
        assert code(await world.http.get("/config/worker", headers=credential)) == (503, "out-of-touch")
        garbage = await world.http.get("/config/worker", headers={"authorization": "Bearer garbage"})
        assert code(garbage) == (401, "ticket-required")


def stop(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no time pass that would forgive wrong credentials, however long the requests of a test take."""
    moment = world.attesting.clock.monotonic()
    monkeypatch.setattr(world.attesting.clock, "monotonic", lambda: moment)


async def test_in_audit_mode_guesses_of_tickets_make_the_gate_ask_the_api_only_so_often(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookups, unchanged = list[str](), TicketCache.look_up

    async def counted(self: TicketCache, ticket: str, pool: str) -> TicketCheck:
        lookups.append(ticket)
        return await unchanged(self, ticket, pool)

    monkeypatch.setattr(TicketCache, "look_up", counted)
    async with gate_world(embedded_server, {"mode": "Audit", "simulated": True}) as world:
        credential = {"authorization": f"Bearer {(await world.attesting.ticket()).reveal()}"}
        stop(world, monkeypatch)
        burst = int(Limits().wrong.burst)
        guesses = [{"authorization": f"Bearer {mint(ENTROPY).reveal()}"} for _ in range(burst + 5)]
        answers = [code(await world.http.get("/config/worker", headers=guess)) for guess in guesses]
        assert answers == [(401, "ticket-required")] * burst + [(503, "overload")] * 5
        assert len(lookups) == burst
        assert (await world.http.get("/config/worker", headers=credential)).status_code == 200


async def test_who_shows_nothing_too_often_is_asked_to_wait_and_a_machine_from_the_same_address_is_not(
    here: World, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop(here, monkeypatch)
    burst = int(Limits().wrong.burst)
    answers = [code(await here.http.get("/config/worker")) for _ in range(burst + 5)]
    assert answers == [(401, "token-required")] * burst + [(503, "overload")] * 5
    assert (await machine.get()).status_code == 200


async def test_a_token_that_does_not_say_who_its_bearer_is_opens_nothing(here: World, machine: Machine) -> None:
    """As one of an earlier version of the product that said less, under keys that are good still."""
    tokens = here.attesting.doors.broker.tokens
    claims = {name: claim for name, claim in tokens.verify(machine.token, "gate").items() if name != "fastness"}
    machine.token = tokens.sign(claims).reveal()
    assert code(await machine.get()) == (401, "bad-token")


async def test_a_token_for_the_broker_alone_opens_nothing_here(here: World, machine: Machine) -> None:
    tokens = here.attesting.doors.broker.tokens
    caller = proven_caller(tokens.verify(machine.token, "gate"))
    assert caller is not None
    same = Proved(caller.subject, caller.verdict, machine.recipient, "nonce", vector={"executables": 3})
    answers = []
    for audiences in (["broker"], ["broker", "gate"]):
        machine.token = tokens.issue(same, timedelta(minutes=5), audiences)[0].reveal()
        answers.append((await machine.get()).status_code)
    assert answers == [401, 200]
