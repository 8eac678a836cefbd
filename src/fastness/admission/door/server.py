"""The webhook as one thing that can be opened and closed: caches, authority, listener, rotation, registration.

The configuration stays when the webhook ends: a cluster whose webhook is down refuses confidential workloads instead of letting
them in unseen. `fastness serve` says so; deleting the configuration is the administrator's decision.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from fastness.admission.door.app import RecordedReviews, WebhookDoor
from fastness.admission.door.configuration import RESOURCE, SERVICE, Reachable
from fastness.admission.door.lookups import Sources, prepared
from fastness.admission.door.registration import RecordedPath, Registration
from fastness.attestation.live.named_record import RecordedActs
from fastness.http.opening import ListenOptions, open_door
from fastness.http.rotation import ServedCertificate
from fastness.http.route import Routes
from fastness.keys.certificates import DoorCertificates
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster
from fastness.protocol.door import DoorRole
from fastness.record.live.door_keys import DoorSigner
from fastness.record.live.record import ClusterRecord
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.tasks import background
from fastness.workloads.live.agent_policies import PolicyTrials

PORT = 9443
FACE: Final = "webhook"
SERVICE_NAMES = (f"{SERVICE}.{NAMESPACE}.svc", f"{SERVICE}.{NAMESPACE}.svc.cluster.local")


@dataclass(frozen=True, slots=True)
class WebhookServer:
    """A running webhook: its port, what keeps its configuration, and its table."""

    port: int
    registration: Registration
    routes: Routes


@asynccontextmanager
async def webhook_server(
    cluster: Cluster,
    informers: Informers,
    clock: Clock,
    entropy: Entropy,
    options: ListenOptions = ListenOptions(),  # noqa: B008  # frozen
    where: Reachable | None = None,
    *,
    trials: PolicyTrials | None = None,
) -> AsyncIterator[WebhookServer]:
    """A webhook that answers for the time of the block; raises BadDoorNames, ApiError, OSError.

    Without `where` the API server is told the port that is bound here, on loopback: good for tests and single machines.
    """
    registered = informers.of(RESOURCE)
    await registered.synced()
    names = [*options.hosts, *SERVICE_NAMES]
    certificates = await DoorCertificates.open(DoorRole.WEBHOOK, cluster, informers, clock, names)
    sources, asking = await Sources.of(informers), trials or PolicyTrials()
    path = RecordedPath(DoorSigner(FACE, cluster, clock, entropy))
    reviews = RecordedReviews(path, RecordedActs(ClusterRecord(cluster, clock, entropy, FACE)), informers.places)
    door = WebhookDoor(lambda request: prepared(request, cluster, sources, asking), entropy, reviews).app
    async with open_door(door, options, ServedCertificate(FACE, certificates), clock) as port:
        # An API server that knows of the webhook asks at once, so it is told when somebody answers.
        reached = where or Reachable(f"https://127.0.0.1:{port}")
        registration = Registration(cluster, registered, certificates, reached, clock, path)
        await registration.settle()
        async with background(FACE, registration=registration.run):
            yield WebhookServer(port, registration, door.routes)
