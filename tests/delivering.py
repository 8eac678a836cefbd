"""Every door between a machine and its configuration, composed as the product composes them, and what an image says of them.

    async with delivering_world(cluster, spec) as world:
        config = await boot_once(attester, world.ask(await world.ticket()), world.trust, world.patience())

Configurations come from a shelf instead of the config server: what they say is for the test to decide.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

from fastness.agent.boot.boot import BootRequest
from fastness.agent.boot.enrol import RetryBudget
from fastness.agent.boot.image_trust import ImageTrust
from fastness.attestation.loops.door_certificates import issuing
from fastness.crypto.aead import KeyRing, SealKey
from fastness.crypto.secret import SecretText
from fastness.enrolment.live.enrolments import DoorUrls
from fastness.enrolment.live.tickets import join_ticket, mint, ticket_hash
from fastness.formats import json
from fastness.http.bounds import Bounds
from fastness.http.opening import ListenOptions
from fastness.http.refusals import Refusal
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject
from fastness.kinds.trusted_execution.subject import Grant
from fastness.kube.errors import AlreadyExists
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.protocol.kbs_path import ResourcePath, is_pool_config
from fastness.release.configs import Config
from fastness.release.door.broker.server import BrokerOptions
from fastness.release.door.gate.server import GateDoor, gate
from fastness.release.live.signed_configs import ServedConfigs
from fastness.release.source import Query
from fastness.runtime.clock import Clock, SystemEntropy
from fastness.sim.announce import announce_vendor
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import BootImage, default_image
from fastness.sim.tee.vendor import SimVendor
from tests.attesting import AttestingDoors, attesting, vendor_for
from tests.enrolling import MemoryRecord, MovedClock, settle_cluster
from tests.patience import PATIENCE

ENTROPY = SystemEntropy()
ACCEPT = "application/vnd.coreos.ignition+json;version=3.3.0, */*;q=0.1"


@dataclass
class Shelf:
    """Configurations in memory; `refusals` are raised one by one before any is given."""

    body: bytes = b'{"ignition":{"version":"3.3.0"}}'
    requests: list[tuple[str, str]] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)

    def serves(self, path: ResourcePath) -> bool:
        """Configurations of pools."""
        return is_pool_config(path)

    async def read(self, grant: Grant, path: ResourcePath, query: Query) -> Config:
        """The configuration of any pool."""
        self.requests.append((path.type, query["accept"]))
        if self.refusals:
            raise self.refusals.pop(0)
        return Config(self.body, b'"etag"', f"rendered-{path.type}-1")


@dataclass
class DeliveringWorld:
    """A cluster with enrolment, broker and gate."""

    cluster: Cluster
    informers: Informers
    doors: AttestingDoors
    gate: GateDoor
    served: ServedConfigs
    shelf: Shelf
    record: MemoryRecord
    vendor: SimVendor
    clock: MovedClock
    urls: list[DoorUrls]

    def name_gate(self, url: str) -> None:
        """Let enrolment send machines to another address than the gate's own."""
        self.urls[0] = replace(self.urls[0], gate=url)

    @property
    def server(self) -> str:
        """What user-data names."""
        return f"https://127.0.0.1:{self.doors.enrolment.port}"

    @property
    def trust_json(self) -> bytes:
        """The file of an image for this cluster."""
        return json.encode({"ca": self.gate.doors.bundle, "configKeys": self.served.signer.jwks()})

    @property
    def trust(self) -> ImageTrust:
        """The same, read."""
        return ImageTrust.parse(self.trust_json)

    async def ticket(self, pool: str = "worker", uses: int = 0) -> SecretText:
        """A ticket that the door has heard of."""
        made = mint(ENTROPY)
        name = f"t-{ticket_hash(made)[-12:]}"
        expires = self.clock.now() + timedelta(hours=1)
        await self.cluster.create(JOIN_TICKET.resource, join_ticket(name, made, pool, expires, uses))
        tickets = self.informers.of(JOIN_TICKET.resource)
        await until(lambda: tickets.get("", name) is not None)
        return made

    async def ask(self, pool: str = "worker") -> BootRequest:
        """What Ignition asks on a machine with fresh user-data."""
        return BootRequest(pool, await self.ticket(pool), self.server, ACCEPT)

    def machine(self, tee: str = "tpm", image: BootImage | None = None) -> SimAttester:
        """A simulated machine that booted an image."""
        return SimAttester(self.vendor.chip(tee).boot(image or default_image()))

    def patience(self, seconds: float = PATIENCE, clock: Clock | None = None) -> RetryBudget:
        """Enough for a test."""
        return RetryBudget(clock or self.clock, ENTROPY, seconds, pause=0.05)

    async def publish(self, values: list[JsonObject], name: str = "values") -> None:
        """Publish reference values, and wait until the verifier knows."""
        body = {
            "apiVersion": REFERENCE_VALUE_SET.api_version, "kind": REFERENCE_VALUE_SET.kind, "metadata": {"name": name},
            "spec": {"source": "manual", "values": values},
        }  # fmt: skip
        await self.cluster.create(REFERENCE_VALUE_SET.resource, body)
        sets = self.informers.of(REFERENCE_VALUE_SET.resource)
        await until(lambda: sets.get("", name) is not None)


@asynccontextmanager
async def delivering_world(
    cluster: Cluster, spec: JsonObject | None = None, names: tuple[str, ...] = (), bounds: Bounds | None = None
) -> AsyncIterator[DeliveringWorld]:
    """All doors in front of a cluster, for the time of the block; `names` are further ones that their certificates speak for."""
    settings = spec or {"mode": "Enforce", "simulated": True}
    await settle_cluster(cluster, settings)
    vendor, clock, shelf, record = vendor_for(cluster), MovedClock(), Shelf(), MemoryRecord()
    if settings.get("simulated"):
        with suppress(AlreadyExists):
            await announce_vendor(cluster, vendor, clock.now())
    cipher, urls = KeyRing([SealKey.generate(ENTROPY)], ENTROPY), [DoorUrls()]
    listen = ListenOptions(names=names, bounds=bounds)
    async with Informers(cluster, clock=clock, entropy=ENTROPY) as informers:
        served = await ServedConfigs.open(cluster, informers, clock, ENTROPY, shelf)
        async with (
            issuing(cluster, informers, clock, ENTROPY),
            attesting(
                cluster, informers, clock, cipher=cipher, configs=served, urls=lambda: urls[0], enrolment=listen,
                broker=BrokerOptions(names=names, bounds=bounds or Bounds()),
            ) as doors,
            gate(cluster, informers, served, record, clock, ENTROPY, listen) as door,
        ):  # fmt: skip
            urls[0] = DoorUrls(f"https://127.0.0.1:{doors.broker.port}", f"https://127.0.0.1:{door.port}")
            yield DeliveringWorld(cluster, informers, doors, door, served, shelf, record, vendor, clock, urls)


async def until(true: Callable[[], bool]) -> None:
    """Wait for a cache to hear of something, with a bound."""
    async with asyncio.timeout(PATIENCE):
        while not true():  # noqa: ASYNC110  # caches tell handlers, not tests
            await asyncio.sleep(0.005)
