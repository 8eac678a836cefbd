"""Every route of every door with every kind of credential, over the wire.

The routes are those of the tables that the doors serve by; a route without a row here fails, and so does a row without a route.
A row says who gets past the column `auth`: everybody else is answered 401 or 403, or gets no connection at all.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import httpx

from fastness.admission.door.server import WebhookServer, webhook_server
from fastness.crypto.jws import SigningKey
from fastness.crypto.keys import PrivateKey
from fastness.crypto.x509 import CertificateAuthority, Credential
from fastness.formats import json
from fastness.http.certificates import load
from fastness.http.route import Route, Routes
from fastness.keys.internal import internal_authority
from fastness.kinds.kind import JsonObject
from fastness.page.admission import GuardDoor
from fastness.page.server import Page, PageOptions, web_server
from fastness.protocol import dpop, kbs
from fastness.protocol.door import DoorRole
from fastness.release.door.config_server.server import ConfigDoor, config_server
from fastness.release.door.gate.server import GateDoor, gate
from fastness.release.live.admins import ROLES
from fastness.release.live.admins import mint as mint_admin
from tests.attesting import ENTROPY, AttestingWorld, attesting_world
from tests.component.page.served_page import Browser, account_token, viewer_token
from tests.component.page.simulated import MemorySimulator
from tests.component.release.config_server.doors import CONFIG, POOL, pool, rendered
from tests.component.release.config_server.test_nodes import NEW, NODES, OLD, node
from tests.embedded.fixtures import Embedded
from tests.enrolling import MemoryRecord
from tests.patience import PATIENCE

PLAIN, CONFIDENTIAL = "plain", "worker"
CREDENTIALS = (
    "nothing", "garbage", "ticket", "token without its key", "token of a machine", "session", "challenge",
    "administrator", "administrator of something else", "certificate of a node", "certificate of the gate",
    "certificate of another role", "guest", "viewer", "operator",
)  # fmt: skip
EVERYBODY = frozenset(CREDENTIALS)
# The broker and the internal port end the handshake of whoever shows a certificate of an authority that is not theirs.
TLS_LETS_IN = EVERYBODY - {"certificate of a node"}
OF_OURS = frozenset({"certificate of the gate", "certificate of another role"})
NOBODY: frozenset[str] = frozenset()
ADMINISTRATOR = frozenset({"administrator"})
# Who is logged in at the page. Behind the session stands the authorizer of the API: a viewer may read machines alone.
PEOPLE = frozenset({"viewer", "operator"})
OPERATOR = frozenset({"operator"})
ADMITTED: dict[tuple[str, str], frozenset[str]] = {
    ("config server", "health"): EVERYBODY - OF_OURS,
    ("config server", "config"): frozenset({"ticket", "certificate of a node"}),
    ("config server", "trust"): frozenset({"certificate of a node"}),
    ("config server, internal port", "health"): OF_OURS,
    # It lets the gate in, which gets nothing without the token of a machine.
    ("config server, internal port", "config"): NOBODY,
    ("config server, internal port", "trust"): NOBODY,
    ("enrolment", "health"): EVERYBODY,
    # Where the broker is, which user-data tells as well.
    ("enrolment", "doors"): EVERYBODY,
    ("enrolment", "begin"): frozenset({"ticket"}),
    ("enrolment", "complete"): NOBODY,
    ("enrolment", "register-ak"): NOBODY,
    # For a ticket of a pool whose disks the Clevis pin opens, and none of these is (test_clevis_pin.py).
    ("enrolment", "clevis-pin"): NOBODY,
    ("enrolment", "register-pin"): NOBODY,
    ("gate", "health"): EVERYBODY,
    ("gate", "config"): frozenset({"token of a machine"}),
    ("gate", "trust"): frozenset({"token of a machine"}),
    ("webhook", "health"): EVERYBODY,
    ("webhook", "review"): EVERYBODY,
    ("webhook", "kata-review"): EVERYBODY,
    ("webhook", "recorded-review"): NOBODY,
    ("broker", "health"): TLS_LETS_IN,
    ("broker", "jwks"): TLS_LETS_IN,
    ("broker", "auth"): TLS_LETS_IN,
    # A guest that never enrolled may show its evidence, which is refused; there is no other way to a token.
    ("broker", "attest"): frozenset({"challenge", "guest"}),
    ("broker", "resource"): frozenset({"session", "token of a machine"}),
    ("broker", "write-resource"): ADMINISTRATOR,
    ("broker", "delete-resource"): ADMINISTRATOR,
    ("broker", "list-resources"): ADMINISTRATOR,
    ("broker", "write-policy"): ADMINISTRATOR,
    ("broker", "list-policies"): ADMINISTRATOR,
    ("broker", "write-resource-policy"): ADMINISTRATOR,
    ("broker", "list-resource-policies"): ADMINISTRATOR,
    ("broker", "write-value"): ADMINISTRATOR,
    ("broker", "read-value"): ADMINISTRATOR,
    ("broker", "introspect"): frozenset({"certificate of the gate"}),
    ("page", "login-form"): EVERYBODY,
    ("page", "asset"): EVERYBODY,
    # Both only lead to a login; what that takes is in test_provider_login.py.
    ("page", "provider"): EVERYBODY,
    ("page", "callback"): EVERYBODY,
    # It lets whoever brings the form of this very browser try a token.
    ("page", "login"): NOBODY,
    ("page", "logout"): PEOPLE,
    ("page", "events"): PEOPLE,
    ("page", "fleet"): PEOPLE,
    ("page", "machine"): PEOPLE,
    ("page", "simulator"): PEOPLE,
    ("page", "pools"): OPERATOR,
    ("page", "runtimes"): OPERATOR,
    ("page", "builds"): OPERATOR,
    ("page", "build"): OPERATOR,
    # Each of its parts is for those who may read it.
    ("page", "trust"): PEOPLE,
    ("page", "record"): OPERATOR,
    ("page", "decision"): OPERATOR,
    ("page", "simulate"): OPERATOR,
}
REFUSED = frozenset({401, 403})
PAUSE = timedelta(seconds=20)


@dataclass
class Caller:
    """What somebody shows at every door: headers, a certificate, the key of its token if it has it, and fields of its forms."""

    headers: dict[str, str] = field(default_factory=dict)
    certificate: Credential | None = None
    key: tuple[PrivateKey, JsonObject] | None = None
    form: dict[str, str] = field(default_factory=dict)

    def sent(self, method: str, url: str, nonce: str) -> dict[str, str]:
        """The headers of one request."""
        if self.key is None:
            return self.headers
        private, public = self.key
        token = self.headers["authorization"].removeprefix("DPoP ")
        proof = dpop.make_proof(
            private, public, dpop.Demand(method, url, token), nonce, datetime.now(UTC), ENTROPY.uid()
        )
        return {**self.headers, "dpop": proof}


@dataclass
class Doors:
    """All doors of a cluster, with its pools: one whose machines attest, and one of ordinary nodes."""

    world: AttestingWorld
    configs: ConfigDoor
    gate: GateDoor
    webhook: WebhookServer
    page: Page
    nodes: CertificateAuthority

    def tables(self) -> dict[str, tuple[int, Routes, str]]:
        """Port and table of every door, and the pool that is asked for there."""
        configs, doors = self.configs, self.world.doors
        return {
            "config server": (configs.port, configs.routes, PLAIN),
            "config server, internal port": (configs.internal_port, configs.internal_routes, PLAIN),
            "enrolment": (doors.enrolment.port, doors.enrolment.routes, CONFIDENTIAL),
            "gate": (self.gate.port, self.gate.routes, CONFIDENTIAL),
            "webhook": (self.webhook.port, self.webhook.routes, ""),
            "broker": (doors.broker.port, doors.broker.routes, ""),
            "page": (self.page.port, self.page.routes, ""),
        }

    def client(self, caller: Caller) -> httpx.AsyncClient:
        """A client that shows the certificate of a caller; cookies are headers here, so that every door sees them."""
        bundle = self.gate.doors.bundle + self.configs.internal.bundle
        trust = ssl.create_default_context(cadata=bundle)
        if caller.certificate is not None:
            load(trust, caller.certificate)
        return httpx.AsyncClient(verify=trust, timeout=PATIENCE, trust_env=False)


@asynccontextmanager
async def all_doors(embedded: Embedded) -> AsyncIterator[Doors]:
    cluster, now = embedded.cluster, datetime.now(UTC)
    await cluster.create(CONFIG, rendered(NEW, "the new one"))
    await cluster.create(CONFIG, rendered(OLD, "the old one"))
    for name in (PLAIN, CONFIDENTIAL):
        await cluster.create(POOL, pool(name, NEW))
    await cluster.create(NODES, node("plain-1", PLAIN, NEW, OLD))
    nodes = CertificateAuthority.create("clients", now, ENTROPY)
    pools = [{"name": PLAIN, "trustModel": "None"}]
    # The challenge is shown at every door, one after the other: on a loaded machine that takes longer than its usual minute.
    spec = {"mode": "Enforce", "simulated": True, "pools": pools, "attestation": {"challengeLifetime": "10m"}}
    async with attesting_world(cluster, spec) as world:
        informers, clock = world.informers, world.clock
        await world.approve("tpm")
        async with (
            config_server(cluster, informers, clock, ENTROPY, clients=lambda: [nodes.certificate]) as configs,
            gate(cluster, informers, configs.served, MemoryRecord(), clock, ENTROPY) as keeper,
            webhook_server(cluster, informers, clock, ENTROPY) as webhook,
            _page(embedded, world) as page,
        ):
            yield Doors(world, configs, keeper, webhook, page, nodes)


def _page(embedded: Embedded, world: AttestingWorld) -> AbstractAsyncContextManager[Page]:
    people = GuardDoor(embedded.server.guard, embedded.server.acting_as)
    options = PageOptions(simulator=MemorySimulator())
    return web_server(embedded.cluster, world.informers, people, world.clock, ENTROPY, options)


async def visitor(page: Page, token: str) -> Caller:
    """Somebody who logged in at the page: everything that their browser has, and their token."""
    browser = Browser(page)
    try:
        assert (await browser.log_in(token)).status_code == 303
        cookie = f"{page.sessions.cookie}={browser.http.cookies[page.sessions.cookie]}"
        return Caller(
            {"cookie": cookie, "authorization": f"Bearer {token}"},
            form={"token": await browser.token(), "decision": "approve"},
        )
    finally:
        await browser.http.aclose()


def guest(challenge: str, token: str, recipient: tuple[PrivateKey, JsonObject]) -> Caller:
    """A TEE that never enrolled: a challenge, and a token as it would like one, which only its own key has signed."""
    claims = json.decode(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    wish = SigningKey.generate(ENTROPY).sign({**claims, "sub": "guest:sha256:" + "0" * 64}, kind="JWT")
    return Caller({"authorization": f"DPoP {wish.reveal()}", "cookie": challenge}, key=recipient)


async def callers(doors: Doors, embedded: Embedded) -> dict[str, Caller]:
    """Everybody but the holder of a ticket, who shows one of the pool that is asked for."""
    world, now = doors.world, datetime.now(UTC)
    parts = await internal_authority(world.cluster, ENTROPY, now)
    admin, other = [
        await mint_admin(world.cluster, ENTROPY, now, "tester", scopes, timedelta(minutes=5))
        for scopes in (ROLES["admin"], ["GET nowhere"])
    ]
    async with doors.client(Caller()) as http:
        url = f"https://127.0.0.1:{world.doors.broker.port}/kbs/v0/auth"
        challenge = (await http.post(url, content=kbs.request_message("tpm"))).headers["set-cookie"].partition(";")[0]
    async with world.broker(await world.enrolled("tpm")) as machine:
        token = (await machine.attest()).reveal()
        key, session = (machine.key, machine.recipient), machine._session
    return {
        "nothing": Caller(),
        "garbage": Caller({"authorization": "Bearer e30.e30.e30"}),
        "token without its key": Caller({"authorization": f"Bearer {token}"}),
        "token of a machine": Caller({"authorization": f"DPoP {token}"}, key=key),
        "session": Caller({"cookie": session}),
        "challenge": Caller({"cookie": challenge}),
        "administrator": Caller({"authorization": f"Bearer {admin.reveal()}"}),
        "administrator of something else": Caller({"authorization": f"Bearer {other.reveal()}"}),
        "certificate of a node": Caller(
            certificate=doors.nodes.issue_client("system:node:plain-1", ["system:nodes"], timedelta(hours=1), now)
        ),
        "certificate of the gate": Caller(certificate=parts.client(DoorRole.GATE, now)),
        "certificate of another role": Caller(certificate=parts.client(DoorRole.ENROLMENT, now)),
        "guest": guest(challenge, token, key),
        "viewer": await visitor(doors.page, await viewer_token(embedded)),
        "operator": await visitor(doors.page, await account_token(embedded, "operator", "cluster-admin")),
    }


def path_of(route: Route[object], its_pool: str, credential: str) -> str:
    path = route.path.replace("<repository>/<type>/<tag>", "default/attestation-status/status")
    path = path.replace("<pool>", its_pool).replace("<key>", "x").replace("<**>", "x").replace("<name>", "1")
    return f"{path}?rendered={NEW}" if "<pool>" in route.path and credential == "certificate of a node" else path


async def admitted(
    client: httpx.AsyncClient, caller: Caller, method: str, base: str, path: str, *, people: bool
) -> bool:
    """Whether a caller gets past what a route demands; a proof of possession is made anew with the nonce of the door."""
    plain, nonce = f"{base}{path.partition('?')[0]}", ""
    body = b'{"enrolment":"%s","activated":"eA=="}' % (b"x" * 60) if method == "POST" else b""
    media = "application/x-www-form-urlencoded" if people else "application/json"
    if people:
        body = urlencode(caller.form).encode() if method == "POST" else b""
    for _ in range(2):
        headers = {"content-type": media, **caller.sent(method, plain, nonce)}
        try:
            # Only the head: a stream of events has no end.
            async with client.stream(method, f"{base}{path}", content=body, headers=headers) as answer:
                # A path that only the API server was told does not exist for anybody else.
                absent = answer.status_code == 404 and b'"not-found"' in await answer.aread()
        except (httpx.TransportError, ssl.SSLError):
            return False
        nonce = answer.headers.get("dpop-nonce", "")
        if not nonce:
            break
    to_login = answer.headers.get("location", "").startswith("/login?then=")
    return answer.status_code not in REFUSED and not absent and not to_login


def ways(doors: Doors) -> Iterator[tuple[str, int, Route[object], str, str]]:
    """Every method of every route of every door."""
    for door, (port, routes, its_pool) in doors.tables().items():
        for route in routes:
            for method in route.methods:
                yield door, port, route, method, its_pool


async def mismatches(doors: Doors, credential: str, caller: Caller | None) -> list[tuple[object, ...]]:
    """Where a credential gets in and should not, or does not and should; without a caller it is a ticket of each pool."""
    tickets = {name: (await doors.world.ticket(name)).reveal() for name in (PLAIN, CONFIDENTIAL)} if not caller else {}
    wrong: list[tuple[object, ...]] = []
    # All come from one address, and none of them too often: the time goes on between them, while what they hold stays young.
    doors.world.clock.ahead += PAUSE
    doors.world.clock.back += PAUSE
    async with doors.client(caller or Caller()) as client:
        # Logging out comes last: whoever did it is nobody from then on.
        for door, port, route, method, its_pool in sorted(ways(doors), key=lambda way: way[2].name == "logout"):
            ticket = tickets.get(its_pool or CONFIDENTIAL, "")
            presented = caller or Caller({"authorization": f"Bearer {ticket}"})
            path = path_of(route, its_pool, credential)
            base = f"https://127.0.0.1:{port}"
            got = await admitted(client, presented, method, base, path, people=door == "page")
            if got != (credential in ADMITTED[door, route.name]):
                wrong.append((credential, door, route.name, method, got))
    return wrong


async def test_every_route_of_every_door_admits_the_credentials_of_its_row_and_no_others(
    embedded_server: Embedded,
) -> None:
    async with all_doors(embedded_server) as doors:
        served = {(door, route.name) for door, _, route, _, _ in ways(doors)}
        credentials = await callers(doors, embedded_server) if served == ADMITTED.keys() else {}
        wrong = [await mismatches(doors, name, credentials.get(name)) for name in CREDENTIALS] if credentials else []
    # Outside of the block: the doors' task groups would wrap what fails in it ten times over.
    assert served == ADMITTED.keys(), "every route has a row in this matrix, and every row a route"
    assert [each for differences in wrong for each in differences] == []
