"""The doors that machines prove themselves at: enrolment and the key broker, with everything behind them.

    async with attesting(cluster, informers, around) as doors:
        doors.enrolment.port, doors.broker.port

One composition for all ways to run: embedded beside the API, or as processes of their own against any Kubernetes. All state
is in the cluster, so any number of replicas may run.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial

from fastness.attestation.live.appraisers import CollateralSource
from fastness.attestation.live.collateral_report import CollateralNews
from fastness.attestation.live.policy_workers import PolicyWorkers
from fastness.attestation.live.simulated_vendor import SimulatedVendor
from fastness.attestation.live.verifier import ClusterVerifier
from fastness.enrolment.door.app import Pace
from fastness.enrolment.door.server import EnrolServer, enrol_server
from fastness.enrolment.live.enrolments import DoorUrls
from fastness.enrolment.live.guest_tickets import Admissions
from fastness.enrolment.trusted_cluster import broker_url, honoured
from fastness.http.opening import ListenOptions
from fastness.keys.mac_keys import MacKeys
from fastness.keys.renewal import keep_renewed
from fastness.kinds.trusted_execution.cluster import TRUSTED_EXECUTION_CLUSTER
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster
from fastness.record.live.record import ClusterRecord
from fastness.release.configs import ConfigSource
from fastness.release.door.broker.server import BrokerDoor, BrokerOptions, Judges, broker
from fastness.release.live.resources import Cipher
from fastness.release.live.revocations import MachineRevocations
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.tasks import background


@dataclass(frozen=True, slots=True)
class AttestingOptions:
    """Where the two doors listen, port 0 is any free one, and how fast machines may come."""

    enrolment: ListenOptions = field(default_factory=ListenOptions)
    broker: BrokerOptions = field(default_factory=BrokerOptions)
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True, slots=True)
class Around:
    """What the doors need beside the cluster: time, entropy, the key that seals what they keep, vendors' documents.

    `urls` says where machines find the broker and the gate; it is asked for every machine that enrols. `configs` is
    where the broker gets configurations from.
    """

    clock: Clock
    entropy: Entropy
    cipher: Cipher
    collateral: CollateralSource | None = None
    urls: Callable[[], DoorUrls] = DoorUrls
    configs: ConfigSource | None = None


@dataclass(frozen=True, slots=True)
class AttestingDoors:
    """The running doors and their verifier."""

    enrolment: EnrolServer
    broker: BrokerDoor
    verifier: ClusterVerifier


@asynccontextmanager
async def broker_door(
    cluster: Cluster, informers: Informers, around: Around, options: BrokerOptions
) -> AsyncIterator[tuple[BrokerDoor, ClusterVerifier]]:
    """A broker with the verifier of this cluster behind it; raises ApiError, OSError, TrustError."""
    vendor = SimulatedVendor(informers, around.collateral)
    await vendor.synced()
    record = ClusterRecord(cluster, around.clock, around.entropy, "broker")
    workers = PolicyWorkers(around.clock)
    admissions = Admissions(cluster, around.clock)
    verifier = ClusterVerifier(cluster, informers, record, around.clock, workers, admissions, vendor)
    await verifier.synced()
    revocations = MachineRevocations(cluster, informers, around.clock)
    await revocations.synced()
    judges = Judges(verifier, record, revocations, around.cipher, configs=around.configs, workers=workers)
    news = CollateralNews(cluster, around.clock, f"broker-{around.entropy.token(6).hex()}", vendor.state)
    async with (
        broker(cluster, informers, around.clock, around.entropy, judges, options) as door,
        background("broker", collateral=news.run, uses=admissions.uses.run),
    ):
        try:
            yield door, verifier
        finally:
            await admissions.uses.close()


@asynccontextmanager
async def enrolment_door(
    cluster: Cluster, informers: Informers, around: Around, options: ListenOptions, pace: Pace | None = None
) -> AsyncIterator[EnrolServer]:
    """The door of enrolment; raises ApiError, OSError, TrustError."""
    macs = await MacKeys.open("enrolment", cluster, informers, around.clock, around.entropy)
    vendor = SimulatedVendor(informers)
    await vendor.synced()
    trusted = informers.of(TRUSTED_EXECUTION_CLUSTER.resource)
    await trusted.synced()
    record = ClusterRecord(cluster, around.clock, around.entropy, "enrolment")
    keys = partial(keep_renewed, "enrolment", around.clock, partial(macs.renew, cluster, around.entropy))
    async with enrol_server(
        cluster, informers, macs, record, around.clock, around.entropy, options,
        simulated=lambda: vendor.maker, urls=lambda: _told(around.urls(), trusted),
        pace=pace or Pace(),
    ) as door, background("enrolment", keys=keys):  # fmt: skip
        yield door


def _told(urls: DoorUrls, trusted: Informer) -> DoorUrls:
    """Where machines attest: where the honoured TrustedExecutionCluster says, if it does."""
    named = broker_url(honoured(trusted.list()))
    return replace(urls, broker=named) if named else urls


@asynccontextmanager
async def attesting(
    cluster: Cluster, informers: Informers, around: Around, options: AttestingOptions | None = None
) -> AsyncIterator[AttestingDoors]:
    """Both doors, for the time of the block."""
    options = options or AttestingOptions()
    async with (
        enrolment_door(cluster, informers, around, options.enrolment, options.pace) as enrolment,
        broker_door(cluster, informers, around, options.broker) as (door, verifier),
    ):
        yield AttestingDoors(enrolment, door, verifier)
