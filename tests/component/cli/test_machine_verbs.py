"""`fastness machine`: decisions about machines, as an administrator makes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from fastness.enrolment.loops.machines import Machines
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.objects import ObjectName
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import PatchType, WriteOptions
from tests.embedded.fixtures import Embedded
from tests.enrolling import World, doors


class Administrator:
    """Runs the command, and lets the control plane follow."""

    def __init__(self, embedded: Embedded, world: World) -> None:
        self.embedded = embedded
        self.world = world
        self._loop = Machines(world.cluster, world.informers, world.record, world.clock)

    async def run(self, *words: str) -> Result:
        where = ["--kubeconfig", str(self.embedded.kubeconfig)]
        return await asyncio.to_thread(CliRunner().invoke, cli, ["machine", *words, *where], prog_name="fastness")

    async def follow(self) -> None:
        for machine in await self.world.machines():
            await self._loop.reconcile(ObjectName(NAMESPACE, machine["metadata"]["name"]))

    async def states(self) -> dict[str, str]:
        machines = json.loads((await self.run("list", "-o", "json")).stdout)
        return {entry["name"]: entry["state"] for entry in machines}


@pytest.fixture
async def administrator(embedded_server: Embedded) -> AsyncIterator[Administrator]:
    spec = {"mode": "Enforce", "simulated": True, "join": {"approval": "Manual", "trustOnFirstUse": True}}
    ready: asyncio.Future[Administrator] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def hold() -> None:
        async with doors(embedded_server.cluster, spec) as world:
            ready.set_result(Administrator(embedded_server, world))
            await over.wait()

    holding = asyncio.create_task(hold())
    yield await ready
    over.set()
    await holding


async def test_a_machine_is_listed_approved_quarantined_and_released(administrator: Administrator) -> None:
    world = administrator.world
    name = (await world.enrol(world.machine(), await world.ticket())).name
    assert await administrator.states() == {name: "Pending"}
    done = await administrator.run("approve", name, "--reason", "rack 7")
    assert (done.exit_code, done.stdout) == (0, f"{name}: approved\n"), done.output
    await administrator.follow()
    assert await administrator.states() == {name: "Approved"}
    assert (await administrator.run("approve", name)).stdout == f"{name}: approved already\n"
    held = await administrator.run("quarantine", name, "--reason", "odd traffic")
    assert held.exit_code == 0
    assert await administrator.states() == {name: "Quarantined"}
    await administrator.follow()
    refused = await administrator.run("approve", name)
    assert refused.exit_code == 1
    assert "fastness machine release" in refused.stderr
    assert (await administrator.run("release", name)).exit_code == 0
    await administrator.follow()
    assert await administrator.states() == {name: "Approved"}
    assert (await administrator.run("release", name)).stdout == f"{name}: approved already\n"
    acts = [entry.what for entry in world.record.entries]
    assert acts == ["enrol", "machine-approve", "machine-quarantine", "machine-approve"]


async def test_a_quarantine_needs_a_reason(administrator: Administrator) -> None:
    refused = await administrator.run("quarantine", "machine-x")
    assert refused.exit_code == 2
    assert "--reason" in refused.stderr


async def test_show_says_who_vouched_for_a_machine_and_lists_its_conditions(administrator: Administrator) -> None:
    world = administrator.world
    enrolled = await world.enrol(world.machine("tpm", certified=False), await world.ticket())
    description = (await administrator.run("show", enrolled.node_name)).stdout
    assert "trusted on first use" in description
    assert "TrustOnFirstUse" in description
    as_json = json.loads((await administrator.run("show", enrolled.name, "-o", "json")).stdout)
    assert as_json["uid"] == enrolled.machine
    assert as_json["endorsement"].startswith("sha256:")


async def test_the_list_can_be_narrowed_and_says_when_it_is_empty(administrator: Administrator) -> None:
    world = administrator.world
    empty = await administrator.run("list")
    assert (empty.exit_code, empty.stdout, empty.stderr) == (0, "", "no machines\n")
    await world.enrol(world.machine("snp"), await world.ticket("infra"))
    worker = await world.enrol(world.machine("tdx"), await world.ticket("worker"))
    lines = (await administrator.run("list", "--pool", "worker")).stdout.splitlines()
    assert lines[0].split() == ["NAME", "POOL", "NODE", "TEE", "STATE", "ATTESTED", "REASON", "ENROLLED", "NOTES"]
    assert [line.split()[0] for line in lines[1:]] == [worker.name]
    assert (await administrator.run("list", "--state", "Revoked")).stdout == ""


async def test_a_name_that_means_none_or_several_is_refused_before_anything_is_written(
    administrator: Administrator,
) -> None:
    world, ticket = administrator.world, await administrator.world.ticket()
    first = (await world.enrol(world.machine("snp"), ticket)).name
    await world.enrol(world.machine("snp"), ticket)
    none = await administrator.run("approve", first, "nobody")
    assert (none.exit_code, "there is no machine nobody" in none.stderr) == (1, True)
    several = await administrator.run("approve", "machine-")
    assert (several.exit_code, "means several machines" in several.stderr) == (2, True)
    assert set((await administrator.states()).values()) == {"Pending"}
    beginning = first.removeprefix("machine-")[:8]
    assert (await administrator.run("approve", beginning)).stdout == f"{first}: approved\n"


async def test_a_revoked_machine_cannot_be_approved(administrator: Administrator) -> None:
    world = administrator.world
    name = (await world.enrol(world.machine("snp"), await world.ticket())).name
    revoked = {"status": {"conditions": [{"type": "Revoked", "status": "True", "reason": "Distrusted"}]}}
    await world.cluster.patch(
        MACHINE.resource, name, revoked, PatchType.MERGE, NAMESPACE, WriteOptions(subresource="status")
    )
    refused = await administrator.run("approve", name)
    assert (refused.exit_code, "enrol anew" in refused.stderr) == (1, True)
