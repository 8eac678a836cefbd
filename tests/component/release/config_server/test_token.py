"""What a gate must show for the machine that it asks for: the config server believes no gate alone."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

import httpx
import pytest

from fastness.attestation.loops.door_certificates import issuing
from fastness.crypto.eddsa import Ed25519Verifier
from fastness.crypto.jwk import public_jwk
from fastness.crypto.jws import SigningKey
from fastness.crypto.keys import PrivateKey
from fastness.http.freshness import Touch
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.fastness_dev.rollout import NODE_OVERLAY
from fastness.kinds.trusted_execution.subject import Subject
from fastness.kube.informers import Informer, Informers
from fastness.protocol.config_proof import HEADER, BadConfigProof, Copied, Served, check
from fastness.protocol.door import DoorRole
from fastness.release.door.config_server.server import config_server
from fastness.release.ear import Proved
from fastness.release.live.tokens import BROKER, GATE, TokenIssuer
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.component.release.config_server.doors import CONFIG, Doors, furnish, rendered
from tests.delivering import until
from tests.embedded.fixtures import Embedded
from tests.lowering import lowered

ENTROPY = SystemEntropy()
THUMBPRINT = "sha256:" + "a" * 64
UID = "00000000-0000-4000-8000-000000000001"


@dataclass
class World:
    """A config server as the product opens it, and who issues tokens."""

    doors: Doors
    informers: Informers
    tokens: TokenIssuer

    def token(
        self, pool: str = "secret", audience: str = GATE, machine: str = UID, lifetime: timedelta = timedelta(minutes=5)
    ) -> str:
        """A token of a machine of a pool."""
        subject = Subject(machine, "machine-a", THUMBPRINT, pool, tee="tpm", endorsement="ek-certificate")
        proved = Proved(subject, "v", public_jwk(PrivateKey.generate(ENTROPY)), "n", vector={"executables": 3})
        return self.tokens.issue(proved, lifetime, (audience,))[0].reveal()

    async def answer(
        self, role: Literal["gate", "broker"], credential: str, pool: str = "secret", nonce: str = "n", query: str = ""
    ) -> httpx.Response:
        """What somebody with the certificate of a role is answered."""
        headers = {"fastness-nonce": nonce, **({"authorization": credential} if credential else {})}
        async with self.doors.inner((await self.doors.internal()).client(DoorRole(role), datetime.now(UTC))) as client:
            return await client.get(f"/config/{pool}{query}", headers=headers)

    async def ask(self, role: Literal["gate", "broker"], token: str = "", pool: str = "secret") -> tuple[int, str]:
        """The same: status and code."""
        answer = await self.answer(role, f"DPoP {token}" if token else "", pool)
        return answer.status_code, "" if answer.status_code == 200 else answer.json()["code"]

    @property
    def keys(self) -> dict[str, Ed25519Verifier]:
        """What an image of this cluster believes."""
        return {jwk["kid"]: Ed25519Verifier.from_jwk(jwk) for jwk in self.doors.door.served.signer.jwks()}

    async def set(self, **spec: object) -> None:
        """Change the cluster's settings, and wait until the door has heard of it."""
        await lowered(self.doors.cluster, spec)
        changed = await self.doors.cluster.get(CONFIDENTIAL_CLUSTER.resource, "cluster")
        clusters: Informer = self.informers.of(CONFIDENTIAL_CLUSTER.resource)
        version = changed["metadata"]["resourceVersion"]
        await until(lambda: (clusters.get("", "cluster") or {})["metadata"]["resourceVersion"] == version)


@asynccontextmanager
async def opened(embedded: Embedded) -> AsyncIterator[World]:
    clock, cluster = SystemClock(), embedded.cluster
    await furnish(cluster)
    async with (
        Informers(cluster, clock=clock, entropy=ENTROPY) as informers,
        issuing(cluster, informers, clock, ENTROPY),
        config_server(cluster, informers, clock, ENTROPY) as door,
    ):
        tokens = await TokenIssuer.open(cluster, informers, clock, ENTROPY)
        yield World(Doors(door, cluster), informers, tokens)


def _payload(token: str) -> bytes:
    return base64.urlsafe_b64decode(token.split(".")[1] + "==")


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[World]:
    async with opened(embedded_server) as opening:
        yield opening


async def test_a_gate_gets_nothing_without_the_token_of_a_machine_of_that_pool(world: World) -> None:
    assert await world.ask("gate") == (403, "wrong-role")
    assert await world.ask("gate", "not-a-token") == (401, "bad-token")
    assert await world.ask("gate", world.token(audience=BROKER)) == (401, "bad-token")
    assert await world.ask("gate", world.token(pool="other")) == (403, "wrong-pool")


async def test_a_gate_that_was_taken_over_gets_no_rendered_config_that_the_machine_was_not_told_to_have(
    world: World,
) -> None:
    other = f"?rendered=rendered-secret-{'a' * 32}"
    answer = await world.answer("gate", f"DPoP {world.token()}", query=other)
    assert (answer.status_code, answer.json()["code"]) == (403, "not-assigned")


async def test_a_config_server_that_lost_touch_serves_no_gate_whatever_that_one_believes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = world.token()
    assert (await world.ask("gate", token))[0] == 200
    monkeypatch.setattr(Touch, "in_touch", property(lambda _: False))
    assert await world.ask("gate", token) == (503, "out-of-touch")
    assert await world.ask("broker") == (503, "out-of-touch")


async def test_a_request_that_no_gate_of_ours_would_make_is_refused(world: World) -> None:
    internal = await world.doors.internal()
    async with world.doors.inner(internal.client(DoorRole.GATE, datetime.now(UTC))) as client:
        for path in ("/", "/config", "/config/secret/more", "/other/secret"):
            assert (await client.get(path)).status_code == 404, path
        posted = await client.post("/config/secret")
        assert (posted.status_code, posted.json()["code"]) == (405, "method-not-allowed")
    answer = await world.answer("gate", f"DPoP {world.token()}", nonce="n" * 129)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-nonce")


async def test_a_machine_that_is_distrusted_gets_nothing_through_a_gate_that_has_not_heard_of_it(world: World) -> None:
    token = world.token()
    assert await world.ask("gate", token) == (200, "")
    body = {
        "apiVersion": DISTRUST.api_version, "kind": DISTRUST.kind, "metadata": {"name": "it"},
        "spec": {"machine": UID, "reason": "stolen"},
    }  # fmt: skip
    await world.doors.cluster.create(DISTRUST.resource, body)
    await until(lambda: world.informers.of(DISTRUST.resource).get("", "it") is not None)
    assert await world.ask("gate", token) == (403, "revoked")


async def test_an_expired_token_and_a_token_of_keys_that_nobody_published_get_nothing(world: World) -> None:
    assert await world.ask("gate", world.token(lifetime=timedelta(seconds=-1))) == (401, "bad-token")
    forged = SigningKey.generate(ENTROPY).sign(json.loads(_payload(world.token())), "JWT").reveal()
    assert await world.ask("gate", forged) == (401, "bad-token")


async def test_the_signature_is_for_the_machine_of_the_token_and_the_nonce_that_was_forwarded(world: World) -> None:
    answer = await world.answer("gate", f"DPoP {world.token()}", nonce="request-1")
    signature, now = answer.headers[HEADER], datetime.now(UTC)
    check(signature, Served(answer.content, "secret", UID, "request-1", key=THUMBPRINT), world.keys, now)
    for other in (
        Served(answer.content, "secret", UID, "request-2", key=THUMBPRINT),
        Served(answer.content, "secret", "another", "request-1", key=THUMBPRINT),
        Served(answer.content, "secret", UID, "request-1", key="sha256:" + "b" * 64),
        Copied(answer.content, "secret", "rendered-secret-1"),
    ):
        with pytest.raises(BadConfigProof):
            check(signature, other, world.keys, now)


async def test_overlays_are_laid_over_by_the_config_server_for_the_machine_of_the_token(world: World) -> None:
    fragment = {
        "ignition": {"version": "3.4.0"},
        "storage": {"files": [{"path": "/etc/rack", "mode": 420, "contents": {"source": "data:,7"}}]},
    }
    body = {
        "apiVersion": NODE_OVERLAY.api_version, "kind": NODE_OVERLAY.kind, "metadata": {"name": "rack"},
        "spec": {"match": {"machines": [UID]}, "config": fragment},
    }  # fmt: skip
    await world.doors.cluster.create(NODE_OVERLAY.resource, body)
    await until(lambda: world.informers.of(NODE_OVERLAY.resource).get("", "rack") is not None)
    mine = await world.answer("gate", f"DPoP {world.token()}")
    assert "/etc/rack" in mine.text
    assert mine.headers["fastness-overlays"].startswith("rack")
    check(mine.headers[HEADER], Served(mine.content, "secret", UID, "n", key=THUMBPRINT), world.keys, datetime.now(UTC))
    other = await world.answer("gate", f"DPoP {world.token(machine='another')}")
    copy = await world.answer("broker", "")
    assert "/etc/rack" not in other.text + copy.text


async def test_a_broker_that_was_taken_over_has_no_config_of_one_pool_signed_as_that_of_another(world: World) -> None:
    """It may keep every pool's copies; which pool they are of is the config server's word."""
    name = f"rendered-plain-{'a' * 32}"
    await world.doors.cluster.create(CONFIG, rendered(name, "of the plain pool"))
    await until(lambda: world.informers.of(CONFIG).get("", name) is not None)
    assert (await world.answer("broker", "", "plain", query=f"?rendered={name}")).status_code == 200
    answer = await world.answer("broker", "", "secret", query=f"?rendered={name}")
    assert (answer.status_code, answer.json()["code"]) == (403, "wrong-pool")


async def test_the_broker_gets_copies_only_while_it_delivers_from_copies_and_a_gate_never(world: World) -> None:
    answer = await world.answer("broker", "")
    until_then = datetime.fromisoformat(answer.headers["fastness-until"])
    statement = Copied(answer.content, "secret", "rendered-secret-1")
    check(answer.headers[HEADER], statement, world.keys, until_then - timedelta(seconds=1))
    with pytest.raises(BadConfigProof):
        check(answer.headers[HEADER], statement, world.keys, until_then)
    assert await world.ask("gate") == (403, "wrong-role")
    await world.set(delivery={"via": "Broker", "sync": "OnDemand"})
    assert await world.ask("broker") == (401, "token-required")
    assert await world.ask("broker", world.token()) == (200, "")
    await world.set(delivery={"via": "Gate", "sync": "OnChange"})
    assert await world.ask("broker") == (401, "token-required")


async def test_a_gate_that_only_watches_forwards_the_ticket_of_the_machine_until_the_cluster_enforces(
    world: World,
) -> None:
    ticket, other = await world.doors.ticket("secret"), await world.doors.ticket("plain")
    for mode, expected in (("Audit", [200, 403, 403, 401]), ("Enforce", [401, 403, 401, 401])):
        await world.set(mode=mode)
        credentials = [f"Bearer {ticket}", "", f"Bearer {other}", "Bearer made-up"]
        assert [(await world.answer("gate", credential)).status_code for credential in credentials] == expected
