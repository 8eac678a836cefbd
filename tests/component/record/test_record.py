"""Doors write, a sequencer folds in: nothing is lost, nothing is counted twice, no order is turned around."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from fastness.crypto import merkle
from fastness.formats import json
from fastness.keys.errors import RecordError
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH, AUDIT_CHECKPOINT, MOST_ENTRIES
from fastness.kube.errors import Unavailable
from fastness.kube.port import Cluster
from fastness.record.entry import RecordEntry
from fastness.record.live.door_keys import DOOR_KEYS
from fastness.record.live.head import read_head
from fastness.record.live.log import LogView
from fastness.record.live.reader import grown
from fastness.record.live.record import ClusterRecord
from tests.component.record.conftest import Fuse, PowerCut, World, entry
from tests.virtual import SeededEntropy


def door(world: World, seed: int, cluster: Cluster | None = None) -> ClusterRecord:
    return ClusterRecord(cluster or world.cluster, world.clock, SeededEntropy(seed), "broker")


async def batches(world: World) -> list[dict[str, Any]]:
    return (await world.cluster.list(AUDIT_BATCH.resource)).items


async def test_an_entry_is_in_the_cluster_before_append_returns(world: World) -> None:
    await door(world, 1).append(entry(7))
    (batch,) = await batches(world)
    assert batch["spec"]["entries"][0]["resource"] == "default/test/7"
    assert batch["spec"]["sequence"] == 1


async def test_entries_that_come_together_share_batches_and_those_of_a_door_form_a_chain(world: World) -> None:
    record = door(world, 1)
    await asyncio.gather(*(record.append(entry(number)) for number in range(250)))
    chain = sorted(await batches(world), key=lambda batch: batch["spec"]["sequence"])
    assert [batch["spec"]["sequence"] for batch in chain] == list(range(1, len(chain) + 1))
    assert len(chain) < 10
    assert max(len(batch["spec"]["entries"]) for batch in chain) <= MOST_ENTRIES
    assert len({batch["spec"].get("previous") for batch in chain}) == len(chain)


async def test_two_doors_at_once_lose_and_reorder_nothing(world: World) -> None:
    doors = [door(world, seed) for seed in (1, 2)]

    async def busy(number: int) -> None:
        for step in range(30):
            await doors[number].append(entry(1000 * number + step))

    async def sequencer() -> None:
        for _ in range(12):
            await world.step()
            await asyncio.sleep(0)

    await asyncio.gather(busy(0), busy(1), sequencer())
    await world.step()
    numbers = [int(written["resource"].rsplit("/", 1)[1]) for written in await world.record()]
    assert Counter(numbers) == Counter([*range(30), *range(1000, 1030)])
    for number in (0, 1):
        own = [count for count in numbers if count // 1000 == number]
        assert own == sorted(own)
    assert await batches(world) == []


async def test_a_sequencer_killed_at_every_step_loses_and_repeats_nothing(world: World) -> None:
    record = door(world, 1)
    written = 0
    sizes: list[tuple[int, bytes]] = []
    for at in range(1, 60):
        for _ in range(3):
            await record.append(entry(written))
            written += 1
        fuse = Fuse(at)
        try:
            await world.step(fuse, seed=at)
        except PowerCut:
            await world.step(seed=1000 + at)
        numbers = [int(entered["resource"].rsplit("/", 1)[1]) for entered in await world.record()]
        assert numbers == list(range(written)), f"after a power cut at moment {at}"
        head = await read_head(world.cluster)
        sizes.append((head.size, head.root))
        if fuse.moments < at:
            break
    else:
        pytest.fail("the step has more moments than this test cuts at")
    newest, root = sizes[-1]
    view = LogView(world.tiles, newest)
    for size, old_root in sizes:
        assert merkle.verify_consistency(size, newest, await view.consistency(size), old_root, root)
    assert await batches(world) == []


async def test_a_write_with_unknown_outcome_is_settled_before_anything_else(world: World) -> None:
    class Losing:
        """Writes, and then loses the answer."""

        def __init__(self, inner: Any) -> None:
            self._inner = inner
            self.losses = 1

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

        async def create(self, *args: Any, **named: Any) -> Any:
            result = await self._inner.create(*args, **named)
            if self.losses:
                self.losses -= 1
                raise Unavailable("the connection broke")
            return result

    await DOOR_KEYS["broker"].open(world.cluster, SeededEntropy(9), world.clock.now())
    record = door(world, 1, Losing(world.cluster))
    with pytest.raises(RecordError):
        await record.append(entry(0))
    await record.append(entry(1))
    await world.step()
    assert [stored["resource"] for stored in await world.record()] == ["default/test/0", "default/test/1"]


async def test_without_the_cluster_nothing_may_leave(world: World) -> None:
    class Down:
        """No answer."""

        async def create(self, *_: Any, **__: Any) -> Any:
            raise Unavailable("no answer")

        get = create

    record = door(world, 1, Down())  # type: ignore[arg-type]
    results = await asyncio.gather(*(record.append(entry(number)) for number in range(5)), return_exceptions=True)
    assert [type(number) for number in results] == [RecordError] * 5


async def test_a_batch_that_somebody_removed_leaves_an_entry_about_it(world: World) -> None:
    record = door(world, 1)
    for number in range(3):
        await record.append(entry(number))
    await world.cluster.delete(AUDIT_BATCH.resource, f"{record.door}-{2:012d}")
    await world.step()
    whats = [written["what"] for written in await world.record()]
    assert whats == ["release", "record-gap", "release"]


async def test_a_batch_that_its_own_door_did_not_chain_is_seen_as_a_fork(world: World) -> None:
    record = door(world, 1)
    await record.append(entry(0))
    await world.step()
    record._previous = "sha256:" + "0" * 64
    await record.append(entry(1))
    await world.step()
    assert [written["what"] for written in await world.record()] == ["release", "record-fork", "release"]


async def test_more_than_a_tile_of_entries_is_proved_entry_by_entry(world: World) -> None:
    record = door(world, 1)
    for _ in range(3):
        await asyncio.gather(*(record.append(entry(number)) for number in range(200)))
        await world.step()
    head = await read_head(world.cluster)
    assert head.size == 600
    view = LogView(world.tiles, head.size)
    read_back = [row async for row in view.entries()]
    for index, data in read_back[::37]:
        proof = await view.inclusion(index)
        assert merkle.verify_inclusion(merkle.leaf_hash(data), index, head.size, proof, head.root)
    assert merkle.tree_root([merkle.leaf_hash(data) for _, data in read_back]) == head.root


async def test_an_old_view_is_served_from_the_tiles_of_the_newest(world: World) -> None:
    record = door(world, 1)
    await record.append(entry(0))
    await world.step()
    old = await read_head(world.cluster)
    await record.append(entry(1))
    await world.step()
    assert await LogView(world.tiles, old.size, grown(world.cluster)).root() == old.root


async def test_details_are_cut_to_what_the_record_may_hold(world: World) -> None:
    detail = {f"k{number}": "x" * 10_000 for number in range(100)}
    await door(world, 1).append(RecordEntry("refusal", "nobody", resource="r" * 5000, detail=detail))
    await world.step()
    (stored,) = await world.record()
    assert len(json.encode(stored)) < 16_000


async def test_checkpoints_do_not_pile_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastness.record.loops.sequencer.KEPT_CHECKPOINTS", 3)
    record = door(world, 1)
    for number in range(6):
        await record.append(entry(number))
        await world.step()
    sizes = sorted(
        checkpoint["spec"]["size"] for checkpoint in (await world.cluster.list(AUDIT_CHECKPOINT.resource)).items
    )
    assert sizes == [4, 5, 6]
