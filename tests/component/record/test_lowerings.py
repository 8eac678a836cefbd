"""Who confirmed a lowering is read from the record: of this object, by an edge, and nothing that only looks like it."""

from __future__ import annotations

from typing import Any

from fastness.attestation.admission.acts import LOWER
from fastness.attestation.live.lowerings import ConfirmedLowering, ConfirmedLowerings, confirmed_lowerings
from fastness.record.entry import RecordEntry
from fastness.record.live.record import ClusterRecord
from tests.component.record.conftest import World
from tests.virtual import SeededEntropy

CLUSTER = "confidentialclusters/cluster"


def lowering(what: str = LOWER, **change: Any) -> RecordEntry:
    detail = {"uid": "uid-1", "generation": "4", "confirmation": "word", "fields": "mode,join", **change}
    return RecordEntry(what, "olga", CLUSTER, detail=detail)


async def test_a_lowering_counts_for_its_own_object_once_the_record_has_it(world: World) -> None:
    edge = ClusterRecord(world.cluster, world.clock, SeededEntropy(7), "api")
    other = ClusterRecord(world.cluster, world.clock, SeededEntropy(8), "gate")
    for entry in (
        lowering(), lowering(uid="uid-2"), lowering(generation="next"), lowering("refusal", reason=LOWER),
    ):  # fmt: skip
        await edge.append(entry)
    await other.append(lowering(generation="5"))  # a gate that was taken over says so
    assert await confirmed_lowerings(world.cluster, world.tiles, "uid-1") == ConfirmedLowerings((), waiting=True)
    assert not (await confirmed_lowerings(world.cluster, world.tiles, "uid-3")).waiting
    await world.clock.advance(2)
    await world.step()
    confirmed = ConfirmedLowering("olga", 4, "word", frozenset({"mode", "join"}))
    assert await confirmed_lowerings(world.cluster, world.tiles, "uid-1") == ConfirmedLowerings((confirmed,))
