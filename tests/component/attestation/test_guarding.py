"""Lowerings are completed on the record, also those that happened while nobody looked, and also the last one: a deletion."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from fastness.attestation.live.guard_state import read_guard, write_guard
from fastness.attestation.loops.guarding import Guard
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, CONFIRM_LOWER
from fastness.kube.events import Recorder
from fastness.kube.port import PatchType
from fastness.record.live.tiles import FileTiles
from fastness.record.loops.sequencer import KEY, Sequencer
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.component.attacks.people import CLUSTER, person, user_name
from tests.embedded.fixtures import Embedded
from tests.enrolling import MemoryRecord

Object = dict[str, Any]
PATH = f"{CLUSTER}/cluster"
MERGE = {"content-type": "application/merge-patch+json"}
RIGHTS = ("fastness.dev", ("confidentialclusters",), ("create", "get", "patch", "delete"))
BODY: Object = {
    "apiVersion": "fastness.dev/v1alpha1", "kind": "ConfidentialCluster", "metadata": {"name": "cluster"},
    "spec": {"mode": "Enforce", "simulated": True},
}  # fmt: skip


class Looks:
    """Controllers that look when they are told to; `olga` writes meanwhile."""

    def __init__(self, embedded: Embedded, olga: httpx.AsyncClient) -> None:
        self.cluster, self.olga, self.record = embedded.cluster, olga, MemoryRecord()
        self.tiles = FileTiles(embedded.directory / "record")

    async def look(self) -> Guard:
        """One look of a process that just started."""
        clock = SystemClock()
        await Sequencer(self.cluster, self.tiles, clock, SystemEntropy()).reconcile(KEY)
        guard = Guard(self.cluster, self.record, self.tiles, Recorder(self.cluster, "test", clock), lambda: True)
        clusters = (await self.cluster.list(CONFIDENTIAL_CLUSTER.resource)).items
        assert await guard.settle(clusters[0] if clusters else None)
        return guard

    async def lower(self, spec: Object) -> None:
        refused = await self.olga.patch(PATH, json={"spec": spec}, headers=MERGE)
        word = refused.json()["message"].partition(f"{CONFIRM_LOWER}=")[2].split()[0]
        patch = {"metadata": {"annotations": {CONFIRM_LOWER: word}}, "spec": spec}
        assert (await self.olga.patch(PATH, json=patch, headers=MERGE)).status_code == 200

    def recorded_lowerings(self) -> list[tuple[str, str, str]]:
        return [(entry.who, entry.detail["lowered"], entry.detail["guarded"]) for entry in self.record.entries]


@pytest.fixture
async def looks(embedded_server: Embedded) -> AsyncIterator[Looks]:
    async with person(embedded_server, "olga", RIGHTS) as olga:
        assert (await olga.post(CLUSTER, json=BODY)).status_code == 201
        yield Looks(embedded_server, olga)


OLGA = user_name("olga")


async def test_several_lowerings_between_two_looks_are_told_with_the_person(looks: Looks) -> None:
    await looks.look()
    await looks.lower({"mode": "Audit"})
    await looks.lower({"join": {"trustOnFirstUse": True}})
    guard = await looks.look()
    assert looks.recorded_lowerings() == [
        (OLGA, "mode goes from Enforce to Audit; machines are trusted on first use", "yes")
    ]
    assert guard.condition().status is True
    await looks.look()
    assert len(looks.recorded_lowerings()) == 1, "once"


async def test_a_deletion_is_told_with_the_person_also_when_the_object_is_made_anew(looks: Looks) -> None:
    await looks.look()
    word = (await looks.olga.delete(PATH)).json()["message"].partition(f"{CONFIRM_LOWER}=")[2].split()[0]
    await looks.olga.patch(PATH, json={"metadata": {"annotations": {CONFIRM_LOWER: word}}}, headers=MERGE)
    assert (await looks.olga.delete(PATH)).status_code == 200
    weaker = {**BODY, "spec": {"mode": "Audit", "simulated": True}}
    assert (await looks.olga.post(CLUSTER, json=weaker)).status_code == 201
    await looks.look()
    assert looks.recorded_lowerings() == [(OLGA, "the cluster loses its protection", "yes")]


async def test_what_the_edge_never_saw_is_unguarded_until_it_is_undone(looks: Looks) -> None:
    """The state that was remembered was stricter than what is there, and the record has nobody who lowered it."""
    await looks.look()
    state = await read_guard(looks.cluster)
    assert state is not None
    stricter = {**(state.spec or {}), "join": {"approval": "Manual"}}
    await write_guard(looks.cluster, type(state)(state.uid, state.generation - 1, stricter))
    guard = await looks.look()
    assert looks.recorded_lowerings() == [("unknown", "machines are approved automatically", "no")]
    assert (guard.condition().status, guard.condition().reason) == (False, "UnguardedLowering")
    await looks.lower({"mode": "Audit"})
    assert (await looks.look()).condition().reason == "UnguardedLowering", (
        "lowering something else in order does not clear it"
    )
    up = {"spec": {"mode": "Enforce", "join": {"approval": "Manual"}}}
    await looks.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", up, PatchType.MERGE)
    assert (await looks.look()).condition().status is True
