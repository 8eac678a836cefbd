"""The door of enrolment as one thing that can be opened and closed: caches, authority, listener, rotation, the count of uses.

`enrolment_door` is how every process opens it; `enrol_server` takes what seals and records from its caller.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from fastness.attestation.evidence.roots import SimulatedMaker, not_simulated
from fastness.attestation.live.simulated_vendor import SimulatedVendor
from fastness.enrolment.door.app import EnrolDoor
from fastness.enrolment.door.pace import Pace
from fastness.enrolment.live.door_events import DoorEvents
from fastness.enrolment.live.enrolments import DoorUrls, Enrolments, Sealer, Sources
from fastness.enrolment.trusted_cluster import broker_url, enrolment_url, honoured
from fastness.http.freshness import Touch
from fastness.http.opening import ListenOptions, OpenDoor, open_door
from fastness.http.refusals import demand_followed_home
from fastness.http.rotation import ServedCertificate
from fastness.http.route import Routes
from fastness.keys.certificates import DoorCertificates
from fastness.keys.home import home_of
from fastness.keys.keyrings import keep_renewed
from fastness.keys.mac_keys import MacKeys
from fastness.kinds.trusted_execution.cluster import TRUSTED_EXECUTION_CLUSTER
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster
from fastness.protocol.door import DoorRole
from fastness.record.entry import Record
from fastness.record.live.record import ClusterRecord
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.tasks import background

PORT = 8000
FACE: Final = "enrolment"


@dataclass(frozen=True, slots=True)
class EnrolServer(OpenDoor):
    """A running door, its table, and what it does behind the port."""

    enrolments: Enrolments
    routes: Routes


@asynccontextmanager
async def enrol_server(
    cluster: Cluster,
    informers: Informers,
    sealer: Sealer,
    record: Record,
    clock: Clock,
    entropy: Entropy,
    options: ListenOptions = ListenOptions(),  # noqa: B008  # frozen
    *,
    simulated: Callable[[], SimulatedMaker] = not_simulated,
    urls: Callable[[], DoorUrls] = DoorUrls,
    pace: Pace = Pace(),  # noqa: B008  # frozen
) -> AsyncIterator[EnrolServer]:
    """An enrolment door that listens for the time of the block; raises BadDoorNames, ApiError, OSError.

    `simulated` gives the vendor of a simulated cluster as it is now; it counts in no other. `urls` says where machines
    find the other doors, which may open later than this one.
    """
    certificates = await DoorCertificates.open(DoorRole.ENROLMENT, cluster, informers, clock, options.hosts)
    sources = await Sources.of(informers)
    enrolments = Enrolments(cluster, sources, sealer, record, clock, entropy, simulated=simulated, urls=urls)
    events = DoorEvents(cluster, FACE, clock, sources.confidential)
    touch = Touch(FACE, (), home=home_of(informers))
    await touch.synced()
    app = EnrolDoor(
        enrolments, clock, entropy, pace=pace, events=events, demand=partial(demand_followed_home, touch),
        authorities=lambda: certificates.current.doors.bundle,
    ).app  # fmt: skip
    tasks = {"uses": enrolments.uses.run, "events": events.run}
    try:
        async with open_door(app, options, ServedCertificate(FACE, certificates), clock, tasks) as port:
            yield EnrolServer(port, certificates, enrolments, app.routes)
    finally:
        await enrolments.uses.close()
        await events.close()


@asynccontextmanager
async def enrolment_door(
    cluster: Cluster,
    informers: Informers,
    clock: Clock,
    entropy: Entropy,
    options: ListenOptions = ListenOptions(),  # noqa: B008  # frozen
    *,
    urls: Callable[[], DoorUrls] = DoorUrls,
    pace: Pace = Pace(),  # noqa: B008  # frozen
) -> AsyncIterator[EnrolServer]:
    """The door with the keys and the record of its cluster; raises ApiError, OSError, TrustError."""
    macs = await MacKeys.open(FACE, cluster, informers, clock, entropy)
    vendor = SimulatedVendor(informers)
    await vendor.synced()
    trusted = informers.of(TRUSTED_EXECUTION_CLUSTER.resource)
    await trusted.synced()
    record = ClusterRecord(cluster, clock, entropy, FACE)
    keys = partial(keep_renewed, FACE, clock, partial(macs.renew, cluster, entropy))
    async with enrol_server(
        cluster, informers, macs, record, clock, entropy, options,
        simulated=lambda: vendor.maker, urls=lambda: _with_named_doors(urls(), trusted), pace=pace,
    ) as door, background(FACE, keys=keys):  # fmt: skip
        yield door


def _with_named_doors(urls: DoorUrls, trusted: Informer) -> DoorUrls:
    """Where machines attest and register keys: where the honoured TrustedExecutionCluster says, if it does."""
    counts = honoured(trusted.list())
    return replace(urls, broker=broker_url(counts) or urls.broker, enrolment=enrolment_url(counts) or urls.enrolment)
