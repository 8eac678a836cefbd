"""The broker as one thing that can be opened and closed: caches, keys, certificates, listener, rotation.

    async with broker(cluster, informers, clock, entropy, options, verifier=…, record=…, revocations=…, cipher=…) as door:
        door.port

Any number of replicas may run: all that they share is in the cluster. One port serves machines, administrators and our own parts;
a client certificate is asked for and not demanded, and only introspection looks at it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, Self

from fastness.attestation.live.attempt import Verifier
from fastness.attestation.live.policy_workers import PolicyWorkers
from fastness.attestation.loops.disk_recovery import DiskRecovery
from fastness.crypto.x509 import Certificate
from fastness.disks.live.key_store import DiskKeys
from fastness.disks.loops.key_maker import DiskKeyMaker
from fastness.enrolment.live.bootstrap_tokens import BootstrapTokens
from fastness.enrolment.live.door_events import DoorEvents
from fastness.http.freshness import Touch
from fastness.http.limits import Limits, RateLimiter
from fastness.http.opening import ListenOptions, OpenDoor, Tasks, open_door
from fastness.http.rotation import ServedCertificate
from fastness.http.route import Routes
from fastness.keys.certificates import DoorCertificates
from fastness.keys.home import home_of
from fastness.keys.keyrings import keep_renewed
from fastness.keys.mac_keys import MacKeys
from fastness.keys.shared_cipher import Cipher
from fastness.kinds.confidentialcontainers.broker import KBS_CONFIG
from fastness.kinds.fastness_dev.appraisal_policy import APPRAISAL_POLICY
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.fastness_dev.resource_binding import RESOURCE_BINDING
from fastness.kinds.fastness_dev.rollout import NODE_OVERLAY
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.controllers import Runner
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster
from fastness.observe import metrics
from fastness.protocol.door import DoorRole
from fastness.record.entry import Record
from fastness.release.configs import ConfigService
from fastness.release.door.broker.admin import Administration
from fastness.release.door.broker.app import Broker
from fastness.release.door.broker.kbs import Steps
from fastness.release.door.broker.values import RegisteredValues
from fastness.release.live.admins import Admins
from fastness.release.live.callers import Callers
from fastness.release.live.copies import PoolConfigs
from fastness.release.live.disk_keys import DiskKeySource
from fastness.release.live.overlays import Overlays
from fastness.release.live.refusal_log import RefusalLog
from fastness.release.live.releases import Assignments, Releases
from fastness.release.live.resources import (
    BootstrapTokenSource,
    SealedResources,
    SecretResources,
    StatusResource,
)
from fastness.release.live.settings import ActivePolicies, PolicyDecider, Settings
from fastness.release.live.tokens import BROKER, Revocations, TokenIssuer
from fastness.release.source import BrokerSource
from fastness.runtime.clock import Clock, Entropy

FACE: Final = "broker"


@dataclass(frozen=True, slots=True)
class BrokerOptions(ListenOptions):
    """Where to listen, and how much callers may take."""

    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class BrokerDoor(OpenDoor):
    """A running broker, and the keys that it trusts its callers by."""

    tokens: TokenIssuer
    macs: MacKeys
    routes: Routes


class _Caches(NamedTuple):
    """What a broker reads of the cluster."""

    confidential: Informer
    bindings: Informer
    kbs_configs: Informer
    policies: Informer
    sets: Informer
    images: Informer

    @classmethod
    async def synced(cls, informers: Informers) -> Self:
        """All of them, once each knows what there is: half a rule book would let in what the other half forbids."""
        kinds = (
            CONFIDENTIAL_CLUSTER,
            RESOURCE_BINDING,
            KBS_CONFIG,
            APPRAISAL_POLICY,
            REFERENCE_VALUE_SET,
            APPROVED_IMAGE,
        )
        caches = cls(*(informers.of(kind.resource) for kind in kinds))
        for informer in caches:
            await informer.synced()
        return caches


class _Keys(NamedTuple):
    """What a broker signs and knows callers by."""

    macs: MacKeys
    tokens: TokenIssuer
    admins: Admins

    @classmethod
    async def open(cls, cluster: Cluster, informers: Informers, clock: Clock, entropy: Entropy) -> Self:
        """Those of the cluster, made if there are none; raises DamagedKeys, ApiError."""
        return cls(
            await MacKeys.open("broker", cluster, informers, clock, entropy),
            await TokenIssuer.open(cluster, informers, clock, entropy),
            await Admins.open(cluster, informers, clock, entropy),
        )

    def renewals(self, cluster: Cluster, entropy: Entropy) -> Sequence[Callable[[], Awaitable[None]]]:
        """What makes each of them anew before it is too old."""
        return (
            partial(self.macs.renew, cluster, entropy),
            partial(self.tokens.renew, cluster),
            partial(self.admins.renew, cluster, entropy),
        )


@asynccontextmanager
async def broker(
    cluster: Cluster,
    informers: Informers,
    clock: Clock,
    entropy: Entropy,
    options: BrokerOptions = BrokerOptions(),  # noqa: B008  # frozen
    *,
    verifier: Verifier,
    record: Record,
    revocations: Revocations,
    cipher: Cipher,
    policies: PolicyDecider | None = None,
    configs: ConfigService | None = None,
    workers: PolicyWorkers | None = None,
) -> AsyncIterator[BrokerDoor]:
    """A broker that listens for the time of the block; raises BadDoorNames, DamagedKeys, ApiError, OSError.

    `cipher` opens what it keeps; without `configs` it delivers no configurations. It ends the `workers` of its verifier.
    """
    caches = await _Caches.synced(informers)
    touch = await _touch(informers, caches)
    certificates = await DoorCertificates.open(DoorRole.BROKER, cluster, informers, clock, options.hosts)
    keys = await _Keys.open(cluster, informers, clock, entropy)
    sealed = SealedResources(cluster, cipher)
    delivery = await _delivery(configs, keys.tokens, cluster, informers, clock)
    disks = DiskKeys(cluster, cipher, entropy)
    sources = [*([delivery] if delivery is not None else ()), *_sources(cluster, sealed, disks, caches, clock, entropy)]
    makers = _disk_loops(cluster, informers, disks, record, clock, entropy)
    events = DoorEvents(cluster, FACE, clock, caches.confidential)
    workers = workers or PolicyWorkers(clock)
    workers.tell = events.policy_exceeded
    settings, limiter = Settings(caches.confidential), RateLimiter(options.limits, clock)
    policies = policies or ActivePolicies(caches.policies, workers)
    releases = Releases(
        record, revocations, touch, clock, settings=settings, bindings=caches.bindings, policies=policies
    )
    parts = partial(_own_parts, certificates)
    steps = Steps(
        sources, releases, limiter, clock, entropy, verifier=verifier, tokens=keys.tokens, macs=keys.macs, settings=settings,
        refusals=RefusalLog(record, clock, events), events=events,
    )  # fmt: skip
    values = RegisteredValues(cluster, caches.sets, caches.images, clock)
    callers = Callers(BROKER, keys.tokens, keys.macs, revocations, limiter, clock, entropy)
    app = Broker(
        steps, Administration(cluster, sealed, caches.policies, values, record), limiter, clock, entropy,
        tokens=keys.tokens, callers=callers, admins=keys.admins, parts=parts, touch=touch, events=events,
    ).app  # fmt: skip
    renewing = partial(keep_renewed, FACE, clock, *keys.renewals(cluster, entropy))
    tasks: Tasks = {"events": events.run, "disks": makers.run, "keys": renewing}
    if delivery is not None:
        tasks = {**tasks, "copies": delivery.run}
    served = ServedCertificate(FACE, certificates)
    try:
        async with workers, open_door(app, options, served, clock, tasks, peers=parts) as port:
            with metrics.refreshed_by(touch.publish):
                yield BrokerDoor(port, certificates, keys.tokens, keys.macs, app.routes)
    finally:
        await events.close()


def _sources(
    cluster: Cluster, sealed: SealedResources, disks: DiskKeys, caches: _Caches, clock: Clock, entropy: Entropy
) -> list[BrokerSource]:
    """What machines are given, in the order in which it is looked for."""
    # Ahead of what administrators write: nothing that lies under the name of a disk key is ever read from elsewhere.
    keys = DiskKeySource(cluster, disks, caches.confidential, clock, entropy)
    tokens = BootstrapTokenSource(BootstrapTokens(cluster, clock, entropy))
    return [keys, tokens, sealed, SecretResources(cluster, caches.kbs_configs), StatusResource()]


def _disk_loops(
    cluster: Cluster, informers: Informers, keys: DiskKeys, record: Record, clock: Clock, entropy: Entropy
) -> Runner:
    """The loops that need the vault, and so run here: keys of disks are made, and given to approvers."""
    maker = DiskKeyMaker(cluster, informers, keys, record, clock)
    recovery = DiskRecovery(cluster, informers, keys, record, clock, entropy)
    return Runner([maker, recovery], informers, clock, entropy)


def _own_parts(certificates: DoorCertificates) -> Sequence[Certificate]:
    """The authorities of our own parts, which may show themselves; `asking_role` decides whether one counts."""
    return certificates.current.internal.trusted


async def _touch(informers: Informers, caches: _Caches) -> Touch:
    """Whether the broker still hears of the rules and of machines."""
    # Everything that a grant can rest on. One that is missing here would be a rule whose silence nobody notices.
    rules = (caches.confidential, caches.bindings, caches.policies, informers.of(DISTRUST.resource))
    machines = (informers.of(MACHINE.resource), caches.sets, caches.images)
    touch = Touch(FACE, rules, machines, home_of(informers))
    await touch.synced()
    return touch


async def _delivery(
    service: ConfigService | None, tokens: TokenIssuer, cluster: Cluster, informers: Informers, clock: Clock
) -> PoolConfigs | None:
    """Delivery of configurations, where there is a config server to get them from."""
    if service is None:
        return None
    pools, confidential = informers.of(MACHINE_CONFIG_POOL.resource), informers.of(CONFIDENTIAL_CLUSTER.resource)
    overlays = informers.of(NODE_OVERLAY.resource)
    await pools.synced()
    await overlays.synced()
    return PoolConfigs(service, tokens, confidential, pools, Overlays(overlays), Assignments(cluster), clock)
