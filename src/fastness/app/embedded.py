"""`fastness up`: an API server of its own, all parts of the control plane over it, and machines to try it with.

`running` is its life: open the state directory, listen, open the doors, start the controllers, start machines, write the files
that clients read, and undo all of it in reverse when asked to stop.

    STATE/kubeconfig        how kubectl reaches the API, as administrator (0600)
    STATE/endpoints.json    where every door listens (0600)
    STATE/collateral        vendors' documents that somebody imported (`attestation.live.collateral_files`)
    STATE/collateral-cache  those that were fetched, and the highest numbers seen
    STATE/builds            images of operating systems while they are built, and the logs of builds (`builds.live.buildah`)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fastness.apiserver import ApiServer, ServerOptions, StoreSettings, open_apiserver
from fastness.app.audit import audit_of_control_socket, audit_of_page
from fastness.app.control_plane import control_plane
from fastness.app.doors import OpenDoors
from fastness.app.parts import DOORS, WITH_OWN_API
from fastness.app.product import PRODUCT
from fastness.app.settings import ClusterKeys, Documents, FurtherLoops, PlaneSettings
from fastness.attestation.admission.trusted_objects import WITHOUT_OWNERS
from fastness.builds.live.buildah import Buildah
from fastness.crypto.secret import SecretBytes
from fastness.enrolment.door.pace import USUAL_RATE, Pace
from fastness.formats import json
from fastness.http.opening import ListenOptions
from fastness.keys.key_files import write_private
from fastness.kinds.kind import JsonObject
from fastness.kube.controllers import Runner
from fastness.kube.controllers.fenced import FencedCluster
from fastness.kube.controllers.not_acted_on import EmbeddedNotActedOnLoop
from fastness.kube.places import EMBEDDED
from fastness.machineconfig.loops.timing import SIMULATED
from fastness.machineconfig.scaling.providers import PROVIDERS, VIRTUAL
from fastness.observe import logs
from fastness.page.admission import GuardDoor
from fastness.page.server import PageOptions, ProviderOptions
from fastness.record.live.tiles import FileTiles
from fastness.runtime.clock import Clock, Entropy, SystemClock, SystemEntropy
from fastness.runtime.errors import FastnessError
from fastness.runtime.tasks import background

if TYPE_CHECKING:
    from fastness.app.machines import Simulated

RENEW_SECONDS = 60.0
RESERVE_BYTES = 16 * 1024 * 1024  # twice what the write-ahead log grows to between two checkpoints
READY_POLL = 0.02
_log = logs.logger("plane")

LASTING = frozenset({"home", "record"})  # what only a person repairs: a control plane that stayed away would be no help


def _tell_nobody(text: str) -> None:
    """For those who start a control plane and read no words."""


@dataclass(frozen=True, slots=True)
class PlaneOptions:
    """What `fastness up` was asked for; `tell` hears what is done otherwise."""

    state: Path
    host: str = "127.0.0.1"
    port: int = 0
    machines: int = 0
    profile: str = "cluster"
    tpm: str = "software"
    vms: int = 0
    vm_root: Path | None = None
    page_port: int = 0
    vendor_services: bool = False
    kms: tuple[str, ...] = ()
    provider: ProviderOptions | None = None
    tell: Callable[[str], None] = _tell_nobody


class NotReady(FastnessError):
    """The control plane did not become ready in time."""

    code = "NotReady"
    hint = "Run with --log-level info to see what it waits for."


@dataclass(frozen=True, slots=True)
class Endpoints:
    """Where the doors are, as `endpoints.json` says it."""

    api: str
    config_server: str
    enrolment: str
    broker: str
    gate: str
    page: str

    def to_json(self) -> dict[str, str]:
        """The content of the file."""
        return {
            "api": self.api,
            "configServer": self.config_server,
            "enrolment": self.enrolment,
            "broker": self.broker,
            "gate": self.gate,
            "page": self.page,
        }


class ControlPlane:
    """A running embedded control plane."""

    def __init__(
        self,
        server: ApiServer,
        runner: Runner,
        options: PlaneOptions,
        doors: Doors,
        simulated: Simulated | None = None,
    ) -> None:
        self.server = server
        self.runner = runner
        self.state = options.state
        self.vms = options.vms
        self.simulated = simulated
        self.machines = simulated.count if simulated is not None else 0
        self.endpoints = doors.endpoints
        self.link = doors.link

    async def wait_ready(self, seconds: float) -> None:
        """Return when `/readyz` says ok, or nothing that gets better by waiting; raises NotReady after so many seconds."""
        for _ in range(int(seconds / READY_POLL)):
            if not self.problems().keys() - LASTING:
                _log.info("server.ready", api=self.server.url)
                return
            await asyncio.sleep(READY_POLL)
        raise NotReady(f"not ready after {seconds:.0f} seconds: {self.problems()}")

    def problems(self) -> dict[str, str]:
        """What `/readyz` says is wrong, by check."""
        return {name: text for name, text in self.server.health.problems(ready=True).items() if text is not None}

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.state / "kubeconfig"


@asynccontextmanager
async def running(
    options: PlaneOptions, clock: Clock | None = None, entropy: Entropy | None = None
) -> AsyncIterator[ControlPlane]:
    """A control plane for the time of the block; raises StoreError, TrustError, OSError."""
    clock, entropy = clock or SystemClock(), entropy or SystemEntropy()
    simulated = _simulated(options, clock)
    clock = simulated.clock if simulated is not None else clock
    store = StoreSettings(reserve_bytes=RESERVE_BYTES)
    people = options.provider.people if options.provider is not None else None
    listening = ServerOptions(options.state, options.host, options.port, store=store, kms=options.kms, people=people)
    async with open_apiserver(listening, PRODUCT, clock, entropy) as server:
        if simulated is not None:
            await simulated.prepare(server.cluster)
        keys = ClusterKeys(server.vault, lambda: server.pki.client_authorities)
        settings = _settings(server, options, simulated)
        async with control_plane(WITH_OWN_API, server.cluster, keys, settings, clock, entropy, server.health) as parts:
            doors, runner = await Doors.of(parts.doors, server.url), await parts.controllers()
            plane = ControlPlane(server, runner, options, doors, simulated)
            fleet = _machines(server, simulated, doors, entropy)
            real = _real_machines(server, options, doors, clock)
            async with background("up", certificates=partial(_renew, server, clock)), fleet, real:
                _publish(plane)
                try:
                    yield plane
                finally:
                    _log.info("server.stopping")


def _settings(server: ApiServer, options: PlaneOptions, simulated: Simulated | None) -> PlaneSettings:
    """All parts on loopback, on any free port but for the page; people are who the API says they are."""
    listen = ListenOptions(options.host)
    tiles = FileTiles(options.state / "record")
    kube = server.controllers(WITHOUT_OWNERS)
    machines = simulated.loops(server.cluster) if simulated is not None else ()
    fenced = FencedCluster(server.cluster, EmbeddedNotActedOnLoop.name, EmbeddedNotActedOnLoop.writes)
    telling = EmbeddedNotActedOnLoop(fenced, server.api.clock)
    page = PageOptions(
        options.host, options.page_port, administrator=lambda: server.pki.admin.certificate.der, tiles=tiles,
        audit=audit_of_page(server), simulator=simulated.simulation if simulated is not None else None, provider=options.provider,
    )  # fmt: skip
    return PlaneSettings(
        dict.fromkeys(DOORS, listen), tiles=tiles, page=page,
        visitors=GuardDoor(server.guard, server.acting_as),
        # All virtual machines come from one address: what is one rack elsewhere is the whole cluster here.
        pace=Pace.of(max(USUAL_RATE, options.machines)),
        documents=Documents.below(options.state, services=options.vendor_services),
        providers=(*PROVIDERS, *((VIRTUAL,) if simulated is not None else ())),
        resolve_image=simulated.resolve_image if simulated is not None else None,
        builder=lambda _cluster: Buildah(options.state / "builds"),
        simulated_images=simulated.measured if simulated is not None else None,
        places=EMBEDDED, timing=SIMULATED, loops=FurtherLoops((*kube.controllers, telling, *machines), kube.feeds),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Doors:
    """The open doors: where they are, what machines believe of them, and how a person gets to the page."""

    endpoints: Endpoints
    ca: Callable[[], str]
    keys: Callable[[], list[JsonObject]]
    link: Callable[[], str]

    @classmethod
    async def of(cls, doors: OpenDoors, api: str) -> Doors:
        """The doors of a control plane, when all are open."""
        configs, page = await doors.config_server(), await doors.page()
        await doors.all()
        where = doors.addresses()
        endpoints = Endpoints(api, where.config_server, where.enrolment, where.broker, where.gate, page.url)
        return cls(endpoints, lambda: configs.doors.bundle, configs.served.signer.jwks, page.link)


def _simulated(options: PlaneOptions, clock: Clock) -> Simulated | None:
    """Virtual machines, asked for or left by an earlier run."""
    if not options.machines and not (options.state / "simulator.json").exists():
        return None
    from fastness.app.machines import Simulated  # with the simulator and the agent, a tenth of what is loaded

    return Simulated(options.state, options.machines, options.profile, options.tpm, clock, options.tell)


def _machines(
    server: ApiServer, simulated: Simulated | None, doors: Doors, entropy: Entropy
) -> AbstractAsyncContextManager[None]:
    """The virtual machines, if there are any."""
    if simulated is None:
        return nullcontext()
    from fastness.app.machines import Believed

    where = doors.endpoints
    believed = Believed(
        doors.ca, doors.keys, lambda: where.broker, lambda: where.gate, (where.enrolment, where.config_server)
    )
    return simulated.running(server, believed, entropy, audit_of_control_socket(server, entropy))


def _real_machines(
    server: ApiServer, options: PlaneOptions, doors: Doors, clock: Clock
) -> AbstractAsyncContextManager[None]:
    """The real machines, if there are any; after a run that had some, what was believed of them is taken back."""
    if not options.vms and not (options.state / "vms").exists():
        return nullcontext()
    from fastness.app.vms import DoorTrust, vms

    where = doors.endpoints
    trust = DoorTrust(doors.ca, doors.keys, where.enrolment, where.broker, where.gate, where.api)
    return vms(server.cluster, options.state, options.vms, options.vm_root, trust, clock)


async def _renew(server: ApiServer, clock: Clock) -> None:
    """Renew certificates while the process lives."""
    while True:
        server.publish_expiry()
        await clock.sleep(RENEW_SECONDS)
        changed = server.renew(clock.now())
        if changed:
            _log.info("pki.renewed", what=", ".join(sorted(changed)))


def _publish(plane: ControlPlane) -> None:
    write_private(plane.kubeconfig, SecretBytes(plane.server.kubeconfig()))
    write_private(plane.state / "endpoints.json", SecretBytes(json.encode(plane.endpoints.to_json()) + b"\n"))
