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
from fastness.kinds.machineconfiguration.controller_config import CONTROLLER_CONFIG, SINGLETON
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.port import Cluster, PatchType
from fastness.runtime.clock import Clock
from fastness.sim.vms import parts, trusted
from fastness.sim.vms.running import RealMachines

SECRETS: Final = SECRET.resource
POOL: Final = "worker"
RUNTIME: Final = "containerd"
UNREACHABLE: Final = "kubernetes.default.svc"
LOOK_AGAIN: Final = 1.0


@dataclass(frozen=True, slots=True)
class DoorTrust:
    """What this control plane tells real machines: whom to believe, and where its doors are."""

    ca: Callable[[], str]
    keys: Callable[[], list[JsonObject]]
    enrolment: str
    broker: str
    gate: str
    api: str

    def trust(self) -> bytes:
        """The content of the image's trust.json."""
        return json.encode({"ca": self.ca(), "configKeys": self.keys()})

    @property
    def ports(self) -> tuple[int, ...]:
        """Where the doors listen."""
        return tuple(map(port_of, (self.enrolment, self.broker, self.gate)))


def port_of(url: str) -> int:
    """The port of an https URL."""
    return urlsplit(url).port or 443


@asynccontextmanager
async def vms(
    cluster: Cluster, state: Path, count: int, root: Path | None, doors: DoorTrust, clock: Clock
) -> AsyncIterator[None]:
    """So many real machines for the time of the block; without any, nothing is believed of them; raises NoRealMachine.

    With a `root` of their own they become nodes, and reach the API beside the doors.
    """
    if not count:
        await trusted.withdraw(cluster)
        yield
        return
    parts.require(with_root=root is not None)
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

    ports = (*doors.ports, *([port_of(doors.api)] if root is not None else ()))
    machines = RealMachines(cluster, state / "vms", doors.trust, user_data, doors.broker, ports, clock, root)
    async with asyncio.TaskGroup() as group:
        # Beside the rest: controllers make the pool, and they start later. Their work is done long before the image is.
        choice = group.create_task(_node_facts(cluster, doors.api), name="real machines") if root is not None else None
        try:
            async with machines.running(count):
                yield
        finally:
            if choice is not None:
                choice.cancel()


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


async def _node_facts(cluster: Cluster, api: str) -> None:
    """What machines with a root need to be nodes here: an API that they can dial, and the runtime that a prepared root has."""
    await reachable_api(cluster, api)
    await _containerd(cluster)


async def reachable_api(cluster: Cluster, api: str) -> None:
    """Nodes dial the API where the doors are passed on to, unless somebody named another address for them."""
    controller = await cluster.get(CONTROLLER_CONFIG.resource, SINGLETON)
    address = str(controller["spec"]["infra"]["status"].get("apiServerInternalURI") or "")
    # The name that a new cluster says leads nowhere from a machine, and the port of yesterday is not that of today.
    if address != api and urlsplit(address).hostname in (UNREACHABLE, urlsplit(api).hostname):
        patch = {"spec": {"infra": {"status": {"apiServerInternalURI": api}}}}
        await cluster.patch(CONTROLLER_CONFIG.resource, SINGLETON, patch, PatchType.MERGE)


async def _containerd(cluster: Cluster) -> None:
    """The runtime that a prepared root has, for the pool of real machines, unless somebody chose one for it."""
    while True:
        with suppress(NotFound):
            pool = await cluster.get(MACHINE_CONFIG_POOL.resource, POOL)
            if names.CONTAINER_RUNTIME not in (pool["metadata"].get("annotations") or {}):
                patch = {"metadata": {"annotations": {names.CONTAINER_RUNTIME: RUNTIME}}}
                await cluster.patch(MACHINE_CONFIG_POOL.resource, POOL, patch, PatchType.MERGE)
            return
        await asyncio.sleep(LOOK_AGAIN)
