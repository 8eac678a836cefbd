"""Launches of SNP guests: a disk key is released in the first session ever seen of a launch.

An SNP guest has no register that it could extend when it leaves its initrd, so nothing in its report tells a machine that boots
from one that runs. What tells them apart is that somebody came before: the agent of a machine that boots asks first. A SeenLaunch
is named after REPORT_ID, which the processor draws anew for each launch, so of all sessions at all doors one creates it.

* An unlock session binds the launch to its Machine and its unlock key. A retry with that key is answered again: the answer may
  have been lost. Anybody else of that launch, now or later, gets nothing, and neither does a second Machine.
* The first ordinary session of a launch marks it as well, so root on a machine that never unlocked anything cannot begin now.
* Nobody makes one without authentic evidence in the name of an enrolled machine. It is kept for `KEPT`, and for as long as a
  Machine shows the launch; a Machine makes `MOST` at a time, beyond which its disks stay closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from fastness.crypto.digests import sha256
from fastness.kinds.fastness_dev.evidence import LAUNCH_USES, SEEN_LAUNCH
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import AlreadyExists
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster, WriteOptions
from fastness.runtime.clock import Clock

KEPT: Final = timedelta(days=90)
MOST: Final = 4096
SESSION, UNLOCK = LAUNCH_USES
LAUNCHES: Final = "launch"
OF_MACHINE: Final = "machine"
_AS: Final = WriteOptions(manager="verifier")
Object = Mapping[str, Any]


def launch_name(launch: str) -> str:
    """The SeenLaunch of a launch."""
    return f"launch-{sha256(launch.encode()).hex}"


def launches_of(machine: Object) -> Iterable[str]:
    """For an index of Machines: the launches that one shows, by the names of their objects."""
    status = machine.get("status") or {}
    launches = [(status.get("boot") or {}).get("launch"), *(status.get("formerBoots") or ())]
    return [launch_name(launch) for launch in launches if launch]


def _machine_of(launch: Object) -> Iterable[str]:
    return [str((launch.get("spec") or {}).get("machine") or "")]


class Launches:
    """Says whether a launch was seen before, and remembers it."""

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._launches: Informer = informers.of(SEEN_LAUNCH.resource, indexers={OF_MACHINE: _machine_of})
        self._machines: Informer = informers.of(MACHINE.resource, indexers={LAUNCHES: launches_of})

    async def synced(self) -> None:
        """Wait until all that were seen are known."""
        await self._launches.synced()

    async def seen(self, launch: str, machine: str) -> None:
        """An ordinary session of a launch came: from now on it opens no disk. Raises ApiError."""
        if len(self._launches.by_index(OF_MACHINE, machine)) < MOST:
            with suppress(AlreadyExists):
                await self._create(launch, SESSION, machine)

    async def bind(self, launch: str, machine: str, key: str) -> bool:
        """Whether this is the first session of a launch, or a retry of it with the same key; raises ApiError."""
        name = launch_name(launch)
        try:
            if len(self._launches.by_index(OF_MACHINE, machine)) >= MOST:
                return False
            await self._create(launch, UNLOCK, machine, key)
        except AlreadyExists:
            spec = (await self._cluster.get(SEEN_LAUNCH.resource, name))["spec"]
            return (spec["use"], spec["machine"], spec.get("key")) == (UNLOCK, machine, key)
        # A Machine that showed this launch before there was an object for it: its session came first.
        return not self._machines.by_index(LAUNCHES, name)

    async def _create(self, launch: str, use: str, machine: str, key: str = "") -> None:
        spec: JsonObject = {"use": use, "machine": machine, "expires": rfc3339(self._clock.now() + KEPT)}
        body = {
            "apiVersion": SEEN_LAUNCH.api_version, "kind": SEEN_LAUNCH.kind, "metadata": {"name": launch_name(launch)},
            "spec": {**spec, **({"key": key} if key else {})},
        }  # fmt: skip
        await self._cluster.create(SEEN_LAUNCH.resource, body, _AS)
