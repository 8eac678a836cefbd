"""Whether the record can be read and extended, for readiness.

A record that lost a tile (a restore without it, a disk that forgot) stops the sequencer at its next step, and every release waits
for nothing: batches pile up, durable and unproved. Nobody notices until somebody asks for the record, so it is looked at here:
the newest head must lead to its root, and the bundle that the next entries go into must be there.
"""

from __future__ import annotations

from typing import Final

from fastness.formats.tlog import WIDTH, TlogError
from fastness.keys.errors import DamagedRecord
from fastness.kube.errors import ApiError
from fastness.kube.port import Cluster
from fastness.record.live.head import read_head
from fastness.record.live.log import LogView
from fastness.record.live.tiles import TileStore
from fastness.runtime.clock import Clock

LOOK_SECONDS: Final = 30.0
_TRIES: Final = 3  # a step of the sequencer may take a tile away while it is looked at


class RecordHealth:
    """Looks at the record now and then; `problem` is what was wrong the last time."""

    def __init__(self, cluster: Cluster, tiles: TileStore, clock: Clock) -> None:
        self._cluster = cluster
        self._tiles = tiles
        self._clock = clock
        self._problem: str | None = None

    def problem(self) -> str | None:
        """What is wrong with the record; None when nothing is."""
        return self._problem

    async def watch(self) -> None:
        """Look again and again, until it is cancelled."""
        while True:
            await self.look()
            await self._clock.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Read the head and the newest entries once; an API that cannot be asked leaves the last answer."""
        for _ in range(_TRIES):
            try:
                self._problem = await self._wrong()
            except ApiError:
                return  # readiness speaks of the API by itself
            if self._problem is None:
                return

    async def _wrong(self) -> str | None:
        try:
            head = await read_head(self._cluster)
            if not head.size:
                return None
            view = LogView(self._tiles, head.size)
            if await view.root() != head.root:
                return "the tiles of the record do not lead to its root"
            async for _ in view.entries((head.size - 1) // WIDTH * WIDTH):
                pass
        except (TlogError, DamagedRecord, OSError) as error:
            return f"the record cannot be read or extended: {error}"
        return None
