"""The ticket in a pool's user-data, from the loop that makes it to the door where machines show it.

An outsider here copied the user-data of a pool once. The clock is moved by hand, so nothing waits for a day.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from fastness.agent.boot.enrol import EnrolmentFailed
from fastness.crypto.secret import SecretText
from fastness.enrolment.live.tickets import ticket_hash
from fastness.enrolment.trusted_cluster import Doors
from fastness.formats import json
from fastness.keys.authorities import SECRETS
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, rfc3339
from fastness.kinds.openshift.machines import MACHINE_SET
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.errors import AlreadyExists
from fastness.kube.port import EVERYWHERE, PatchType, Scope, WriteOptions
from fastness.machineconfig.loops.first_boot.user_data import UserData
from tests.embedded.fixtures import Embedded
from tests.enrolling import ENTROPY, NAMESPACES, World, doors, until

DAY = timedelta(hours=24)
WORKER = ObjectName("", "worker")
HERE = names.USER_DATA_NAMESPACE
DOORS = Doors("https://gate.example:22623", "https://config.example:22624", "-----BEGIN CERTIFICATE----- ca")


class Pool:
    """A pool, the loop that keeps its user-data, driven by hand, and the door of enrolment."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.loop = UserData(world.cluster, world.informers, world.clock, ENTROPY, lambda: DOORS)

    async def look(self) -> float:
        """What the loop does when it looks at the pool; in how many seconds it looks again."""
        await self.caches_caught_up()
        done = await self.loop.reconcile(WORKER)
        await self.caches_caught_up()
        assert done.again_after is not None
        return done.again_after

    async def caches_caught_up(self) -> None:
        """Wait until the caches have what the store has."""
        everywhere = (JOIN_TICKET.resource, MACHINE.resource, MACHINE_CONFIG_POOL.resource)
        for resource, scope in (*((kind, EVERYWHERE) for kind in everywhere), (MACHINE_SET.resource, Scope(HERE))):
            informer = self.world.informers.of(resource, scope)
            await informer.synced()
            stored = (await self.world.cluster.list(resource, scope)).items
            versions = {obj["metadata"]["resourceVersion"] for obj in stored}
            await until(lambda: versions == {obj["metadata"]["resourceVersion"] for obj in informer.list()})  # noqa: B023

    async def ticket(self) -> SecretText:
        """The ticket that the user-data carries now."""
        secret = await self.world.cluster.get(SECRETS, f"worker{names.USER_DATA_SUFFIX}", HERE)
        headers = json.decode(base64.b64decode(secret["data"]["userData"]))["ignition"]["config"]["merge"][0]
        (value,) = [entry["value"] for entry in headers["httpHeaders"] if entry["name"] == "Authorization"]
        return SecretText(value.removeprefix("Bearer "))

    async def stored(self, ticket: SecretText) -> JsonObject:
        """The JoinTicket of a ticket."""
        digest = ticket_hash(ticket)
        (match,) = [
            ticket_object for ticket_object in await self.tickets() if ticket_object["spec"]["secretHash"] == digest
        ]
        return match

    async def tickets(self) -> list[JsonObject]:
        """All JoinTickets."""
        return (await self.world.cluster.list(JOIN_TICKET.resource)).items

    async def uses(self) -> int:
        """How many machines the current ticket is for."""
        return int((await self.stored(await self.ticket()))["spec"]["uses"])

    async def enrol(self, ticket: SecretText, tee: str = "tpm") -> str:
        """What the door says to a new machine with this ticket; its name, or the reason."""
        try:
            return (await self.world.enrol(self.world.machine(tee), ticket)).name
        except EnrolmentFailed as refused:
            return refused.reason
        finally:
            await self.caches_caught_up()

    async def annotate(self, machines: str) -> None:
        """Say how many machines the pool wants."""
        patch = {"metadata": {"annotations": {"fastness.dev/wanted-machines": machines}}}
        await self.world.cluster.patch(MACHINE_CONFIG_POOL.resource, "worker", patch, PatchType.MERGE)


@asynccontextmanager
async def pool_of(embedded: Embedded, **spec: Any) -> AsyncIterator[Pool]:
    async with doors(embedded.cluster, {"mode": "Enforce", "simulated": True, **spec}) as world:
        selector = {"key": names.ROLE_LABEL, "operator": "In", "values": ["worker"]}
        body: JsonObject = {
            "apiVersion": names.API_VERSION,
            "kind": "MachineConfigPool",
            "metadata": {"name": "worker"},
            "spec": {"machineConfigSelector": {"matchExpressions": [selector]}},
        }
        for resource, made in (
            (NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HERE}}),
            (MACHINE_CONFIG_POOL.resource, body),
        ):
            try:
                await world.cluster.create(resource, made)
            except AlreadyExists:
                continue
        pool = Pool(world)
        await pool.look()
        yield pool


@pytest.fixture
async def pool(embedded_server: Embedded) -> AsyncIterator[Pool]:
    async with pool_of(embedded_server) as made:
        yield made


@pytest.mark.row("002-15")
async def test_the_ticket_changes_every_day_and_the_one_before_stays_good_for_a_day_more(pool: Pool) -> None:
    first, clock = await pool.ticket(), pool.world.clock
    assert 0 < await pool.look() <= DAY.total_seconds()
    clock.ahead += DAY - timedelta(minutes=1)
    assert await pool.look() <= 60
    assert await pool.ticket() == first
    clock.ahead += timedelta(minutes=1)
    await pool.look()
    second = await pool.ticket()
    assert second != first
    assert (await pool.enrol(first)).startswith("machine-")
    assert (await pool.enrol(second)).startswith("machine-")
    clock.ahead += DAY
    await pool.look()
    assert await pool.ticket() not in (first, second)
    assert await pool.enrol(first) == "ticket-expired"
    assert (await pool.enrol(second)).startswith("machine-")
    clock.ahead += timedelta(days=21)
    await pool.look()
    assert (await pool.enrol(await pool.ticket())).startswith("machine-")
    digests = {join_ticket["spec"]["secretHash"] for join_ticket in await pool.tickets()}
    assert ticket_hash(first) not in digests


async def test_a_ticket_that_was_made_to_last_is_replaced_and_ends_with_the_next_rotation(pool: Pool) -> None:
    old = await pool.ticket()
    name = (await pool.stored(old))["metadata"]["name"]
    patch = {"spec": {"expires": rfc3339(pool.world.clock.now() + timedelta(days=30)), "uses": 0}}
    await pool.world.cluster.patch(JOIN_TICKET.resource, name, patch, PatchType.MERGE)
    await pool.look()
    assert await pool.ticket() != old
    spec = (await pool.stored(old))["spec"]
    assert (spec["uses"], spec["expires"] <= rfc3339(pool.world.clock.now() + DAY)) == (10, True)


async def test_a_ticket_is_good_for_twice_what_the_pool_wants_and_grows_with_it(pool: Pool) -> None:
    assert await pool.uses() == 10
    ticket = await pool.ticket()
    for machines, uses in (("7", 14), ("3", 14), ("no number", 14), ("40", 80)):
        await pool.annotate(machines)
        await pool.look()
        assert await pool.uses() == uses
    value = {"userDataSecret": {"name": f"worker{names.USER_DATA_SUFFIX}"}}
    machine_set = {
        "apiVersion": MACHINE_SET.api_version, "kind": MACHINE_SET.kind, "metadata": {"name": "a", "namespace": HERE},
        "spec": {"replicas": 60, "selector": {}, "template": {"spec": {"providerSpec": {"value": value}}}},
    }  # fmt: skip
    await pool.world.cluster.create(MACHINE_SET.resource, machine_set)
    await pool.look()
    assert await pool.uses() == 120
    assert await pool.ticket() == ticket


async def test_machines_that_attested_raise_the_limit_and_keys_in_software_do_not(pool: Pool) -> None:
    ticket = await pool.ticket()
    for _ in range(10):
        assert (await pool.enrol(ticket, "snp")).startswith("machine-")
    await pool.look()
    assert (await pool.ticket(), await pool.uses()) == (ticket, 10)
    assert (await pool.enrol(ticket)).startswith("machine-")
    attested = (await pool.world.machines())[:6]
    for machine in attested:
        await pool.world.cluster.patch(
            MACHINE.resource, machine["metadata"]["name"], {"status": {"lastAttested": "2026-01-01T00:00:00Z"}},
            PatchType.MERGE, NAMESPACE, WriteOptions(subresource="status"),
        )  # fmt: skip
    await pool.look()
    assert (await pool.ticket(), await pool.uses()) == (ticket, 12)


async def test_a_ticket_that_was_used_up_is_replaced_at_once(pool: Pool) -> None:
    ticket = await pool.ticket()
    for _ in range(10):
        assert (await pool.enrol(ticket)).startswith("machine-")
    assert await pool.enrol(ticket) == "ticket-used-up"
    await pool.look()
    fresh = await pool.ticket()
    assert fresh != ticket
    assert await pool.enrol(ticket) == "ticket-used-up"
    assert (await pool.enrol(fresh)).startswith("machine-")


@pytest.mark.parametrize("model", ["None", "ContainersHost"])
async def test_where_machines_fetch_with_the_ticket_alone_it_has_no_limit(
    embedded_server: Embedded, model: str
) -> None:
    async with pool_of(embedded_server, pools=[{"name": "worker", "trustModel": model}]) as pool:
        await pool.annotate("40")
        await pool.look()
        assert await pool.uses() == 0


async def test_at_rest_another_look_writes_nothing(pool: Pool, embedded_server: Embedded) -> None:
    await pool.annotate("40")
    await pool.look()
    before = embedded_server.server.api.store.revision
    await pool.look()
    assert embedded_server.server.api.store.revision == before
