"""Virtual machines: directories that boot, join the cluster and run the real agent.

    STATE/machines/<name>/root    the machine's files
    STATE/machines/<name>/orig    what stood there before a config replaced it
    STATE/machines/<name>/agent   the agent's journal, the record of the operating system

A machine boots for the first time as a real one does (`firstboot.py`): the platform gives it the user-data of its pool, it
follows the pointer to the config server, over TLS and with the ticket that stands there, and lays down what it gets. It joins
with the annotations that came along. From then on the agent is alone with the cluster port, in the name of its node. A reboot
ends the agent, the node is not ready for a moment, and a new agent starts on the same directory.

The parts of the platform (user-data), of the kubelet and of whoever admits nodes (the Node, its Ready condition, its role) are
played here, with the rights of the control plane.
"""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from fastness.agent import disk
from fastness.agent.agent import Agent, uninterrupted
from fastness.agent.attester import Attester
from fastness.agent.boot import Ask, BootRefused, boot_once
from fastness.agent.enrol import Patience
from fastness.agent.errors import AgentError
from fastness.agent.hosts import DirectoryMachine
from fastness.agent.imagetrust import ImageTrust
from fastness.agent.ports import Watcher
from fastness.agent.reattest import Staying
from fastness.agent.report import NODES
from fastness.agent.settings import FAST, Settings
from fastness.cluster.backoff import Backoff
from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.errors import AlreadyExists, ApiError, NotFound
from fastness.cluster.port import Cluster, PatchType, WriteOptions
from fastness.crypto.secret import SecretText
from fastness.drivers.errors import DriverError
from fastness.drivers.inotify import Inotify, InotifyWatcher, NoInotify
from fastness.drivers.polling import PollingWatcher
from fastness.drivers.states import Absent, File
from fastness.model.kind import JsonObject, Resource
from fastness.model.machineconfiguration import names
from fastness.model.objects import rfc3339
from fastness.observe.logs import logger
from fastness.sim.firstboot import ACCEPT, BootFailure, fetch, lay_down

SECRETS: Final = Resource("", "v1", "secrets", "Secret", True)
SIMULATED: Final = "fastness.dev/simulated"
ZONES: Final = ("zone-a", "zone-b", "zone-c")
REBOOT_SECONDS: Final = 0.3
REFUSED_SECONDS: Final = 5.0
LOOK_AGAIN: Final = Backoff(first=0.1, most=1.0)
_KUBELET: Final = WriteOptions(manager="virtual-kubelet")
_KUBELET_STATUS: Final = WriteOptions(manager="virtual-kubelet", subresource="status")
_PASSWD: Final = b"root:x:0:0:root:/root:/bin/sh\ncore:x:1000:1000:core:/home/core:/bin/sh\n"
_GROUP: Final = b"root:x:0:\ncore:x:1000:\n"
_SHADOW: Final = b"root:*:20000:0:99999:7:::\ncore:*:20000:0:99999:7:::\n"
_OS_RELEASE: Final = b'ID=fastness-virtual\nPRETTY_NAME="Virtual machine of Fastness"\n'
_log = logger("machines")


@dataclass(frozen=True, slots=True)
class Proofs:
    """How machines of a confidential pool prove themselves: the hardware of each by number, and what their image believes."""

    attester: Callable[[int], Attester]
    trust: Callable[[], ImageTrust]
    patience: float = 600.0
    broker: Callable[[], str] | None = None


@dataclass(frozen=True, slots=True)
class Fleet:
    """What machines share: the control plane's view of the cluster, and each node's own; the doors that user-data leads to."""

    cluster: Cluster
    as_node: Callable[[str], Cluster]
    directory: Path
    clock: Clock
    entropy: Entropy
    pool: str = names.WORKER
    settings: Settings = FAST
    reboot_seconds: float = REBOOT_SECONDS
    proofs: Proofs | None = None
    doors: tuple[str, ...] = ()


class VirtualMachine:
    """One machine and its life."""

    def __init__(self, fleet: Fleet, name: str, number: int, watcher: Callable[[Path], Watcher]) -> None:
        self.name = name
        self._number = number
        self._fleet = fleet
        self._zone = ZONES[number % len(ZONES)]
        directory = fleet.directory / name
        self.machine = DirectoryMachine(directory, watcher(directory / "root"), fleet.entropy.uid)
        self.boots = 0
        self._reattest: timedelta | None = None

    async def run(self) -> None:
        """Boot, work, boot again; until cancelled."""
        self._install()
        failures = 0
        while True:
            try:
                await self._boot()
                failures = 0
            except BootRefused as error:
                # A real machine stops here and says why on its console; this one is switched on again after a while.
                _log.warning("machine.refused", machine=self.name, reason=error.reason, error=error, hint=error.hint)
                await self._fleet.clock.sleep(REFUSED_SECONDS)
            except (ApiError, AgentError, DriverError, BootFailure) as error:
                _log.warning("machine.failed", machine=self.name, error=error)
                failures += 1
            except Exception:  # noqa: BLE001 - what the service manager of a real machine does: say it, start it again
                _log.exception("machine.crashed", machine=self.name)
                failures += 1
            await self._fleet.clock.sleep(LOOK_AGAIN.delay(failures, self._fleet.entropy.fraction()) if failures else 0)

    async def _boot(self) -> None:
        """From power on to the next reboot."""
        fleet, new = self._fleet, self._is_new()
        if new:
            await self._first_boot()
        await self._join()
        self.boots += 1
        agent = Agent(
            fleet.as_node(self.node), self.machine.host, self.node, fleet.clock, fleet.entropy, fleet.settings
        )
        async with self._staying_attested(proved=new):
            await agent.run()
        await self._ready(False)
        await fleet.clock.sleep(fleet.reboot_seconds)
        await uninterrupted(self.machine.reboot)

    @asynccontextmanager
    async def _staying_attested(self, *, proved: bool) -> AsyncIterator[None]:
        """Prove what was booted, now unless the boot did, and then at every interval, for the time of the block."""
        proofs, fleet = self._fleet.proofs, self._fleet
        if proofs is None or proofs.broker is None:
            yield
            return
        staying = Staying(
            proofs.attester(self._number), proofs.broker, lambda: proofs.trust().tls, fleet.clock, fleet.entropy,
            name=self.node,
        )  # fmt: skip
        first = staying.rounds.proved(self._reattest) if proved else 0.0
        async with asyncio.TaskGroup() as group:
            task = group.create_task(staying.run(first))
            try:
                yield
            finally:
                task.cancel()

    def _is_new(self) -> bool:
        root = self.machine.host.root
        return disk.read_current(root) is None and disk.read_first_boot(root) is None

    def _install(self) -> None:
        """What an installed machine has before its first boot."""
        files = self.machine.host.root
        shipped = {
            "/etc/passwd": File(_PASSWD), "/etc/group": File(_GROUP), "/etc/shadow": File(_SHADOW, 0o600),
            "/etc/hostname": File(f"{self.name}\n".encode()), "/usr/lib/os-release": File(_OS_RELEASE),
        }  # fmt: skip
        for path, state in shipped.items():
            if isinstance(files.look(path), Absent):
                files.put(path, state)

    async def _first_boot(self) -> None:
        """Follow the user-data to the config of the pool and lay it down."""
        forward = self._prove if self._fleet.proofs is not None else None
        document = await fetch(await self._user_data(), self._pause, forward)
        await uninterrupted(lambda: lay_down(self.machine, document))

    async def _prove(self, pool: str, ticket: str, server: str) -> bytes:
        """What the forwarder of a real machine does: enrol, attest, fetch, check."""
        proofs = self._fleet.proofs
        assert proofs is not None  # noqa: S101  # asked only when it is there
        patience = Patience(self._fleet.clock, self._fleet.entropy, proofs.patience, pause=0.2)
        ask = Ask(pool, SecretText(ticket), server, ACCEPT)
        booted = await boot_once(proofs.attester(self._number), ask, proofs.trust(), patience)
        self._node_file.write_text(booted.node_name)
        self._reattest = booted.reattest
        return booted.body

    @property
    def _node_file(self) -> Path:
        return self._fleet.directory / self.name / "node"

    @property
    def node(self) -> str:
        """The name that the machine joins with: the one that enrolment gave it, or its own."""
        return self._node_file.read_text() if self._node_file.exists() else self.name

    async def _user_data(self) -> bytes:
        """What the platform starts the machine with; waits until the pool has it, and it leads to a door of today.

        Doors of an embedded control plane are elsewhere after each start, and a machine follows what it booted with for long.
        """
        fleet, attempt = self._fleet, 0
        name = f"{fleet.pool}{names.USER_DATA_SUFFIX}"
        while True:
            try:
                secret = await fleet.cluster.get(SECRETS, name, names.USER_DATA_NAMESPACE)
                found = base64.b64decode(secret["data"]["userData"])
                if not fleet.doors or any(door.encode() in found for door in fleet.doors):
                    return found
            except NotFound:
                _log.debug("machine.waiting", machine=self.name, pool=fleet.pool)
            await self._pause(attempt)
            attempt += 1

    async def _pause(self, attempt: int) -> None:
        await self._fleet.clock.sleep(LOOK_AGAIN.delay(attempt, self._fleet.entropy.fraction()))

    async def _join(self) -> None:
        """The Node is there, with its role and the annotations of its first boot, and ready."""
        served = disk.read_first_boot(self.machine.host.root) or self._remembered()
        labels = {
            f"{names.NODE_ROLE_PREFIX}{self._fleet.pool}": "", names.OS_LABEL: "linux", names.ZONE_LABEL: self._zone,
            "kubernetes.io/hostname": self.node, "kubernetes.io/arch": "amd64",
        }  # fmt: skip
        notes = {SIMULATED: "true", **{str(key): str(value) for key, value in served.items()}}
        node: JsonObject = {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": self.node, "labels": labels, "annotations": notes},
            "spec": {"providerID": f"virtual:///{self._zone}/{self.name}"},
        }  # fmt: skip
        try:
            await self._fleet.cluster.create(NODES, node, _KUBELET)
        except AlreadyExists:
            _log.debug("machine.known", machine=self.name)
        await self._ready(True)

    def _remembered(self) -> JsonObject:
        """The annotations of a machine whose Node was lost: what its disk says."""
        current = disk.read_current(self.machine.host.root) or {}
        name = str(current.get("metadata", {}).get("name", ""))
        kept = {names.CURRENT_CONFIG: name, names.DESIRED_CONFIG: name, names.STATE: names.NodeState.DONE}
        return kept if name else {}

    async def _ready(self, ready: bool) -> None:
        now = rfc3339(self._fleet.clock.now())
        word, reason = ("True", "KubeletReady") if ready else ("False", "Rebooting")
        condition = {
            "type": "Ready", "status": word, "reason": reason, "message": "virtual machine",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }  # fmt: skip
        identity = uuid.uuid5(uuid.NAMESPACE_DNS, self.name)
        info = {
            "osImage": "Virtual machine of Fastness", "architecture": "amd64", "operatingSystem": "linux",
            "machineID": identity.hex, "systemUUID": str(identity), "bootID": self.machine.power.boot_id(),
            "kernelVersion": "6.12.0-virtual", "containerRuntimeVersion": "virtual://1.0", "kubeletVersion": "v1.36.0",
            "kubeProxyVersion": "",
        }  # fmt: skip
        patch = {"status": {"conditions": [condition], "nodeInfo": info}}
        await self._fleet.cluster.patch(NODES, self.node, patch, PatchType.STRATEGIC, options=_KUBELET_STATUS)


@asynccontextmanager
async def machines(fleet: Fleet, count: int) -> AsyncIterator[list[VirtualMachine]]:
    """So many machines for the time of the block."""
    inotify: Inotify | None = None
    try:
        inotify = Inotify()
    except NoInotify as error:
        _log.warning("machine.polling", error=error)

    def watcher(root: Path) -> Watcher:
        return InotifyWatcher(inotify, root) if inotify is not None else PollingWatcher(root, fleet.clock)

    built = [VirtualMachine(fleet, f"{fleet.pool}-{number}", number, watcher) for number in range(count)]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one.run(), name=one.name) for one in built]
            try:
                yield built
            finally:
                for task in tasks:
                    task.cancel()
    finally:
        if inotify is not None:
            inotify.close()
