"""A gate was taken over: what its certificates open, and what they do not.

The thief has what the gate has: the Secret of its role with keys and certificates, and the right to write that Secret.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from fastness.agent.boot.boot import boot_once
from fastness.agent.boot.enrol import DoorUnreachable
from fastness.agent.boot.fetch import GateRefused, from_config_server
from fastness.agent.boot.prove import BrokerRefused, DoorRefused
from fastness.crypto.x509 import Credential
from fastness.http.certificates import load
from fastness.http.listener import server_context
from fastness.http.refusals import Refusal
from fastness.keys.authorities import SECRETS
from fastness.keys.certificates import NAMES, DoorCertificates, RoleCertificates, content, read, secret_name
from fastness.keys.doors import doors_authority
from fastness.keys.internal import internal_authority
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kube.client.pool import WrongDoor
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType
from fastness.protocol.delivered import Question
from fastness.protocol.door import DoorRole
from fastness.release.configs import ConfigRequest
from fastness.release.live.configs import RemoteConfigs
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.component.release.config_server.doors import POOLS, Doors, open_doors
from tests.delivering import DeliveringWorld, delivering_world
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE

ENTROPY = SystemEntropy()
DAY = timedelta(days=1)


async def stolen(cluster: Cluster, role: DoorRole = DoorRole.GATE) -> RoleCertificates:
    """What lies in the Secret of a role."""
    certificates = read(await cluster.get(SECRETS, secret_name(role), NAMESPACE))
    assert certificates is not None
    return certificates


@dataclass
class Impostor:
    """Listens with a stolen certificate and keeps every byte that it is sent."""

    port: int = 0
    heard: list[bytes] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            if piece := await reader.read(65536):
                self.heard.append(piece)
                writer.write(b"HTTP/1.1 503 no\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()


@asynccontextmanager
async def posing(shows: Credential) -> AsyncIterator[Impostor]:
    context, impostor = server_context(), Impostor()
    load(context, shows)
    server = await asyncio.start_server(impostor.connected, "127.0.0.1", 0, ssl=context)
    impostor.port = server.sockets[0].getsockname()[1]
    async with server:
        yield impostor


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[DeliveringWorld]:
    async with delivering_world(embedded_server.cluster) as delivering:
        yield delivering


async def test_a_gate_that_listens_as_enrolment_gets_no_ticket(world: DeliveringWorld) -> None:
    async with posing((await stolen(world.cluster)).serving) as impostor:
        ask = await world.ask()
        with pytest.raises(DoorUnreachable, match="a certificate of the role gate, and enrolment was dialled"):
            await boot_once(
                world.machine(),
                type(ask)(ask.pool, ask.ticket, impostor.url, ask.accept),
                world.trust,
                world.patience(1),
            )
    assert impostor.heard == []


async def test_a_gate_that_listens_as_the_broker_gets_no_evidence(world: DeliveringWorld) -> None:
    async with posing((await stolen(world.cluster)).serving) as impostor:
        world.urls[0] = type(world.urls[0])(impostor.url, world.urls[0].gate)
        with pytest.raises(BrokerRefused, match="a certificate of the role gate, and broker was dialled"):
            await boot_once(world.machine(), await world.ask(), world.trust, world.patience(1))
    assert impostor.heard == []


@pytest.mark.parametrize("role", [DoorRole.BROKER, DoorRole.ENROLMENT])
async def test_another_door_that_listens_as_the_gate_gets_no_token(world: DeliveringWorld, role: DoorRole) -> None:
    values = world.machine().machine.image.reference_values("tpm")
    await world.publish(values)
    async with posing((await stolen(world.cluster, role)).serving) as impostor:
        world.name_gate(impostor.url)
        with pytest.raises(GateRefused, match=f"a certificate of the role {role}, and gate was dialled"):
            await boot_once(world.machine(), await world.ask(), world.trust, world.patience(1))
    assert impostor.heard == []


async def test_a_certificate_without_a_role_is_no_door(world: DeliveringWorld) -> None:
    """As all doors had before they named their roles."""
    now = world.clock.now()
    authority = await doors_authority(world.cluster, ENTROPY, now)
    shows = authority.lineage.issuing.issue_server(["127.0.0.1"], DAY, now)
    async with posing(shows) as impostor:
        with pytest.raises(DoorRefused, match="a certificate without a role, and configserver was dialled"):
            await from_config_server(
                impostor.url, world.trust.tls, "worker", Question("n", rendered="rendered-worker-1")
            )
    assert impostor.heard == []


async def test_a_gate_gets_no_role_of_another_door_whatever_it_writes_into_its_secret(world: DeliveringWorld) -> None:
    """It asks for the broker's names, and puts the broker's certificate, which everybody sees, over its own."""
    name, cluster = secret_name(DoorRole.GATE), world.cluster
    brokers_certificate = content(await stolen(cluster, DoorRole.BROKER))["tls.crt"]
    patch = {"metadata": {"annotations": {NAMES: "127.0.0.1 broker.example"}}, "data": {"tls.crt": brokers_certificate}}
    await cluster.patch(SECRETS, name, patch, PatchType.MERGE, NAMESPACE)

    def issued(certificates: RoleCertificates | None) -> bool:
        return certificates is not None and "broker.example" in certificates.serving.certificate.hosts

    held = await _until(cluster, name, issued)
    assert held.serving.certificate.uris == (DoorRole.GATE.uri,)
    assert held.serving.certificate.belongs_to(held.serving.key)
    assert held.inner is not None
    assert held.inner.certificate.uris == (DoorRole.GATE.uri,)


async def _until(cluster: Cluster, name: str, holds: Callable[[RoleCertificates | None], bool]) -> RoleCertificates:
    async with asyncio.timeout(PATIENCE):
        while not holds(certificates := read(await cluster.get(SECRETS, name, NAMESPACE))):  # noqa: ASYNC110  # the API is asked
            await asyncio.sleep(0.02)
    assert certificates is not None
    return certificates


@asynccontextmanager
async def _gate_of(doors: Doors) -> AsyncIterator[RoleCertificates]:
    """The certificates that the issuer gives to a gate of this cluster."""
    clock = SystemClock()
    async with Informers(doors.cluster, clock=clock, entropy=ENTROPY) as informers:
        await DoorCertificates.open(DoorRole.GATE, doors.cluster, informers, clock, ["127.0.0.1"])
        yield await stolen(doors.cluster)


async def test_a_stolen_gate_gets_no_copies_from_the_config_server(embedded_server: Embedded) -> None:
    """Copies are delivered here; the gate's own certificate opens the port and no pool, its serving one not even the port."""
    async with open_doors(embedded_server) as doors, _gate_of(doors) as gate:
        assert gate.inner is not None
        async with doors.inner(gate.inner) as client:
            for pool in POOLS:
                answer = await client.get(f"/config/{pool}")
                assert (answer.status_code, answer.json()["code"]) == (403, "wrong-role")
                assert "config%20of" not in answer.text
        async with doors.inner(gate.serving) as client:
            with pytest.raises((httpx.TransportError, ssl.SSLError)):
                await client.get("/config/plain")


async def test_the_token_of_a_machine_goes_to_a_config_server_and_to_no_other_part(embedded_server: Embedded) -> None:
    """Even with a serving certificate of the internal authority: the gate looks at the role before it passes anything on."""
    async with open_doors(embedded_server) as doors, _gate_of(doors) as gate:
        assert gate.inner is not None
        internal, now = await internal_authority(doors.cluster, ENTROPY, datetime.now(UTC)), datetime.now(UTC)
        shows = internal.lineage.issuing.issue_server(["127.0.0.1"], DAY, now, [DoorRole.BROKER.uri])
        context = ssl.create_default_context(cadata=internal.bundle)
        load(context, gate.inner)
        async with posing(shows) as impostor:
            configs = RemoteConfigs(impostor.url, lambda: context)
            with pytest.raises(Refusal) as refused:
                await configs.fetch(ConfigRequest("secret", "*/*", "DPoP of a machine", "n", ""))
            await configs.close()
        assert (refused.value.status, refused.value.code) == (503, "config-server-unreachable")
        assert isinstance(refused.value.__cause__, WrongDoor)
        assert impostor.heard == []
