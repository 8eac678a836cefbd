"""What the parts of a control plane are told: the arguments of `control_plane`.

A process is either the whole control plane of its cluster (`fastness up`) or one of several replicas (`fastness serve`):

    alone      all parts share one set of caches, gate and broker take configurations from the config server beside them,
               and machines are led to the doors of this process
    replica    each part has caches of its own and signs as its own role, finds the others by their URLs, and of all
               controllers only those work that hold the lease
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from fastness.app.parts import Part
from fastness.attestation.live.collateral_files import CACHE, IMPORTED
from fastness.enrolment.door.pace import Pace
from fastness.http.opening import Authorities, ListenOptions
from fastness.keys.shared_cipher import Cipher
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.leadership import LeaderSettings
from fastness.kube.controllers.runner import Feed
from fastness.kube.places import AT_HOME, Places
from fastness.kube.served_kinds import ServedKinds
from fastness.machineconfig.loops.timing import FIELD, Timing
from fastness.machineconfig.scaling.providers import PROVIDERS
from fastness.record.live.tiles import TileStore
from fastness.runtime.clock import Clock

if TYPE_CHECKING:
    # Each role of `fastness serve` is a process of its own, and loads its own door and no other.
    from fastness.admission.door.server import WebhookServer
    from fastness.attestation.live.collateral import Collateral
    from fastness.attestation.live.image_contents import Simulated
    from fastness.builds.live.builder import MakeBuilder
    from fastness.enrolment.door.server import EnrolServer
    from fastness.machineconfig.loops.rendering.render import ResolveImage
    from fastness.page.admission import Doorkeeper
    from fastness.page.server import Page, PageOptions
    from fastness.release.door.broker.server import BrokerDoor
    from fastness.release.door.config_server.server import ConfigDoor
    from fastness.release.door.gate.server import GateDoor

    AnyDoor = ConfigDoor | EnrolServer | BrokerDoor | GateDoor | WebhookServer | Page


@dataclass(frozen=True, slots=True)
class Documents:
    """Where documents of vendors are imported and kept; whether the vendors' services are asked.

    The services learn which chips and platforms a site has, so they are not asked unless somebody says so.
    """

    imported: Path | None = None
    cache: Path | None = None
    services: bool = False

    @classmethod
    def below(cls, state: Path, *, services: bool) -> Documents:
        """Those of a state directory."""
        return cls(state / IMPORTED, state / CACHE, services)


@asynccontextmanager
async def open_documents(documents: Documents, clock: Clock) -> AsyncIterator[Collateral]:
    """The documents, for the time of the block."""
    import httpx

    from fastness.attestation.live.collateral import Collateral
    from fastness.attestation.live.vendor_services import SECONDS, Services, VendorServices

    if not documents.services:
        yield Collateral(clock, imported=documents.imported, cache=documents.cache)
        return
    async with httpx.AsyncClient(timeout=SECONDS) as client:
        services = VendorServices(client, clock, Services())
        yield Collateral(clock, imported=documents.imported, cache=documents.cache, services=services)


@dataclass(frozen=True, slots=True)
class ClusterKeys:
    """Keys of a control plane that are not objects of its cluster.

    `vault` seals what the broker keeps. `nodes` are the authorities of nodes' certificates, where this process is the one that
    signs those; elsewhere the cluster publishes them.
    """

    vault: Cipher | None = None
    nodes: Authorities | None = None


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the doors are reached: by machines, and `internal` by gate and broker. An empty one is not known."""

    config_server: str = ""
    enrolment: str = ""
    broker: str = ""
    gate: str = ""
    internal: str = ""


@dataclass(frozen=True, slots=True)
class Election:
    """How a replica takes part in the election of the controllers that write, and whose work they take over if they win.

    `kinds` says which definitions the cluster lacks: controllers that need them are left out until they come.
    """

    identity: str
    lease: LeaderSettings
    adopted: tuple[str, ...] = ()
    kinds: ServedKinds | None = None


@dataclass(frozen=True, slots=True)
class FurtherLoops:
    """Controllers that run beside those of the product, and what feeds those that read no cache."""

    controllers: tuple[Controller, ...] = ()
    feeds: Mapping[str, Feed] = field(default_factory=lambda: MappingProxyType({}))


def _unannounced(_part: Part, _door: AnyDoor) -> None:
    """For those who ask for the doors instead."""


def _tell_nobody(_text: str) -> None:
    """For those who read no words."""


@dataclass(frozen=True, slots=True)
class PlaneSettings:
    """What the parts are told; what is said about a part that does not run is not looked at.

    Without an `election` this process is alone, and `addresses` are those of its own doors. Without `tiles` the record is in
    the cluster, without `resolve_image` images have to be named by digest, without a `builder` none are built.
    `simulated_images` says what virtual machines measure. `providers` make machines for machine sets; `page` is for the page
    alone. `opened` hears of every door that opened, `tell` of controllers that are not started.
    """

    listen: Mapping[Part, ListenOptions]
    election: Election | None = None
    addresses: Addresses = field(default_factory=Addresses)
    tiles: TileStore | None = None
    visitors: Doorkeeper | None = None
    page: PageOptions | None = None
    webhook_url: str = ""
    node_certificates: bool = True
    resolve_image: ResolveImage | None = None
    builder: MakeBuilder | None = None
    simulated_images: Simulated | None = None
    join_tokens: bool = True
    pace: Pace = field(default_factory=Pace)
    documents: Documents = field(default_factory=Documents)
    places: Places = AT_HOME
    timing: Timing = FIELD
    providers: tuple[str, ...] = PROVIDERS
    loops: FurtherLoops = field(default_factory=FurtherLoops)
    opened: Callable[[Part, AnyDoor], None] = _unannounced
    tell: Callable[[str], None] = _tell_nobody

    @property
    def alone(self) -> bool:
        """Whether this process is the whole control plane of its cluster."""
        return self.election is None
