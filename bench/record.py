"""The record at a million entries: what it costs to append one more, and to prove that one is there.

A million entries of ordinary size are folded into tiles in memory, in the batches that a busy sequencer takes; then the last
thousands are timed, and proofs over the whole tree. The disk is left out: it costs what a file costs.
"""

from __future__ import annotations

import asyncio
import random
import time

from bench.figures import Progress, Single, Spread
from fastness.crypto.merkle import leaf_hash, verify_consistency, verify_inclusion
from fastness.record.live.log import LogView, drop_partials, extend

ENTRIES = 1_000_000
BATCH = 500
TIMED = 40
PROOFS = 200
APPEND = "append to the record of a million entries: CPU per entry"
INCLUSION = "prove that one of a million entries is in the record: CPU"
CONSISTENCY = "prove that the record of a million entries only grew: CPU"


class MemoryTiles:
    """Tiles in a dictionary."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    async def read(self, path: str) -> bytes | None:
        """A tile."""
        return self.files.get(path)

    async def write(self, path: str, data: bytes) -> None:
        """Keep a tile."""
        self.files[path] = data

    async def remove(self, path: str) -> None:
        """Forget a tile."""
        self.files.pop(path, None)


def entry(number: int) -> bytes:
    """An entry of ordinary size."""
    return b'{"door":"broker-0011223344556677","number":%d,"entry":{"what":"release","who":"sha256:%064x"}}' % (
        number,
        number,
    )


def figures(say: Progress, entries: int = ENTRIES) -> list[Single]:
    """Every figure."""
    say(f"the record, {entries:,} entries")
    return asyncio.run(_measured(entries))


async def _measured(entries: int) -> list[Single]:
    tiles, spent = MemoryTiles(), []
    for size in range(0, entries, BATCH):
        began = time.process_time()
        await extend(tiles, size, [entry(number) for number in range(size, size + BATCH)])
        await drop_partials(tiles, size, size + BATCH)
        spent.append(1e6 * (time.process_time() - began) / BATCH)
    view, chosen = LogView(tiles, entries), random.Random(1)
    root = await view.root()
    proving, grown = [], []
    for _ in range(PROOFS):
        index, old = chosen.randrange(entries), chosen.randrange(1, entries // BATCH) * BATCH
        began = time.process_time()
        proof = await LogView(tiles, entries).inclusion(index)
        proving.append(1e6 * (time.process_time() - began))
        assert verify_inclusion(leaf_hash(entry(index)), index, entries, proof, root)
        began = time.process_time()
        proof = await LogView(tiles, entries).consistency(old)
        grown.append(1e6 * (time.process_time() - began))
        assert verify_consistency(old, entries, proof, await _root_at(tiles, entries, old), root)
    return [
        Single(APPEND, Spread.of(spent[-TIMED:]), "µs"),
        Single(INCLUSION, Spread.of(proving), "µs"),
        Single(CONSISTENCY, Spread.of(grown), "µs"),
    ]


async def _root_at(tiles: MemoryTiles, size: int, old: int) -> bytes:
    """The root when the record had `old` entries, from the tiles of now."""

    async def now() -> int:
        return size

    return await LogView(tiles, old, now).root()
