"""Writes on their way to the disk: one batch at a time, everything that waits in the next.

All of this runs on the event-loop thread; only `Database` calls run in the writer thread. A write is decided at once on the
*head*: the committed record or the newest one on its way. It is answered when its batch is durable and visible.

* At most one batch is with the disk. What is decided meanwhile waits and forms the next batch (group commit).
* When a batch fails, everything that waits was decided on top of it or beside it and fails too, with the same error. The
  overlay of heads is discarded, nothing was visible, and the next write starts from the committed state.
* But deletions that do not depend on it survive a batch that failed because the disk is full: they are tried once more with the
  room that was kept back for them (`reserve.py`), and when they succeed the log is cut short to free what they deleted.
* Revisions that were handed out are never handed out again, whether their batch succeeded or not.
* Compaction and checkpoints are jobs of the same thread, run between batches.

`Store` decides what to write; a batch that is durable goes back to it through `publish`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from fastness.apiserver.store import failpoints as fp
from fastness.apiserver.store.database import Database
from fastness.apiserver.store.errors import DiskFull, Overloaded, StoreClosed, StoreError, StoreUnavailable
from fastness.apiserver.store.journal import Row
from fastness.apiserver.store.records import Key, LogEntry, Record, StoreSettings
from fastness.kube.port import EventType

_ROW_COST: Final = 200  # bytes of a row beside its body, for the bounds
_COMMIT_COST: Final = 3 * 4096  # pages that a commit adds to the write-ahead log at least


class _Write:
    """One write that waits for its answer; without entries it only waits for those before it."""

    __slots__ = ("answer", "entries", "frees", "rows", "size")

    def __init__(
        self, entries: list[LogEntry], rows: list[Row], answer: asyncio.Future[list[Record]], *, frees: bool
    ) -> None:
        self.entries = entries
        self.frees = frees
        self.rows = rows
        self.answer = answer
        self.size = _ROW_COST * len(rows)
        for row in rows:
            self.size += len(row.body)


class Writer:
    """The queue in front of the disk."""

    def __init__(
        self,
        database: Database,
        thread: ThreadPoolExecutor,
        settings: StoreSettings,
        publish: Callable[[list[LogEntry]], None],
        forget: Callable[[], None],
        point: fp.Failpoints,
        committed: int,
    ) -> None:
        """`publish` shows a batch that is durable; `forget` dooms the whole log, when space is wanted more than the past."""
        self.commits = self.writes = self.failures = 0
        self.problem: StoreError | None = None
        self.pending_changes = 0
        self._pending_bytes = 0
        self._database, self._thread, self._settings = database, thread, settings
        self._publish, self._forget, self._point = publish, forget, point
        self._committed = committed
        self._loop = asyncio.get_running_loop()
        self._heads: dict[Key, LogEntry] = {}
        self._waiting: deque[_Write] = deque()
        self._batch: list[_Write] = []
        self._scheduled = self._suspect = self._closing = self._last_try = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._doomed: list[int] = []
        self._doomed_upto = self._dropped = 0
        self._compaction: asyncio.Future[None] | None = None
        self._log_growth = 0

    @property
    def busy(self) -> bool:
        """Whether writes are on their way."""
        return bool(self._batch or self._waiting)

    def head(self, key: Key, committed: Record | None) -> Record | None:
        """The newest record of a key, on its way or else the committed one."""
        entry = self._heads.get(key)
        if entry is None:
            return committed
        return None if entry.type is EventType.DELETED else entry.record

    def admit(self) -> None:
        """Whether one more write may wait; raises Overloaded, StoreClosed."""
        if self._closing:
            raise StoreClosed("the store is closed")
        # Refused and not queued without end: a disk that is slow must show to clients, and not become memory.
        waiting = max(self.pending_changes, len(self._waiting))
        if waiting >= self._settings.pending_changes or self._pending_bytes >= self._settings.pending_bytes:
            raise Overloaded(f"{waiting} writes are waiting for the disk")

    def submit(self, entries: list[LogEntry], rows: list[Row], *, frees: bool = False) -> asyncio.Future[list[Record]]:
        """Queue a decided write; the future is its answer, with the records that it made; `frees` marks a deletion."""
        answer: asyncio.Future[list[Record]] = self._loop.create_future()
        write = _Write(entries, rows, answer, frees=frees)
        for entry in entries:
            # From here on writers decide on this record although no reader sees it yet: two creates of one name cannot both be
            # taken.
            self._heads[entry.record.key] = entry
        self.pending_changes += len(rows)
        self._pending_bytes += write.size
        self._waiting.append(write)
        self._idle.clear()
        self._point("write.queued")
        self._schedule()
        return answer

    def doom(self, entries: Sequence[LogEntry]) -> None:
        """Remember what the log dropped, to delete what nothing needs any more; raises nothing."""
        for entry in entries:
            if entry.previous is not None:
                self._doomed.append(entry.previous.revision)
            if entry.type is EventType.DELETED:
                self._doomed.append(entry.revision)
            self._doomed_upto = entry.revision
        self._dropped += len(entries)

    async def settle(self) -> None:
        """Wait until the writes that are on their way now are durable; raises what they fail with."""
        if self.busy:
            await self.submit([], [])

    async def flush_compaction(self) -> None:
        """Delete what `doom` remembered, now; raises StoreUnavailable and its kin."""
        while self._compaction is not None:
            await asyncio.wait({self._compaction})
        if self._doomed_upto:
            job = self._compact()
            await asyncio.wait({job})  # unlike `await job`, a cancelled caller does not cancel the job
            job.result()

    async def close(self) -> None:
        """Finish what waits and take nothing more."""
        self._closing = True
        await self._idle.wait()

    def _schedule(self) -> None:
        """Dispatch at the end of this turn of the loop, so that writes of one turn share a batch."""
        # One batch at the disk at a time, so that batches become durable in the order of their revisions: a crash loses a tail
        # of the log and never leaves a hole in it.
        if not self._scheduled and not self._batch:
            self._scheduled = True
            self._loop.call_soon(self._dispatch)

    def _dispatch(self) -> None:
        self._scheduled = False
        self._batch = self._take()
        rows = [row for write in self._batch for row in write.rows]
        self._point("commit.dispatched")
        commit = _commit_with_reserve if self._last_try else _commit
        job = self._thread.submit(commit, self._database, rows, self._committed, self._suspect)
        job.add_done_callback(self._back_to_the_loop)

    def _take(self) -> list[_Write]:
        """The next batch: whole writes, at least one, within the bounds of a batch."""
        batch: list[_Write] = []
        # Whole writes only: what one request decided together becomes durable together.
        changes = size = 0
        while self._waiting:
            write = self._waiting[0]
            if batch and (
                changes + len(write.rows) > self._settings.batch_changes
                or size + write.size > self._settings.batch_bytes
            ):
                break
            batch.append(self._waiting.popleft())
            changes += len(write.rows)
            size += write.size
        return batch

    def _back_to_the_loop(self, job: Future[None]) -> None:
        """Runs in the writer thread."""
        self._loop.call_soon_threadsafe(self._finished, job)

    def _finished(self, job: Future[None]) -> None:
        error = job.exception()
        handled = False
        try:
            if error is None:
                self._succeeded()
            else:
                self._failed(error)
            handled = True
        finally:
            if not handled:
                self._halt()
        if self._waiting:
            self._schedule()
        else:
            self._idle.set()

    def _succeeded(self) -> None:
        batch = self._batch
        self._suspect, self.problem = False, None
        self.commits += 1
        entries = [entry for write in batch for entry in write.entries]
        self._point("publish.before")
        if entries:
            # Visible first, answered after: whoever hears of a write finds it when reading, and no controller acts twice on one
            # state.
            self._committed = entries[-1].revision
            self._publish(entries)
        for entry in entries:
            # A later write of the same key may have taken the place since; its head stays.
            if self._heads.get(entry.record.key) is entry:
                del self._heads[entry.record.key]
        self._point("publish.visible")
        for write in batch:
            self._account(write)
            self.writes += bool(write.entries)
            if not write.answer.done():
                write.answer.set_result([entry.record for entry in write.entries])
        self._batch = []
        self._point("publish.answered")
        if self._last_try and not self._waiting:
            self._last_try = False
            self._make_room()
        self._maintain()

    def _failed(self, error: BaseException) -> None:
        # An error of a commit does not say that nothing reached the disk (fsync(2) may fail after the pages are out): the next
        # job begins by taking back whatever is above the last published revision.
        self._suspect = True
        self.failures += 1
        self._heads.clear()
        unavailable = error if isinstance(error, StoreUnavailable) else StoreUnavailable(f"cannot write: {error}")
        self.problem = unavailable
        spared = [] if self._last_try or not isinstance(unavailable, DiskFull) else self._spare()
        self._refuse_all(type(unavailable), str(unavailable), error)
        self._last_try = bool(spared)
        self._waiting.extend(spared)
        self._heads.update((entry.record.key, entry) for write in spared for entry in write.entries)

    def _spare(self) -> list[_Write]:
        """Take out of the queue the deletions that rest on nothing but what is committed."""
        lost = [*self._batch, *self._waiting]
        spared = [
            write
            for write in lost
            if write.frees
            # One that deletes what the failed batch was to create would delete something that never was.
            and all(entry.previous and entry.previous.revision <= self._committed for entry in write.entries)
        ]
        self._batch, self._waiting = [], deque(write for write in lost if write not in spared)
        return spared

    def _make_room(self) -> None:
        """After deletions on a full disk: the past goes, so that what they deleted is free, and room is kept back again."""
        self._forget()
        if self._compaction is None:
            self._compact()
        job = self._loop.run_in_executor(self._thread, self._database.keep_reserve)
        job.add_done_callback(self._note_problem)

    def _halt(self) -> None:
        """A defect kept a durable batch from being shown: take no more writes rather than let anyone wait for ever."""
        self._closing = True
        message = "the store stopped after a defect; what was written is on disk and shows after a restart"
        self.problem = StoreClosed(message)
        self._refuse_all(StoreClosed, message, None)
        self._idle.set()

    def _refuse_all(self, kind: type[StoreUnavailable], message: str, cause: BaseException | None) -> None:
        """The same answer for everyone who waits, each with an exception of its own."""
        lost = [*self._batch, *self._waiting]
        self._batch = []
        self._waiting.clear()
        for write in lost:
            self._account(write)
            if not write.answer.done():
                # Its own, because raising one exception object in many tasks would chain their tracebacks into one another.
                refusal = kind(message)
                refusal.__cause__ = cause
                write.answer.set_exception(refusal)

    def _account(self, write: _Write) -> None:
        self.pending_changes -= len(write.rows)
        self._pending_bytes -= write.size
        self._log_growth += write.size

    def _maintain(self) -> None:
        """Hand housekeeping to the thread when enough has gathered; a failure is remembered and tried again."""
        self._log_growth += _COMMIT_COST
        if self._dropped >= self._settings.compact_every and self._compaction is None:
            self._compact()
        if self._log_growth >= self._settings.checkpoint_bytes:
            self._log_growth = 0
            job = self._loop.run_in_executor(self._thread, self._database.checkpoint)
            job.add_done_callback(self._note_problem)

    def _compact(self) -> asyncio.Future[None]:
        """Start the only compaction: two could leave a row that the later one's new beginning of the log forbids."""
        doomed, self._doomed, self._dropped = self._doomed, [], 0
        job = self._loop.run_in_executor(self._thread, self._database.compact, self._doomed_upto, doomed)
        self._compaction = job

        def ended(done: asyncio.Future[None]) -> None:
            self._compaction = None
            if not self._note_problem(done):
                # What failed to go is tried again with the next compaction: a row that is forgotten here would stay for ever.
                self._doomed = doomed + self._doomed

        job.add_done_callback(ended)
        return job

    def _note_problem(self, job: asyncio.Future[None]) -> bool:
        """Whether a job succeeded; why not is for readiness, and the job is tried again when more has gathered."""
        if job.cancelled():
            return False
        error = job.exception()
        if isinstance(error, StoreError):
            self.problem = error
        return error is None


def _commit_with_reserve(database: Database, rows: Sequence[Row], committed: int, suspect: bool) -> None:
    """One batch of deletions on a full disk, in the writer thread."""
    database.open_reserve()
    _commit(database, rows, committed, suspect)


def _commit(database: Database, rows: Sequence[Row], committed: int, suspect: bool) -> None:
    """One batch, in the writer thread; what a failed one left behind is taken back at once, or before the next."""
    if suspect:
        database.resume(committed)
    if not rows:
        return
    written = False
    try:
        database.append(rows)
        written = True
    finally:
        if not written:
            with contextlib.suppress(StoreError):
                database.resume(committed)
