"""`fastness ticket create`: a limit is given only where somebody counts."""

from __future__ import annotations

import asyncio
import json

import pytest
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from tests.embedded.fixtures import Embedded
from tests.enrolling import settle_cluster

SPEC = {
    "mode": "Enforce", "simulated": True,
    "pools": [{"name": "plain", "trustModel": "None"}, {"name": "host", "trustModel": "ContainersHost"}],
}  # fmt: skip


async def create(embedded: Embedded, *words: str) -> Result:
    where = ["--kubeconfig", str(embedded.kubeconfig), "-o", "json"]
    return await asyncio.to_thread(CliRunner().invoke, cli, ["ticket", "create", *words, *where], prog_name="fastness")


@pytest.mark.parametrize(("pool", "uses"), [("worker", 1), ("host", 1), ("plain", 0)])
async def test_without_a_choice_a_ticket_is_for_one_machine_where_machines_enrol(
    embedded_server: Embedded, pool: str, uses: int
) -> None:
    await settle_cluster(embedded_server.cluster, SPEC)
    made = json.loads((await create(embedded_server, "--pool", pool)).stdout)
    stored = await embedded_server.cluster.get(JOIN_TICKET.resource, made["name"])
    assert (made["uses"], stored["spec"]["uses"]) == (uses, uses)


async def test_a_limit_that_nobody_would_count_is_refused_with_the_reason(embedded_server: Embedded) -> None:
    await settle_cluster(embedded_server.cluster, SPEC)
    refused = await create(embedded_server, "--pool", "plain", "--uses", "3")
    assert refused.exit_code == 1
    assert "do not enrol" in refused.stderr
    assert "--uses 0" in refused.stderr
    assert (await embedded_server.cluster.list(JOIN_TICKET.resource)).items == []


async def test_a_ticket_for_a_pool_that_does_not_exist_is_made_and_said(embedded_server: Embedded) -> None:
    await settle_cluster(embedded_server.cluster, SPEC)
    made = await create(embedded_server, "--pool", "wroker")
    assert made.exit_code == 0
    assert "there is no pool wroker yet" in made.stderr
