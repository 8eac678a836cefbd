"""Who confirmed a lowering, as the record has it.

    confirmed = await confirmed_lowerings(cluster, tiles, uid)

The edge that let a lowering through wrote down who did it before it happened (`attestation.admission.acts`). Only what the
sequencer has folded in counts: it checked that a registered door signed it, while a batch that still waits could be anybody's.
The newest entries are read, back to a bound: a lowering whose entry lies further back looks unguarded, which is
loud and not silent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastness.attestation.admission.acts import LOWER, joined
from fastness.formats import json
from fastness.formats.errors import JsonError
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kube.port import Cluster
from fastness.record.live.reader import open_record
from fastness.record.live.tiles import TileStore
from fastness.record.signing import role_of

EDGES: Final = ("api", "webhook")
MOST_ENTRIES: Final = 10_000
STEP: Final = 256


@dataclass(frozen=True, slots=True)
class ConfirmedLowering:
    """One entry of the edge: who, which change, and the fields that it lowers."""

    who: str
    generation: int
    confirmation: str
    fields: frozenset[str]


@dataclass(frozen=True, slots=True)
class ConfirmedLowerings:
    """Those of one object; `waiting` says that the record does not have all yet."""

    entries: tuple[ConfirmedLowering, ...]
    waiting: bool = False


async def confirmed_lowerings(cluster: Cluster, tiles: TileStore, uid: str) -> ConfirmedLowerings:
    """The lowerings of an object that an edge let through, newest first; raises ApiError, TlogError."""
    # In this order: a batch that is not there any more is in the record by then.
    batches = (await cluster.list(AUDIT_BATCH.resource)).items
    waiting = any(
        role_of(str(batch["spec"]["door"])) in EDGES and _lowering(entry, uid) is not None
        for batch in batches
        for entry in batch["spec"]["entries"]
    )
    record = await open_record(cluster, tiles)
    if record is None:
        return ConfirmedLowerings((), waiting)
    entries: list[ConfirmedLowering] = []
    end = record.size
    while end > max(0, record.size - MOST_ENTRIES):
        start = (end - 1) // STEP * STEP
        page = [content async for _, content in record.view.entries(start, end)]
        entries += [lowering for content in reversed(page) if (lowering := _read(content, uid)) is not None]
        end = start
    return ConfirmedLowerings(tuple(entries), waiting)


def _read(content: bytes, uid: str) -> ConfirmedLowering | None:
    if LOWER.encode() not in content:
        return None
    try:
        entry = json.decode(content)
    except JsonError:
        return None
    of_an_edge = isinstance(entry, dict) and role_of(str(entry.get("door") or "")) in EDGES
    return _lowering(entry, uid) if of_an_edge else None


def _lowering(entry: Mapping[str, Any], uid: str) -> ConfirmedLowering | None:
    detail = entry.get("detail") or {}
    if entry.get("what") != LOWER or detail.get("uid") != uid or not str(detail.get("generation", "")).isdecimal():
        return None
    fields = frozenset(joined(detail, "fields").split(","))
    return ConfirmedLowering(
        str(entry.get("who") or ""), int(detail["generation"]), str(detail.get("confirmation")), fields
    )
