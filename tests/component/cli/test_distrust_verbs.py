"""`fastness distrust`: what it would hit comes first, a plan changes nothing, and the end is a deletion."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from fastness.kinds.fastness_dev.distrust import DISTRUST
from fastness.kinds.trusted_execution.machine import MACHINE
from tests.attesting import AttestingWorld, attesting_world
from tests.embedded.fixtures import Embedded


class Administrator:
    """Runs the command against a cluster with machines."""

    def __init__(self, embedded: Embedded, world: AttestingWorld) -> None:
        self.embedded = embedded
        self.world = world

    async def run(self, *words: str) -> Result:
        where = ["--kubeconfig", str(self.embedded.kubeconfig)]
        return await asyncio.to_thread(CliRunner().invoke, cli, ["distrust", *words, *where], prog_name="fastness")

    async def stored(self) -> list[dict[str, object]]:
        return [distrust["spec"] for distrust in (await self.world.cluster.list(DISTRUST.resource)).items]


@pytest.fixture
async def administrator(embedded_server: Embedded) -> AsyncIterator[Administrator]:
    ready: asyncio.Future[Administrator] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def hold() -> None:
        async with attesting_world(embedded_server.cluster) as world:
            await world.approve("snp")
            for _ in range(2):
                async with world.broker(await world.enrolled("snp")) as broker:
                    await broker.attest()
            ready.set_result(Administrator(embedded_server, world))
            await over.wait()

    holding = asyncio.create_task(hold())
    yield await ready
    over.set()
    await holding


async def test_a_plan_shows_machines_pools_and_nodes_and_changes_nothing(administrator: Administrator) -> None:
    plan = await administrator.run("generation", "genoa", "--reason", "advisory", "--plan", "-o", "json")
    assert plan.exit_code == 0, plan.output
    radius = json.loads(plan.stdout)
    assert [machine["pool"] for machine in radius["machines"]] == ["worker", "worker"]
    assert all(machine["node"].startswith("worker-") and machine["attested"] for machine in radius["machines"])
    assert radius["pools"] == [{"name": "worker", "attested": 2, "left": 0}]
    assert radius["emptied"] == ["worker"]
    assert (radius["plan"], radius["name"]) == (True, "")
    assert await administrator.stored() == []


async def test_a_pool_is_not_emptied_by_accident(administrator: Administrator) -> None:
    refused = await administrator.run("generation", "Genoa", "--reason", "advisory")
    assert refused.exit_code != 0
    assert "worker" in refused.stderr
    assert await administrator.stored() == []
    done = await administrator.run("generation", "Genoa", "--reason", "advisory", "--yes")
    assert done.exit_code == 0, done.output
    assert await administrator.stored() == [{"chipGeneration": "Genoa", "reason": "advisory"}]


async def test_a_machine_is_named_by_its_node_and_trusted_again(administrator: Administrator) -> None:
    plan = json.loads((await administrator.run("generation", "Genoa", "--reason", "x", "--plan", "-o", "json")).stdout)
    node = plan["machines"][0]["node"]
    done = await administrator.run("machine", node, "--reason", "stolen", "--name", "stolen", "--expires", "7d")
    assert done.exit_code == 0, done.output
    assert "1 of 2 attested machines are left" in done.stderr
    (spec,) = await administrator.stored()
    assert spec["reason"] == "stolen"
    assert "expires" in spec
    listed = json.loads((await administrator.run("list", "-o", "json")).stdout)
    assert [distrust["name"] for distrust in listed] == ["stolen"]
    assert (await administrator.run("end", "stolen")).exit_code == 0
    assert await administrator.stored() == []
    assert (await administrator.run("end", "stolen")).exit_code != 0


@pytest.mark.parametrize(
    "words",
    [
        ("image", "registry.example/os:latest"),
        ("key", "sha256:12"),
        ("tcb", "snp.microcode"),
        ("tcb", "snp.unknown=3"),
        ("tcb", "tdx.tcbDate=17"),
        ("generation", "Genoa", "--expires", "soon"),
        ("machine", "nobody"),
    ],
)
async def test_nonsense_is_refused_with_a_hint_and_writes_nothing(
    administrator: Administrator, words: tuple[str, ...]
) -> None:
    refused = await administrator.run(*words, "--reason", "x", "--yes")
    assert refused.exit_code != 0
    assert refused.stderr.startswith("fastness: ")
    assert await administrator.stored() == []


async def test_a_chip_and_an_endorsement_key_are_named_by_themselves_or_by_their_machine(
    administrator: Administrator,
) -> None:
    world = administrator.world
    tpm = await world.enrolled("tpm")
    machines = (await world.cluster.list(MACHINE.resource)).items
    name, chip = next((row["metadata"]["name"], row["status"]["chip"]) for row in machines if row["status"].get("chip"))
    plan = json.loads((await administrator.run("chip", name, "--reason", "x", "--plan", "-o", "json")).stdout)
    assert (plan["target"], [row["name"] for row in plan["machines"]]) == (f"chip {chip}", [name])
    assert plan["effect"] == "refused until it proves better"
    done = await administrator.run("chip", chip, "--reason", "its socket was opened")
    assert done.exit_code == 0, done.output
    assert {"chip": chip, "reason": "its socket was opened"} in await administrator.stored()
    tpm_machine = await world.machine_object(tpm)
    tpm_name, key = tpm_machine["metadata"]["name"], tpm_machine["status"]["endorsement"]["key"]
    plan = json.loads(
        (await administrator.run("endorsement-key", tpm_name, "--reason", "x", "--plan", "-o", "json")).stdout
    )
    assert (plan["target"], plan["effect"]) == (f"endorsementKey {key}", "revoked")
    assert (await administrator.run("endorsement-key", key, "--reason", "stolen")).exit_code == 0
    for words in (("chip", tpm_name), ("endorsement-key", name)):
        refused = await administrator.run(*words, "--reason", "x")
        assert (refused.exit_code, "Distrust" in refused.output or "endorsement key" in refused.output) == (1, True)
