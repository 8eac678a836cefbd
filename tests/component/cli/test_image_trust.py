"""The file that an image carries: made of what the cluster has, and read by the agent as it is."""

from __future__ import annotations

import asyncio
from pathlib import Path

from click.testing import CliRunner, Result

from fastness.agent.boot.boot import boot_once
from fastness.agent.boot.image_trust import ImageTrust
from fastness.cli.main import cli
from fastness.sim.tee.images import default_image
from tests.delivering import delivering_world
from tests.embedded.fixtures import Embedded


async def print_trust(embedded: Embedded, *words: str) -> Result:
    command = ["image", "trust", "--kubeconfig", str(embedded.kubeconfig), *words]
    return await asyncio.to_thread(CliRunner().invoke, cli, command)


async def test_a_machine_whose_image_carries_the_file_believes_this_cluster(
    embedded_server: Embedded, tmp_path: Path
) -> None:
    async with delivering_world(embedded_server.cluster) as world:
        await world.publish(default_image().reference_values("tpm"))
        result = await print_trust(
            embedded_server, "--file", str(tmp_path / "trust.json"), "--origin", f"{world.server}/"
        )
        assert result.exit_code == 0, result.output
        trust = ImageTrust.load(tmp_path / "trust.json")
        assert trust.origin == world.server
        booted = await boot_once(world.machine(), await world.ask(), trust, world.patience())
        assert booted.body == world.shelf.body
        printed = await print_trust(embedded_server)
        assert "PRIVATE" not in printed.stdout
        assert ImageTrust.parse(printed.stdout.encode()).keys.keys() == trust.keys.keys()
        assert '"d"' not in printed.stdout


async def test_without_doors_there_is_nothing_to_believe(embedded_server: Embedded) -> None:
    result = await print_trust(embedded_server)
    assert result.exit_code == 3
    assert "Start the doors once" in result.output


async def test_an_origin_that_is_no_address_is_refused(embedded_server: Embedded) -> None:
    async with delivering_world(embedded_server.cluster):
        result = await print_trust(embedded_server, "--origin", "cluster.example")
        assert result.exit_code == 2
        assert "https" in result.output
