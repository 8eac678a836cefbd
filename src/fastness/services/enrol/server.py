"""The door of enrolment as one thing that can be opened and closed: caches, authority, listener, rotation, the count of uses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.informers import Informers
from fastness.cluster.port import Cluster
from fastness.domain.attestation.anchors import SimulatedMaker, not_simulated
from fastness.domain.attestation.doorrole import DoorRole
from fastness.services.doorevents import DoorEvents
from fastness.services.enrol.app import EnrolDoor, Pace
from fastness.services.http.door import ListenOptions, OpenDoor, open_door
from fastness.services.http.rotation import ServedCertificate
from fastness.services.http.route import Routes
from fastness.services.refusals import demand_home
from fastness.trust.certificates import DoorCertificates
from fastness.trust.enrolment import DoorUrls, Enrolments, Sealer, Sources
from fastness.trust.entry import Record
from fastness.trust.home import home_of
from fastness.trust.touch import Touch

PORT = 8000
FACE = "enrolment"


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
    app = EnrolDoor(enrolments, clock, entropy, pace=pace, telling=events, demand=partial(demand_home, touch)).app
    tasks = {"uses": enrolments.uses.run, "events": events.run}
    try:
        async with open_door(app, options, ServedCertificate(FACE, certificates), clock, tasks) as port:
            yield EnrolServer(port, certificates, enrolments, app.routes)
    finally:
        await enrolments.uses.close()
        await events.close()
