"""The tiles of the record: one that is lost is damage, and nothing is written over the gap."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.formats.tlog import TlogError, tile_path
from fastness.record.live.log import extend
from fastness.record.live.tiles import MAX_TILE, FileTiles


async def test_a_record_does_not_grow_over_a_tile_that_is_missing(tmp_path: Path) -> None:
    tiles = FileTiles(tmp_path)
    entries = [b"one", b"two", b"three"]
    await extend(tiles, 0, entries)
    await tiles.remove(tile_path(0, 0, len(entries)))
    with pytest.raises(TlogError, match="missing"):
        await extend(tiles, len(entries), [b"four"])


async def test_a_file_that_is_longer_than_any_tile_is_damage(tmp_path: Path) -> None:
    tiles = FileTiles(tmp_path)
    with (tmp_path / "tile").open("wb") as file:
        file.truncate(MAX_TILE)
    assert len(await tiles.read("tile") or b"") == MAX_TILE
    with (tmp_path / "tile").open("ab") as file:
        file.write(b"x")
    with pytest.raises(TlogError, match="too long"):
        await tiles.read("tile")
