"""The sequencer: batches of all doors become one record with a signed head.

A step begins with a look at what was signed before, wherever that is still known (`record.live.guard`): a record that was cut or
rolled back is not continued, and the condition `Recorded` of the ConfidentialCluster says why. Then five parts follow, each of
which can be the last before a power cut:

    1  intent       the head names the batches to fold in, in their order, and those that do not count: not signed by a door
                    that is registered, under another door's name, or back-dated (conditional write)
    2  tiles        the entries and hashes they lead to; determined by 1, so written again they are the same
    3  head         size, root and the doors' last batches (conditional write): from here on they are in
    4  checkpoint   an AuditCheckpoint with the signed note, which also lies beside the tiles
    5  sweep        the batches are deleted, and partial tiles that have grown

A step costs about the same for one batch and for many, so under load there is one a second: what waits for it is durable
already. At rest a batch is folded in as soon as a moment has passed.

A step begins with what the last one left: an intent is carried out, a missing checkpoint is made, batches that are in are
deleted.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from fastness.formats.tlog import Checkpoint, TlogError
from fastness.keys.authorities import SECRETS
from fastness.keys.errors import RecordBehind
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH, AUDIT_CHECKPOINT
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, NAME
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import ObjectName, rfc3339
from fastness.kube.controllers.controller import Done, Source
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.events import EVENTS, Recorder
from fastness.kube.port import Cluster, WriteOptions
from fastness.observe import logs, metrics
from fastness.record.live.door_keys import register_doors
from fastness.record.live.epoch import Epoch, read_epoch
from fastness.record.live.guard import RecordGuard
from fastness.record.live.head import Intent, RecordHead, read_head, write_head
from fastness.record.live.log import LogView, drop_partials, extend
from fastness.record.live.log_key import log_key, log_name
from fastness.record.live.tiles import TileStore
from fastness.record.loops.cluster_condition import set_condition
from fastness.record.order import pending, restarted, sequence
from fastness.record.signing import Registered, admitted, key_of
from fastness.runtime.clock import Clock, Entropy

KEY: Final = ObjectName("", "record")
GATHER_SECONDS: Final = 0.2
PACE_SECONDS: Final = 1.0
# Readers and witnesses that are a little behind still find theirs; the tiles have all the rest.
KEPT_CHECKPOINTS: Final = 64
STOPPED_SECONDS: Final = 30.0
MOST_EVENTS: Final = 10  # about batches that do not count, in one step; all of them are on the record
_AS: Final = WriteOptions(manager="sequencer")
_log = logs.logger("record")


def _record(_: Any) -> Iterable[ObjectName]:
    return (KEY,)


class Sequencer:
    """Folds AuditBatches into the record."""

    name = "record-sequencer"
    sources: Sequence[Source] = (Source(AUDIT_BATCH.resource, _record, delay=GATHER_SECONDS),)
    writes: Sequence[Resource] = (
        AUDIT_BATCH.resource, AUDIT_CHECKPOINT.resource, CONFIG_MAP.resource, SECRETS, EVENTS, CONFIDENTIAL_CLUSTER.resource,
    )  # fmt: skip

    def __init__(
        self,
        cluster: Cluster,
        tiles: TileStore,
        clock: Clock,
        entropy: Entropy,
        *,
        guard: RecordGuard | None = None,
        ask_witnesses: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`ask_witnesses` is called once, before the first step, and tells the guard how far others have seen the record."""
        self._cluster = cluster
        self._tiles = tiles
        self._clock = clock
        self._entropy = entropy
        self._guard = guard or RecordGuard(cluster, tiles)
        self._ask_witnesses = ask_witnesses
        self._not_before: float | None = None
        self._registered: Registered = {}
        self._stopped = True  # until a look has shown that it is not: what an earlier process said may stand there
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
        try:
            head = await self._continued(head)
        except RecordBehind as stopped:
            return await self._stop(stopped)
        if head.intent is None:
            fresh = pending(head.doors, batches)[0]
            if fresh:
                # The choice is durable before a tile is written: after a crash the same entries come out in the same order.
                head = await write_head(self._cluster, head.intending(await self._intent(head, fresh)))
        before, refused = head.size, [name for name, _, _ in head.intent.refused] if head.intent else []
        if head.intent is not None:
            head = await self._fold(head, head.intent, batches)
            self._not_before = now + PACE_SECONDS
        await self._checkpoint(head)
        # Batches go last, when a signed checkpoint holds what is in them.
        done = [*pending(head.doors, batches)[1], *refused]
        for name in done:
            with suppress(NotFound):
                await self._cluster.delete(AUDIT_BATCH.resource, name)
        await drop_partials(self._tiles, before, head.size)
        metrics.RECORD_SIZE.set(head.size)
        return Done(again_after=GATHER_SECONDS if len(batches) > len(done) else None)

    async def _continued(self, head: RecordHead) -> RecordHead:
        """The state to go on from: as it was found, or that of a new epoch; raises RecordBehind."""
        if self._ask_witnesses is not None:
            # Once, and before the first step: a store that was put back while nobody ran is only noticed by somebody elsewhere.
            await self._ask_witnesses()
            self._ask_witnesses = None
        epoch = await read_epoch(self._cluster)
        if epoch.number > head.epoch:
            head = await self._restart(head, epoch)
        await self._guard.check(head, await log_name(self._cluster, head.epoch))
        if self._stopped:
            self._stopped = False
            metrics.RECORD_STOPPED.set(0)
            await set_condition(
                self._cluster, self._clock.now(), "Recorded", "True", "Continued", "what is decided is on the record"
            )
        return head

    async def _stop(self, stopped: RecordBehind) -> Done:
        """Add nothing, and say so where operators look; batches stay where they are."""
        metrics.RECORD_STOPPED.set(1)
        _log.error("record.stopped", reason=stopped.message)
        self._stopped = True
        await set_condition(
            self._cluster, self._clock.now(), "Recorded", "False", "RecordBehind", f"{stopped.message}. {stopped.hint}"
        )
        return Done(again_after=STOPPED_SECONDS)

    async def _restart(self, head: RecordHead, epoch: Epoch) -> RecordHead:
        """Go on from the longest beginning that is whole, with an entry that says so; the same when it is repeated."""
        base = head
        if not await self._whole(head.size, head.root):
            base = RecordHead(version=head.version)
            async for signed in self._guard.candidates():
                if await self._whole(signed.checkpoint.size, signed.checkpoint.root):
                    base = RecordHead(signed.checkpoint.size, signed.checkpoint.root, version=head.version)
                    break
        root = await extend(self._tiles, base.size, [restarted(epoch.time, epoch.number, epoch.reason)])
        again = replace(base, size=base.size + 1, root=root, intent=None, epoch=epoch.number)
        _log.warning("record.restarted", epoch=epoch.number, size=base.size, reason=epoch.reason)
        return await write_head(self._cluster, again)

    async def _whole(self, size: int, root: bytes) -> bool:
        try:
            return bool(size) and await LogView(self._tiles, size).root() == root
        except TlogError:
            return False

    async def _intent(self, head: RecordHead, fresh: Sequence[Mapping[str, Any]]) -> Intent:
        """Part 1: which batches are folded in, and which do not count. A door that is new is registered first."""
        # Only when a key is new: it takes a read at the API for every role.
        if not all(key in self._registered.get(role, ()) for role, key in map(key_of, fresh)):
            self._registered = await register_doors(self._cluster)
        good, refused = admitted(head.doors, fresh, self._registered)
        names = tuple(str(batch["metadata"]["name"]) for batch in good)
        problems = tuple((batch.name, batch.door, str(batch.problem)) for batch in refused)
        return Intent(rfc3339(self._clock.now()), names, problems)

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
                message = (
                    f"batch {name} does not count ({reason}): somebody else than the door {door} may have written it"
                )
                await self._recorder.warning(about, "RecordRefused", message)

    async def _fold(self, head: RecordHead, intent: Intent, batches: Sequence[JsonObject]) -> RecordHead:
        """Parts 2 and 3. A batch of the intent that has vanished since leaves an entry about that."""
        # By the list of this step: a batch of the intent that somebody deleted since must show as missing, not be waited for.
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
        """Part 4: the checkpoint of this size, if it is not there; old ones go, and those of other epochs."""
        listed = (await self._cluster.list(AUDIT_CHECKPOINT.resource)).items
        origin = await log_name(self._cluster, head.epoch)
        own = sorted((entry for entry in listed if entry["spec"]["origin"] == origin), key=_size)
        # Never two checkpoints of one size: two signatures over one size, should they differ, are what witnesses look for.
        if not head.size or (own and _size(own[-1]) >= head.size):
            return
        now = self._clock.now()
        key = await log_key(self._cluster, self._entropy, now, head.epoch)
        checkpoint = Checkpoint(key.origin, head.size, head.root)
        note = key.signer.sign(checkpoint.text())
        spec = {
            "origin": key.origin,
            "size": head.size,
            "rootHash": base64.b64encode(head.root).decode(),
            "time": rfc3339(now),
            "note": note,
        }
        name = f"size-{head.size:018d}" if head.epoch == 1 else f"epoch-{head.epoch}-size-{head.size:018d}"
        body = {
            "apiVersion": AUDIT_CHECKPOINT.api_version, "kind": AUDIT_CHECKPOINT.kind, "spec": spec,
            "metadata": {"name": name},
        }  # fmt: skip
        # A step that was stopped here has made it before; the note is the same, because Ed25519 is deterministic (RFC 8032).
        with suppress(AlreadyExists):
            await self._cluster.create(AUDIT_CHECKPOINT.resource, body, _AS)
        # Kept beside the tiles, too: they outlive a store that somebody puts back to an older state.
        await self._guard.signed(checkpoint, note)
        for old in _superseded(listed, own):
            with suppress(NotFound):
                await self._cluster.delete(AUDIT_CHECKPOINT.resource, old)


def _size(checkpoint: JsonObject) -> int:
    return int(checkpoint["spec"]["size"])


def _superseded(listed: Sequence[JsonObject], own: Sequence[JsonObject]) -> list[str]:
    """The names of checkpoints that nobody needs: all but the newest of this epoch, and the newest that is cosigned."""
    needed = {str(checkpoint["metadata"]["name"]) for checkpoint in own[-KEPT_CHECKPOINTS + 1 :]}
    cosigned = [checkpoint for checkpoint in own if (checkpoint.get("status") or {}).get("cosignatures")]
    needed |= {str(checkpoint["metadata"]["name"]) for checkpoint in cosigned[-1:]}
    names = [str(checkpoint["metadata"]["name"]) for checkpoint in listed]
    return [name for name in names if name not in needed]
