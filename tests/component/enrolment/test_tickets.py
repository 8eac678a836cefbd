"""Tickets at the enrolment door: when one counts, for which pool, how often, and when it no longer does."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fastness.enrolment.live.tickets import join_ticket, mint, ticket_hash
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kube.port import PatchType, WriteOptions
from tests.embedded.fixtures import Embedded
from tests.enrolling import ENTROPY, NOBODY, code, doors, nothing_was_made


async def test_a_door_that_cannot_know_a_ticket_asks_its_machine_to_come_again(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the cache of tickets is cut off from the API, a ticket may be newer than it."""
    async with doors(embedded_server.cluster) as world:
        monkeypatch.setattr(world.door.enrolments.sources.tickets, "_watching", False)
        shown = {b"authorization": f"Bearer {NOBODY}".encode()}
        unknown = await world.http.post("/v1/enrol", content=b"{}", headers=shown)
        assert code(unknown) == (503, "cluster-unavailable")
        assert int(unknown.headers["retry-after"]) > 0
        assert code(await world.http.post("/v1/enrol", content=b"{}")) == (401, "ticket-required")


async def test_a_ticket_counts_from_the_instant_that_it_is_made(
    embedded_server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The door's cache hears of nothing here: a ticket that it does not know is looked up before it is refused for good."""
    async with doors(embedded_server.cluster) as world:
        monkeypatch.setattr(world.door.enrolments.sources.tickets, "_take", lambda _event: None)
        made = mint(ENTROPY)
        ticket = join_ticket("new", made, "worker", world.clock.now() + timedelta(hours=1), uses=1)
        await world.cluster.create(JOIN_TICKET.resource, ticket)
        assert (await world.enrol(world.machine(), made)).pool == "worker"


async def test_a_ticket_that_expired_or_was_deleted_is_refused(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket(lifetime=timedelta(minutes=1))
        begun = await world.begin(machine, ticket)
        world.clock.ahead += timedelta(seconds=61)
        assert code(await world.begin(machine, ticket)) == (401, "ticket-expired")
        assert code(await world.complete(machine, begun)) == (401, "ticket-expired")
        other = await world.ticket()
        begun = await world.begin(machine, other)
        await world.cluster.delete(JOIN_TICKET.resource, f"t-{ticket_hash(other)[-12:]}")
        assert code(await world.complete(machine, begun)) == (401, "ticket-required")
        await nothing_was_made(world)


async def test_a_ticket_made_anew_under_the_same_name_is_another_one(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        machine, ticket = world.machine(), await world.ticket(uses=1)
        begun = await world.begin(machine, ticket)
        stored = await world.ticket_object(ticket)
        await world.cluster.delete(JOIN_TICKET.resource, stored["metadata"]["name"])
        again = {**stored, "metadata": {"name": stored["metadata"]["name"]}}
        await world.cluster.create(JOIN_TICKET.resource, again)
        assert code(await world.complete(machine, begun)) == (401, "ticket-required")
        await nothing_was_made(world)


async def test_a_ticket_is_good_for_its_pool_alone(embedded_server: Embedded) -> None:
    spec = {"mode": "Enforce", "simulated": True, "pools": [{"name": "plain", "trustModel": "None"}]}
    async with doors(embedded_server.cluster, spec) as world:
        machine = world.machine()
        assert code(await world.begin(machine, await world.ticket("infra"), pool="worker")) == (403, "wrong-pool")
        assert code(await world.begin(machine, await world.ticket("plain"))) == (403, "pool-not-attested")
        await nothing_was_made(world)
        enrolled = await world.enrol(machine, await world.ticket("infra"))
        assert enrolled.pool == "infra"
        begun = await world.begin(machine, await world.ticket("worker"))
        assert code(await world.complete(machine, begun)) == (403, "identity-conflict")


async def test_the_count_stands_against_a_status_that_somebody_wrote_by_hand(embedded_server: Embedded) -> None:
    async with doors(embedded_server.cluster) as world:
        ticket, machine = await world.ticket(uses=1), world.machine("tpm")
        await world.enrol(machine, ticket)
        name = (await world.ticket_object(ticket))["metadata"]["name"]
        options = WriteOptions(subresource="status")
        await world.cluster.patch(JOIN_TICKET.resource, name, {"status": {"used": 0}}, PatchType.MERGE, "", options)
        late = world.machine("snp")
        begun = await world.begin(late, ticket)
        if begun.status_code == 200:
            begun = await world.complete(late, begun)
        assert code(begun) == (401, "ticket-used-up")
