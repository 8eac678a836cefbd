"""The record as pages read it: its newest entries, and one entry with the proof that it is in.

What is shown stands under a checkpoint that the user may see. A proof is checked here before it is shown, with the same functions
that make it believable elsewhere; who trusts none of us verifies it with `fastness audit verify`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass

from fastness.crypto import merkle
from fastness.formats import json
from fastness.formats.errors import FormatError
from fastness.formats.tlog import TlogError
from fastness.kinds.kind import JsonObject
from fastness.kube.errors import ApiError
from fastness.record.live.log import Grown, LogView
from fastness.record.live.tiles import TileStore


@dataclass(frozen=True, slots=True)
class Proved:
    """One entry, the hashes that lead from it to the root, and whether they do."""

    index: int
    entry: JsonObject
    leaf: bytes
    path: Sequence[tuple[str, bytes]]
    root: bytes
    holds: bool


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the record, which may grow meanwhile; without tiles there is none to read."""

    tiles: TileStore | None = None
    grown: Grown | None = None

    async def newest(self, checkpoint: JsonObject | None, last: int, before: int | None = None) -> list[JsonObject]:
        """The last entries under a checkpoint (or those before a number), newest first; none when they cannot be read now."""
        if self.tiles is None or checkpoint is None:
            return []
        size = int(checkpoint["spec"]["size"])
        end = size if before is None else max(0, min(before, size))
        newest: list[JsonObject] = []
        try:
            async for index, data in LogView(self.tiles, size, self.grown).entries(max(0, end - last), end):
                newest.append({**json.decode(data), "index": index})
        except (TlogError, FormatError, ApiError, OSError):
            return []
        return newest[::-1]

    async def prove(self, checkpoint: JsonObject | None, index: int) -> Proved | None:
        """One entry with its proof; None when it is not there or cannot be read now."""
        if self.tiles is None or checkpoint is None or not 0 <= index < int(checkpoint["spec"]["size"]):
            return None
        size = int(checkpoint["spec"]["size"])
        view = LogView(self.tiles, size, self.grown)
        try:
            (data,) = [leaf_data async for _, leaf_data in view.entries(index, index + 1)]
            entry, hashes = json.decode(data), await view.inclusion(index)
            root = base64.b64decode(str(checkpoint["spec"]["rootHash"]), validate=True)
        except (TlogError, FormatError, ApiError, OSError, binascii.Error):
            return None
        leaf = merkle.leaf_hash(data)
        sides = ["left" if start < index else "right" for start, _ in merkle.inclusion_ranges(index, size)]
        holds = merkle.verify_inclusion(leaf, index, size, hashes, root)
        return Proved(index, {**entry, "index": index}, leaf, list(zip(sides, hashes, strict=True)), root, holds)
