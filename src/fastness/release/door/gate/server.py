"""The gate as one thing that can be opened and closed: caches, keys, certificate, listener, rotation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from fastness.attestation.live.policy_workers import PolicyWorkers
from fastness.enrolment.live.door_events import DoorEvents
from fastness.enrolment.live.tickets import TicketCache
from fastness.http.freshness import Touch
from fastness.http.limits import Limits, RateLimiter
from fastness.http.opening import ListenOptions, OpenDoor, Tasks, open_door
from fastness.http.rotation import ServedCertificate
from fastness.http.route import Routes
from fastness.keys.certificates import DoorCertificates
from fastness.keys.home import home_of
from fastness.keys.keyrings import keep_renewed
from fastness.keys.mac_keys import MacKeys
from fastness.kinds.fastness_dev.appraisal_policy import APPRAISAL_POLICY
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.observe import metrics
from fastness.protocol.door import DoorRole
from fastness.record.entry import Record
from fastness.release.configs import ConfigService
from fastness.release.door.gate.app import Gate
from fastness.release.door.gate.legacy import LegacyDesk, LegacyFaces
from fastness.release.live.configs import GateConfigs
from fastness.release.live.releases import Assignments
from fastness.release.live.revocations import MachineRevocations
from fastness.release.live.settings import ActivePolicies, Settings
from fastness.release.live.tokens import TokenVerifier
from fastness.runtime.clock import Clock, Entropy

# The port at which machines of OpenShift ask for their config, so firewalls that know it need no new rule.
PORT: Final = 22623
FACE: Final = "gate"


@dataclass(frozen=True, slots=True)
class GateDoor(OpenDoor):
    """A running gate, and its table."""

    routes: Routes


@asynccontextmanager
async def gate(
    cluster: Cluster,
    informers: Informers,
    configs: ConfigService,
    record: Record,
    clock: Clock,
    entropy: Entropy,
    options: ListenOptions = ListenOptions(),  # noqa: B008  # frozen
    limits: Limits = Limits(),  # noqa: B008  # frozen
) -> AsyncIterator[GateDoor]:
    """A gate that listens for the time of the block; raises BadDoorNames, DamagedKeys, ApiError, OSError."""
    confidential = informers.of(CONFIDENTIAL_CLUSTER.resource)
    tickets, policies = informers.of(JOIN_TICKET.resource), informers.of(APPRAISAL_POLICY.resource)
    revocations = MachineRevocations(cluster, informers, clock)
    for informer in (confidential, tickets, policies):
        await informer.synced()
    await revocations.synced()
    rules = (confidential, policies, informers.of(DISTRUST.resource))
    touch = Touch(FACE, rules, (informers.of(MACHINE.resource),), home_of(informers))
    certificates = await DoorCertificates.open(DoorRole.GATE, cluster, informers, clock, options.hosts)
    macs = await MacKeys.open("gate", cluster, informers, clock, entropy)
    events = DoorEvents(cluster, FACE, clock, confidential)
    workers = PolicyWorkers(clock, events.policy_exceeded)
    app = Gate(
        GateConfigs(configs, Assignments(cluster)), record, RateLimiter(limits, clock), clock, entropy,
        tokens=await TokenVerifier.following(informers, clock), macs=macs, revocations=revocations,
        tickets=TicketCache(cluster, tickets, clock), policies=ActivePolicies(policies, workers),
        settings=Settings(confidential), touch=touch, events=events,
    ).app  # fmt: skip
    stubs = LegacyFaces(
        informers, LegacyDesk(configs, record, touch, Settings(confidential), clock), limits, clock, entropy
    )
    await stubs.synced()
    keys = partial(keep_renewed, FACE, clock, partial(macs.renew, cluster, entropy))
    tasks: Tasks = {"events": events.run, "keys": keys}
    served = ServedCertificate(FACE, certificates)
    try:
        async with workers, open_door(app, options, served, clock, tasks, faces=stubs.faces) as port:
            with metrics.refreshed_by(touch.publish), stubs.following():
                yield GateDoor(port, certificates, app.routes)
    finally:
        await events.close()
