"""Machines after enrolment: approval follows the record, replaced machines are revoked, those that never come are swept."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from fastness.agent.boot.enrol import EnrolmentFailed
from fastness.enrolment.loops.machines import Machines
from fastness.keys.errors import RecordError
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import ObjectName, condition, view
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kube.errors import NotFound
from fastness.kube.port import PatchType, WriteOptions
from fastness.sim.tee.attester import SimAttester
from tests.embedded.fixtures import Embedded
from tests.enrolling import World, doors, until

MANUAL = {"mode": "Enforce", "simulated": True, "join": {"approval": "Manual"}}


class Loop:
    """The controller, driven by hand."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.controller = Machines(world.cluster, world.informers, world.record, world.clock)

    async def run(self) -> None:
        """Every Machine once."""
        for machine in await self.world.machines():
            await self.controller.reconcile(ObjectName(NAMESPACE, machine["metadata"]["name"]))

    async def decide(self, name: str, approval: str, reason: str = "") -> None:
        """What `fastness machine` does."""
        spec = {"approval": approval, **({"approvalReason": reason} if reason else {})}
        await self.world.cluster.patch(MACHINE.resource, name, {"spec": spec}, PatchType.MERGE, NAMESPACE)

    async def machine(self, name: str) -> JsonObject:
        """One Machine, fresh."""
        return await self.world.cluster.get(MACHINE.resource, name, NAMESPACE)

    async def standing(self, name: str) -> Membership:
        """Whether it may take part."""
        return membership_of(view(await self.machine(name), Machine))


def renewed(world: World, serial: int, key: int) -> SimAttester:
    """The machine with that TPM and another attestation key."""
    chip = world.vendor.chip("tpm", serial=serial)
    chip.__dict__["ak"] = world.vendor.chip("tpm", serial=key).ak
    return SimAttester(chip.boot())


async def test_an_approval_counts_only_when_it_is_on_the_record(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster, MANUAL) as world:
        loop = Loop(world)
        enrolled = await world.enrol(world.machine(), await world.ticket())
        await loop.decide(enrolled.name, "Approved", "seen in rack 7")
        assert await loop.standing(enrolled.name) is Membership.PENDING
        world.record.broken = True
        with pytest.raises(RecordError):
            await loop.run()
        assert await loop.standing(enrolled.name) is Membership.PENDING
        world.record.broken = False
        await loop.run()
        assert await loop.standing(enrolled.name) is Membership.APPROVED
        (entry,) = world.record.of("machine-approve")
        assert entry.detail["reason"] == "seen in rack 7"


async def test_a_quarantine_counts_at_once_and_a_release_ends_it(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        loop = Loop(world)
        enrolled = await world.enrol(world.machine(), await world.ticket())
        await loop.decide(enrolled.name, "Quarantined", "odd traffic")
        assert await loop.standing(enrolled.name) is Membership.QUARANTINED
        await loop.run()
        approved = condition(await loop.machine(enrolled.name), "Approved")
        assert approved is not None
        assert (approved["status"], approved["reason"]) == ("False", "Quarantined")
        bound = world.clock.now() + timedelta(hours=1)
        assert approved["message"].startswith("odd traffic; its node credential opens nothing at the embedded API")
        assert datetime.fromisoformat(approved["message"].rpartition(" ")[2]) <= bound, (
            "the end of its last certificate"
        )
        await loop.decide(enrolled.name, "Approved")
        assert await loop.standing(enrolled.name) is Membership.PENDING
        await loop.run()
        assert await loop.standing(enrolled.name) is Membership.APPROVED
        kinds = [entry.what for entry in world.record.entries]
        assert kinds == ["enrol", "machine-quarantine", "machine-approve"]


async def test_at_rest_another_look_changes_nothing(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        loop, ticket = Loop(world), await world.ticket()
        for tee in ("tpm", "snp"):
            await world.enrol(world.machine(tee), ticket)
        await world.enrol(renewed(world, 3, 4), ticket)
        await world.enrol(renewed(world, 3, 5), ticket)
        await loop.run()
        before, entry_count = embedded_server.server.api.store.revision, len(world.record.entries)
        await loop.run()
        assert embedded_server.server.api.store.revision == before
        assert len(world.record.entries) == entry_count


async def test_the_newest_key_of_a_tpm_stays_and_the_older_machines_are_revoked(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        loop, ticket = Loop(world), await world.ticket()
        machines = [renewed(world, 3, key) for key in (4, 5, 6)]
        enrolled = [await world.enrol(machine, ticket) for machine in machines]
        await loop.run()
        standing = {entry.name: await loop.standing(entry.name) for entry in enrolled}
        assert sorted(standing.values()) == ["Approved", "Revoked", "Revoked"]
        for name, membership in standing.items():
            if membership is Membership.REVOKED:
                revoked = condition(await loop.machine(name), "Revoked")
                assert revoked is not None
                assert revoked["reason"] == "Superseded"
        gone = next(m for m, e in zip(machines, enrolled, strict=True) if standing[e.name] is Membership.REVOKED)
        with pytest.raises(EnrolmentFailed) as refused:
            await world.enrol(gone, ticket)
        assert refused.value.reason == "revoked"


async def test_a_newcomer_that_nobody_approved_replaces_nobody(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster, MANUAL) as world:
        loop, ticket = Loop(world), await world.ticket()
        old = await world.enrol(renewed(world, 3, 4), ticket)
        await loop.decide(old.name, "Approved")
        await loop.run()
        new = await world.enrol(renewed(world, 3, 5), ticket)
        await loop.run()
        assert await loop.standing(old.name) is Membership.APPROVED
        await loop.decide(new.name, "Approved")
        await loop.run()
        await loop.run()
        standing = {await loop.standing(old.name), await loop.standing(new.name)}
        assert standing == {Membership.APPROVED, Membership.REVOKED}


async def test_a_quarantined_tpm_with_a_new_key_and_a_new_ticket_waits_for_a_person(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        loop = Loop(world)
        old = await world.enrol(renewed(world, 3, 4), await world.ticket())
        await loop.decide(old.name, "Quarantined")
        new = await world.enrol(renewed(world, 3, 5), await world.ticket())
        assert not new.approved
        await loop.run()
        assert await loop.standing(new.name) is Membership.PENDING
        approval = condition(await loop.machine(new.name), "Approved")
        assert approval is not None
        assert approval["message"] == f"its TPM is known: {old.name} is quarantined"
        other = await world.enrol(world.machine(), await world.ticket())
        assert other.approved
        await loop.decide(new.name, "Approved", "reinstalled and looked at")
        await loop.run()
        assert await loop.standing(new.name) is Membership.APPROVED
        (entry,) = world.record.of("machine-approve")
        assert entry.detail["reason"] == "reinstalled and looked at"


async def test_a_quarantined_tpm_stays_barred_when_its_machine_is_deleted(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        loop = Loop(world)
        old = await world.enrol(renewed(world, 3, 4), await world.ticket())
        await loop.decide(old.name, "Quarantined", "odd traffic")
        await loop.run()
        await world.cluster.delete(MACHINE.resource, old.name, NAMESPACE)
        await loop.run()
        with pytest.raises(NotFound):
            await loop.machine(old.name)
        (entry,) = world.record.of("machine-deleted")
        distrusts = world.door.enrolments.sources.distrusts
        await until(lambda: entry.detail["kept"] in {distrust.name for distrust in distrusts.all})
        again = await world.enrol(renewed(world, 3, 5), await world.ticket())
        assert not again.approved
        approval = condition(await loop.machine(again.name), "Approved")
        assert approval is not None
        assert "was quarantined when it was deleted: odd traffic" in approval["message"]


async def test_a_distrusted_endorsement_key_enrols_nothing_and_its_machine_bars_new_keys_at_once(
    embedded_server: Embedded,
) -> None:
    """No controller has marked anybody: the door knows the Distrusts itself."""
    async with doors(embedded_server.cluster) as world:
        loop, ticket = Loop(world), await world.ticket()
        old = await world.enrol(renewed(world, 3, 4), ticket)
        stored = await loop.machine(old.name)
        await distrust(world, "the-machine", machine=stored["metadata"]["uid"])
        assert not (await world.enrol(renewed(world, 3, 5), ticket)).approved
        await distrust(world, "the-tpm", endorsementKey=stored["status"]["endorsement"]["key"])
        with pytest.raises(EnrolmentFailed) as refused:
            await world.enrol(renewed(world, 3, 6), ticket)
        assert refused.value.reason == "distrusted"
        assert len(await world.machines()) == 2


async def distrust(world: World, name: str, **spec: str) -> None:
    """A Distrust that the door has heard of."""
    body = {
        "apiVersion": DISTRUST.api_version, "kind": DISTRUST.kind, "metadata": {"name": name},
        "spec": {"reason": "a test", **spec},
    }  # fmt: skip
    await world.cluster.create(DISTRUST.resource, body)
    distrusts = world.door.enrolments.sources.distrusts
    await until(lambda: name in {entry.name for entry in distrusts.all})


async def test_machines_that_never_attest_are_swept_and_may_come_again(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        loop, machine = Loop(world), world.machine()
        ticket = await world.ticket(lifetime=timedelta(days=30), uses=1)
        enrolled = await world.enrol(machine, ticket)
        world.clock.ahead += timedelta(hours=23)
        await loop.run()
        assert await loop.standing(enrolled.name) is Membership.APPROVED
        world.clock.ahead += timedelta(hours=2)
        await loop.run()
        with pytest.raises(NotFound):
            await loop.machine(enrolled.name)
        assert [entry.what for entry in world.record.entries] == ["enrol", "machine-swept"]


async def test_attested_quarantined_and_foreign_machines_are_not_swept(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        loop, ticket = Loop(world), await world.ticket()
        attested, held = [await world.enrol(world.machine("snp"), ticket) for _ in range(2)]
        when = "2026-01-01T00:00:00Z"
        await world.cluster.patch(
            MACHINE.resource, attested.name, {"status": {"lastAttested": when}}, PatchType.MERGE, NAMESPACE,
            WriteOptions(subresource="status"),
        )  # fmt: skip
        await loop.decide(held.name, "Quarantined")
        foreign = {
            "apiVersion": MACHINE.api_version, "kind": MACHINE.kind,
            "metadata": {"name": "by-hand", "namespace": NAMESPACE},
            "spec": {"id": "316809b1-ea29-448c-accb-78c5c6bf5206"},
        }  # fmt: skip
        await world.cluster.create(MACHINE.resource, foreign)
        world.clock.ahead += timedelta(days=400)
        await loop.run()
        assert len(await world.machines()) == 3
