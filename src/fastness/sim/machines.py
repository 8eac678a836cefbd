"""Virtual machines: directories that boot, join the cluster and run the real agent.

    STATE/machines/<name>/root    the machine's files
    STATE/machines/<name>/orig    what stood there before a config replaced it
    STATE/machines/<name>/agent   the agent's journal, the record of the operating system

A machine boots for the first time as a real one does: it takes the rendered config that its pool serves, writes it as Ignition
would, and joins with the annotations that came along. From then on the agent is alone with the cluster port, in the name of its
node. A reboot ends the agent, the node is not ready for a moment, and a new agent starts on the same directory.

The part of the kubelet and of whoever admits nodes (creating the Node, its Ready condition, its role) is played here, with the
rights of the control plane.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.agent import disk
from fastness.agent.agent import Agent, uninterrupted
from fastness.agent.errors import AgentError
from fastness.agent.hosts import DirectoryMachine
from fastness.agent.ports import Watcher
from fastness.agent.report import NODES
from fastness.agent.settings import FAST, Settings
from fastness.cluster.backoff import Backoff
from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.errors import AlreadyExists, ApiError, NotFound
from fastness.cluster.port import Cluster, PatchType, WriteOptions
from fastness.drivers.errors import DriverError
from fastness.drivers.inotify import Inotify, InotifyWatcher, NoInotify
from fastness.drivers.polling import PollingWatcher
from fastness.drivers.states import Absent, File
from fastness.formats import json
from fastness.model.kind import JsonObject
from fastness.model.machineconfiguration import names
from fastness.model.machineconfiguration.config import MACHINE_CONFIG
from fastness.model.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.model.objects import rfc3339
from fastness.observe.logs import logger

SIMULATED: Final = "fastness.dev/simulated"
ZONES: Final = ("zone-a", "zone-b", "zone-c")
REBOOT_SECONDS: Final = 0.3
LOOK_AGAIN: Final = Backoff(first=0.1, most=1.0)
_KUBELET: Final = WriteOptions(manager="virtual-kubelet")
_KUBELET_STATUS: Final = WriteOptions(manager="virtual-kubelet", subresource="status")
_PASSWD: Final = b"root:x:0:0:root:/root:/bin/sh\ncore:x:1000:1000:core:/home/core:/bin/sh\n"
_GROUP: Final = b"root:x:0:\ncore:x:1000:\n"
_SHADOW: Final = b"root:*:20000:0:99999:7:::\ncore:*:20000:0:99999:7:::\n"
_OS_RELEASE: Final = b'ID=fastness-virtual\nPRETTY_NAME="Virtual machine of Fastness"\n'
_log = logger("machines")


@dataclass(frozen=True, slots=True)
class Fleet:
    """What machines share: the control plane's view of the cluster, and each node's own."""

    cluster: Cluster
    as_node: Callable[[str], Cluster]
    directory: Path
    clock: Clock
    entropy: Entropy
    pool: str = names.WORKER
    settings: Settings = FAST
    reboot_seconds: float = REBOOT_SECONDS


class VirtualMachine:
    """One machine and its life."""

    def __init__(self, fleet: Fleet, name: str, number: int, watcher: Callable[[Path], Watcher]) -> None:
        self.name = name
        self._fleet = fleet
        self._zone = ZONES[number % len(ZONES)]
        directory = fleet.directory / name
        self.machine = DirectoryMachine(directory, watcher(directory / "root"), fleet.entropy.uid)
        self.boots = 0

    async def run(self) -> None:
        """Boot, work, boot again; until cancelled."""
        self._install()
        failures = 0
        while True:
            try:
                await self._boot()
                failures = 0
            except (ApiError, AgentError, DriverError) as error:
                _log.warning("machine.failed", machine=self.name, error=error)
                failures += 1
            except Exception:  # noqa: BLE001 - what the service manager of a real machine does: say it, start it again
                _log.exception("machine.crashed", machine=self.name)
                failures += 1
            await self._fleet.clock.sleep(LOOK_AGAIN.delay(failures, self._fleet.entropy.fraction()) if failures else 0)

    async def _boot(self) -> None:
        """From power on to the next reboot."""
        fleet = self._fleet
        if disk.read_current(self.machine.host.root) is None:
            await self._first_boot()
        await self._join()
        self.boots += 1
        agent = Agent(
            fleet.as_node(self.name), self.machine.host, self.name, fleet.clock, fleet.entropy, fleet.settings
        )
        await agent.run()
        await self._ready(False)
        await fleet.clock.sleep(fleet.reboot_seconds)
        await uninterrupted(self.machine.reboot)

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
        """Write the config of the pool as Ignition does with what the config server sends."""
        config = await self._served()
        name = config["metadata"]["name"]
        notes = {names.CURRENT_CONFIG: name, names.DESIRED_CONFIG: name, names.FIRST_PIVOT_CONFIG: name}
        root, units = self.machine.host.root, self.machine.units

        def write() -> None:
            goal = disk.goal(root, config).desired
            for path, target in goal.paths.items():
                root.put(path, target.state, directory_mode=target.directory_mode)
            for unit, wanted in goal.units.items():
                if wanted.enabled and wanted.written:
                    units.enable([unit])
            self.machine.system.stage(goal.deployment)
            self.machine.system.reboot()
            root.put(names.NODE_ANNOTATIONS_FILE, File(json.encode({**notes, names.STATE: names.NodeState.DONE})))

        await uninterrupted(write)

    async def _served(self) -> JsonObject:
        """The rendered config that the pool gives to new machines; waits until there is one."""
        fleet, attempt = self._fleet, 0
        while True:
            try:
                pool = await fleet.cluster.get(MACHINE_CONFIG_POOL.resource, fleet.pool)
                if name := _first_config(pool):
                    return await fleet.cluster.get(MACHINE_CONFIG.resource, name)
            except NotFound:
                _log.debug("machine.waiting", machine=self.name, pool=fleet.pool)
            await fleet.clock.sleep(LOOK_AGAIN.delay(attempt, fleet.entropy.fraction()))
            attempt += 1

    async def _join(self) -> None:
        """The Node is there, with its role, and ready."""
        config = disk.read_first_boot(self.machine.host.root) or {}
        current = disk.read_current(self.machine.host.root)
        name = str(config.get(names.CURRENT_CONFIG) or (current or {}).get("metadata", {}).get("name", ""))
        labels = {
            f"{names.NODE_ROLE_PREFIX}{self._fleet.pool}": "", names.OS_LABEL: "linux", names.ZONE_LABEL: self._zone,
            "kubernetes.io/hostname": self.name, "kubernetes.io/arch": "amd64",
        }  # fmt: skip
        notes = {
            SIMULATED: "true", names.CURRENT_CONFIG: name, names.DESIRED_CONFIG: name, names.STATE: names.NodeState.DONE,
            names.FIRST_PIVOT_CONFIG: name,
        }  # fmt: skip
        node: JsonObject = {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": self.name, "labels": labels, "annotations": notes},
            "spec": {"providerID": f"virtual:///{self._zone}/{self.name}"},
        }  # fmt: skip
        try:
            await self._fleet.cluster.create(NODES, node, _KUBELET)
        except AlreadyExists:
            _log.debug("machine.known", machine=self.name)
        await self._ready(True)

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
        await self._fleet.cluster.patch(NODES, self.name, patch, PatchType.STRATEGIC, options=_KUBELET_STATUS)


def _first_config(pool: JsonObject) -> str:
    """New machines get the new config once one machine proved it, and the proven one until then."""
    status = pool.get("status") or {}
    proven = str((status.get("configuration") or {}).get("name") or "")
    new = str(((pool.get("spec") or {}).get("configuration") or {}).get("name") or "")
    return new if status.get("updatedMachineCount") or not proven else proven


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
