"""Both homes of tiles keep what they are given, and say so when it was damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.formats.tlog import TlogError
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.port import PatchType
from fastness.record.live.tiles import ConfigMapTiles, FileTiles, TileStore
from tests.component.record.conftest import World


@pytest.fixture(params=["files", "configmaps"])
def tiles(request: pytest.FixtureRequest, world: World, tmp_path: Path) -> TileStore:
    return FileTiles(tmp_path / "record") if request.param == "files" else ConfigMapTiles(world.cluster)


async def test_a_piece_is_read_as_it_was_written_and_replaced_as_a_whole(tiles: TileStore) -> None:
    for data in (b"first", b"second and longer", b"", bytes(256 * 32)):
        await tiles.write("tile/0/x001/234", data)
        assert await tiles.read("tile/0/x001/234") == data


async def test_what_is_not_there_is_none_and_may_be_removed(tiles: TileStore) -> None:
    assert await tiles.read("tile/0/000.p/5") is None
    await tiles.remove("tile/0/000.p/5")
    await tiles.write("tile/0/000.p/5", b"x")
    await tiles.remove("tile/0/000.p/5")
    assert await tiles.read("tile/0/000.p/5") is None


async def test_partial_and_whole_pieces_live_side_by_side(tiles: TileStore) -> None:
    await tiles.write("tile/entries/000.p/5", b"five")
    await tiles.write("tile/entries/000", b"whole")
    assert (await tiles.read("tile/entries/000.p/5"), await tiles.read("tile/entries/000")) == (b"five", b"whole")


@pytest.mark.parametrize("damage", [{"tile": "AAAA"}, {"other": "AAAA"}, {"tile": "eJwDAA=="}])
async def test_a_config_map_that_was_changed_by_hand_is_an_error(world: World, damage: dict[str, str]) -> None:
    tiles = ConfigMapTiles(world.cluster)
    await tiles.write("tile/0/000", bytes(64))
    patch = [{"op": "replace", "path": "/binaryData", "value": damage}]
    await world.cluster.patch(CONFIG_MAP.resource, "record.tile.0.000", patch, PatchType.JSON, NAMESPACE)
    with pytest.raises(TlogError):
        await tiles.read("tile/0/000")


async def test_files_are_private(tmp_path: Path) -> None:
    await FileTiles(tmp_path).write("tile/0/000", b"x")
    assert (tmp_path / "tile/0/000").stat().st_mode & 0o077 == 0
