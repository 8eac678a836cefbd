"""Somebody who leaves while the record is being written takes nobody else's entry along."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from fastness.kinds.fastness_dev.audit import AUDIT_BATCH
from fastness.kinds.kind import JsonObject, Resource
from fastness.kube.port import WriteOptions
from fastness.record.entry import RecordEntry
from fastness.record.live.record import ClusterRecord
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE


class Slow:
    """A cluster whose writes wait until they may happen."""

    def __init__(self, embedded: Embedded) -> None:
        self._cluster = embedded.cluster
        self.may = asyncio.Semaphore(0)
        self.asked = 0

    async def create(self, resource: Resource, obj: JsonObject, options: WriteOptions) -> JsonObject:
        """Write when that is allowed; the key of the door is there at once."""
        if resource == AUDIT_BATCH.resource:
            self.asked += 1
            await self.may.acquire()
        return await self._cluster.create(resource, obj, options)

    async def get(self, resource: Resource, name: str, namespace: str = "") -> JsonObject:
        """Read."""
        return await self._cluster.get(resource, name, namespace)

    async def asked_for(self, count: int) -> None:
        """Wait until so many writes were begun."""
        while self.asked < count:  # noqa: ASYNC110  # nobody tells that a write began
            await asyncio.sleep(0)


async def test_entries_that_share_a_batch_are_written_although_the_one_who_began_it_left(
    embedded_server: Embedded,
) -> None:
    slow = Slow(embedded_server)
    record = ClusterRecord(slow, SystemClock(), SystemEntropy(), "gate")  # type: ignore[arg-type]
    holding = asyncio.ensure_future(record.append(RecordEntry("release", "first")))
    await slow.asked_for(1)
    sharing = [asyncio.ensure_future(record.append(RecordEntry("release", who))) for who in ("second", "third")]
    await asyncio.sleep(0)
    slow.may.release()
    await holding
    await slow.asked_for(2)
    sharing[0].cancel()  # it began the batch that it shares with the other
    await asyncio.wait((sharing[0],))
    slow.may.release()
    async with asyncio.timeout(PATIENCE):
        await sharing[1]
    batches = (await embedded_server.cluster.list(AUDIT_BATCH.resource)).items
    entries = [entry["who"] for batch in batches for entry in batch["spec"]["entries"]]
    assert sorted(entries) == ["first", "second", "third"]


async def test_under_load_entries_gather_and_alone_they_are_written_at_once(embedded_server: Embedded) -> None:
    record = ClusterRecord(embedded_server.cluster, SystemClock(), SystemEntropy(), "gate")
    loop = asyncio.get_running_loop()

    async def sizes() -> list[int]:
        written = (await embedded_server.cluster.list(AUDIT_BATCH.resource)).items
        return [
            len(batch["spec"]["entries"]) for batch in sorted(written, key=lambda stored: stored["spec"]["sequence"])
        ]

    for number in range(3):
        await record.append(RecordEntry("release", f"alone-{number}"))
    assert await sizes() == [1, 1, 1]
    began = loop.time()
    waiting = []
    for bunch in range(4):
        waiting += [
            asyncio.ensure_future(record.append(RecordEntry("release", f"together-{bunch}-{number}")))
            for number in range(5)
        ]
        await asyncio.sleep(0.005)
    await asyncio.gather(*waiting)
    together = (await sizes())[3:]
    assert sum(together) == 20
    assert len(together) <= 2 + (loop.time() - began) / 0.05


async def test_those_who_wait_for_company_are_not_lost_with_the_one_who_would_have_written(
    embedded_server: Embedded,
) -> None:
    record = ClusterRecord(embedded_server.cluster, SystemClock(), SystemEntropy(), "gate")
    await asyncio.gather(*(record.append(RecordEntry("release", f"first-{number}")) for number in range(3)))
    gathering = [
        asyncio.ensure_future(record.append(RecordEntry("release", who))) for who in ("leader", "second", "third")
    ]
    await asyncio.sleep(0.005)
    gathering[0].cancel()
    async with asyncio.timeout(PATIENCE):
        results = await asyncio.gather(*gathering, return_exceptions=True)
    assert results[1:] == [None, None]
    batches = (await embedded_server.cluster.list(AUDIT_BATCH.resource)).items
    entries = {entry["who"] for batch in batches for entry in batch["spec"]["entries"]}
    assert {"second", "third"} <= entries


@pytest.mark.processes  # it compares real pauses, which a loaded machine stretches
async def test_where_writes_are_slow_more_entries_share_one(embedded_server: Embedded) -> None:
    loop, took, begun = asyncio.get_running_loop(), 0.06, list[float]()

    class Tired(Slow):
        async def create(self, resource: Resource, obj: JsonObject, options: WriteOptions) -> JsonObject:
            if resource == AUDIT_BATCH.resource:
                begun.append(loop.time())
                await asyncio.sleep(took)
            return await self._cluster.create(resource, obj, options)

    record = ClusterRecord(Tired(embedded_server), SystemClock(), SystemEntropy(), "gate")  # type: ignore[arg-type]

    async def busy(who: str) -> None:
        for _ in range(3):
            await record.append(RecordEntry("release", who))

    await asyncio.gather(*(busy(f"machine-{number}") for number in range(8)))
    apart = [later - sooner for sooner, later in pairwise(begun)]
    assert len(apart) >= 2
    assert min(apart) > 1.9 * took
