"""The embedded control plane: the API, its loops, and what tells others where they are.

`running` is the life of `fastness up`: open the state directory, start listening, start the controllers, write the
files that clients read, say that it is ready, and undo all of it in reverse when asked to stop.

    STATE/kubeconfig        how kubectl reaches the API, as administrator (0600)
    STATE/endpoints.json    where every door listens (0600)
    STATE/collateral        vendors' documents that somebody imported (`attestation.live.collateral_files`)
    STATE/collateral-cache  those that were fetched, and the highest numbers seen
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastness.apiserver import ApiServer, ServerOptions, StoreSettings, open_apiserver
from fastness.app import attestation_doors as attesting
from fastness.app.audit import hatch_deeds
from fastness.app.controllers import product_loops
from fastness.app.page import PagePlacement, embedded_page
from fastness.app.product import PRODUCT
from fastness.app.vendor_documents import Documents
from fastness.app.vendor_documents import opened as documents_opened
from fastness.attestation.admission.endings import WITHOUT_OWNERS
from fastness.attestation.live.statuses import SignedStatuses, signed_statuses
from fastness.attestation.loops import door_certificates as certificates
from fastness.attestation.loops.door_certificates import issuing
from fastness.crypto.secret import SecretBytes
from fastness.enrolment.door.app import USUAL_RATE, Pace
from fastness.enrolment.live.enrolments import DoorUrls
from fastness.enrolment.trusted_cluster import Doors
from fastness.formats import json
from fastness.http.opening import ListenOptions
from fastness.keys.home import Home
from fastness.keys.key_files import write_private
from fastness.kinds.kind import JsonObject
from fastness.kube.controllers import Runner
from fastness.kube.informers import Informers
from fastness.kube.places import EMBEDDED
from fastness.kube.port import Cluster
from fastness.machineconfig.loops.controllers import Around
from fastness.machineconfig.loops.timing import SIMULATED
from fastness.observe import logs
from fastness.record.live.health import RecordHealth
from fastness.record.live.record import ClusterRecord
from fastness.record.live.tiles import FileTiles
from fastness.release.door.broker.server import BrokerOptions
from fastness.release.door.config_server.server import config_server
from fastness.release.door.gate.server import gate
from fastness.runtime.clock import Clock, Entropy, SystemClock, SystemEntropy
from fastness.runtime.errors import FastnessError

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
    page_port: int = 0
    vendor_services: bool = False
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
        opened: Opened,
        simulated: Simulated | None = None,
    ) -> None:
        self.server = server
        self.runner = runner
        self.state = options.state
        self.vms = options.vms
        self.simulated = simulated
        self.machines = simulated.count if simulated is not None else 0
        self.endpoints = opened.now
        self.link = opened.link

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
        return {name: text for name, text in self.server.health.problems(ready=True).items() if text}

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
    kept = StoreSettings(reserve_bytes=RESERVE_BYTES)
    listening = ServerOptions(options.state, options.host, options.port, store=kept)
    async with open_apiserver(listening, PRODUCT, clock, entropy) as server:
        # One process is every role, and signs as the one that may write anything.
        signed = signed_statuses("controllers", server.cluster, clock, entropy)
        try:
            async with (
                Informers(signed, clock=clock, entropy=entropy, places=EMBEDDED) as informers,
                issuing(server.cluster, informers, clock, entropy),
                _doors(server, signed, informers, options, simulated, clock, entropy) as endpoints,
            ):
                runner = _runner(server, signed, informers, options, endpoints.pointers, clock, entropy)
                server.health.add("controllers", runner.waiting_for)
                server.health.add("caches", informers.out_of_touch)
                server.health.warn("set-aside", informers.unused)
                home, record = Home(server.cluster, clock), RecordHealth(server.cluster, _tiles(options), clock)
                server.health.add("home", home.problem)
                server.health.add("record", record.problem)
                plane = ControlPlane(server, runner, options, endpoints, simulated)
                fleet = _machines(server, simulated, endpoints, entropy)
                real = _real_machines(server, options, endpoints, clock)
                if simulated is not None:
                    await simulated.prepare(server.cluster)
                await record.look()
                async with (
                    _background(runner.run, lambda: _renew(server, clock), home.watch, record.watch),
                    fleet,
                    real,
                ):
                    _publish(plane)
                    yield plane
        finally:
            _log.info("server.stopping")


@dataclass(frozen=True, slots=True)
class Opened:
    """The open doors: where they are, what machines believe of them, and how a person gets to the page."""

    now: Endpoints
    ca: Callable[[], str]
    keys: Callable[[], list[JsonObject]]
    link: Callable[[], str]

    def pointers(self) -> Doors:
        """Where user-data leads machines to."""
        return Doors(self.now.enrolment, self.now.config_server, self.ca())


@asynccontextmanager
async def _doors(
    server: ApiServer,
    cluster: Cluster,
    informers: Informers,
    options: PlaneOptions,
    simulated: Simulated | None,
    clock: Clock,
    entropy: Entropy,
) -> AsyncIterator[Opened]:
    """The doors for the time of the block: config server, enrolment, broker and gate for machines, the page for people."""
    listen = ListenOptions(options.host)
    told: list[Endpoints] = []
    documents = Documents.below(options.state, services=options.vendor_services)
    async with (
        config_server(cluster, informers, clock, entropy, listen, lambda: server.pki.client_authorities) as configs,
        documents_opened(documents, clock) as collateral,
    ):
        needs = attesting.Around(
            clock, entropy, server.vault, collateral=collateral, configs=configs.served,
            urls=lambda: DoorUrls(told[0].broker, told[0].gate) if told else DoorUrls(),
        )  # fmt: skip
        # All virtual machines come from one address: what is one rack elsewhere is the whole cluster here.
        pace = Pace.of(max(USUAL_RATE, options.machines))
        chosen = attesting.AttestingOptions(listen, BrokerOptions(options.host), pace)
        record = ClusterRecord(cluster, clock, entropy, "gate")
        place = PagePlacement(
            options.state, options.host, options.page_port, simulated.simulation if simulated is not None else None
        )
        async with (
            attesting.attesting(cluster, informers, needs, chosen) as proofs,
            gate(cluster, informers, configs.served, record, clock, entropy, listen) as keeper,
            embedded_page(server, informers, place, clock, entropy) as page,
        ):
            ports = (configs.port, proofs.enrolment.port, proofs.broker.port, keeper.port, page.port)
            told.append(Endpoints(server.url, *(_url(options.host, port) for port in ports)))
            yield Opened(told[0], lambda: configs.doors.bundle, configs.served.signer.jwks, page.link)


def _runner(
    server: ApiServer,
    signed: SignedStatuses,
    informers: Informers,
    options: PlaneOptions,
    doors: Callable[[], Doors],
    clock: Clock,
    entropy: Entropy,
) -> Runner:
    """All loops: those of Kubernetes, which only the embedded API needs, and those of the product."""
    kube = server.controllers(WITHOUT_OWNERS)
    around = Around(clock, entropy, SIMULATED, doors, tiles=_tiles(options), statuses=signed.statuses)
    controllers = [*kube.controllers, *product_loops(signed, informers, around, without=(certificates.FAMILY,))]
    return Runner(controllers, informers, clock, entropy, feeds=kube.feeds)


def _tiles(options: PlaneOptions) -> FileTiles:
    return FileTiles(options.state / "record")


def _simulated(options: PlaneOptions, clock: Clock) -> Simulated | None:
    """Virtual machines, asked for or left by an earlier run; without any, the agent is not even loaded."""
    if not options.machines and not (options.state / "simulator.json").exists():
        return None
    from fastness.app.machines import Simulated

    return Simulated(options.state, options.machines, options.profile, options.tpm, clock, options.tell)


def _machines(
    server: ApiServer, simulated: Simulated | None, opened: Opened, entropy: Entropy
) -> AbstractAsyncContextManager[None]:
    """The virtual machines, if there are any."""
    if simulated is None:
        return nullcontext()
    from fastness.app.machines import Believed

    doors = (opened.now.enrolment, opened.now.config_server)
    believed = Believed(opened.ca, opened.keys, lambda: opened.now.broker, lambda: opened.now.gate, doors)
    return simulated.running(server, believed, entropy, hatch_deeds(server, entropy))


def _real_machines(
    server: ApiServer, options: PlaneOptions, opened: Opened, clock: Clock
) -> AbstractAsyncContextManager[None]:
    """The real machines, if there are any; after a run that had some, what was believed of them is taken back."""
    if not options.vms and not (options.state / "vms").exists():
        return nullcontext()
    from fastness.app.vms import Told, vms

    told = Told(opened.ca, opened.keys, opened.now.enrolment, opened.now.broker, opened.now.gate)
    return vms(server.cluster, options.state, options.vms, told, clock)


def _url(host: str, port: int) -> str:
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


@asynccontextmanager
async def _background(*tasks: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    """Run tasks beside the block; one that fails ends it."""
    async with asyncio.TaskGroup() as group:
        started = [group.create_task(task()) for task in tasks]
        try:
            yield
        finally:
            for task in started:
                task.cancel()


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
