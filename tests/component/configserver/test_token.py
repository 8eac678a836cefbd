"""What a gate must show for the machine that it asks for: the config server believes no gate alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Literal

import httpx
import pytest

from fastness.cluster.clock import SystemClock, SystemEntropy
from fastness.cluster.informers import Informer, Informers
from fastness.crypto.jwk import public_jwk
from fastness.crypto.keys import PrivateKey
from fastness.domain.attestation.ear import Proved
from fastness.domain.attestation.subject import Subject
from fastness.model.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.model.fastness_dev.distrust import DISTRUST
from fastness.services.configserver.server import config_server
from fastness.trust.tokens import BROKER, GATE, TokenIssuer
from tests.component.configserver.doors import Doors, furnish
from tests.delivering import until
from tests.embedded.fixtures import Embedded
from tests.lowering import lowered

ENTROPY = SystemEntropy()
UID = "00000000-0000-4000-8000-000000000001"


@dataclass
class World:
    """A config server as the product opens it, and who issues tokens."""

    doors: Doors
    informers: Informers
    tokens: TokenIssuer

    def token(self, pool: str = "secret", audience: str = GATE) -> str:
        """A token of a machine of a pool."""
        subject = Subject(UID, "machine-a", "sha256:" + "a" * 64, pool, tee="tpm", endorsement="ek-certificate")
        proved = Proved(subject, "v", public_jwk(PrivateKey.generate(ENTROPY)), "n", vector={"executables": 3})
        return self.tokens.issue(proved, timedelta(minutes=5), (audience,))[0].reveal()

    async def ask(self, role: Literal["gate", "broker"], token: str = "", pool: str = "secret") -> tuple[int, str]:
        """What somebody with the certificate of a role is answered: status and code."""
        headers = {"authorization": f"DPoP {token}"} if token else {}
        async with self.doors.inner(self.doors.door.internal.client(role, datetime.now(UTC))) as client:
            answer: httpx.Response = await client.get(f"/config/{pool}", headers=headers)
        return answer.status_code, "" if answer.status_code == 200 else answer.json()["code"]


@asynccontextmanager
async def opened(embedded: Embedded) -> AsyncIterator[World]:
    clock, cluster = SystemClock(), embedded.cluster
    await furnish(cluster)
    async with (
        Informers(cluster, clock=clock, entropy=ENTROPY) as informers,
        config_server(cluster, informers, clock, ENTROPY) as door,
    ):
        tokens = await TokenIssuer.open(cluster, informers, clock, ENTROPY)
        yield World(Doors(door, cluster), informers, tokens)


def _has_mode(clusters: Informer, mode: str) -> bool:
    return bool((clusters.get("", "cluster") or {}).get("spec", {}).get("mode") == mode)


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[World]:
    async with opened(embedded_server) as found:
        yield found


async def test_a_gate_gets_nothing_without_the_token_of_a_machine_of_that_pool(world: World) -> None:
    assert await world.ask("gate") == (401, "token-required")
    assert await world.ask("gate", "not-a-token") == (401, "bad-token")
    assert await world.ask("gate", world.token(audience=BROKER)) == (401, "bad-token")
    assert await world.ask("gate", world.token(pool="other")) == (403, "wrong-pool")


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


async def test_the_broker_keeps_copies_and_asks_for_no_machine_in_particular(world: World) -> None:
    assert await world.ask("broker") == (200, "")


async def test_a_gate_that_only_watches_may_ask_for_machines_with_a_ticket_until_the_cluster_enforces(
    world: World,
) -> None:
    clusters: Informer = world.informers.of(CONFIDENTIAL_CLUSTER.resource)
    for mode, expected in (("Audit", (200, "")), ("Enforce", (401, "token-required"))):
        await lowered(world.doors.cluster, {"mode": mode})
        await until(partial(_has_mode, clusters, mode))
        assert await world.ask("gate") == expected
