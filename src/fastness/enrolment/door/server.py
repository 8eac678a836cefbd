"""The door of enrolment as one thing that can be opened and closed: caches, authority, listener, rotation, the count of uses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from fastness.attestation.evidence.roots import SimulatedMaker, not_simulated
from fastness.enrolment.door.app import EnrolDoor, Pace
from fastness.enrolment.live.door_events import DoorEvents
from fastness.enrolment.live.enrolments import DoorUrls, Enrolments, Sealer, Sources
from fastness.http.freshness import Touch
from fastness.http.opening import ListenOptions, OpenDoor, open_door
from fastness.http.refusals import demand_home
from fastness.http.rotation import ServedCertificate
from fastness.http.route import Routes
from fastness.keys.certificates import DoorCertificates
from fastness.keys.home import home_of
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.protocol.door_role import DoorRole
from fastness.record.entry import Record
from fastness.runtime.clock import Clock, Entropy

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
