"""The record over tiles: append at the end, read anything, prove anything.

    root = await extend(tiles, size, entries)          # writes tiles only; nobody counts them until a head says so
    view = LogView(tiles, size, grown)                 # the record as it was at that size, however far it grows meanwhile
    await view.inclusion(index); await view.consistency(old)

A view stays good while the record grows: what it covers never changes, only the partial pieces at the end of the record are
replaced by longer ones that begin with the same. A piece that is gone is looked for at the size that `grown` tells, as long as
that moves; a piece that is missing at a size which stands still is damage.

`extend` writes the same bytes whenever it is called with the same arguments, so it can be repeated after a stop at any point.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from fastness.crypto import merkle
from fastness.formats.tlog import (
    HEIGHT,
    WIDTH,
    TlogError,
    decode_bundle,
    decode_hashes,
    encode_bundle,
    encode_hashes,
    entries_path,
    tile_path,
)
from fastness.record.live.tiles import TileStore

Grown = Callable[[], Awaitable[int]]
"""Tells how many entries the record has by now."""
_KEPT_TILES: Final = 256


class LogView:
    """The record at one size. Without `grown` nobody may add to it while it is read."""

    def __init__(self, tiles: TileStore, size: int, grown: Grown | None = None) -> None:
        self.size = size
        self._tiles = tiles
        self._grown = grown
        self._newest = size
        self._cache: dict[tuple[int, int], list[bytes]] = {}

    async def root(self) -> bytes:
        """The root hash of the tree at this size; raises TlogError."""
        return await self._range(0, self.size)

    async def beginning(self, size: int) -> bytes:
        """The root hash of the first `size` entries, by the tiles of this record and not by older ones."""
        return await self._range(0, min(size, self.size))

    async def inclusion(self, index: int) -> list[bytes]:
        """The proof that entry `index` is in; raises ValueError, TlogError."""
        return [await self._range(*span) for span in merkle.inclusion_ranges(index, self.size)]

    async def consistency(self, old: int) -> list[bytes]:
        """The proof that the record of `old` entries is the beginning of this one; raises ValueError, TlogError."""
        return [await self._range(*span) for span in merkle.consistency_ranges(old, self.size)] if old else []

    async def entries(self, start: int = 0, end: int | None = None) -> AsyncIterator[tuple[int, bytes]]:
        """Entries with their numbers; raises TlogError when one is gone."""
        end = self.size if end is None else min(end, self.size)
        while start < end:
            number = start // WIDTH
            bundle = await self._bundle(number)
            for index in range(start, min(end, (number + 1) * WIDTH)):
                yield index, bundle[index - number * WIDTH]
            start = (number + 1) * WIDTH

    async def pieces(self) -> AsyncIterator[tuple[str, bytes]]:
        """Every file of this record with its path, hashes before entries; entries may be pruned. Raises TlogError."""
        level = 0
        while level == 0 or self.size >> (HEIGHT * level):
            for number in range(-(-(self.size >> (HEIGHT * level)) // WIDTH)):
                width = tile_width(level, number, self.size)
                yield tile_path(level, number, width), encode_hashes(await self._tile(level, number))
                bundle = await self._bundle_if_kept(number) if level == 0 else None
                if bundle is not None:
                    yield entries_path(number, width), encode_bundle(bundle[:width])
            level += 1

    async def _range(self, start: int, end: int) -> bytes:
        parts = [await self._subtree(level, index) for level, index in merkle.complete_subtrees(start, end)]
        return merkle.fold(parts)

    async def _subtree(self, level: int, index: int) -> bytes:
        height = level % HEIGHT
        first = index << height
        tile = await self._tile(level // HEIGHT, first // WIDTH)
        at = first % WIDTH
        return merkle.perfect_root(tile[at : at + (1 << height)])

    async def _tile(self, level: int, number: int) -> list[bytes]:
        cached = self._cache.get((level, number))
        if cached is None:
            width = tile_width(level, number, self.size)
            piece = await self._piece(lambda part: tile_path(level, number, part), level, number)
            if piece is None:
                raise TlogError(f"{tile_path(level, number, width)} of the record is missing")
            cached = decode_hashes(*piece)[:width]
            if len(self._cache) >= _KEPT_TILES:
                self._cache.clear()
            self._cache[level, number] = cached
        return cached

    async def _bundle(self, number: int) -> list[bytes]:
        bundle = await self._bundle_if_kept(number)
        if bundle is None:
            raise TlogError(f"{entries_path(number, tile_width(0, number, self.size))} of the record is missing")
        return bundle

    async def _bundle_if_kept(self, number: int) -> list[bytes] | None:
        piece = await self._piece(lambda size: entries_path(number, size), 0, number)
        return None if piece is None else decode_bundle(*piece)

    async def _piece(self, path: Callable[[int], str], level: int, number: int) -> tuple[bytes, int] | None:
        """A piece and its width: that of this view, or of the newest size, as partial pieces go when they have grown."""
        width = tile_width(level, number, self.size)
        data = await self._tiles.read(path(width))
        while data is None:
            # The size seen last comes first: every question to `grown` costs a list of checkpoints.
            width = tile_width(level, number, self._newest)
            data = await self._tiles.read(path(width))
            if data is None:
                newest = await self._grown() if self._grown is not None else self._newest
                if newest <= self._newest:
                    return None
                self._newest = newest
        return data, width


async def extend(tiles: TileStore, size: int, entries: Sequence[bytes]) -> bytes:
    """Write the tiles of a record of `size` that grows by these entries; returns the new root."""
    # Entries before the hashes over them: a crash in between leaves text that nothing refers to, never a hash without its text.
    await _bundles(tiles, size, entries)
    fresh = [merkle.leaf_hash(entry) for entry in entries]
    level, before = 0, size
    while fresh:
        fresh, before = await _grow(tiles, level, before, fresh)
        level += 1
    return await LogView(tiles, size + len(entries)).root()


async def drop_partials(tiles: TileStore, old: int, new: int) -> None:
    """Forget the partial pieces of a record of `old` that a record of `new` does not need."""
    level = 0
    while old >> (HEIGHT * level):
        number = (old >> (HEIGHT * level)) // WIDTH
        width = tile_width(level, number, old)
        if 0 < width < WIDTH and width != tile_width(level, number, new):
            await tiles.remove(tile_path(level, number, width))
            if level == 0:
                await tiles.remove(entries_path(number, width))
        level += 1


def tile_width(level: int, number: int, size: int) -> int:
    """How many hashes the tile has in a record of this size."""
    return max(0, min(WIDTH, (size >> (HEIGHT * level)) - number * WIDTH))


async def _bundles(tiles: TileStore, size: int, entries: Sequence[bytes]) -> None:
    number, held = size // WIDTH, size % WIDTH
    present: list[bytes] = []
    if held:
        present = [entry async for _, entry in LogView(tiles, size).entries(number * WIDTH)]
    row = [*present, *entries]
    for at in range(0, len(row), WIDTH):
        part = row[at : at + WIDTH]
        await tiles.write(entries_path(number + at // WIDTH, len(part)), encode_bundle(part))


async def _grow(tiles: TileStore, level: int, before: int, fresh: Sequence[bytes]) -> tuple[list[bytes], int]:
    """Append hashes to the tiles of one level; returns the hashes of the tiles that became whole, for the level above."""
    number, held = before // WIDTH, before % WIDTH
    hashes: list[bytes] = []
    if held:
        data = await tiles.read(tile_path(level, number, held))
        if data is None:
            raise TlogError(f"{tile_path(level, number, held)} of the record is missing")
        hashes = decode_hashes(data, held)
    row = [*hashes, *fresh]
    whole = []
    for at in range(0, len(row), WIDTH):
        part = row[at : at + WIDTH]
        await tiles.write(tile_path(level, number + at // WIDTH, len(part)), encode_hashes(part))
        if len(part) == WIDTH:
            whole.append(merkle.perfect_root(part))
    return whole, before // WIDTH
