"""The sequencer: batches of all doors become one record with a signed head.

A step in five parts, each of which can be the last before a power cut:

    1  intent       the head names the batches to fold in, in their order, and those that do not count: not signed by a door
                    that is registered, under another door's name, or back-dated (conditional write)
    2  tiles        the entries and hashes they lead to; determined by 1, so written again they are the same
    3  head         size, root and the doors' last batches (conditional write): from here on they are in
    4  checkpoint   an AuditCheckpoint with the signed note
    5  sweep        the batches are deleted, and partial tiles that have grown

A step costs about the same for one batch and for many, so under load there is one a second: what waits for it is durable
already. At rest a batch is folded in as soon as a moment has passed.

A step begins with what the last one left: an intent is carried out, a missing checkpoint is made, batches that are in are
deleted.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.errors import AlreadyExists, NotFound
from fastness.cluster.events import EVENTS, Recorder
from fastness.cluster.port import Cluster, WriteOptions
from fastness.controllers.engine.controller import Done, Source
from fastness.domain.record.order import pending, sequence
from fastness.domain.record.signing import Registered, admitted, key_of
from fastness.formats.tlog import Checkpoint
from fastness.model.fastness_dev.audit import AUDIT_BATCH, AUDIT_CHECKPOINT
from fastness.model.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.model.kind import JsonObject, Resource
from fastness.model.objects import ObjectName, rfc3339
from fastness.observe import logs, metrics
from fastness.trust.doorkeys import register_doors
from fastness.trust.log import drop_partials, extend
from fastness.trust.logkey import SECRETS, log_key
from fastness.trust.recordhead import Intent, RecordHead, read_head, write_head
from fastness.trust.tiles import CONFIG_MAPS, TileStore

KEY: Final = ObjectName("", "record")
GATHER_SECONDS: Final = 0.2
PACE_SECONDS: Final = 1.0
KEPT_CHECKPOINTS: Final = 64
MOST_EVENTS: Final = 10  # about batches that do not count, in one step; all of them are on the record
_AS: Final = WriteOptions(manager="sequencer")
_log = logs.logger("record")


def _record(_: Any) -> Iterable[ObjectName]:
    return (KEY,)


class Sequencer:
    """Folds AuditBatches into the record."""

    name = "record-sequencer"
    sources: Sequence[Source] = (Source(AUDIT_BATCH.resource, _record, delay=GATHER_SECONDS),)
    writes: Sequence[Resource] = (AUDIT_BATCH.resource, AUDIT_CHECKPOINT.resource, CONFIG_MAPS, SECRETS, EVENTS)

    def __init__(self, cluster: Cluster, tiles: TileStore, clock: Clock, entropy: Entropy) -> None:
        self._cluster = cluster
        self._tiles = tiles
        self._clock = clock
        self._entropy = entropy
        self._not_before: float | None = None
        self._registered: Registered = {}
        self._recorder = Recorder(cluster, self.name, clock)

    async def reconcile(self, _: ObjectName) -> Done:
        """One step, or none while the last one is too young; comes back while there is more than one step takes in."""
        now = self._clock.monotonic()
        if self._not_before is not None and now < self._not_before:
            return Done(again_after=self._not_before - now)
        batches = (await self._cluster.list(AUDIT_BATCH.resource)).items
        head = await read_head(self._cluster)
        if not batches and not head.version:
            return Done()
        if head.intent is None:
            fresh = pending(head.doors, batches)[0]
            if fresh:
                head = await write_head(self._cluster, head.intending(await self._intent(head, fresh)))
        before, refused = head.size, [name for name, _, _ in head.intent.refused] if head.intent else []
        if head.intent is not None:
            head = await self._fold(head, head.intent, batches)
            self._not_before = now + PACE_SECONDS
        await self._checkpoint(head)
        done = [*pending(head.doors, batches)[1], *refused]
        for name in done:
            with suppress(NotFound):
                await self._cluster.delete(AUDIT_BATCH.resource, name)
        await drop_partials(self._tiles, before, head.size)
        metrics.RECORD_SIZE.set(head.size)
        return Done(again_after=GATHER_SECONDS if len(batches) > len(done) else None)

    async def _intent(self, head: RecordHead, fresh: Sequence[Mapping[str, Any]]) -> Intent:
        """Part 1: which batches are folded in, and which do not count. A door that is new is registered first."""
        if not all(key in self._registered.get(role, ()) for role, key in map(key_of, fresh)):
            self._registered = await register_doors(self._cluster)
        good, refused = admitted(head.doors, fresh, self._registered)
        names = tuple(str(batch["metadata"]["name"]) for batch in good)
        told = tuple((batch.name, batch.door, str(batch.problem)) for batch in refused)
        return Intent(rfc3339(self._clock.now()), names, told)

    async def _warn(self, intent: Intent) -> None:
        """Batches that were refused, told where an operator looks."""
        about = {
            "apiVersion": CONFIDENTIAL_CLUSTER.api_version,
            "kind": CONFIDENTIAL_CLUSTER.kind,
            "metadata": {"name": NAME},
        }
        for number, (name, door, reason) in enumerate(intent.refused):
            metrics.RECORD_REFUSED.inc(reason)
            if number < MOST_EVENTS:
                said = f"batch {name} does not count ({reason}): somebody else than the door {door} may have written it"
                await self._recorder.warning(about, "RecordRefused", said)

    async def _fold(self, head: RecordHead, intent: Intent, batches: Sequence[JsonObject]) -> RecordHead:
        """Parts 2 and 3. A batch of the intent that has vanished since leaves an entry about that."""
        named = {str(batch["metadata"]["name"]): batch for batch in batches}
        chosen = [named[name] for name in intent.batches if name in named]
        vanished = [name for name in intent.batches if name not in named]
        sequenced = sequence(head.doors, chosen, intent.time, head.size, vanished, intent.refused)
        for alarm in sequenced.alarms:
            metrics.RECORD_ALARMS.inc()
            _log.error("record.alarm", what=alarm)
        await self._warn(intent)
        root = await extend(self._tiles, head.size, sequenced.entries) if sequenced.entries else head.root
        grown = replace(head, size=head.size + len(sequenced.entries), root=root, doors=sequenced.heads, intent=None)
        return await write_head(self._cluster, grown)

    async def _checkpoint(self, head: RecordHead) -> None:
        """Part 4: the checkpoint of this size, if it is not there; old ones go."""
        existing = sorted(
            (one["spec"]["size"], one["metadata"]["name"])
            for one in (await self._cluster.list(AUDIT_CHECKPOINT.resource)).items
        )
        if not head.size or (existing and existing[-1][0] >= head.size):
            return
        now = self._clock.now()
        key = await log_key(self._cluster, self._entropy, now)
        spec = {
            "origin": key.origin,
            "size": head.size,
            "rootHash": base64.b64encode(head.root).decode(),
            "time": rfc3339(now),
            "note": key.signer.sign(Checkpoint(key.origin, head.size, head.root).text()),
        }
        body = {
            "apiVersion": AUDIT_CHECKPOINT.api_version, "kind": AUDIT_CHECKPOINT.kind, "spec": spec,
            "metadata": {"name": f"size-{head.size:018d}"},
        }  # fmt: skip
        with suppress(AlreadyExists):
            await self._cluster.create(AUDIT_CHECKPOINT.resource, body, _AS)
        for _, name in existing[: -KEPT_CHECKPOINTS + 1]:
            with suppress(NotFound):
                await self._cluster.delete(AUDIT_CHECKPOINT.resource, name)
