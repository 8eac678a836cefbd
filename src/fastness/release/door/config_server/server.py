"""The config server as one thing that can be opened and closed: caches, authorities, two listeners, rotation.

The ticket port is for machines of pools without attestation, the internal one for gate and broker, which ask for machines that
they have attested. On day two nodes that never attested come to the ticket port too, with their certificates (`day_two.py`); a
listener that shows those to us is one of our own loop. Only a stand-alone process that knows no authority of nodes takes the Rust
listener there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from fastness.crypto.errors import BadCertificate
from fastness.enrolment.live.tickets import TicketCache
from fastness.http.freshness import Touch
from fastness.http.opening import Authorities, ListenOptions, OpenDoor, open_door
from fastness.http.rotation import Chosen, ServedCertificate
from fastness.http.route import Routes
from fastness.keys.certificates import DoorCertificates, RoleCertificates
from fastness.keys.home import home_of
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.observe import metrics
from fastness.protocol.door import DoorRole
from fastness.record.live.record import ClusterRecord
from fastness.release.door.config_server.app import ConfigServer
from fastness.release.door.config_server.callers import by_ticket
from fastness.release.door.config_server.day_two import NodeReleases
from fastness.release.door.config_server.internal import InternalConfigServer
from fastness.release.live.day_two_nodes import NodeCallers
from fastness.release.live.join_credentials import JoinCredentials
from fastness.release.live.node_trust import TrustDocuments
from fastness.release.live.replies import RenderedConfigs, Replies
from fastness.release.live.settings import Settings
from fastness.release.live.signed_configs import ServedConfigs
from fastness.runtime.clock import Clock, Entropy

MCO = "machineconfiguration.openshift.io"
TICKETS = JOIN_TICKET.resource
CONFIDENTIAL = CONFIDENTIAL_CLUSTER.resource
ROLE: Final = "configserver"
TICKET_FACE, INTERNAL_FACE = "config-server", "config-server-internal"


@dataclass(frozen=True, slots=True)
class ConfigDoor(OpenDoor):
    """A running config server: its second port, for gate and broker, the tables of both, and what it serves."""

    internal_port: int
    served: ServedConfigs
    routes: Routes
    internal_routes: Routes


@asynccontextmanager
async def config_server(
    cluster: Cluster,
    informers: Informers,
    clock: Clock,
    entropy: Entropy,
    options: ListenOptions = ListenOptions(),  # noqa: B008  # frozen
    clients: Authorities | None = None,
    *,
    join_tokens: bool = False,
) -> AsyncIterator[ConfigDoor]:
    """A config server that listens for the time of the block; raises BadDoorNames, DamagedKeys, ApiError, OSError.

    `clients` are the authorities of nodes' certificates; without them nodes get nothing for a certificate. With `join_tokens` a
    machine that boots also gets a token to join by.
    """
    pools, configs = informers.of(MACHINE_CONFIG_POOL.resource), informers.of(MACHINE_CONFIG.resource)
    tickets, confidential = informers.of(TICKETS), informers.of(CONFIDENTIAL)
    for informer in (pools, configs, tickets, confidential):
        await informer.synced()
    certificates = await DoorCertificates.open(DoorRole.CONFIG_SERVER, cluster, informers, clock, options.hosts)
    trust = await TrustDocuments.following(informers)
    rendered = RenderedConfigs(Replies(pools, configs, trust.current))
    credentials = JoinCredentials(cluster, informers, clock, entropy) if join_tokens else None
    if credentials is not None:
        await credentials.synced()
    served = await ServedConfigs.open(cluster, informers, clock, entropy, rendered, trust, credentials)
    rules = (confidential, informers.of(DISTRUST.resource))
    touch = Touch(TICKET_FACE, rules, (informers.of(MACHINE.resource),), home_of(informers))
    ours = InternalConfigServer(served, lambda: certificates.current.internal.trusted, touch, clock, entropy).app
    nodes = None
    if clients is not None:
        callers = NodeCallers(cluster, pools, confidential, clients, clock)
        record = ClusterRecord(cluster, clock, entropy, ROLE)
        nodes = NodeReleases(callers, rendered, trust, served.signer, record, touch, clock)
    admit = by_ticket(TicketCache(cluster, tickets, clock), Settings(confidential), clock)
    app = ConfigServer(rendered, admit, touch, entropy, nodes, credentials).app
    inner = replace(options, port=options.internal_port, bounds=None)
    to_machines = ServedCertificate(TICKET_FACE, certificates)
    to_parts = ServedCertificate(INTERNAL_FACE, certificates, _to_our_parts)
    async with (
        open_door(app, options, to_machines, clock, peers=clients) as port,
        # Mutual TLS on a port of its own, not a path beside the others: a proxy in front of machines cannot reach it by an
        # address (pitfall 29).
        open_door(ours, inner, to_parts, clock, mutual=True) as internal_port,
    ):
        with metrics.refreshed_by(touch.publish):
            yield ConfigDoor(port, certificates, internal_port, served, app.routes, ours.routes)


def _to_our_parts(certificates: RoleCertificates) -> Chosen:
    """What gate and broker see, and whom of them the internal port believes."""
    if certificates.inner is None:
        raise BadCertificate("the controllers have not issued the certificate of the internal port")
    return certificates.inner, certificates.internal
