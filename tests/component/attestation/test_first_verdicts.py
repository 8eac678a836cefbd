"""A use of a ticket is a machine that proved something: guests count at their first affirmed verdict.

An outsider here has a pool's ticket and as many keys in software as he likes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from fastness.agent.boot.enrol import EnrolmentFailed
from fastness.agent.boot.prove import BrokerRefused
from fastness.crypto.secret import SecretText
from fastness.enrolment.live.guest_tickets import Admissions
from fastness.enrolment.live.tickets import ticket_hash
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType
from fastness.sim.tee.attester import SimAttester
from fastness.sim.tee.images import changed, default_image
from tests.attesting import AttestingWorld, attesting_world
from tests.component.attestation.test_distrust import caches_caught_up
from tests.embedded.fixtures import Embedded


@pytest.fixture
async def here(embedded_server: Embedded) -> AsyncIterator[AttestingWorld]:
    async with attesting_world(embedded_server.cluster) as world:
        for tee in ("snp", "tdx"):
            await world.approve(tee)
        yield world


async def attest(world: AttestingWorld, guest: SimAttester) -> tuple[int, str]:
    try:
        async with world.broker(guest) as broker:
            await broker.attest()
    except BrokerRefused as refused:
        return refused.status, refused.reason
    finally:
        await caches_caught_up(world)
    return 200, ""


async def stored(world: AttestingWorld, ticket: SecretText) -> JsonObject:
    return await world.cluster.get(JOIN_TICKET.resource, f"t-{ticket_hash(ticket)[-12:]}")


async def used(world: AttestingWorld, ticket: SecretText) -> int:
    return int(((await stored(world, ticket)).get("status") or {}).get("used", 0))


@pytest.mark.parametrize("tee", ["snp", "tdx"])
async def test_keys_in_software_do_not_use_a_ticket_up(here: AttestingWorld, tee: str) -> None:
    ticket = await here.ticket(uses=10)
    for _ in range(10):
        await here.enrol(here.machine(tee), ticket)
    assert await used(here, ticket) == 0
    real = here.machine(tee)
    await here.enrol(real, ticket)
    assert await attest(here, real) == (200, "")
    assert await used(here, ticket) == 1


async def test_a_machine_is_counted_once_however_often_it_comes(here: AttestingWorld) -> None:
    ticket, guest = await here.ticket(uses=2), here.machine("snp")
    for _ in range(2):
        await here.enrol(guest, ticket)
        assert await attest(here, guest) == (200, "")
    assert (await stored(here, ticket))["status"]["usedBy"] == [(await here.machine_object(guest))["metadata"]["name"]]


async def test_of_two_guests_with_one_use_the_second_is_not_affirmed(here: AttestingWorld) -> None:
    ticket, first, second = await here.ticket(uses=1), here.machine("snp"), here.machine("tdx")
    for guest in (first, second):
        await here.enrol(guest, ticket)
    assert await attest(here, first) == (200, "")
    assert await attest(here, second) == (401, "ticket-used-up")
    stored = await here.machine_object(second)
    attested = condition(stored, "Attested")
    assert attested is not None
    assert (attested["status"], attested["reason"]) == ("False", "TicketUsedUp")
    assert {"lastAttested", "chip"} & stored["status"].keys() == set()
    assert await attest(here, first) == (200, "")
    with pytest.raises(EnrolmentFailed) as refused:
        await here.enrol(here.machine("snp"), ticket)
    assert refused.value.reason == "ticket-used-up"
    await here.enrol(second, await here.ticket(uses=1))
    await caches_caught_up(here)
    assert await attest(here, second) == (200, "")


async def test_a_guest_whose_evidence_is_refused_uses_nothing(here: AttestingWorld) -> None:
    ticket, guest = (
        await here.ticket(uses=1),
        here.machine("snp", changed(default_image(), command_line="init=/bin/sh")),
    )
    await here.enrol(guest, ticket)
    assert (await attest(here, guest))[0] == 403
    assert await used(here, ticket) == 0


async def test_a_ticket_counts_after_it_has_expired_and_not_after_it_was_deleted(here: AttestingWorld) -> None:
    ticket, patient, late = await here.ticket(uses=5), here.machine("snp"), here.machine("snp")
    for guest in (patient, late):
        await here.enrol(guest, ticket)
    patch = {"spec": {"expires": "2020-01-01T00:00:00Z"}}
    name = (await stored(here, ticket))["metadata"]["name"]
    await here.cluster.patch(JOIN_TICKET.resource, name, patch, PatchType.MERGE)
    assert await attest(here, patient) == (200, "")
    assert await used(here, ticket) == 1
    await here.cluster.delete(JOIN_TICKET.resource, name)
    assert await attest(here, late) == (401, "ticket-required")
    assert await attest(here, patient) == (200, "")


async def test_a_tpm_is_counted_when_it_has_opened_its_credential(here: AttestingWorld) -> None:
    ticket = await here.ticket(uses=1)
    await here.enrol(here.machine("tpm"), ticket)
    assert await used(here, ticket) == 1


async def test_uses_of_a_ticket_without_a_limit_are_added_up(here: AttestingWorld) -> None:
    ticket, guest = await here.ticket(), here.machine("snp")
    await here.enrol(guest, ticket)
    assert await attest(here, guest) == (200, "")
    admissions = here.doors.verifier.admissions
    assert isinstance(admissions, Admissions)
    await admissions.uses.flush()
    assert await used(here, ticket) == 1


async def test_a_machine_that_gave_way_enrols_again_as_another_one(here: AttestingWorld) -> None:
    ticket, guest = await here.ticket(), here.machine("snp")
    first = await here.enrol(guest, ticket)
    await here.cluster.delete(MACHINE.resource, first.name, NAMESPACE)
    await caches_caught_up(here)
    assert await attest(here, guest) == (403, "not-enrolled")
    again = await here.enrol(guest, ticket)
    assert (again.name, again.machine != first.machine) == (first.name, True)
    here.clock.ahead += timedelta(seconds=1)
    await caches_caught_up(here)
    assert await attest(here, guest) == (200, "")
