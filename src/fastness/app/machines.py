"""The virtual machines of `fastness up --machines N`.

Each acts in the name of its own node, so that what a node may write is checked as it is for a real one.

* Profile `containers`: hosts that nobody attests; they fetch their configuration with a join ticket.
* Profile `cluster`: confidential machines of a simulated vendor, with TPM, SNP and TDX in turn. The cluster enforces: they enrol,
  attest and fetch over the real protocol, and the image that they boot is approved beforehand.

A state directory that had machines goes on with them, whatever is asked for: `fastness sim` adds and removes. While they run,
STATE/sim.sock takes requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.agent.boot.image_trust import ImageTrust
from fastness.agent.host.errors import ImageFailure
from fastness.apiserver import ApiServer
from fastness.attestation.live.image_contents import ImageUnreadable
from fastness.attestation.values.from_images import MEASUREMENTS
from fastness.crypto.digests import sha256
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.formats.evidence.snp.tcb import Generation
from fastness.formats.words import counted
from fastness.keys.key_files import read_private, write_private
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.trusted_execution.approvals import APPROVED_IMAGE
from fastness.kube.access import User
from fastness.kube.access.user import AUTHENTICATED, NODE_PREFIX, NODES
from fastness.kube.controllers.controller import Controller
from fastness.kube.controllers.fenced import FencedCluster, nobody_asks
from fastness.kube.errors import AlreadyExists, ApiError
from fastness.kube.port import Cluster
from fastness.machineconfig.loops.controllers import REGISTRIES
from fastness.machineconfig.loops.rendering.registry_access import asked_access
from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.errors import FastnessError
from fastness.sim import first_set, swtpm
from fastness.sim.announce import VendorDocuments
from fastness.sim.clock import LeapingClock
from fastness.sim.control_client import AuditHook
from fastness.sim.control_socket import control_socket
from fastness.sim.faults import FaultContext
from fastness.sim.fleet import running_machines
from fastness.sim.hardware import Hardware, Silicon
from fastness.sim.inventory import Spec
from fastness.sim.platform import Fleet, Proofs
from fastness.sim.provider import VirtualMachineProvider
from fastness.sim.simulation import CONTAINERS_PROFILE, Simulation
from fastness.sim.tee.firmware import CURRENT_TCB
from fastness.sim.tee.images import default_image
from fastness.sim.tee.vendor import SimVendor

SEED_FILE: Final = "simulated-vendor.seed"
SWTPM: Final = "swtpm"
PULL_SECONDS: Final = 60.0
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Believed:
    """What the image of a virtual machine carries: the doors' authority and the keys that sign configurations, as of now; and
    where broker and gate are, that it goes to again and again. `doors` are those that fresh user-data leads to."""

    ca: Callable[[], str]
    keys: Callable[[], list[JsonObject]]
    broker: Callable[[], str]
    gate: Callable[[], str]
    doors: tuple[str, ...] = ()

    def trust(self) -> ImageTrust:
        """The content of the image's trust.json, read."""
        return ImageTrust.parse(json.encode({"ca": self.ca(), "configKeys": self.keys()}))


class Simulated:
    """The simulation beside a control plane: its clock, its machines, and what was asked for."""

    def __init__(self, state: Path, count: int, profile: str, tpm: str, clock: Clock, tell: Tell) -> None:
        """Read what the state directory has; `tell` hears what is done otherwise than asked for. Raises ApiError."""
        self.simulation = Simulation(state, profile, swtpm=tpm == SWTPM and _installed(tell))
        self.clock = LeapingClock(clock)
        self.clock.resume(self.simulation.ahead)
        self._count = count
        self._noted: AuditHook
        running = self.simulation.kept
        if self.simulation.inventory.next and count not in (0, running):
            present = f"{state} has {counted(running, 'machine')} and goes on with {'it' if running == 1 else 'them'}"
            tell(f"{present}; `fastness sim add` and `remove` change that")

    @property
    def count(self) -> int:
        """How many machines there will be."""
        return self.simulation.kept if self.simulation.inventory.next else self._count

    async def prepare(self, cluster: Cluster) -> None:
        """What the cluster must know before its loops look at it for the first time; raises ApiError."""
        if self.simulation.inventory.profile != CONTAINERS_PROFILE:
            await confidential(cluster)
        if not self.simulation.inventory.next:
            await first_set.create(cluster, self._count)

    async def resolve_image(self, image: str) -> str:
        """The image that a tag means, as the simulated registry says; raises DriverError."""
        return await asyncio.to_thread(self.simulation.registry.pull, image)

    async def measured(self, image: str) -> JsonObject:
        """What virtual machines measure that boot an image, as a manifest; raises ImageUnreadable."""
        try:
            manifest = json.decode(await asyncio.to_thread(self.simulation.registry.manifest, image))
        except (ImageFailure, JsonError) as error:
            raise ImageUnreadable(str(error)) from error
        return dict(manifest)

    def _reach_registries(self, cluster: Cluster) -> None:
        """Let machines pull from real registries, as nodes do: by mirrors and with the pull secret of the cluster."""
        loop = asyncio.get_running_loop()

        async def pull(image: str) -> str:
            access = await asked_access(cluster)
            by_digest = await REGISTRIES.resolve(image, access)
            await REGISTRIES.labels(by_digest, access)  # the manifest and its configuration have to be there
            return by_digest

        def elsewhere(image: str) -> str:
            try:
                return asyncio.run_coroutine_threadsafe(pull(image), loop).result(PULL_SECONDS)
            except (FastnessError, ApiError, TimeoutError) as error:
                raise ImageFailure(f"image {image} cannot be pulled: {error}") from error

        self.simulation.registry.elsewhere = elsewhere

    def loops(self, cluster: Cluster) -> tuple[Controller, ...]:
        """The loops that make virtual machines on demand."""

        def fenced(name: str, writes: Sequence[Resource]) -> FencedCluster:
            return FencedCluster(cluster, name, writes, nobody_asks)

        provider = fenced(VirtualMachineProvider.name, VirtualMachineProvider.writes)
        return (VirtualMachineProvider(provider, self.simulation, self.clock),)

    @asynccontextmanager
    async def running(
        self, server: ApiServer, believed: Believed, entropy: Entropy, noted: AuditHook
    ) -> AsyncIterator[None]:
        """The machines, for the time of the block; `noted` hears what is asked of them; raises ApiError, DriverError, OSError."""
        self._noted = noted
        simulation, clock, cluster = self.simulation, self.clock, server.cluster
        self._reach_registries(cluster)
        directory = simulation.state / "machines"
        directory.mkdir(mode=0o700, exist_ok=True)

        def as_node(name: str) -> Cluster:
            return server.acting_as(User(f"{NODE_PREFIX}{name}", (NODES, AUTHENTICATED)))

        if simulation.inventory.profile == CONTAINERS_PROFILE:
            fleet = Fleet(
                cluster, as_node, directory, clock, entropy,
                registry=simulation.registry, doors=believed.doors, api=server.url,
            )  # fmt: skip
            async with self._opened(fleet, None, None):
                yield
            return
        vendor = stored_vendor(simulation.state / SEED_FILE, entropy)
        async with _tpm_maker(simulation) as maker:
            documents = VendorDocuments(cluster, vendor, clock, [maker.certificates] if maker is not None else ())
            proofs = Proofs(boards(vendor, maker, directory), believed.trust, believed.broker, believed.gate)
            fleet = Fleet(
                cluster, as_node, directory, clock, entropy, proofs=proofs, registry=simulation.registry,
                doors=believed.doors, api=server.url,
            )  # fmt: skip
            async with self._opened(fleet, documents, SimVendor(entropy)):
                yield

    @asynccontextmanager
    async def _opened(
        self, fleet: Fleet, documents: VendorDocuments | None, forger: SimVendor | None
    ) -> AsyncIterator[None]:
        async with running_machines(fleet) as opened, asyncio.TaskGroup() as group:
            context = FaultContext(opened, self.clock, documents, forger)
            async with self.simulation.opened(context, self._count), control_socket(self.simulation, self._noted):
                announcing = (
                    group.create_task(documents.run(), name="simulator:announce") if documents is not None else None
                )
                try:
                    yield
                finally:
                    if announcing is not None:
                        announcing.cancel()


def boards(vendor: SimVendor, maker: swtpm.TpmMaker | None, directory: Path) -> Callable[[Spec], Hardware]:
    """The hardware of each machine: the same after every restart."""

    def board(spec: Spec) -> Hardware:
        if spec.swtpm and maker is not None:
            return maker.board(spec.name, directory / spec.name / "tpm")
        return Silicon(vendor, spec.tee, spec.number, counted=directory / spec.name / "boots")

    return board


def _installed(tell: Tell) -> bool:
    """Whether TPMs can be processes; says what is missing when they cannot."""
    absent = swtpm.missing()
    if absent:
        tell(f"no swtpm here: TPMs are simulated in software instead (apt-get install {' '.join(absent)})")
    return not absent


@asynccontextmanager
async def _tpm_maker(simulation: Simulation) -> AsyncIterator[swtpm.TpmMaker | None]:
    if not simulation.wants_swtpm:
        yield None
        return
    maker = swtpm.TpmMaker(simulation.state / "swtpm")
    try:
        await maker.open()
        yield maker
    finally:
        maker.close()


def stored_vendor(path: Path, entropy: Entropy) -> SimVendor:
    """The simulated vendor of a state directory; its roots follow from one seed."""
    stored = read_private(path)
    if stored is None:
        vendor = SimVendor(entropy)
        write_private(path, SecretBytes(vendor.seed))
        return vendor
    return SimVendor.of(stored.reveal())


async def confidential(cluster: Cluster) -> None:
    """A simulated cluster that enforces, asks for current firmware, and has approved what its machines boot."""
    # Intel's documents say which firmware is behind; AMD publishes nothing of the kind, so the cluster has to.
    least = CURRENT_TCB[Generation.GENOA].components()
    body: JsonObject = {
        "apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind, "metadata": {"name": NAME},
        "spec": {"mode": "Enforce", "simulated": True, "attestation": {"minimumTcb": {"snp": least}}},
    }  # fmt: skip
    with suppress(AlreadyExists):
        await cluster.create(CONFIDENTIAL_CLUSTER.resource, body)
    manifest = json.canonical(default_image().manifest()).decode()
    image: JsonObject = {
        "apiVersion": APPROVED_IMAGE.api_version, "kind": APPROVED_IMAGE.kind,
        "metadata": {"name": "virtual-machine", "namespace": NAMESPACE, "annotations": {MEASUREMENTS: manifest}},
        "spec": {"image": f"simulated.fastness.dev/machine@{sha256(manifest.encode())}"},
    }  # fmt: skip
    with suppress(AlreadyExists):
        await cluster.create(APPROVED_IMAGE.resource, image)
