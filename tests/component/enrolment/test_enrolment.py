"""Enrolment over TLS on the embedded API, with the agent's own client and machines of the simulated vendor."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from fastness.agent.boot.enrol import EnrolmentFailed
from fastness.enrolment.live.enrolments import find_machine
from fastness.http.freshness import Touch
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.objects import condition, view
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kinds.trusted_execution.subject import KeyKind, key_kind
from fastness.kube.port import PatchType
from fastness.protocol.machine_names import machine_name, node_name
from fastness.sim.tee.attester import SimAttester
from tests.embedded.fixtures import Embedded
from tests.enrolling import change_cluster, code, doors


@pytest.mark.parametrize("tee", ["tpm", "snp", "tdx"])
async def test_a_machine_enrols_and_gets_an_identity_that_stays(embedded_server: Embedded, tee: str) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(tee), await world.ticket()
        enrolled = await world.enrol(machine, ticket)
        thumbprint = machine.machine.thumbprint
        assert enrolled.approved
        assert enrolled.name == machine_name(key_kind(tee), thumbprint)
        assert enrolled.node_name == node_name("worker", key_kind(tee), thumbprint)
        (created,) = await world.machines()
        assert created["metadata"]["uid"] == enrolled.machine
        assert created["status"]["keyThumbprint"] == thumbprint
        assert (created["status"]["pool"], created["status"]["tee"]) == ("worker", tee)
        assert created["status"]["endorsedBy"] == ("ek-certificate" if tee == "tpm" else "evidence")
        assert created["status"]["simulated"] is (tee == "tpm")
        assert condition(created, "Enrolled") is not None
        assert condition(created, "Attested")["status"] == "False"  # type: ignore[index]  # it is there
        keys = await world.keys()
        assert len(keys) == (1 if tee == "tpm" else 0), "a guest key is no attestation key"
        for key in keys:
            assert key["metadata"]["name"] == f"ak-{thumbprint.removeprefix('sha256:')[:20]}"
            assert key["spec"]["uuid"] == created["spec"]["id"]
            assert key["metadata"]["ownerReferences"][0]["uid"] == enrolled.machine
        assert [entry.what for entry in world.record.entries] == ["enrol"]
        assert world.record.entries[0].who == thumbprint
        stored = await find_machine(world.cluster, key_kind(tee), thumbprint)
        assert stored is not None
        assert membership_of(stored) is Membership.APPROVED


async def test_repeating_everything_gives_the_same_machine_and_costs_nothing(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket(uses=1)
        first = await world.enrol(machine, ticket)
        again = await world.enrol(machine, ticket)
        assert again == first
        begun = await world.begin(machine, ticket)
        proof = await world.proof(machine, begun)
        answers = [await world.post("/v1/enrol/complete", proof) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 200]
        assert len(await world.machines()) == len(await world.keys()) == 1
        status = (await world.ticket_object(ticket))["status"]
        assert (status["used"], status["usedBy"]) == (1, [machine_name(KeyKind.AK, machine.machine.thumbprint)])


async def test_of_two_machines_with_one_single_use_ticket_exactly_one_gets_in(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        ticket = await world.ticket(uses=1)
        racers = [world.machine() for _ in range(6)]
        begun = [await world.begin(racer, ticket) for racer in racers]
        answers = await asyncio.gather(
            *(world.complete(racer, offer) for racer, offer in zip(racers, begun, strict=True))
        )
        assert sorted(answer.status_code for answer in answers) == [201, 401, 401, 401, 401, 401]
        assert {code(answer) for answer in answers if answer.status_code == 401} == {(401, "ticket-used-up")}
        assert len(await world.machines()) == 1
        late = world.machine()
        assert code(await world.begin(late, ticket)) == (401, "ticket-used-up")


async def test_unlimited_tickets_are_counted_when_there_is_time(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        ticket = await world.ticket()
        for _ in range(3):
            await world.enrol(world.machine("tpm"), ticket)
        assert "status" not in await world.ticket_object(ticket)
        await world.door.enrolments.uses.flush()
        status = (await world.ticket_object(ticket))["status"]
        assert status["used"] == 3
        assert "usedBy" not in status
        await world.door.enrolments.uses.flush()
        assert (await world.ticket_object(ticket))["status"]["used"] == 3


async def test_with_manual_approval_a_machine_waits_for_an_administrator(embedded_server: Embedded) -> None:
    spec = {"mode": "Enforce", "simulated": True, "join": {"approval": "Manual"}}
    async with doors(embedded_server.cluster, spec) as world:
        enrolled = await world.enrol(world.machine(), await world.ticket())
        assert enrolled.state == "Pending"
        (stored,) = await world.machines()
        assert stored["spec"]["approval"] == "Pending"
        approved = condition(stored, "Approved")
        assert approved is not None
        assert (approved["status"], approved["reason"]) == ("False", "Pending")
        assert membership_of(view(stored, Machine)) is Membership.PENDING


async def test_a_quarantined_machine_cannot_enrol_again(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket()
        enrolled = await world.enrol(machine, ticket)
        patch = {"spec": {"approval": "Quarantined"}}
        await world.cluster.patch(MACHINE.resource, enrolled.name, patch, PatchType.MERGE, NAMESPACE)
        with pytest.raises(EnrolmentFailed) as refused:
            await world.enrol(machine, ticket)
        assert refused.value.reason == "quarantined"
        assert [entry.detail["code"] for entry in world.record.of("enrol-refused")] == ["quarantined"]


async def test_a_new_key_in_the_same_tpm_names_the_machine_that_it_replaces(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        ticket = await world.ticket()
        old = await world.enrol(SimAttester(world.vendor.chip("tpm", serial=7).boot()), ticket)
        renewed = world.vendor.chip("tpm", serial=7)
        renewed.__dict__["ak"] = world.vendor.chip("tpm", serial=8).ak
        new = await world.enrol(SimAttester(renewed.boot()), ticket)
        assert new.machine != old.machine
        assert new.node_name != old.node_name
        stored = await world.cluster.get(MACHINE.resource, new.name, NAMESPACE)
        assert stored["status"]["supersedes"] == old.machine
        assert world.record.of("enrol")[-1].detail["supersedes"] == old.machine


async def test_trust_on_first_use_is_off_and_marks_what_it_lets_in(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        bare, ticket = world.machine("tpm", certified=False), await world.ticket()
        assert code(await world.begin(bare, ticket)) == (403, "first-use-not-allowed")
        assert await world.machines() == []
        await change_cluster(world, join={"trustOnFirstUse": True})
        await world.enrol(bare, ticket)
        (stored,) = await world.machines()
        assert stored["status"]["endorsedBy"] == "trust-on-first-use"
        assert condition(stored, "Enrolled")["reason"] == "TrustOnFirstUse"  # type: ignore[index]  # it is there
        assert world.record.of("enrol")[-1].detail["endorsedBy"] == "trust-on-first-use"


async def test_an_enrolment_that_took_too_long_is_begun_again(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket(lifetime=timedelta(days=1))
        begun = await world.begin(machine, ticket)
        proof = await world.proof(machine, begun)
        world.clock.ahead += timedelta(minutes=3)
        assert code(await world.post("/v1/enrol/complete", proof)) == (401, "enrolment-expired")
        assert await world.machines() == []
        assert (await world.enrol(machine, ticket)).approved


async def test_nobody_enrols_while_the_namespace_of_ours_goes(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with doors(embedded_server.cluster) as world:
        ticket, machine = await world.ticket(), world.machine("snp")
        with monkeypatch.context() as going:
            going.setattr(Touch, "homeless", property(lambda _: True))
            assert code(await world.begin(machine, ticket)) == (503, "home-gone")
            assert code(await world.http.get("/healthz")) == (503, "home-gone")
        assert (await world.http.get("/healthz")).status_code == 200
        assert (await world.begin(machine, ticket)).status_code == 200
