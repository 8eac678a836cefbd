"""The doors of attestation for tests, composed as the product composes them, and machines of a simulated vendor.

async with attesting_world(cluster) as world:
    await world.approve("tpm")
    machine = await world.enrolled("tpm")
    async with world.broker(machine) as broker:
        await broker.attest()
        secret = await broker.resource("default/attestation-status/status")
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from fastness.agent.boot.attester import Attester
from fastness.agent.boot.enrol import Enrolled, HttpTransport, RetryBudget, enrol
from fastness.agent.boot.prove import BrokerClient
from fastness.apiserver import LocalCluster
from fastness.attestation.live.appraisers import CollateralSource
from fastness.attestation.live.collateral import Collateral
from fastness.attestation.live.verifier import ClusterVerifier
from fastness.attestation.loops.door_certificates import issuing
from fastness.crypto.aead import KeyRing, SealKey
from fastness.crypto.secret import SecretText
from fastness.enrolment.door.server import EnrolServer, enrolment_door
from fastness.enrolment.live.enrolments import DoorUrls
from fastness.enrolment.live.tickets import join_ticket, mint, ticket_hash
from fastness.http.opening import ListenOptions
from fastness.keys.shared_cipher import Cipher
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kinds.trusted_execution.subject import key_kind
from fastness.kube.informers import Informers
from fastness.kube.places import AT_HOME, Places
from fastness.kube.port import Cluster
from fastness.protocol.machine_names import machine_name
from fastness.release.configs import ConfigService
from fastness.release.door.broker.opening import broker_door
from fastness.release.door.broker.server import BrokerDoor, BrokerOptions
from fastness.release.live.resources import SealedResources
from fastness.runtime.clock import Clock, SystemEntropy
from fastness.sim.announce import announce_vendor
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import BootImage, default_image
from fastness.sim.tee.vendor import SEED_BYTES, SimVendor
from tests.enrolling import MovedClock, settle_cluster
from tests.patience import PATIENCE

ENTROPY = SystemEntropy()
VENDOR_SEED = ENTROPY.token(SEED_BYTES)
SIMULATED: JsonObject = {"mode": "Enforce", "simulated": True}


@dataclass(frozen=True)
class AttestingDoors:
    """Both doors that machines prove themselves at, and the verifier behind them."""

    enrolment: EnrolServer
    broker: BrokerDoor
    verifier: ClusterVerifier


@asynccontextmanager
async def attesting(
    cluster: Cluster,
    informers: Informers,
    clock: Clock,
    *,
    cipher: Cipher,
    collateral: CollateralSource | None = None,
    configs: ConfigService | None = None,
    urls: Callable[[], DoorUrls] = DoorUrls,
    enrolment: ListenOptions = ListenOptions(),  # noqa: B008  # frozen
    broker: BrokerOptions = BrokerOptions(),  # noqa: B008  # frozen
) -> AsyncIterator[AttestingDoors]:
    """Enrolment and broker, for the time of the block."""
    async with (
        enrolment_door(cluster, informers, clock, ENTROPY, enrolment, urls=urls) as door,
        broker_door(
            cluster, informers, clock, ENTROPY, broker, cipher=cipher, collateral=collateral, configs=configs
        ) as (keys, verifier),
    ):
        yield AttestingDoors(door, keys, verifier)


@dataclass
class AttestingWorld:
    """A cluster with its doors, a vendor, and a clock that can be moved."""

    cluster: Cluster
    doors: AttestingDoors
    informers: Informers
    vendor: SimVendor
    clock: MovedClock
    cipher: KeyRing

    @property
    def trust(self) -> ssl.SSLContext:
        """What machines believe of the doors."""
        return ssl.create_default_context(cadata=self.doors.broker.doors.bundle)

    async def ticket(self, pool: str = "worker", uses: int = 0) -> SecretText:
        """A ticket that the door has heard of."""
        made = mint(ENTROPY)
        name = f"t-{ticket_hash(made)[-12:]}"
        expires = self.clock.now() + timedelta(hours=1)
        await self.cluster.create(JOIN_TICKET.resource, join_ticket(name, made, pool, expires, uses))
        tickets = self.informers.of(JOIN_TICKET.resource)
        await until(lambda: _true(tickets.get("", name) is not None))
        return made

    def machine(self, tee: str = "tpm", image: BootImage | None = None, **options: Any) -> SimAttester:
        """A machine that booted an image."""
        return SimAttester(self.vendor.chip(tee, **options).boot(image or default_image()))

    async def enrol(self, attester: Attester, ticket: SecretText) -> Enrolled:
        """The agent's way in."""
        async with HttpTransport(f"https://127.0.0.1:{self.doors.enrolment.port}", self.trust) as transport:
            return await enrol(transport, attester, ticket, RetryBudget(self.clock, ENTROPY, 20, pause=0.1))

    async def enrolled(self, tee: str = "tpm", image: BootImage | None = None, pool: str = "worker") -> SimAttester:
        """A machine that enrolled."""
        made = self.machine(tee, image)
        await self.enrol(made, await self.ticket(pool))
        return made

    def broker(self, attester: Attester, port: int = 0) -> BrokerClient:
        """A machine's conversation with the broker."""
        return BrokerClient(f"https://127.0.0.1:{port or self.doors.broker.port}", self.trust, attester, ENTROPY)

    async def approve(self, tee: str, image: BootImage | None = None, name: str = "") -> str:
        """Publish what an image measures, and wait until the verifier knows."""
        name = name or f"values-{tee}"
        spec = {"source": "manual", "values": (image or default_image()).reference_values(tee)}
        body = {
            "apiVersion": REFERENCE_VALUE_SET.api_version, "kind": REFERENCE_VALUE_SET.kind,
            "metadata": {"name": name}, "spec": spec,
        }  # fmt: skip
        await self.cluster.create(REFERENCE_VALUE_SET.resource, body)
        sets = self.informers.of(REFERENCE_VALUE_SET.resource)
        await until(lambda: _true(sets.get("", name) is not None))
        return name

    async def keep(self, path: str, value: bytes) -> None:
        """Put a resource where the broker finds it."""
        from fastness.crypto.secret import SecretBytes
        from fastness.protocol.kbs_path import split_path

        resource = split_path(tuple(path.split("/")))
        assert resource is not None
        await SealedResources(self.cluster, self.cipher).write(resource, SecretBytes(value))

    async def machine_object(self, attester: SimAttester) -> JsonObject:
        """The Machine of a machine."""
        name = machine_name(key_kind(attester.tee), attester.machine.thumbprint)
        return await self.cluster.get(MACHINE.resource, name, NAMESPACE)


@asynccontextmanager
async def attesting_world(
    cluster: Cluster,
    spec: JsonObject | None = None,
    vendor: SimVendor | None = None,
    documents: Path | None = None,
    places: Places = AT_HOME,
) -> AsyncIterator[AttestingWorld]:
    """Doors in front of a cluster, for the time of the block; `documents` is a directory of imported collateral."""
    await settle_cluster(cluster, spec or SIMULATED)
    vendor, clock = vendor or vendor_for(cluster), MovedClock()
    await announce_vendor(cluster, vendor, clock.now())
    cipher = KeyRing([SealKey.generate(ENTROPY)], ENTROPY)
    async with (
        Informers(cluster, clock=clock, entropy=ENTROPY, places=places) as informers,
        issuing(cluster, informers, clock, ENTROPY),
        attesting(cluster, informers, clock, cipher=cipher, collateral=Collateral(clock, imported=documents)) as doors,
    ):
        yield AttestingWorld(cluster, doors, informers, vendor, clock, cipher)


async def _true(value: bool) -> bool:
    return value


def vendor_for(cluster: Cluster) -> SimVendor:
    """A vendor: of one seed in embedded clusters, because authorities take long to draw; of its own in one that tests share."""
    return SimVendor.of(VENDOR_SEED) if isinstance(cluster, LocalCluster) else SimVendor(ENTROPY)


async def until(check: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something to become true, with a bound."""
    async with asyncio.timeout(PATIENCE):
        while not await check():  # noqa: ASYNC110  # caches tell handlers, not tests
            await asyncio.sleep(0.01)
