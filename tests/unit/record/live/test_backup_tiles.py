"""A whole record at once: every piece belongs to its entries, and all of them to the root that somebody vouches for."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastness.formats.tlog import WIDTH, TlogError, entries_path, tile_path
from fastness.record.live.backup_tiles import check_tiles, tiles_at
from fastness.record.live.log import extend
from fastness.record.live.tiles import MAX_TILE, FileTiles

SIZE = WIDTH + 3
ENTRIES = [b"entry %d" % number for number in range(SIZE)]


async def test_a_whole_record_is_read_with_all_its_levels(tmp_path: Path) -> None:
    root = await extend(FileTiles(tmp_path), 0, ENTRIES)
    pieces = check_tiles(tiles_at(tmp_path), SIZE, root)
    entries = {entries_path(0), entries_path(1, 3)}
    assert set(pieces) == entries | {tile_path(0, 0), tile_path(0, 1, 3), tile_path(1, 0, 1)}


async def test_a_record_that_was_rewritten_with_all_its_hashes_does_not_lead_to_the_root(tmp_path: Path) -> None:
    """Whoever holds the pieces computes every hash anew; the root is what they cannot change."""
    root = await extend(FileTiles(tmp_path / "true"), 0, ENTRIES)
    await extend(FileTiles(tmp_path / "forged"), 0, [b"another", *ENTRIES[1:]])
    with pytest.raises(TlogError, match="do not lead to the root"):
        check_tiles(tiles_at(tmp_path / "forged"), SIZE, root)


async def test_hashes_of_a_level_above_that_are_changed_or_missing_are_named(tmp_path: Path) -> None:
    root = await extend(FileTiles(tmp_path), 0, ENTRIES)
    above = tile_path(1, 0, 1)
    (tmp_path / above).write_bytes(bytes(32))
    with pytest.raises(TlogError, match=f"{above} of the record does not belong"):
        check_tiles(tiles_at(tmp_path), SIZE, root)
    (tmp_path / above).unlink()
    with pytest.raises(TlogError, match=f"{above} of the record is missing"):
        check_tiles(tiles_at(tmp_path), SIZE, root)


def test_a_file_that_is_longer_than_any_tile_is_not_read_to_its_end(tmp_path: Path) -> None:
    with (tmp_path / "tile").open("wb") as file:
        file.truncate(MAX_TILE + 1)
    with pytest.raises(TlogError, match="too long"):
        tiles_at(tmp_path)("tile")
