"""Machines whose root the Clevis pin opens, for tests: what Ignition, the pin and `trustee-attester` do, over the wire.

async with pin_site(tmp_path) as site:
    machine = await site.first_boot()            # config, key, as the images of trusted-execution clusters
    key = await site.key(machine)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from fastness.disks.loops.key_life import DiskKeyLife
from fastness.formats import json
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name
from fastness.kinds.trusted_execution.cluster import TRUSTED_EXECUTION_CLUSTER
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kinds.trusted_execution.subject import KeyKind
from fastness.kube.controllers.runner import Runner
from fastness.kube.port import PatchType
from fastness.protocol.machine_names import machine_name
from fastness.record.live.record import ClusterRecord
from fastness.runtime.tasks import background
from tests.attesting import ENTROPY, VENDOR_SEED, until
from tests.component.attacks.outsider import Fortress, fortress
from tests.component.attestation.test_distrust import caches_caught_up
from tests.lowering import lowered
from tests.standins.trustee_attester import StandInTpm, get_resource

POOL: JsonObject = {
    "name": "worker", "trustModel": "ConfidentialCluster", "disk": {"pin": "Clevis", "volume": "root"},
}  # fmt: skip
CONFIG = "/ignition-clevis-pin-trustee"
_serials = count(900)


@dataclass(frozen=True)
class PinnedMachine:
    """A machine: its TPM, the configuration of its pin, and its Machine's name."""

    tpm: StandInTpm
    pin: JsonObject

    @property
    def path(self) -> str:
        """Where its pin asks for the key."""
        return str(self.pin["path"])

    @property
    def identity(self) -> str:
        """The id that it was told."""
        return self.path.split("/")[1]

    @property
    def name(self) -> str:
        """The name of its Machine."""
        return machine_name(KeyKind.AK, self.tpm.machine().thumbprint)


@dataclass
class PinSite:
    """An enforcing cluster whose pool `worker` has its roots opened by the Clevis pin."""

    fortress: Fortress

    @property
    def world(self) -> Any:
        """The doors, the clock and the vendor."""
        return self.fortress.site.world

    @property
    def broker(self) -> str:
        """Where the broker listens."""
        return f"https://127.0.0.1:{self.world.doors.broker.port}"

    async def ask(self, method: str, url: str, ticket: str | None = None, body: Any = None) -> httpx.Response:
        """A request to the door of enrolment, with the ticket of the site unless another is given."""
        shown = self.fortress.ticket.reveal() if ticket is None else ticket
        headers = {"authorization": f"Bearer {shown}"} if shown else {}
        base = f"https://127.0.0.1:{self.world.doors.enrolment.port}"
        async with httpx.AsyncClient(base_url=base, verify=self.world.trust, trust_env=False, timeout=30) as http:
            content = json.encode(body) if body is not None else None
            return await http.request(
                method, url, content=content, headers={**headers, "content-type": "application/json"}
            )

    def tpm(self, **state: Any) -> StandInTpm:
        """A TPM that nobody has seen."""
        return StandInTpm(VENDOR_SEED.hex(), next(_serials), **state)

    async def invited(self, ticket: str | None = None) -> JsonObject:
        """The configuration of a pin, out of what Ignition gets."""
        answer = await self.ask("GET", CONFIG, ticket)
        assert answer.status_code == 200, answer.text
        (luks,) = answer.json()["storage"]["luks"]
        pin: JsonObject = json.decode(luks["clevis"]["custom"]["config"].encode())
        return pin

    async def register(self, pin: JsonObject, tpm: StandInTpm, **change: Any) -> httpx.Response:
        """What the pin does with its key, without a ticket."""
        registration = pin["attestation_key"]["registration"]
        body = {"public_key": tpm.public_key(), "uuid": registration["uuid"], **change}
        return await self.ask("PUT", registration["url"], "", body)

    async def enrolled(self, **state: Any) -> PinnedMachine:
        """A machine whose pin registered its key, as soon as its disk key is there."""
        machine = PinnedMachine(self.tpm(**state), await self.invited())
        answer = await self.register(machine.pin, machine.tpm)
        assert answer.status_code == 201, answer.text

        async def made() -> bool:
            return bool((await self.machine(machine))["status"].get("disks"))

        await until(made)
        await caches_caught_up(self.world)
        return machine

    async def machine(self, machine: PinnedMachine) -> JsonObject:
        """Its Machine, as it stands."""
        stored: JsonObject = await self.world.cluster.get(MACHINE.resource, machine.name, NAMESPACE)
        return stored

    async def fetch(self, machine: PinnedMachine, path: str = "", **state: Any) -> bytes:
        """What `trustee-attester` prints for the machine, perhaps after another boot; raises AttesterRefused."""
        tpm = replace(machine.tpm, **state)
        await caches_caught_up(self.world)
        value = await asyncio.to_thread(get_resource, self.broker, path or machine.path, tpm, self.world.trust)
        await caches_caught_up(self.world)
        return value

    async def key(self, machine: PinnedMachine, **state: Any) -> JsonObject:
        """The key as the pin reads it; raises AttesterRefused."""
        key: JsonObject = json.decode(await self.fetch(machine, **state))
        return key

    async def patch(self, machine: PinnedMachine, **change: Any) -> None:
        """Somebody who may change Machines does."""
        place = object_name(await self.machine(machine))
        await self.world.cluster.patch(MACHINE.resource, place.name, change, PatchType.MERGE, place.namespace)
        await caches_caught_up(self.world)

    async def settings(self, **spec: Any) -> None:
        """Change the ConfidentialCluster, and wait until the doors know."""
        changed = await lowered(self.world.cluster, spec)
        informer = self.world.informers.of(CONFIDENTIAL_CLUSTER.resource)
        version = changed["metadata"]["resourceVersion"]

        async def heard() -> bool:
            return bool((informer.get("", "cluster") or {})["metadata"]["resourceVersion"] == version)

        await until(heard)

    async def pool(self, **disk: str) -> None:
        """Give the pool another disk."""
        await self.settings(pools=[{**POOL, "disk": disk}])


@asynccontextmanager
async def pin_site(directory: Path, *, first_use: bool = True) -> AsyncIterator[PinSite]:
    """Doors, the loops of disks, and a TrustedExecutionCluster that says where they are; for the time of the block."""
    join = {"trustOnFirstUse": first_use}
    async with fortress(directory, simulated=True, pools=[POOL], join=join) as site:
        world = site.site.world
        doors = world.doors
        spec = {
            "publicTrusteeAddr": f"127.0.0.1:{doors.broker.port}",
            "publicAttestationKeyRegisterAddr": f"127.0.0.1:{doors.enrolment.port}",
        }
        trusted = {
            "apiVersion": TRUSTED_EXECUTION_CLUSTER.api_version, "kind": TRUSTED_EXECUTION_CLUSTER.kind,
            "metadata": {"name": "trusted", "namespace": NAMESPACE}, "spec": spec,
        }  # fmt: skip
        await world.cluster.create(TRUSTED_EXECUTION_CLUSTER.resource, trusted)
        record = ClusterRecord(world.cluster, world.clock, ENTROPY, "controllers")
        life = DiskKeyLife(world.cluster, world.informers, record, world.clock)
        runner = Runner([life], world.informers, world.clock, ENTROPY)
        async with background("disks", life=runner.run):
            yield PinSite(site)
