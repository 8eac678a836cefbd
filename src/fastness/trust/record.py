"""A door's side of the record: an entry is durable before what it describes may happen.

    record = ClusterRecord(cluster, clock, entropy, "broker")
    await record.append(Entry("release", thumbprint, resource=…, verdict=…, grant=…))     # then the bytes may leave

Entries go out in AuditBatches. Whoever comes while a batch is being written waits for the next one and shares it: at rest
an entry is written at once, under load up to a hundred share one write.

* The batches of a door form a chain: number and hash of the one before. A door is one life of one process; its id is random.
* A write whose outcome is unknown is repeated, byte for byte, before anything else: the number is taken or it is not. So
  the record may hold an entry of something that then did not happen, and never the other way round.
* What cannot be written is a RecordError, and the caller must not go on. The queue is bounded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from fastness.cluster.clock import Clock, Entropy
from fastness.cluster.errors import AlreadyExists, ApiError, NotFound
from fastness.cluster.port import Cluster, WriteOptions
from fastness.domain.record.order import batch_hash
from fastness.model.fastness_dev.audit import AUDIT_BATCH, MOST_ENTRIES
from fastness.model.kind import JsonObject
from fastness.model.objects import rfc3339
from fastness.observe import metrics
from fastness.trust.errors import RecordError
from fastness.trust.ports import Entry

MOST_WAITING: Final = 10_000
MOST_DETAILS: Final = 16
MOST_TEXT: Final = 256
_HINT: Final = "Nothing was released. Look at the API server's health; the caller may ask again."


class _Waiting:
    """An entry and whether it is written."""

    __slots__ = ("content", "failure", "written")

    def __init__(self, content: JsonObject) -> None:
        self.content = content
        self.written = False
        self.failure: ApiError | None = None


class ClusterRecord:
    """The record of one door, in the cluster."""

    def __init__(self, cluster: Cluster, clock: Clock, entropy: Entropy, role: str) -> None:
        self.door = f"{role}-{entropy.token(8).hex()}"
        self._cluster = cluster
        self._clock = clock
        self._queue: deque[_Waiting] = deque()
        self._writing = asyncio.Lock()
        self._next = 1
        self._previous = ""
        self._unsure: JsonObject | None = None
        self._group: list[_Waiting] = []

    async def append(self, entry: Entry) -> None:
        """Write an entry; returns when it is durable; raises RecordError."""
        if len(self._queue) >= MOST_WAITING:
            raise RecordError("too many entries wait to be written", _HINT)
        waiting = _Waiting(self._content(entry))
        self._queue.append(waiting)
        try:
            async with self._writing:
                while not waiting.written and waiting.failure is None:
                    await self._write_next()
        except asyncio.CancelledError:
            if waiting in self._queue:
                self._queue.remove(waiting)
            raise
        if waiting.failure is not None:
            raise RecordError(f"the record could not be written: {waiting.failure}", _HINT) from waiting.failure

    async def _write_next(self) -> None:
        """Settle a batch of unknown outcome, or write the next one; what became of it is noted at its entries.

        Whoever began a batch may be gone by now; its entries belong to others as well.
        """
        batch, again = self._unsure, self._unsure is not None
        if batch is None:
            self._group = [self._queue.popleft() for _ in range(min(MOST_ENTRIES, len(self._queue)))]
            batch = self._unsure = self._batch(self._group)
        try:
            await self._settle(batch)
        except ApiError as error:
            self._fail([*self._group, *(self._queue if again else ())], error)
            return
        for waiting in self._group:
            waiting.written = True

    def _fail(self, group: list[_Waiting], error: ApiError) -> None:
        for waiting in group:
            waiting.failure = error
            if waiting in self._queue:
                self._queue.remove(waiting)

    async def _settle(self, batch: JsonObject) -> None:
        """Make sure that the batch is there; raises ApiError when that cannot be known."""
        try:
            await self._cluster.create(AUDIT_BATCH.resource, batch, WriteOptions(manager=self.door))
        except AlreadyExists:
            await self._compare(batch)
        self._next += 1
        self._previous = batch_hash(batch["spec"])
        self._unsure = None
        metrics.RECORD_ENTRIES.inc(len(batch["spec"]["entries"]))

    async def _compare(self, batch: JsonObject) -> None:
        """A batch of this name is there: it is ours, or somebody writes in our name."""
        try:
            found = await self._cluster.get(AUDIT_BATCH.resource, batch["metadata"]["name"])
        except NotFound:
            return  # It was written, and the sequencer has taken it in already.
        if batch_hash(found["spec"]) != batch_hash(batch["spec"]):
            raise RecordError("another one writes to the record under the name of this door", "Restart the door.")

    def _batch(self, group: list[_Waiting]) -> JsonObject:
        spec: JsonObject = {
            "door": self.door,
            "sequence": self._next,
            "entries": [waiting.content for waiting in group],
            **({"previous": self._previous} if self._previous else {}),
        }
        return {
            "apiVersion": AUDIT_BATCH.api_version, "kind": AUDIT_BATCH.kind, "spec": spec,
            "metadata": {"name": f"{self.door}-{self._next:012d}"},
        }  # fmt: skip

    def _content(self, entry: Entry) -> JsonObject:
        content: JsonObject = {"time": rfc3339(self._clock.now()), "what": entry.what, "who": entry.who or "nobody"}
        named = {
            "resource": entry.resource[:1024], "verdict": entry.verdict, "grant": entry.grant, "evidence": entry.evidence,
        }  # fmt: skip
        content |= {name: value for name, value in named.items() if value}
        if entry.detail:
            content["detail"] = _short(entry.detail)
        return content


def _short(detail: Mapping[str, Any]) -> dict[str, str]:
    """Details as the record keeps them: few and short, because callers choose some of the words."""
    return {str(name)[:64]: str(value)[:MOST_TEXT] for name, value in list(detail.items())[:MOST_DETAILS]}
