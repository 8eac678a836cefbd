"""A record that its owner cannot rewrite: cosignatures, and what happens when somebody tries."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fastness.crypto.cosignatures import WitnessSigner, cosigned
from fastness.crypto.secret import SecretBytes
from fastness.formats import json
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_CHECKPOINT
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import condition
from fastness.kube.errors import NotFound
from fastness.kube.port import PatchType, WriteOptions
from fastness.record.door.witness_server import WitnessServer, witness_server
from fastness.record.live.epoch import restart
from fastness.record.live.guard import RecordGuard
from fastness.record.live.head import NAME as HEAD
from fastness.record.live.head import read_head, write_head
from fastness.record.live.log import LogView, extend
from fastness.record.live.log_key import known_keys, log_key
from fastness.record.live.reader import whole_note
from fastness.record.live.record import ClusterRecord
from fastness.record.loops.sequencer import KEY, Sequencer
from fastness.record.loops.witnesses import RecordWitnesses
from tests.component.record.conftest import MemoryTiles, World, entry
from tests.virtual import SeededEntropy, VirtualClock


class Watched:
    """A cluster whose record has witnesses; `process` is the part that ends when the control plane does."""

    def __init__(self, world: World, directory: Path, stack: AsyncExitStack) -> None:
        self.world = world
        self.tiles = MemoryTiles()
        self.door = ClusterRecord(world.cluster, world.clock, SeededEntropy(7), "gate")
        self.servers: list[WitnessServer] = []
        self._directory = directory
        self._stack = stack
        self.start()

    def start(self) -> None:
        """Begin a process that remembers nothing."""
        cluster, clock = self.world.cluster, self.world.clock
        guard = RecordGuard(cluster, self.tiles)
        self.witnesses = RecordWitnesses(cluster, self.tiles, guard, clock)
        self.sequencer = Sequencer(
            cluster, self.tiles, clock, SeededEntropy(1), guard=guard, ask_witnesses=self.witnesses.ask_first
        )

    async def open(self, count: int, *, named: bool = True) -> None:
        """Witnesses that know the key of this record, named in the ConfidentialCluster."""
        await log_key(self.world.cluster, SeededEntropy(1), self.world.clock.now())
        keys = await known_keys(self.world.cluster)
        for number in range(count):
            name = f"witness.example/w{number}"
            place = witness_server(self._directory / str(number), name, keys, VirtualClock(), SeededEntropy(number))
            self.servers.append(await self._stack.enter_async_context(place))
        if named:
            await self.name([
                {"name": f"w{number}", "key": str(server.key), "url": f"http://127.0.0.1:{server.port}"}
                for number, server in enumerate(self.servers)
            ])  # fmt: skip

    async def name(self, witnesses: list[JsonObject]) -> None:
        """A ConfidentialCluster with these witnesses."""
        body = {
            "apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind,
            "metadata": {"name": NAME}, "spec": {"mode": "Audit", "simulated": True, "witnesses": witnesses},
        }  # fmt: skip
        await self.world.cluster.create(CONFIDENTIAL_CLUSTER.resource, body)

    async def grow(self, *numbers: int) -> None:
        """Decide something, and let the control plane take it in."""
        for number in numbers:
            await self.door.append(entry(number))
        await self.turn()

    async def turn(self) -> None:
        """A step of each loop, once the pace allows it."""
        await self.world.clock.advance(2)
        await self.sequencer.reconcile(KEY)
        await self.witnesses.reconcile(KEY)

    async def newest(self) -> JsonObject:
        items = (await self.world.cluster.list(AUDIT_CHECKPOINT.resource)).items
        return max(items, key=lambda item: int(item["spec"]["size"]))

    async def condition(self, kind: str) -> tuple[str, str, str]:
        state = condition(await self.world.cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME), kind) or {}
        return str(state.get("status")), str(state.get("reason")), str(state.get("message"))

    async def entries(self) -> list[JsonObject]:
        """The record as its head says."""
        head = await read_head(self.world.cluster)
        return [json.decode(data) async for _, data in LogView(self.tiles, head.size).entries()]

    async def backup(self) -> Backup:
        """Everything of the record that the control plane keeps."""
        head = await self.world.cluster.get(CONFIG_MAP.resource, HEAD, NAMESPACE)
        checkpoints = (await self.world.cluster.list(AUDIT_CHECKPOINT.resource)).items
        return Backup(copy.deepcopy(head), copy.deepcopy(list(checkpoints)), dict(self.tiles.pieces))

    async def roll_back(self, backup: Backup) -> None:
        """What an administrator does who restores yesterday's backup: objects, tiles, and a new process."""
        cluster = self.world.cluster
        data = {"data": backup.head["data"]}
        await cluster.patch(CONFIG_MAP.resource, HEAD, data, PatchType.MERGE, NAMESPACE)
        for item in (await cluster.list(AUDIT_CHECKPOINT.resource)).items:
            await cluster.delete(AUDIT_CHECKPOINT.resource, str(item["metadata"]["name"]))
        for item in backup.checkpoints:
            name = str(item["metadata"]["name"])
            await cluster.create(AUDIT_CHECKPOINT.resource, {**item, "metadata": {"name": name}})
            # A backup has the cosignatures as well: they were true yesterday.
            status = {"status": item["status"]}
            options = WriteOptions(subresource="status")
            await cluster.patch(AUDIT_CHECKPOINT.resource, name, status, PatchType.MERGE, "", options)
        self.tiles.pieces.clear()
        self.tiles.pieces.update(backup.tiles)
        self.start()


class Backup:
    """A copy of the record's state."""

    def __init__(self, head: Any, checkpoints: list[Any], tiles: dict[str, bytes]) -> None:
        self.head = head
        self.checkpoints = checkpoints
        self.tiles = tiles


@pytest.fixture
async def watched(world: World, tmp_path: Path) -> AsyncIterator[Watched]:
    async with AsyncExitStack() as stack:
        yield Watched(world, tmp_path, stack)


async def test_every_witness_cosigns_the_newest_checkpoint(watched: Watched) -> None:
    await watched.open(2)
    await watched.grow(1, 2, 3)
    await watched.grow(4)
    newest = await watched.newest()
    assert newest["status"]["witnesses"] == "2/2"
    names = cosigned(whole_note(newest), [server.key for server in watched.servers])
    assert sorted(names) == ["witness.example/w0", "witness.example/w1"]
    assert await watched.condition("Witnessed") == ("True", "Cosigned", "2 of 2 witnesses cosigned the record")


async def test_a_rolled_back_control_plane_signs_nothing_and_everybody_sees_it(watched: Watched) -> None:
    await watched.open(2)
    await watched.grow(1, 2)
    yesterday = await watched.backup()
    await watched.grow(3, 4, 5)
    await watched.roll_back(yesterday)
    watched.door = ClusterRecord(watched.world.cluster, watched.world.clock, SeededEntropy(8), "gate")
    await watched.grow(6)
    assert int((await watched.newest())["spec"]["size"]) == 2
    status, reason, message = await watched.condition("Recorded")
    assert (status, reason) == ("False", "RecordBehind")
    assert "has seen 5 of it" in message
    status, reason, message = await watched.condition("Witnessed")
    assert (status, reason) == ("False", "RolledBack")
    assert message.startswith(
        "0 of 2 witnesses cosigned the record: witness w0 has seen 5 entries of this record, which has 2"
    )


async def test_after_a_restart_by_a_person_the_record_goes_on_under_a_new_name(watched: Watched) -> None:
    await watched.open(1)
    await watched.grow(1, 2)
    yesterday = await watched.backup()
    await watched.grow(3)
    await watched.roll_back(yesterday)
    await watched.turn()
    await restart(watched.world.cluster, "restored the backup of Monday", watched.world.clock.now())
    await watched.turn()
    newest = await watched.newest()
    assert newest["spec"]["origin"].endswith("/2")
    assert [entry["what"] for entry in await watched.entries()] == [
        "release", "release", "record-restarted",
    ]  # fmt: skip
    assert (await watched.condition("Recorded"))[0] == "True"
    status, _, message = await watched.condition("Witnessed")
    assert status == "False"
    assert "does not know a log" in message


async def test_without_its_head_the_record_does_not_begin_anew(watched: Watched) -> None:
    """`kubectl delete configmap record-head` by somebody who may."""
    await watched.open(0)
    await watched.grow(1, 2, 3)
    await watched.world.cluster.delete(CONFIG_MAP.resource, HEAD, NAMESPACE)
    await watched.grow(4)
    assert int((await watched.newest())["spec"]["size"]) == 3
    with pytest.raises(NotFound):
        await watched.world.cluster.get(CONFIG_MAP.resource, HEAD, NAMESPACE)
    assert "was signed over 3" in (await watched.condition("Recorded"))[2]


@pytest.mark.parametrize("left", ["objects", "tiles", "memory"])
async def test_any_place_that_remembers_is_enough(watched: Watched, left: str) -> None:
    await watched.open(0)
    await watched.grow(1, 2, 3)
    await watched.world.cluster.delete(CONFIG_MAP.resource, HEAD, NAMESPACE)
    if left != "objects":
        for item in (await watched.world.cluster.list(AUDIT_CHECKPOINT.resource)).items:
            await watched.world.cluster.delete(AUDIT_CHECKPOINT.resource, str(item["metadata"]["name"]))
    if left != "tiles":
        watched.tiles.pieces.pop("checkpoint")
    if left != "memory":
        watched.start()
    await watched.grow(4)
    assert (await watched.condition("Recorded"))[1] == "RecordBehind"


async def test_a_head_that_was_lost_is_found_again_by_a_restart(watched: Watched) -> None:
    await watched.open(0)
    await watched.grow(1, 2, 3)
    await watched.world.cluster.delete(CONFIG_MAP.resource, HEAD, NAMESPACE)
    await watched.grow(4)
    await restart(watched.world.cluster, "the head was deleted", watched.world.clock.now())
    await watched.turn()
    entries = [entry["what"] for entry in await watched.entries()]
    assert entries[:4] == ["release", "release", "release", "record-restarted"]
    assert entries[-1] == "release"
    assert (await read_head(watched.world.cluster)).epoch == 2


async def test_entries_that_were_exchanged_below_the_head_are_noticed(watched: Watched) -> None:
    """Somebody who writes tiles and head, and cannot sign: the newest checkpoint is of another tree."""
    await watched.open(0)
    await watched.grow(1, 2, 3)
    forged = MemoryTiles()
    root = await extend(forged, 0, [b"{}", b"{}", b"{}", b"{}"])
    head = await read_head(watched.world.cluster)
    await write_head(watched.world.cluster, replace(head, size=4, root=root))
    watched.tiles.pieces.update(forged.pieces)
    watched.start()
    await watched.grow(5)
    assert "are not those that" in (await watched.condition("Recorded"))[2]


async def test_a_head_that_names_another_root_than_its_tiles_is_noticed(watched: Watched) -> None:
    """Somebody who writes the head alone: no checkpoint is signed over a root that no entries lead to."""
    await watched.open(0)
    await watched.grow(1, 2, 3)
    head = await read_head(watched.world.cluster)
    await write_head(watched.world.cluster, replace(head, root=bytes(32)))
    watched.start()
    await watched.grow(4)
    assert int((await watched.newest())["spec"]["size"]) == 3
    assert "do not lead to the root that its state says" in (await watched.condition("Recorded"))[2]


async def test_a_witness_that_is_away_holds_nothing_up(watched: Watched) -> None:
    gone = WitnessSigner("witness.example/gone", SecretBytes(bytes(32))).verifier
    await watched.name([{"name": "gone", "key": str(gone), "url": "http://127.0.0.1:9"}])
    await watched.grow(1)
    assert int((await watched.newest())["spec"]["size"]) == 1
    status, reason, message = await watched.condition("Witnessed")
    assert (status, reason) == ("False", "NotCosigned")
    assert message.startswith("0 of 1 witness cosigned the record: witness gone cannot be reached")


async def test_a_witness_with_another_key_than_the_cluster_names_does_not_count(watched: Watched) -> None:
    await watched.open(1, named=False)
    other = WitnessSigner("witness.example/w0", SecretBytes(bytes(32))).verifier
    await watched.name([{"name": "w0", "key": str(other), "url": f"http://127.0.0.1:{watched.servers[0].port}"}])
    await watched.grow(1)
    assert (await watched.newest())["status"]["witnesses"] == "0/1"
    assert "another key than the cluster names" in (await watched.condition("Witnessed"))[2]
