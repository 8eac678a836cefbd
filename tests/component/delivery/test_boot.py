"""From a ticket to a configuration over real TLS, and everything that may go wrong on the way."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fastness.agent.boot import boot_once
from fastness.sim.tee.images import default_image
from tests.delivering import ACCEPT, DeliveringWorld, delivering_world
from tests.embedded.fixtures import Embedded


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[DeliveringWorld]:
    async with delivering_world(embedded_server.cluster) as found:
        yield found


@pytest.mark.parametrize("tee", ["tpm", "snp", "tdx"])
async def test_a_machine_of_each_kind_comes_by_its_configuration(world: DeliveringWorld, tee: str) -> None:
    await world.publish(default_image().reference_values(tee))
    booted = await boot_once(world.machine(tee), await world.ask(), world.trust, world.patience())
    assert booted.body == world.shelf.body
    assert booted.machine.pool == "worker"
    assert booted.node_name
    assert world.shelf.asked == [("worker", ACCEPT)]
    assert [entry.what for entry in world.record.entries] == ["release"]
