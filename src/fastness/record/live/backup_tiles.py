"""The record in a backup: every tile of one size, checked against the head that the store holds.

    check_tiles(read, size, root)              every hash and every entry, or TlogError with the path of the first that is wrong
    read = tiles_at(directory)                 tiles of a record that may have grown since the size that is read

The store is copied first and the tiles after it: tiles only grow, so those of the copied size are all there, if need be as the
beginning of a longer one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
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
from fastness.record.live.log import tile_width
from fastness.record.live.tiles import MAX_TILE

Read = Callable[[str], bytes | None]
_TRIES: Final = 5


def check_tiles(read: Read, size: int, root: bytes) -> dict[str, bytes]:
    """All pieces of a record by path, if they lead to its root; raises TlogError."""
    pieces: dict[str, bytes] = {}
    whole: list[bytes] = []  # the roots of whole tiles: the hashes of the level above
    last: list[bytes] = []
    for number in range(-(-size // WIDTH)):
        width = tile_width(0, number, size)
        bundle = _piece(read, entries_path(number, width), pieces)
        leaves = [merkle.leaf_hash(entry) for entry in decode_bundle(bundle, width)]
        _same(read, tile_path(0, number, width), leaves, pieces)
        if width == WIDTH:
            whole.append(merkle.perfect_root(leaves))
        else:
            last = leaves
    _check_levels(read, whole, size, pieces)
    if _root(size, whole, last) != root:
        raise TlogError("the tiles do not lead to the root of the record")
    return pieces


def tiles_at(directory: Path) -> Read:
    """Reads tiles of a directory; a partial one that has grown meanwhile is cut to the width that its path names."""

    def read(path: str) -> bytes | None:
        for _ in range(_TRIES):  # one that is listed may have grown once more before it is opened
            data = _content(directory / path)
            if data is not None or ".p/" not in path:
                return data
            base, _, width = path.partition(".p/")
            for wider, place in _wider(directory, base, int(width)):
                data = _content(place)
                if data is not None:
                    return _cut(path, data, wider, int(width))
        return None

    return read


def _check_levels(read: Read, hashes: list[bytes], size: int, pieces: dict[str, bytes]) -> None:
    level = 1
    while size >> (HEIGHT * level):
        above: list[bytes] = []
        for number in range(-(-len(hashes) // WIDTH)):
            part = hashes[number * WIDTH : (number + 1) * WIDTH]
            _same(read, tile_path(level, number, len(part)), part, pieces)
            above += [merkle.perfect_root(part)] if len(part) == WIDTH else []
        hashes, level = above, level + 1


def _root(size: int, whole: list[bytes], last: list[bytes]) -> bytes:
    def subtree(level: int, index: int) -> bytes:
        if level < HEIGHT:  # only the last, partial tile is taken apart
            first = (index << level) % WIDTH
            return merkle.perfect_root(last[first : first + (1 << level)])
        height = level - HEIGHT
        return merkle.perfect_root(whole[index << height : (index + 1) << height])

    return merkle.fold([subtree(level, index) for level, index in merkle.complete_subtrees(0, size)])


def _piece(read: Read, path: str, pieces: dict[str, bytes]) -> bytes:
    data = read(path)
    if data is None:
        raise TlogError(f"{path} of the record is missing")
    pieces[path] = data
    return data


def _same(read: Read, path: str, hashes: list[bytes], pieces: dict[str, bytes]) -> None:
    if _piece(read, path, pieces) != encode_hashes(hashes):
        raise TlogError(f"{path} of the record does not belong to its entries")


def _content(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_TILE + 1)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    if len(data) > MAX_TILE:
        raise TlogError(f"{path} is too long for a tile")
    return data


def _wider(directory: Path, base: str, width: int) -> Iterator[tuple[int, Path]]:
    partial = directory / f"{base}.p"
    names = [int(tile.name) for tile in partial.iterdir() if tile.name.isdigit()] if partial.is_dir() else []
    yield from ((tile, partial / str(tile)) for tile in sorted(names) if tile > width)
    yield WIDTH, directory / base


def _cut(path: str, data: bytes, wider: int, width: int) -> bytes:
    if "/entries/" in path:
        return encode_bundle(decode_bundle(data, wider)[:width])
    return encode_hashes(decode_hashes(data, wider)[:width])
