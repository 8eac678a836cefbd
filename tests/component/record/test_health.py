"""A record that cannot be read or extended is told where a probe looks."""

from __future__ import annotations

import pytest

from fastness.formats.tlog import entries_path, tile_path
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.port import PatchType
from fastness.record.live.head import NAME
from fastness.record.live.health import RecordHealth
from tests.component.record.conftest import MemoryTiles, World, entry
from tests.component.record.test_record import door


async def checked(world: World) -> str | None:
    health = RecordHealth(world.cluster, world.tiles, world.clock)
    await health.look()
    return health.problem()


async def filled(world: World) -> MemoryTiles:
    record = door(world, 1)
    for number in range(5):
        await record.append(entry(number))
    await world.step()
    assert isinstance(world.tiles, MemoryTiles)
    return world.tiles


async def test_an_empty_and_a_whole_record_are_well(world: World) -> None:
    assert await checked(world) is None
    await filled(world)
    assert await checked(world) is None


@pytest.mark.parametrize("path", [tile_path(0, 0, 5), entries_path(0, 5)])
async def test_a_tile_that_is_missing_is_named(world: World, path: str) -> None:
    tiles = await filled(world)
    del tiles.pieces[path]
    assert path in (await checked(world) or "")


async def test_tiles_of_another_record_are_noticed(world: World) -> None:
    tiles = await filled(world)
    tiles.pieces[tile_path(0, 0, 5)] = bytes(160)
    assert "do not lead to its root" in (await checked(world) or "")


async def test_a_head_that_somebody_edited_is_told(world: World) -> None:
    await filled(world)
    await world.cluster.patch(CONFIG_MAP.resource, NAME, {"data": {"head": "{}"}}, PatchType.MERGE, NAMESPACE)
    assert "does not hold the state of a record" in (await checked(world) or "")
