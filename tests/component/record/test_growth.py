"""Reading while the record grows: what one reader sees stands under one checkpoint, wherever growth falls between its reads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from fastness.cli.trust.record_check import check_export
from fastness.formats.tlog import WIDTH, TlogError, entries_path, tile_path
from fastness.record.live.head import read_head
from fastness.record.live.log_key import known_keys
from fastness.record.live.reader import OpenRecord, open_record
from fastness.record.live.record import ClusterRecord
from tests.component.record.conftest import World, entry
from tests.virtual import SeededEntropy

Growth = Callable[[], Awaitable[None]]


class Growing:
    """Tiles of a record that grows right before chosen reads."""

    def __init__(self, world: World, grow: Growth, at: int, *, always: bool = False) -> None:
        self._world, self._grow = world, grow
        self._at, self._always = at, always
        self.reads = self.growths = 0

    async def read(self, path: str) -> bytes | None:
        self.reads += 1
        if self.reads == self._at or (self._always and self.growths < 5):
            self.growths += 1
            await self._grow()
        return await self._world.tiles.read(path)

    async def write(self, path: str, data: bytes) -> None:
        raise AssertionError("a reader writes nothing")

    async def remove(self, path: str) -> None:
        raise AssertionError("a reader removes nothing")


class Writer:
    """Fills the record."""

    def __init__(self, world: World) -> None:
        self._world, self._count = world, 0
        self._door = ClusterRecord(world.cluster, world.clock, SeededEntropy(5), "broker")

    async def add(self, count: int) -> None:
        await asyncio.gather(*(self._door.append(entry(self._count + number)) for number in range(count)))
        self._count += count
        await self._world.step()


async def opened(world: World, tiles: Growing) -> OpenRecord:
    record = await open_record(world.cluster, tiles)
    assert record is not None
    return record


@pytest.mark.parametrize("growth", [1, 7], ids=["within a tile", "over the end of a tile"])
async def test_a_reader_keeps_to_its_checkpoint_wherever_the_record_grows(world: World, growth: int) -> None:
    writer = Writer(world)
    await writer.add(WIDTH - 5)
    for at in range(1, 9):
        head = await read_head(world.cluster)
        tiles = Growing(world, lambda: writer.add(growth), at)
        view = (await opened(world, tiles)).view
        indexes = [index async for index, _ in view.entries(max(0, view.size - 20))]
        assert indexes == list(range(max(0, head.size - 20), head.size))
        assert (view.size, await view.root()) == (head.size, head.root)
        await view.inclusion(head.size - 1)


async def test_an_export_made_while_the_record_grows_is_good(world: World, tmp_path: Path) -> None:
    writer = Writer(world)
    await writer.add(WIDTH + 3)
    keys = await known_keys(world.cluster)
    for at in range(1, 7):
        record = await opened(world, Growing(world, lambda: writer.add(2), at))
        target = tmp_path / str(at)
        async for path, data in record.view.pieces():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(data)
        (target / "checkpoint").write_text(record.note)
        checked = check_export(target, keys)
        assert (checked.size, checked.pruned) == (record.size, 0)


async def test_a_record_that_grows_before_every_read_is_read_to_the_end(world: World) -> None:
    writer = Writer(world)
    await writer.add(3)
    tiles = Growing(world, lambda: writer.add(1), 0, always=True)
    view = (await opened(world, tiles)).view
    assert [index async for index, _ in view.entries()] == [0, 1, 2]
    assert tiles.growths > 1


async def test_what_is_gone_from_a_record_that_stands_still_is_damage(world: World) -> None:
    await Writer(world).add(3)
    view = (await opened(world, Growing(world, lambda: world.step(), 0))).view
    await world.tiles.remove(entries_path(0, 3))
    with pytest.raises(TlogError, match=r"entries/000\.p/3 of the record is missing"):
        [entry async for entry in view.entries()]
    assert [path async for path, _ in view.pieces()] == [tile_path(0, 0, 3)]  # the hashes of pruned entries are left
    await world.tiles.remove(tile_path(0, 0, 3))
    with pytest.raises(TlogError, match=r"tile/0/000\.p/3 of the record is missing"):
        await (await opened(world, Growing(world, lambda: world.step(), 0))).view.root()


async def test_there_is_no_record_to_open_before_the_first_checkpoint(world: World) -> None:
    assert await open_record(world.cluster, world.tiles) is None
