"""The record as readers see it: at its newest signed checkpoint, and there it stays while the record grows.

    record = await open_record(cluster, tiles)         # None while nothing was decided
    async for index, entry in record.view.entries(): ...

Everything that is read through one `OpenRecord` stands under one checkpoint, so what is shown, exported and proved together fits
together. The sequencer publishes a checkpoint before it drops the partial tiles of an older one: who finds one gone asks for the
newest checkpoint again, and reads the longer tile of that.

Witnesses cosign a moment after a checkpoint was made; their lines stand under the note as soon as they are there.
"""

from __future__ import annotations

from dataclasses import dataclass

from fastness.kinds.fastness_dev.audit import AUDIT_CHECKPOINT
from fastness.kinds.kind import JsonObject
from fastness.kube.port import Cluster
from fastness.record.live.log import Grown, LogView
from fastness.record.live.tiles import TileStore


@dataclass(frozen=True, slots=True)
class OpenRecord:
    """A record under one signed checkpoint."""

    note: str
    view: LogView

    @property
    def size(self) -> int:
        """How many entries the checkpoint covers."""
        return self.view.size


async def open_record(cluster: Cluster, tiles: TileStore) -> OpenRecord | None:
    """The record at its newest checkpoint; None when there is none yet; raises ApiError."""
    newest = await _newest(cluster)
    if newest is None:
        return None
    return OpenRecord(whole_note(newest), LogView(tiles, int(newest["spec"]["size"]), grown(cluster)))


def whole_note(checkpoint: JsonObject) -> str:
    """The note of a checkpoint with the lines of the witnesses that cosigned it."""
    lines = (checkpoint.get("status") or {}).get("cosignatures") or ()
    return str(checkpoint["spec"]["note"]) + "".join(str(line["line"]) for line in lines)


def grown(cluster: Cluster) -> Grown:
    """Tells how far the checkpoints of a cluster have come."""

    async def size() -> int:
        newest = await _newest(cluster)
        return 0 if newest is None else int(newest["spec"]["size"])

    return size


async def _newest(cluster: Cluster) -> JsonObject | None:
    checkpoints = (await cluster.list(AUDIT_CHECKPOINT.resource)).items
    return max(checkpoints, key=lambda checkpoint: int(checkpoint["spec"]["size"]), default=None)
