"""A record in the making: doors, a sequencer, and a power cut at a chosen call."""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest

from fastness.crypto.notes import open_note
from fastness.formats import json
from fastness.formats.tlog import parse_checkpoint
from fastness.keys.authorities import NAMESPACES
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.audit import AUDIT_CHECKPOINT
from fastness.kube.errors import AlreadyExists, Unavailable
from fastness.kube.port import Cluster
from fastness.record.entry import RecordEntry
from fastness.record.live.head import read_head
from fastness.record.live.log import LogView
from fastness.record.live.log_key import known_keys
from fastness.record.live.tiles import TileStore
from fastness.record.loops.sequencer import KEY, Sequencer
from tests.embedded.fixtures import Embedded
from tests.virtual import SeededEntropy, VirtualClock


class PowerCut(Unavailable):
    """The process ends here."""


class Tripping:
    """Passes calls on and cuts the power before or after the n-th write."""

    WRITES = ("create", "patch", "delete", "write", "remove")

    def __init__(self, inner: Any, tripped: Callable[[bool], None]) -> None:
        self._inner = inner
        self._tripped = tripped

    def __getattr__(self, name: str) -> Any:
        target = getattr(self._inner, name)
        if name not in self.WRITES:
            return target

        async def write(*args: Any, **named: Any) -> Any:
            self._tripped(True)
            result = await target(*args, **named)
            self._tripped(False)
            return result

        return write


class Fuse:
    """Counts the moments before and after writes and burns at one of them."""

    def __init__(self, at: int) -> None:
        self.moments = 0
        self._at = at

    def __call__(self, before: bool) -> None:
        self.moments += 1
        if self.moments == self._at:
            raise PowerCut("the power is gone")


class MemoryTiles:
    """Tiles in a dictionary."""

    def __init__(self) -> None:
        self.pieces: dict[str, bytes] = {}

    async def read(self, path: str) -> bytes | None:
        return self.pieces.get(path)

    async def write(self, path: str, data: bytes) -> None:
        self.pieces[path] = data

    async def remove(self, path: str) -> None:
        self.pieces.pop(path, None)


class World:
    """A cluster with a record."""

    def __init__(self, embedded: Embedded, tiles: TileStore) -> None:
        self.cluster: Cluster = embedded.cluster
        self.tiles = tiles
        # As late as the API server, which says when it took a batch.
        self.clock = VirtualClock(datetime.now(UTC))

    async def step(self, fuse: Fuse | None = None, seed: int = 1) -> None:
        """One step of a sequencer that was just started."""
        cluster: Any = Tripping(self.cluster, fuse) if fuse else self.cluster
        tiles: Any = Tripping(self.tiles, fuse) if fuse else self.tiles
        await Sequencer(cluster, tiles, self.clock, SeededEntropy(seed)).reconcile(KEY)

    async def record(self) -> list[dict[str, Any]]:
        """Every entry, after its head, its checkpoint and its signature were checked against each other."""
        head = await read_head(self.cluster)
        view = LogView(self.tiles, head.size)
        assert await view.root() == head.root
        checkpoints = (await self.cluster.list(AUDIT_CHECKPOINT.resource)).items
        if checkpoints:
            newest = max(checkpoints, key=lambda checkpoint: int(checkpoint["spec"]["size"]))["spec"]
            signed = parse_checkpoint(open_note(newest["note"], await known_keys(self.cluster)))
            assert (signed.size, signed.root) == (newest["size"], base64.b64decode(newest["rootHash"]))
            assert (signed.size, signed.root) == (head.size, head.root)
        return [json.decode(entry) async for _, entry in view.entries()]


def entry(number: int) -> RecordEntry:
    """Something that happened."""
    return RecordEntry("release", "sha256:" + "a" * 64, resource=f"default/test/{number}")


@pytest.fixture
async def world(embedded_server: Embedded) -> World:
    """A cluster with tiles in memory."""
    with suppress(AlreadyExists):
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        await embedded_server.cluster.create(NAMESPACES, body)
    return World(embedded_server, MemoryTiles())
