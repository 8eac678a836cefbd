"""A door's side of the record: an entry is durable before what it describes may happen.

    record = ClusterRecord(cluster, clock, entropy, "broker")
    await record.append(Entry("release", thumbprint, resource=…, verdict=…, grant=…))     # then the bytes may leave

Entries go out in AuditBatches. Whoever comes while a batch is being written waits for the next one and shares it. At rest an
entry is written at once. Under load, which is when entries come in company, a batch is begun 50 ms after the last one, or as
soon as a hundred wait: a write costs much and an entry little, for the door and for the API behind it. Where writes are slow
because everything is, batches come less often, so that more share a write.

One of those who wait writes for all, and the others sleep until their entry is settled. Whoever writes may leave at any moment;
then one of the others goes on where it was.

* The batches of a door form a chain: number and hash of the one before. A door is one life of one process; its id is its role and
  a random part. It signs its batches with the key of its role (`doorkeys`), and its times never go back.
* A write whose outcome is unknown is repeated, byte for byte, before anything else: the number is taken or it is not. So
  the record may hold an entry of something that then did not happen, and never the other way round.
* What cannot be written is a RecordError, and the caller must not go on. The queue is bounded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from itertools import chain
from typing import Any, Final

from fastness.crypto.eddsa import Ed25519Signer
from fastness.keys.errors import RecordError, TrustError
from fastness.kinds.fastness_dev.audit import AUDIT_BATCH, MOST_ENTRIES
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339
from fastness.kube.errors import AlreadyExists, ApiError, NotFound
from fastness.kube.port import Cluster, WriteOptions
from fastness.observe import metrics
from fastness.record.entry import RecordEntry
from fastness.record.live.door_keys import DoorSigner, RecordRole
from fastness.record.order import batch_hash
from fastness.record.signing import batch_name, signed
from fastness.runtime.clock import Clock, Entropy

# An API server that is away must not fill the memory of the door: callers hear 503 instead.
MOST_WAITING: Final = 10_000
MOST_DETAILS: Final = 16
MOST_TEXT: Final = 256
MOST_NAME: Final = 253
GATHER_SECONDS, MOST_GATHER_SECONDS = 0.05, 0.2
PAUSE_PER_WRITE: Final = 2.0  # of the time that the last write took
_HINT: Final = "Nothing was released. Look at the API server's health; the caller may ask again."


class _Waiting:
    """An entry, whether it is written, and the bell of the one who waits for that."""

    __slots__ = ("bell", "content", "failure", "written")

    def __init__(self, content: JsonObject) -> None:
        self.content = content
        self.written = False
        self.failure: ApiError | TrustError | None = None
        self.bell: asyncio.Future[None] | None = None

    @property
    def settled(self) -> bool:
        """Whether it is known what became of the entry."""
        return self.written or self.failure is not None

    def ring(self) -> bool:
        """Wake who waits; no when nobody sleeps here."""
        if self.bell is None or self.bell.done():
            return False
        self.bell.set_result(None)
        return True


class ClusterRecord:
    """The record of one door, in the cluster."""

    def __init__(self, cluster: Cluster, clock: Clock, entropy: Entropy, role: RecordRole) -> None:
        # A name for each process: two replicas that numbered their batches alike would look like a fork.
        self.door = f"{role}-{entropy.token(8).hex()}"
        self._signer = DoorSigner(role, cluster, clock, entropy)
        self._latest: datetime | None = None
        self._cluster = cluster
        self._clock = clock
        self._queue: deque[_Waiting] = deque()
        self._busy = False
        self._began = -GATHER_SECONDS
        self._apart = GATHER_SECONDS
        self._full: asyncio.Future[None] | None = None
        self._next = 1
        self._previous = ""
        self._unsure: JsonObject | None = None
        self._group: list[_Waiting] = []

    async def append(self, entry: RecordEntry) -> None:
        """Write an entry; returns when it is durable; raises RecordError."""
        if len(self._queue) >= MOST_WAITING:
            raise RecordError("too many entries wait to be written", _HINT)
        waiting = _Waiting(self._content(entry))
        self._queue.append(waiting)
        if self._full is not None and len(self._queue) >= MOST_ENTRIES and not self._full.done():
            self._full.set_result(None)
        try:
            while not waiting.settled:
                await (self._asleep(waiting) if self._busy else self._lead())
        except BaseException:
            if waiting in self._queue:
                self._queue.remove(waiting)
            self._pass_on()
            raise
        # Told to each who waits: a caller that heard nothing would take silence for durability, and release.
        if waiting.failure is not None:
            raise RecordError(f"the record could not be written: {waiting.failure}", _HINT) from waiting.failure

    async def _asleep(self, waiting: _Waiting) -> None:
        """Wait until the entry is settled, or nobody writes any more."""
        waiting.bell = asyncio.get_running_loop().create_future()
        await waiting.bell

    async def _lead(self) -> None:
        """Write one batch for all who wait."""
        self._busy = True
        try:
            if self._unsure is None:
                await self._gather()
            await self._write_next()
            took = asyncio.get_running_loop().time() - self._began
            self._apart = min(max(GATHER_SECONDS, PAUSE_PER_WRITE * took), MOST_GATHER_SECONDS)
        finally:
            self._busy = False
            self._pass_on()

    def _pass_on(self) -> None:
        """Wake one whose entry is not settled, if nobody writes: it writes next."""
        if not self._busy:
            any(waiting.ring() for waiting in chain(self._group, self._queue) if not waiting.settled)

    async def _gather(self) -> None:
        """Under load, wait for more entries."""
        loop = asyncio.get_running_loop()
        wait = self._began + self._apart - loop.time()
        if wait > 0 and max(len(self._group), len(self._queue)) > 1 and len(self._queue) < MOST_ENTRIES:
            self._full = loop.create_future()
            try:
                async with asyncio.timeout(wait):
                    await self._full
            except TimeoutError:
                pass
            finally:
                self._full = None
        self._began = loop.time()

    async def _write_next(self) -> None:
        """Settle a batch of unknown outcome, or write the next one; what became of it is noted at its entries."""
        batch, again = self._unsure, self._unsure is not None
        try:
            signer = await self._signer.current()
        except (ApiError, TrustError) as error:
            self._fail([*(self._group if again else ()), *self._queue], error)
            return
        if batch is None:
            self._group = [self._queue.popleft() for _ in range(min(MOST_ENTRIES, len(self._queue)))]
            # Kept before it is sent: if the answer is lost, the same bytes are sent again under the same number.
            batch = self._unsure = self._batch(self._group, signer)
        try:
            await self._settle(batch)
        except ApiError as error:
            self._fail([*self._group, *(self._queue if again else ())], error)
            return
        for waiting in self._group:
            waiting.written = True
            waiting.ring()

    def _fail(self, group: list[_Waiting], error: ApiError | TrustError) -> None:
        for waiting in group:
            waiting.failure = error
            waiting.ring()
            if waiting in self._queue:
                self._queue.remove(waiting)

    async def _settle(self, batch: JsonObject) -> None:
        """Make sure that the batch is there; raises ApiError when that cannot be known."""
        try:
            # Create and never patch: a number that is taken cannot be overwritten, neither by us nor by whoever stole our key.
            await self._cluster.create(AUDIT_BATCH.resource, batch, WriteOptions(manager=self.door))
        except AlreadyExists:
            await self._compare(batch)
        # Only now: a batch whose fate is not known is written again under the same number, and never skipped.
        self._next += 1
        self._previous = batch_hash(batch["spec"])
        self._unsure = None
        metrics.RECORD_ENTRIES.inc(len(batch["spec"]["entries"]))

    async def _compare(self, batch: JsonObject) -> None:
        """A batch of this name is there: it is ours, or somebody writes in our name."""
        try:
            stored = await self._cluster.get(AUDIT_BATCH.resource, batch["metadata"]["name"])
        except NotFound:
            return  # It was written, and the sequencer has taken it in already.
        # Only somebody with our key and our name writes this number: going on would make a fork of our own record.
        if batch_hash(stored["spec"]) != batch_hash(batch["spec"]):
            raise RecordError("another one writes to the record under the name of this door", "Restart the door.")

    def _batch(self, group: list[_Waiting], signer: Ed25519Signer) -> JsonObject:
        spec: JsonObject = {
            "door": self.door,
            "sequence": self._next,
            "entries": [waiting.content for waiting in group],
            **({"previous": self._previous} if self._previous else {}),
        }
        return {
            "apiVersion": AUDIT_BATCH.api_version, "kind": AUDIT_BATCH.kind, "spec": signed(spec, signer),
            "metadata": {"name": batch_name(self.door, self._next)},
        }  # fmt: skip

    def _content(self, entry: RecordEntry) -> JsonObject:
        # A clock that was set back does not put an entry before the last one: the sequencer would take that for a forgery.
        now = self._latest = max(self._clock.now(), self._latest or self._clock.now())
        content: JsonObject = {"time": rfc3339(now), "what": entry.what, "who": _name(entry.who)}
        # Cut here and not refused: what a caller wrote must not be able to keep a release off the record.
        named = {
            "resource": entry.resource[:1024], "verdict": entry.verdict, "grant": entry.grant, "evidence": entry.evidence,
        }  # fmt: skip
        content |= {name: value for name, value in named.items() if value}
        if entry.detail:
            content["detail"] = _short(entry.detail)
        return content


def _name(who: str) -> str:
    """A name as the record keeps it: users choose theirs, and what a terminal takes for a command does not belong there."""
    return "".join(sign if sign.isprintable() else "?" for sign in who[:MOST_NAME]) or "nobody"


def _short(detail: Mapping[str, Any]) -> dict[str, str]:
    """Details as the record keeps them: few and short, because callers choose some of the words."""
    return {str(name)[:64]: str(value)[:MOST_TEXT] for name, value in list(detail.items())[:MOST_DETAILS]}
