"""What a machine is after it booted: a disk, a kubelet that says whether it is there, and the real agent.

    first boot   the configuration is laid down as Ignition does; then, at each boot: join, agent, until the agent reboots it

The disk is a directory in memory and can be full. The machine has its own lines to the API: the agent speaks in the name of its
node; the kubelet also does the part of whoever admits nodes, and has the rights for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastness.agent.apply import disk
from fastness.agent.apply.cluster import RenderedConfigs
from fastness.agent.apply.hosts import DirectoryMachine
from fastness.agent.apply.node import Agent
from fastness.agent.apply.ports import Files
from fastness.agent.host.errors import FileFailure
from fastness.agent.host.states import Absent, File, State
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import rfc3339
from fastness.kube.errors import AlreadyExists, Unavailable
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig import ignition
from fastness.runtime.clock import Entropy
from fastness.sim.first_boot import lay_down
from tests.simulation.loop import LoopClock

REBOOT_SECONDS = 20.0
AGAIN_SECONDS = 5.0
ZONES = ("zone-a", "zone-b")
_SHIPPED = {
    "/etc/passwd": File(b"root:x:0:0:root:/root:/bin/sh\ncore:x:1000:1000:core:/home/core:/bin/sh\n"),
    "/etc/group": File(b"root:x:0:\ncore:x:1000:\n"),
    "/etc/shadow": File(b"root:*:20000:0:99999:7:::\ncore:*:20000:0:99999:7:::\n", 0o600),
}
_STATUS = WriteOptions(manager="kubelet", subresource="status")


class Unwatched:
    """Nobody but the agent writes to these disks."""

    @asynccontextmanager
    async def watch(self, _paths: Collection[str]) -> AsyncIterator[AsyncIterator[str]]:
        """Nothing, for ever."""
        yield self._never()

    async def _never(self) -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield ""


class Fillable:
    """A tree of files that refuses every byte while the disk is full; taking something away always works."""

    def __init__(self, files: Files, full: Callable[[], bool]) -> None:
        self._files, self._full = files, full

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def put(self, path: str, state: State, **options: Any) -> None:
        """Write, if there is room."""
        if self._full() and not isinstance(state, Absent):
            raise FileFailure(f"cannot write {path}: no space left on device")
        self._files.put(path, state, **options)

    def append(self, path: str, data: bytes, **options: Any) -> None:
        """Write, if there is room."""
        if self._full():
            raise FileFailure(f"cannot write {path}: no space left on device")
        self._files.append(path, data, **options)


class SimNode:
    """One installation of a machine, from its first boot on."""

    def __init__(self, directory: Path, name: str, zone: int, entropy: Entropy) -> None:
        self.name, self.full, self.boots = name, False, 0
        self._zone, self._entropy, self._clock = ZONES[zone % len(ZONES)], entropy, LoopClock()
        self._machine = DirectoryMachine(directory, Unwatched(), entropy.uid)
        host = self._machine.host
        root, originals, own = (Fillable(tree, lambda: self.full) for tree in (host.root, host.originals, host.state))
        self._machine.host = replace(host, root=root, originals=originals, state=own)
        for path, state in _SHIPPED.items():
            self._machine.host.root.put(path, state)

    def install(self, body: bytes) -> None:
        """Lay down what was fetched."""
        lay_down(self._machine, ignition.upgrade(json.decode(body)))

    def says(self, path: str) -> bytes:
        """The content of a file, nothing when it is not there."""
        entry = self._machine.host.root.look(path)
        return entry.content if isinstance(entry, File) else b""

    async def live(self, configs: RenderedConfigs, kubelet: Cluster, agent: Cluster) -> None:
        """One boot, to the moment at which the machine goes down by itself."""
        await self._insist(lambda: self._join(kubelet))
        self.boots += 1
        await Agent(
            agent, self._machine.host, self.name, self._clock, self._entropy, configs=configs
        ).run()  # fmt: skip
        await self._insist(lambda: self._ready(kubelet, "False"))
        await self._clock.sleep(REBOOT_SECONDS)
        self._machine.reboot()

    def power_cut(self) -> None:
        """The next boot is another one."""
        self._machine.reboot()

    async def _insist(self, work: Callable[[], Awaitable[None]]) -> None:
        """As a kubelet does: until the API answers."""
        while True:
            try:
                await work()
                return
            except Unavailable:
                await self._clock.sleep(AGAIN_SECONDS)

    async def _join(self, cluster: Cluster) -> None:
        root = self._machine.host.root
        served = disk.read_first_boot(root)
        if served is None:
            current = str((disk.read_current(root) or {}).get("metadata", {}).get("name", ""))
            served = {names.CURRENT_CONFIG: current, names.DESIRED_CONFIG: current, names.STATE: names.NodeState.DONE}
        labels = {f"{names.NODE_ROLE_PREFIX}{names.WORKER}": "", names.ZONE_LABEL: self._zone}
        notes = {str(key): str(value) for key, value in served.items()}
        node: JsonObject = {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": labels, "annotations": notes},
        }  # fmt: skip
        with suppress(AlreadyExists):
            await cluster.create(NODE.resource, node)
        await self._ready(cluster, "True")

    async def _ready(self, cluster: Cluster, status: str) -> None:
        await tell_ready(cluster, self.name, status, self._clock)


async def tell_ready(cluster: Cluster, name: str, status: str, clock: LoopClock) -> None:
    """Write whether a node is there; raises NotFound."""
    now = rfc3339(clock.now())
    condition = {"type": "Ready", "status": status, "lastHeartbeatTime": now, "lastTransitionTime": now}
    patch = {"status": {"conditions": [condition]}}
    await cluster.patch(NODE.resource, name, patch, PatchType.STRATEGIC, options=_STATUS)
