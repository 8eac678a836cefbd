"""A whole cluster in one thread: store, doors in two replicas each, controllers, machines of a simulated vendor.

    async with world(seed) as here:
        here.add("tpm"); await here.pass_time(60); …

Everything that is random comes from the seed. Doors and controllers are composed as `fastness serve` composes them.
"""

from __future__ import annotations

import asyncio
import logging
import math
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from fastness.admission.table import TABLE
from fastness.agent.boot.boot import BootedConfig
from fastness.agent.boot.image_trust import ImageTrust
from fastness.apiserver import LocalCluster
from fastness.apiserver.admission.admit import Admission
from fastness.apiserver.auth import Authorizer
from fastness.apiserver.catalog import Catalog
from fastness.apiserver.engine import EmbeddedApi
from fastness.apiserver.seed import seed as seed_store
from fastness.apiserver.store import Store
from fastness.app.node_lookups import NodeLookups
from fastness.crypto.aead import KeyRing, SealKey
from fastness.crypto.secret import SecretText
from fastness.enrolment.live.tickets import join_ticket, mint
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.fastness_dev.reference_values import REFERENCE_VALUE_SET
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.registry import all_kinds
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.access import User
from fastness.kube.access.user import AUTHENTICATED, NODE_PREFIX
from fastness.kube.access.user import NODES as NODE_USERS
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import PatchType
from fastness.sim.announce import announce_vendor
from fastness.sim.tee.images import BootImage, changed, default_image
from fastness.sim.tee.vendor import SimVendor
from tests.enrolling import settle_cluster
from tests.simulation.configs import machine_config
from tests.simulation.invariants import Log, Watch
from tests.simulation.loop import Inline, LoopClock
from tests.simulation.machines import TEES, SimMachine
from tests.simulation.network import Exchange, Network
from tests.simulation.nodes import SimNode
from tests.simulation.plane import Plane
from tests.simulation.processes import Line, Process
from tests.simulation.tokens import HeldToken
from tests.unit.machineconfig.build import CERTIFICATE
from tests.virtual import SeededEntropy

TOKEN_LIFETIME = 600.0
REVOKED_WITHIN = 1.0
GOOD, NEXT = default_image("42.1"), default_image("42.2")
TAMPERED = changed(GOOD, command_line=f"{GOOD.command_line} init=/bin/sh")


@cache
def vendor() -> SimVendor:
    """One vendor for all runs: its keys are costly and no part of what is tested."""
    return SimVendor()


@cache
def catalog() -> Catalog:
    """The kinds, put together once."""
    return Catalog.build(all_kinds())


class MemoryTiles:
    """Tiles of the record in memory; some of them can be lost, until somebody brings them back from a copy."""

    def __init__(self) -> None:
        self._pieces: dict[str, bytes] = {}
        self._lost: dict[str, bytes] = {}

    async def read(self, path: str) -> bytes | None:
        """A piece."""
        return self._pieces.get(path)

    async def write(self, path: str, data: bytes) -> None:
        """Keep a piece."""
        self._pieces[path] = data
        self._lost.pop(path, None)

    @property
    def whole(self) -> bool:
        """Whether nothing is lost."""
        return not self._lost

    def lose(self, random: Random) -> int:
        """Lose some pieces, half of the time nothing but hashes; how many."""
        hashes = random.random() < 0.5
        for path in sorted(self._pieces):
            if not (hashes and "entries" in path) and (hashes or random.random() < 0.5):
                self._lost[path] = self._pieces.pop(path)
        return len(self._lost)

    def bring_back(self) -> None:
        """What was lost is there again, as it was."""
        self._pieces, self._lost = {**self._lost, **self._pieces}, {}

    async def remove(self, path: str) -> None:
        """Forget a piece."""
        self._pieces.pop(path, None)


class World:
    """The cluster and what is true about its machines."""

    def __init__(self, number: int, store: Store, api: EmbeddedApi, directory: Path, *, simulated: bool) -> None:
        self.random, self.entropy = Random(number), SeededEntropy(number)
        self.store, self.api, self.cluster, self.simulated = store, api, LocalCluster(api), simulated
        self.directory, self._disks = directory, 0
        self.clock, self.network, self.tiles = LoopClock(), Network(self.random), MemoryTiles()
        self.plane = Plane(self.entropy, KeyRing([SealKey.generate(self.entropy)], self.entropy), self.tiles)
        self.processes = {
            name: Process(name, self.cluster, self.network, self.random, opened)
            for role, opened in self.plane.roles.items()
            for name in (f"{role}-a", f"{role}-b")
        }
        self.machines: list[SimMachine] = []
        # Images that do not count, and since when: what was never published never did, so no token of it can be left.
        self.withdrawn = dict.fromkeys((GOOD.version, NEXT.version, "tampered"), -math.inf)
        self.revoked: dict[str, float] = {}
        self.distrusted: set[str] = set()
        self._identities: dict[str, str] = {}
        self.watch = Watch(self.cluster, self.tiles, self._why_not, self.identity, simulated)
        self.network.watchers.append(self.watch.exchange)
        # Whatever opened a door once, a token, a session, a ticket, is a secret from then on.
        self.network.credentials = self.watch.secrets
        store.observe(self.watch.writes)

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self.clock.monotonic()

    def identity(self, caller: str) -> str:
        """The thumbprint of a machine's key."""
        if caller not in self._identities:
            machine = self.machines[int(caller)]
            self._identities[caller] = machine.attester(vendor()).machine.thumbprint
        return self._identities[caller]

    def truth(self, image: BootImage) -> str:
        """The name under which an image is published; tampered ones never are."""
        return image.version if image in (GOOD, NEXT) else "tampered"

    def _why_not(self, exchange: Exchange) -> str:
        """Why a machine must not have its configuration now; nothing when it may."""
        machine = self.machines[int(exchange.caller)]
        if not self.simulated:
            return "it is simulated, and this cluster is not"
        gone = self.withdrawn.get(self.truth(machine.image))
        if gone is not None and self.now > gone + TOKEN_LIFETIME:
            return f"its image was withdrawn {self.now - gone:.0f} s ago"
        ended = self.revoked.get(self.identity(exchange.caller))
        if ended is not None and self.now > ended + REVOKED_WITHIN:
            return f"it was revoked {self.now - ended:.1f} s ago"
        return ""

    def good(self, machine: SimMachine) -> bool:
        """Whether a machine should be attested and have its configuration."""
        same = [other for other in self.machines if other.task is not None and other.chip == machine.chip]
        # Of a machine and its copy whichever booted last counts, until somebody ends the copy.
        genuine = same == [machine] and self.truth(machine.image) not in self.withdrawn
        return genuine and self.identity(str(machine.number)) not in self.revoked

    async def ticket(self, uses: int = 0) -> SecretText:
        """A new ticket."""
        made = mint(self.entropy)
        expires = self.clock.now() + timedelta(days=30)
        await self.cluster.create(
            JOIN_TICKET.resource, join_ticket(f"t-{self.entropy.token(6).hex()}", made, "worker", expires, uses)
        )
        self.watch.secrets.add(made.reveal().encode())
        return made

    def add(
        self, tee: str, ticket: SecretText, image: BootImage = GOOD, chip: int | None = None, *, joins: bool = True
    ) -> SimMachine:
        """A new machine, switched on."""
        number = len(self.machines)
        machine = SimMachine(number, number if chip is None else chip, tee, image, ticket, joins)
        self.machines.append(machine)
        if machine.is_copy:
            machine.boots = self.machines[machine.chip].boots
            self.watch.copied.add(self.identity(str(machine.chip)))
        self.switch_on(machine)
        return machine

    async def end_copies(self) -> None:
        """Somebody looked at what is disputed: copies are switched off for good, and what they were copied from boots anew."""
        copies = [machine for machine in self.machines if machine.is_copy]
        for copy in copies:
            await copy.switch_off()
        for original in {copy.chip: self.machines[copy.chip] for copy in copies}.values():
            await original.switch_off()
            # A TPM is in front again when it was reset once more than its copy.
            original.boots = max(machine.boots for machine in self.machines if machine.chip == original.chip)
            self.switch_on(original)

    def switch_on(self, machine: SimMachine, image: BootImage | None = None) -> None:
        """Boot a machine that is off."""
        machine.image = image or machine.image
        machine.boots += 1
        trust = ImageTrust(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), self.plane.keys)
        living = machine.live(vendor(), trust, self.entropy, install=self._install, lines=self._lines)
        machine.task = asyncio.ensure_future(living)

    async def held_token(self, machine: SimMachine) -> HeldToken | None:
        """A token that a machine keeps, if the doors give it one now."""
        trust = ImageTrust(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), self.plane.keys)
        return await HeldToken.take(machine.number, machine.attester(vendor()), trust, self.entropy)

    def _install(self, machine: SimMachine, booted: BootedConfig) -> SimNode:
        """A new disk with what was fetched on it."""
        self._disks += 1
        node = SimNode(self.directory / f"disk-{self._disks}", booted.node_name, machine.number, self.entropy)
        node.install(booted.body)
        return node

    def _lines(self, node: str) -> tuple[Line, Line]:
        """A machine's own ways to the API: of its kubelet, of its agent."""
        user = User(f"{NODE_PREFIX}{node}", (NODE_USERS, AUTHENTICATED))
        return Line(self.cluster, self.random), Line(LocalCluster(self.api, user), self.random)

    async def reinstall(self, machine: SimMachine, image: BootImage | None = None) -> None:
        """Switch a machine off, forget its disk and its node, and boot it as if it were new."""
        await machine.switch_off()
        if machine.node is not None:
            with suppress(NotFound):
                await self.cluster.delete(NODE.resource, machine.node.name)
        machine.wipe()
        self.switch_on(machine, image)

    async def configure(self, number: int, bad: str = "") -> None:
        """What the machines of the pool should have: a number in a file, and perhaps something that no disk can hold."""
        body = machine_config(number, bad)
        try:
            await self.cluster.create(MACHINE_CONFIG.resource, body)
        except AlreadyExists:
            patch = {"spec": body["spec"]}
            await self.cluster.patch(MACHINE_CONFIG.resource, body["metadata"]["name"], patch, PatchType.MERGE)

    async def publish(self, image: BootImage) -> None:
        """Publish what an image measures."""
        for tee in TEES:
            body = {
                "apiVersion": REFERENCE_VALUE_SET.api_version, "kind": REFERENCE_VALUE_SET.kind,
                "metadata": {"name": f"v{image.version}-{tee}"},
                "spec": {"source": "manual", "values": image.reference_values(tee)},
            }  # fmt: skip
            await self.cluster.create(REFERENCE_VALUE_SET.resource, body)
        self.withdrawn.pop(image.version, None)

    async def withdraw(self, image: BootImage) -> None:
        """Take an image's values away."""
        for tee in TEES:
            await self.cluster.delete(REFERENCE_VALUE_SET.resource, f"v{image.version}-{tee}")
        self.withdrawn[image.version] = self.now

    async def machine_object(self, machine: SimMachine) -> JsonObject | None:
        """Its Machine, once it enrolled."""
        identity = self.identity(str(machine.number))
        machines = (await self.cluster.list(MACHINE.resource)).items
        return next((obj for obj in machines if (obj.get("status") or {}).get("keyThumbprint") == identity), None)

    async def pass_time(self, seconds: float) -> None:
        """Let things happen for a while; defects of machines and processes show here."""
        await asyncio.sleep(seconds)
        for process in self.processes.values():
            process.check()
        for machine in self.machines:
            if machine.task is not None and machine.task.done():
                machine.task.result()

    async def close(self) -> None:
        """Switch everything off."""
        for machine in self.machines:
            await machine.switch_off()
        for process in self.processes.values():
            await process.kill()


@asynccontextmanager
async def world(number: int, *, simulated: bool = True) -> AsyncIterator[World]:
    """A cluster of a seed, all doors open, its first image published."""
    with tempfile.TemporaryDirectory(dir=memory()) as directory, _one_thread():
        clock, entropy = LoopClock(), SeededEntropy(-1 - number)
        store = await Store.open(
            Path(directory), cipher=KeyRing([SealKey.generate(entropy)], entropy), clock=clock, entropy=entropy,
            identity={"simulated": str(simulated).lower()},
        )  # fmt: skip
        # Nobody dials this API, so nobody verifies its certificate; nodes get it beside their configuration.
        await seed_store(store, entropy, clock.now(), CERTIFICATE)
        lookups = NodeLookups(store, clock, simulated)
        authorizer = Authorizer(lookups, lookups)
        lookups.use(authorizer.decide, authorizer.policy)
        api = EmbeddedApi(store, catalog(), clock, entropy, Admission(lookups, TABLE), lookups.rbac_changed)
        here = World(number, store, api, Path(directory), simulated=simulated)
        with here.network.installed(), _logged(here.watch):
            await settle_cluster(here.cluster, {"mode": "Enforce", "simulated": simulated})
            await announce_vendor(here.cluster, vendor(), clock.now())
            await here.publish(GOOD)
            await here.configure(0)
            for process in here.processes.values():
                process.start()
            await here.pass_time(5)
            try:
                yield here
            finally:
                await here.close()
        await store.close()


def memory() -> str | None:
    """Where files cost nothing, if there is such a place."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


@contextmanager
def _one_thread() -> Any:
    with patch("fastness.apiserver.store.store.ThreadPoolExecutor", Inline):
        yield


@contextmanager
def _logged(watch: Watch) -> Any:
    root, handler = logging.getLogger("fastness"), Log(watch)
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
