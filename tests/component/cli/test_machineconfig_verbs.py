"""`fastness plan` and `fastness blame` against a running API, as a person would use them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from fastness.cli.config.cluster_state import state_of
from fastness.cli.main import cli
from fastness.kinds.kind import Resource
from fastness.kinds.registry import find
from tests.embedded.fixtures import Embedded
from tests.unit.machineconfig.build import file, ignition, mc, node, pool

GROUP = "machineconfiguration.openshift.io"
CONFIGS = find(GROUP, "v1", "machineconfigs").resource
POOLS = find(GROUP, "v1", "machineconfigpools").resource
NODES = find("", "v1", "nodes").resource
CHRONY = mc("50-chrony", ignition(file("/etc/chrony.conf", "server a\n")))


async def run(embedded: Embedded, *arguments: str) -> Result:
    """Run the command in a thread of its own: it has its own loop, as in a shell."""
    given = [*arguments, "--kubeconfig", str(embedded.kubeconfig)]
    return await asyncio.to_thread(lambda: CliRunner().invoke(cli, given))


@pytest.fixture
async def world(embedded_server: Embedded) -> Embedded:
    """A worker pool with one config and one node."""
    made: list[tuple[Resource, dict[str, Any]]] = [
        (POOLS, pool()), (CONFIGS, CHRONY), (NODES, node("n1", "worker", current="rendered-worker-0")),
    ]  # fmt: skip
    for resource, obj in made:
        await embedded_server.cluster.create(resource, obj)
    return embedded_server


async def test_plan_asks_the_cluster_and_changes_nothing(world: Embedded, tmp_path: Path) -> None:
    before = await state_of(world.cluster)
    new = tmp_path / "new.yaml"
    new.write_text(yaml.safe_dump(mc("60-chrony", ignition(file("/etc/chrony.conf", "server b\n")))))
    result = await run(world, "plan", "-f", str(new), "-o", "json")
    assert result.exit_code == 2, result.output
    planned = [pool for pool in json.loads(result.stdout)["pools"] if pool["name"] == "worker"]
    [change] = planned[0]["changes"]
    assert (change["path"], change["source"]) == ("/etc/chrony.conf", "60-chrony")
    assert [node["name"] for node in planned[0]["nodes"]] == ["n1"]
    after = await state_of(world.cluster)
    assert after.configs == before.configs


async def test_plan_of_a_delete_and_of_a_name_that_is_not_there(world: Embedded) -> None:
    result = await run(world, "plan", "--delete", "50-chrony", "--pool", "worker")
    assert result.exit_code == 1, result.output
    assert "matches no MachineConfig" in result.stdout
    missing = await run(world, "plan", "--delete", "50-chrno")
    assert missing.exit_code == 1
    assert "Did you mean 50-chrony?" in missing.stderr


async def test_blame_asks_the_cluster(world: Embedded) -> None:
    result = await run(world, "blame", "worker", "/etc/chrony.conf")
    assert result.exit_code == 0, result.output
    assert "50-chrony" in result.stdout
    nobody = await run(world, "blame", "wrker", "/etc/chrony.conf")
    assert nobody.exit_code == 1
    assert "Did you mean worker?" in nobody.stderr


async def test_a_cluster_that_does_not_answer_is_told_with_exit_code_4_or_3(tmp_path: Path) -> None:
    nowhere = tmp_path / "kubeconfig"
    nowhere.write_text("apiVersion: v1\nkind: Config\n")
    arguments = ["plan", "--delete", "a", "--kubeconfig", str(nowhere)]
    result = await asyncio.to_thread(lambda: CliRunner().invoke(cli, arguments))
    assert result.exit_code in (3, 4)
    assert "fastness:" in result.stderr
