"""A chip cannot be changed as a key can: what stands against it makes newcomers wait, and a Machine keeps to its own.

An outsider here has a host whose guest was quarantined, new keys and new tickets, and talks to the doors over HTTPS.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from click.testing import CliRunner

from fastness.agent.boot.prove import BrokerRefused
from fastness.attestation.loops.distrust import KEY, Distrusting
from fastness.attestation.machine.decisions import DECISIONS, decision_patch
from fastness.cli.main import cli
from fastness.enrolment.loops.machines import Machines
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.fastness_dev.verdict import VERDICT
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, object_name, view
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kube.errors import Invalid
from fastness.kube.port import PatchType, WriteOptions
from fastness.sim.tee.attester import SimAttester
from tests.attesting import AttestingWorld, attesting_world, until
from tests.component.attestation.test_distrust import Kept, caches_caught_up, distrust
from tests.embedded.fixtures import Embedded

STATUS = "default/attestation-status/status"


class Site:
    """The doors, the loop that follows decisions, and hosts on which guests are started."""

    def __init__(self, world: AttestingWorld) -> None:
        self.world = world
        self.record = Kept()
        self.loop = Machines(world.cluster, world.informers, self.record, world.clock)

    def guest(self, tee: str = "snp", serial: int = 1, guest: int = 0, **options: Any) -> SimAttester:
        """A guest on the chip with that serial number; another guest has another key."""
        chip: Any = self.world.vendor.chip(tee, serial=serial, **options)
        return SimAttester(chip.boot(guest=guest))

    async def enrolled(self, *args: Any, **options: Any) -> SimAttester:
        """A guest that enrolled with a new ticket."""
        guest = self.guest(*args, **options)
        await self.world.enrol(guest, await self.world.ticket())
        return guest

    async def attest(self, guest: SimAttester) -> tuple[int, str]:
        """What the broker answers to fresh evidence."""
        try:
            async with self.world.broker(guest) as broker:
                await broker.attest()
        except BrokerRefused as refused:
            return refused.status, refused.reason
        finally:
            await caches_caught_up(self.world)
        return 200, ""

    async def decide(self, verb: str, guest: SimAttester, reason: str = "") -> None:
        """What `fastness machine` does, and the control plane after it."""
        machine = await self.world.machine_object(guest)
        patch = decision_patch(machine, DECISIONS[verb], reason)
        await self.world.cluster.patch(MACHINE.resource, object_name(machine).name, patch, PatchType.MERGE, NAMESPACE)
        await self.follow()

    async def follow(self) -> None:
        """Let the control plane look at every Machine."""
        await caches_caught_up(self.world)
        for machine in (await self.world.cluster.list(MACHINE.resource)).items:
            await self.loop.reconcile(object_name(machine))
        await caches_caught_up(self.world)

    async def machine(self, guest: SimAttester) -> JsonObject:
        """The Machine of a guest."""
        return await self.world.machine_object(guest)

    async def entries(self) -> list[JsonObject]:
        """What stands on the record."""
        batches = (await self.world.cluster.list(AUDIT_BATCH.resource)).items
        return [entry for batch in batches for entry in batch["spec"]["entries"]]

    async def membership(self, guest: SimAttester) -> Membership:
        """Whether it may take part."""
        return membership_of(view(await self.machine(guest), Machine))


@pytest.fixture
async def site(embedded_server: Embedded) -> AsyncIterator[Site]:
    async with attesting_world(embedded_server.cluster) as world:
        for tee in ("snp", "tdx"):
            await world.approve(tee)
        yield Site(world)


@pytest.mark.parametrize("tee", ["snp", "tdx"])
async def test_the_chip_of_a_quarantined_machine_takes_no_new_key_until_a_person_approves(site: Site, tee: str) -> None:
    bad, neighbour = await site.enrolled(tee, guest=0), await site.enrolled(tee, guest=1)
    assert await site.attest(bad) == (200, "")
    assert await site.attest(neighbour) == (200, "")
    await site.decide("quarantine", bad, "odd traffic")
    newcomer = await site.enrolled(tee, guest=2)
    assert await site.attest(newcomer) == (503, "approval-pending")
    await site.follow()
    assert await site.membership(newcomer) is Membership.PENDING
    waiting, bad_name = await site.machine(newcomer), object_name(await site.machine(bad)).name
    approved = condition(waiting, "Approved")
    assert approved is not None
    assert (approved["reason"], f"{bad_name} is quarantined" in approved["message"]) == ("ChipBarred", True)
    assert "lastAttested" not in waiting["status"]
    verdict = await site.world.cluster.get(VERDICT.resource, waiting["status"]["lastVerdict"])
    assert verdict["spec"]["result"] == "NotAssessed"
    assert await site.attest(newcomer) == (503, "approval-pending")
    assert await site.attest(neighbour) == (200, "")
    assert await site.attest(await site.enrolled(tee, serial=2)) == (200, "")
    await site.decide("approve", newcomer, "the host was looked at")
    assert await site.attest(newcomer) == (200, "")
    pinned = (await site.machine(newcomer))["status"]
    assert pinned["chip"] == (await site.machine(bad))["status"]["chip"]
    assert "awaitedChip" not in pinned
    entries = [entry for entry in site.record.entries if entry.what == "machine-approve"]
    assert [entry.detail["chip"] for entry in entries] == [pinned["chip"]]
    assert await site.attest(await site.enrolled(tee, guest=3)) == (503, "approval-pending")


async def test_an_operator_sees_why_a_machine_waits_and_lets_it_in(site: Site, embedded_server: Embedded) -> None:
    async def fastness(*words: str) -> str:
        where = ["--kubeconfig", str(embedded_server.kubeconfig)]
        done = await asyncio.to_thread(CliRunner().invoke, cli, [*words, *where], prog_name="fastness")
        assert done.exit_code in (0, 1), done.output
        return str(done.output)

    bad = await site.enrolled(guest=0)
    await site.attest(bad)
    await site.decide("quarantine", bad, "odd traffic")
    newcomer = await site.enrolled(guest=1)
    await site.attest(newcomer)
    waiting, bad_name = await site.machine(newcomer), object_name(await site.machine(bad)).name
    name, why = object_name(waiting).name, f"{bad_name} is quarantined, and this machine is on the same chip"
    for words in (("machine", "list"), ("machine", "show", name), ("attest", "explain", name)):
        assert why in await fastness(*words)
    assert waiting["status"]["awaitedChip"] in await fastness("machine", "show", name)
    assert await fastness("machine", "approve", name, "--reason", "looked at") == f"{name}: approved\n"
    await site.follow()
    assert await site.attest(newcomer) == (200, "")


async def test_an_operator_moves_a_machine_to_the_chip_that_it_names_and_is_on_the_record(
    site: Site, embedded_server: Embedded
) -> None:
    async def fastness(*words: str) -> str:
        where = ["--kubeconfig", str(embedded_server.kubeconfig)]
        done = await asyncio.to_thread(CliRunner().invoke, cli, [*words, *where], prog_name="fastness")
        return f"{done.exit_code} {done.output}"

    home = await site.enrolled(serial=1)
    assert await site.attest(home) == (200, "")
    moved = site.guest(serial=2)
    moved.machine.__dict__["identity_key"] = home.machine.identity_key
    assert await site.attest(moved) == (503, "approval-pending")
    home_machine = await site.machine(home)
    name, chip = object_name(home_machine).name, home_machine["status"]["disputes"][0]["shows"]
    assert chip in await fastness("machine", "show", name)
    assert "evidence in its name" in await fastness("machine", "list")
    for words in (("machine", "list"), ("machine", "show", name), ("attest", "explain", name)):
        assert "identity on an open disk" in await fastness(*words)
    verdict = await site.world.cluster.get(VERDICT.resource, home_machine["status"]["lastVerdict"])
    assert "identity-on-open-disk" in {check["code"] for check in verdict["spec"]["checks"]}
    assert home_machine["status"]["identity"] == "OpenDisk"
    assert f"fastness machine approve-chip {name} {chip}" in await fastness("attest", "explain", name)
    refused = await fastness("machine", "approve-chip", name, "snp:0123456789", "--reason", "a guess")
    assert (refused[0], "means no chip" in refused) == ("2", True)
    done = await fastness("machine", "approve-chip", name, chip[:20], "--reason", "a new host")
    assert done == f"0 {name}: may prove itself on {chip}\n"
    await caches_caught_up(site.world)
    assert await site.attest(moved) == (200, "")
    assert await fastness("machine", "settle", name, "--reason", "it is there") == f"0 {name}: nothing is disputed\n"
    entries = [entry for entry in await site.entries() if entry["what"] == "act-approve-chip"]
    assert [(entry["detail"]["chip"], entry["detail"]["reason"]) for entry in entries] == [(chip, "a new host")]
    assert "admin" in entries[0]["who"]


async def test_newcomers_go_on_when_the_quarantine_of_their_chip_ends(site: Site) -> None:
    bad = await site.enrolled(guest=0)
    await site.attest(bad)
    await site.decide("quarantine", bad, "odd traffic")
    newcomer = await site.enrolled(guest=1)
    assert await site.attest(newcomer) == (503, "approval-pending")
    await site.decide("release", bad)
    await site.follow()
    assert await site.attest(newcomer) == (200, "")
    assert list(site.loop._waiting_for_chip_of(await site.machine(bad))) == []


async def test_a_machine_that_waits_is_looked_at_when_a_machine_of_its_chip_changes(site: Site) -> None:
    bad = await site.enrolled(guest=0)
    await site.attest(bad)
    await site.decide("quarantine", bad, "odd traffic")
    newcomer = await site.enrolled(guest=1)
    await site.attest(newcomer)
    waiting = site.loop._waiting_for_chip_of(await site.machine(bad))
    assert list(waiting) == [object_name(await site.machine(newcomer))]


async def test_a_key_that_enrolled_before_the_quarantine_and_never_attested_waits_too(site: Site) -> None:
    spare, bad = await site.enrolled(guest=1), await site.enrolled(guest=0)
    await site.attest(bad)
    await site.decide("quarantine", bad, "odd traffic")
    assert await site.attest(spare) == (503, "approval-pending")


async def test_a_distrusted_machine_bars_its_chip_without_any_controller(site: Site) -> None:
    bad = await site.enrolled(guest=0)
    await site.attest(bad)
    await distrust(site.world, "bad", machine=(await site.machine(bad))["metadata"]["uid"])
    assert await site.attest(await site.enrolled(guest=1)) == (503, "approval-pending")


async def test_nobody_rewrites_a_chip_past_the_approval(site: Site) -> None:
    """Held by the API server: a door that was taken over writes the status, and no spec."""
    guest = await site.enrolled()
    await site.attest(guest)
    name, other = object_name(await site.machine(guest)).name, f"snp:{'ab' * 64}"
    for chip in (other, None):
        patch = {"status": {"chip": chip}}
        with pytest.raises(Invalid, match=r"spec\.chip"):
            await site.world.cluster.patch(
                MACHINE.resource, name, patch, PatchType.MERGE, NAMESPACE, WriteOptions(subresource="status")
            )


async def test_a_chip_that_its_provider_hides_is_no_chip_and_the_verdict_says_so(site: Site) -> None:
    bad, newcomer = [await site.enrolled(guest=number, endorsement="VLEK") for number in (0, 1)]
    assert await site.attest(bad) == (200, "")
    await site.decide("quarantine", bad, "odd traffic")
    assert await site.attest(newcomer) == (200, "")
    newcomers_machine = await site.machine(newcomer)
    assert newcomers_machine["status"]["chip"] == "hidden"
    verdict = await site.world.cluster.get(VERDICT.resource, newcomers_machine["status"]["lastVerdict"])
    assert ("chip", "chip-hidden") in {(check["name"], check["code"]) for check in verdict["spec"]["checks"]}


async def test_a_distrusted_chip_ends_tokens_and_refuses_everybody_on_it(site: Site) -> None:
    guest, elsewhere = await site.enrolled(guest=0), await site.enrolled(serial=2)
    assert await site.attest(elsewhere) == (200, "")
    loop = Distrusting(site.world.cluster, site.world.informers, Kept(), site.world.clock)
    async with site.world.broker(guest) as broker:
        await broker.attest()
        await caches_caught_up(site.world)
        chip = (await site.machine(guest))["status"]["chip"]
        await distrust(site.world, "burnt", chip=chip)
        with pytest.raises(BrokerRefused) as dead:
            await broker.resource(STATUS)
        assert dead.value.reason == "revoked"
    assert await site.attest(guest) == (403, "distrusted")
    assert await site.attest(await site.enrolled(guest=1)) == (403, "distrusted")
    assert await site.attest(elsewhere) == (200, "")
    await caches_caught_up(site.world)
    await loop.reconcile(KEY)
    await caches_caught_up(site.world)
    stored = await site.world.cluster.get(DISTRUST.resource, "burnt")
    assert (stored["status"]["target"], stored["status"]["affected"]["machines"]) == (f"chip {chip}", 1)


async def test_a_distrusted_endorsement_key_revokes_every_machine_of_its_tpm(embedded_server: Embedded) -> None:
    async with attesting_world(embedded_server.cluster) as world:
        await world.approve("tpm")
        guest = await world.enrolled("tpm")
        async with world.broker(guest) as broker:
            await broker.attest()
            stored = await world.machine_object(guest)
            await distrust(world, "tpm", endorsementKey=stored["status"]["endorsement"]["key"])
            with pytest.raises(BrokerRefused) as dead:
                await broker.resource(STATUS)
            assert dead.value.reason == "revoked"
        loop = Distrusting(world.cluster, world.informers, Kept(), world.clock)
        await caches_caught_up(world)
        await loop.reconcile(KEY)

        async def revoked() -> bool:
            return membership_of(view(await world.machine_object(guest), Machine)) is Membership.REVOKED

        await until(revoked)
