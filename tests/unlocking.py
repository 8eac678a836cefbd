"""Machines that unlock their disks, for tests: what the agent does in the initrd, by hand, and what others try instead.

async with disk_site(tmp_path) as site:
    machine = await site.enrolled("snp")
    keys = await site.unlocked(machine)             # the answer with the keys, over the wire
    await site.attested(machine, report(generation=1))
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fastness.agent.boot.prove import BrokerClient
from fastness.crypto.digests import sha256
from fastness.crypto.jwk import public_jwk
from fastness.crypto.keys import PrivateKey
from fastness.disks.loops.key_life import DiskKeyLife
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name
from fastness.kinds.trusted_execution.machine import HOLDS_KEYS, MACHINE
from fastness.kube.controllers.runner import Runner
from fastness.kube.port import PatchType
from fastness.protocol import kbs
from fastness.protocol.disk_report import DiskReport, disks_member
from fastness.protocol.enrolment import TPM, jwk_of
from fastness.protocol.guest_key import boot_member, boot_message, identity_member, identity_message
from fastness.protocol.unlock import unlock_member, unlock_message
from fastness.record.live.record import ClusterRecord
from fastness.runtime.tasks import background
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import BootImage
from fastness.sim.tee.tdx import TdxMachine
from fastness.sim.tee.tpm import TpmMachine
from tests.attesting import ENTROPY, until
from tests.component.attacks.outsider import Fortress, fortress
from tests.component.attestation.test_distrust import caches_caught_up

VOLUME = "var"
POOL = {"name": "worker", "trustModel": "ConfidentialCluster", "disk": {"volume": VOLUME}}
HEADER: JsonObject = {
    "uuid": "3f0c6a52-8f0e-4c8e-9d0b-0f6f5a0d8f11", "cipher": "aes-xts-plain64", "integrity": "none", "sectorSize": 4096,
    "segmentsDigest": "sha256:" + "5a" * 32,
}  # fmt: skip


def report(
    generation: int, key: str = "k1", *, after: int | None = None, since: Sequence[int] = (), **header: Any
) -> DiskReport:
    """What the agent reports of the volume that it opened: of the disk that was open under the number before, or `after`.

    Openings are counted here, from one on; `DiskSite.told` knows which numbers they had.
    """
    before = generation - 1 if after is None else after
    return DiskReport(VOLUME, generation, before, key, {**HEADER, **header}, tuple(since))


@dataclass
class Members:
    """What a session has beside its evidence."""

    machine: str = ""
    key: PrivateKey = field(default_factory=lambda: PrivateKey.generate(ENTROPY))
    signer: PrivateKey | None = None
    identity: bool = True
    reports: Sequence[DiskReport] = ()
    more: JsonObject = field(default_factory=dict)


class DiskClient(BrokerClient):
    """A machine's conversation with the broker, with the members of disks."""

    members = Members()

    async def _answer(self, nonce: str, members: JsonObject, *, show_identity: bool) -> kbs.KbsAttestation:
        wish, recipient = self.members, self.recipient
        members = {**members, **disks_member(wish.reports), **wish.more}
        if self._attester.tee != TPM and wish.identity:
            public = await self._attester.identity_public()
            signature = await self._attester.sign(identity_message(nonce, recipient))
            members |= identity_member(jwk_of(public[-64:]), signature)
        boot = await self._attester.sign_as_boot(boot_message(nonce, recipient))
        if boot is not None:
            members |= boot_member(jwk_of(boot.public[-64:]), boot.signature)
        if wish.machine:
            message = unlock_message(nonce, recipient, wish.machine)
            signature = (wish.signer or wish.key).sign(message)
            members |= unlock_member(wish.machine, dict(public_jwk(wish.key)), signature)
        additional = json.canonical(members).decode() if members else ""
        bound = kbs.binding(self._attester.tee, kbs.runtime_data(nonce, recipient, additional))
        evidence = await self._attester.evidence(bound)
        return kbs.KbsAttestation(nonce, recipient, evidence, additional)


def leave_initrd(machine: SimAttester) -> None:
    """What the agent extends before it leaves the initrd; no log tells of it."""
    booted = machine.machine
    if isinstance(booted, TpmMachine):
        booted.extend(11, sha256(b"leave-initrd").value)
    elif isinstance(booted, TdxMachine):
        log = booted.event_log
        booted.measure(b"leave-initrd")
        booted.event_log = log


@dataclass
class DiskSite:
    """An enforcing cluster whose pool `worker` has an encrypted volume."""

    fortress: Fortress
    first: int = 0
    """Serial numbers of chips begin here: tests that share a site have chips of their own."""
    openings: dict[str, list[int]] = field(default_factory=dict)
    """The numbers under which keys were released, by the uid of their Machine."""

    def apart(self, number: int) -> DiskSite:
        """The same site for one more test."""
        return DiskSite(self.fortress, 100 * number)

    async def told(self, machine: SimAttester, reported: DiskReport) -> DiskReport:
        """A report that counts openings, with the numbers that those openings had; a number that was never given is above all."""
        uid = str((await self.machine(machine))["metadata"]["uid"])
        given = [0, *self.openings.get(uid, ())]

        def number(count: int) -> int:
            return int(given[count] if count < len(given) else given[-1] + count)

        since = tuple(number(count) for count in reported.since)
        return replace(reported, generation=number(reported.generation), after=number(reported.after), since=since)

    async def count(self, machine: SimAttester, number: int) -> int:
        """Which opening of a machine a number is of; zero for none."""
        uid = str((await self.machine(machine))["metadata"]["uid"])
        return [0, *self.openings.get(uid, ())].index(number)

    @property
    def world(self) -> Any:
        """The doors, the clock and the vendor."""
        return self.fortress.site.world

    def boot(
        self, tee: Any, number: int = 1, *, serial: int = 1, guest: int = 0, image: BootImage | None = None
    ) -> SimAttester:
        """That boot of a machine on the chip with that serial number."""
        chip: Any = self.world.vendor.chip(tee, serial=self.first + serial)
        chip.boots = number - 1
        return SimAttester(chip.boot(image, **({} if tee == "tpm" else {"guest": guest})))

    async def enrolled(self, machine: SimAttester) -> JsonObject:
        """The Machine, as soon as its key is there."""
        assert (await self.fortress.enrol(machine)).status_code == 201

        async def made() -> bool:
            return bool((await self.machine(machine))["status"].get("disks"))

        await until(made)
        await caches_caught_up(self.world)
        return await self.machine(machine)

    async def machine(self, machine: SimAttester) -> JsonObject:
        """The Machine of a machine, as it stands."""
        stored: JsonObject = await self.world.machine_object(machine)
        return stored

    @asynccontextmanager
    async def session(self, machine: SimAttester, members: Members) -> AsyncIterator[DiskClient]:
        """An attested conversation with these members; raises BrokerRefused."""
        url = f"https://127.0.0.1:{self.world.doors.broker.port}"
        told = [await self.told(machine, entry) for entry in members.reports]
        async with DiskClient(url, self.world.trust, machine, ENTROPY) as client:
            client.members = replace(members, reports=told)
            await client.attest()
            yield client

    async def unlocked(self, machine: SimAttester, members: Members | None = None) -> JsonObject:
        """The keys of the machine's volume, over the wire; raises BrokerRefused."""
        members = members or Members()
        members.machine = members.machine or (await self.machine(machine))["metadata"]["uid"]
        async with self.session(machine, members) as client:
            answer = await client.resource(f"machine/{members.machine}/disk-{VOLUME}")
        await caches_caught_up(self.world)
        opened: JsonObject = json.decode(answer.reveal())
        self.openings.setdefault(members.machine, []).append(opened["opening"])
        return opened

    async def attested(self, machine: SimAttester, *reports: DiskReport) -> JsonObject:
        """An ordinary session that reports opened volumes; the Machine after it. Raises BrokerRefused."""
        async with self.session(machine, Members(reports=reports)):
            pass
        await caches_caught_up(self.world)
        return await self.machine(machine)

    async def first_boot(self, tee: Any, **options: Any) -> SimAttester:
        """A machine that enrolled, made its disk, and proved itself."""
        machine = self.boot(tee, **options)
        await self.enrolled(machine)
        await self.unlocked(machine)
        leave_initrd(machine)
        await self.attested(machine, report(1))
        return machine

    async def patch(self, machine: SimAttester, **change: Any) -> JsonObject:
        """Somebody who may change Machines does."""
        stored = await self.machine(machine)
        place = object_name(stored)
        changed: JsonObject = await self.world.cluster.patch(
            MACHINE.resource, place.name, change, PatchType.MERGE, place.namespace
        )
        await caches_caught_up(self.world)
        return changed

    async def until_status(self, machine: SimAttester, check: Any) -> JsonObject:
        """Wait until the Machine's first volume is as `check` wants it."""

        async def holds() -> bool:
            return bool(check((await self.machine(machine))["status"]["disks"][0]))

        await until(holds)
        await caches_caught_up(self.world)
        return await self.machine(machine)

    async def record(self, what: str, machine: str) -> list[JsonObject]:
        """The entries of a word on the record that name a Machine, by its uid or its name."""
        entries = [entry for entry in await self.fortress.record() if entry["what"] == what]
        return [entry for entry in entries if machine in entry.get("resource", "")]


@asynccontextmanager
async def disk_site(directory: Path, spec: JsonObject | None = None, **disk: str) -> AsyncIterator[DiskSite]:
    """Doors and the loops of disks, for the time of the block; `spec` is added to that of the cluster."""
    pools = [{**POOL, "disk": {"volume": VOLUME, **disk}}]
    async with fortress(directory, simulated=True, pools=pools, **(spec or {})) as site:
        world = site.site.world
        record = ClusterRecord(world.cluster, world.clock, ENTROPY, "controllers")
        life = DiskKeyLife(world.cluster, world.informers, record, world.clock)
        runner = Runner([life], world.informers, world.clock, ENTROPY)
        async with background("disks", life=runner.run):
            yield DiskSite(site)


__all__ = ["HEADER", "HOLDS_KEYS", "VOLUME", "DiskSite", "Members", "disk_site", "leave_initrd", "report"]
