"""The real machines of `fastness up --vms N`: what they are told about this control plane, and what it believes of them.

The cluster of `fastness up` is a simulated one for good, because it would also believe virtual machines. Verdicts about real ones
are not marked as simulated: nothing about them is.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from fastness.formats import json
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import SECRET
from fastness.kinds.machineconfiguration import names
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import Cluster
from fastness.runtime.clock import Clock
from fastness.sim.vms import parts, trusted
from fastness.sim.vms.running import RealMachines

SECRETS: Final = SECRET.resource
POOL: Final = "worker"
LOOK_AGAIN: Final = 1.0


@dataclass(frozen=True, slots=True)
class DoorTrust:
    """What this control plane tells real machines: whom to believe, and where its doors are."""

    ca: Callable[[], str]
    keys: Callable[[], list[JsonObject]]
    enrolment: str
    broker: str
    gate: str

    def trust(self) -> bytes:
        """The content of the image's trust.json."""
        return json.encode({"ca": self.ca(), "configKeys": self.keys()})

    @property
    def ports(self) -> tuple[int, ...]:
        """Where the doors listen."""
        return tuple(urlsplit(url).port or 443 for url in (self.enrolment, self.broker, self.gate))


@asynccontextmanager
async def vms(cluster: Cluster, state: Path, count: int, doors: DoorTrust, clock: Clock) -> AsyncIterator[None]:
    """So many real machines for the time of the block; without any, nothing is believed of them; raises NoRealMachine."""
    if not count:
        await trusted.withdraw(cluster)
        yield
        return
    parts.require()
    await _enforcing(cluster)

    async def user_data() -> bytes:
        """What the platform starts a machine with; waits until it leads to a door of today."""
        while True:
            with suppress(NotFound):
                secret = await cluster.get(SECRETS, f"{POOL}{names.USER_DATA_SUFFIX}", names.USER_DATA_NAMESPACE)
                content = base64.b64decode(secret["data"]["userData"])
                if doors.enrolment.encode() in content:
                    return content
            await asyncio.sleep(LOOK_AGAIN)

    machines = RealMachines(cluster, state / "vms", doors.trust, user_data, doors.broker, doors.ports, clock)
    async with machines.running(count):
        yield


async def _enforcing(cluster: Cluster) -> None:
    """A cluster that enforces, unless there is one already, which stays what it is."""
    body: JsonObject = {
        "apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind, "metadata": {"name": NAME},
        "spec": {"mode": "Enforce", "simulated": True},
    }  # fmt: skip
    try:
        await cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
    except NotFound:
        with suppress(AlreadyExists):
            await cluster.create(CONFIDENTIAL_CLUSTER.resource, body)
