"""The store: the present state in memory, every change durable on disk, a log for those who watch.

Reads are answered from memory on the event-loop thread and never wait. A write decides synchronously, with its revision in
hand and the newest records before its eyes (`head`), so decisions are serial without a lock; only the commit leaves the thread.

* `get` and `range` show committed records only. `head` also shows writes on their way: it is for deciding, not for answering.
* A write returns when it is durable and visible. A refusal that was decided on a write still on its way waits for that write,
  so that no answer ever depends on something that did not happen.
* Revisions increase strictly and are never reused; each change has its own; the changes of one write are visible together.

The flow of a write: `Store.write` → `Writer` (queue, group commit) → `Database` (SQLite) → `Present` and `History` → answer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from fastness.apiserver.store import failpoints as fp
from fastness.apiserver.store import files
from fastness.apiserver.store.copies import backup, create
from fastness.apiserver.store.database import Database
from fastness.apiserver.store.errors import IdentityMismatch, RecordTooLarge, Stale
from fastness.apiserver.store.history import Cursor, History
from fastness.apiserver.store.journal import Replayed, Row, encode, replay
from fastness.apiserver.store.records import (
    BackupReport,
    Identity,
    Key,
    LogEntry,
    Range,
    Record,
    Stats,
    StoreSettings,
    WriteStep,
)
from fastness.apiserver.store.seal import Cipher
from fastness.apiserver.store.set_aside import Aside, Judge, everything_is_readable, set_aside
from fastness.apiserver.store.snapshot import Present
from fastness.apiserver.store.tables import Facts, Kinds, authentic_of
from fastness.apiserver.store.writer import Writer
from fastness.crypto.store_mac import Macs
from fastness.kube.port import EventType
from fastness.runtime.clock import Clock, Entropy, SystemClock, SystemEntropy

RESEAL_ROWS = 500  # per transaction, so that writes need not wait long

Make = Callable[[int], WriteStep | Sequence[WriteStep]]


class Opened(NamedTuple):
    """What the writer thread found: the file, its facts, the state to show and what is set aside (also in the log?)."""

    database: Database
    facts: Facts
    state: Replayed
    aside: dict[Key, Aside]
    log_unreadable: bool


class Store:
    """An open store. Made by `open`; all methods belong to the event-loop thread that opened it."""

    def __init__(
        self,
        directory: Path,
        lock: files.DirectoryLock,
        thread: ThreadPoolExecutor,
        opened: Opened,
        *,
        cipher: Cipher | None,
        macs: Macs | None,
        clock: Clock,
        settings: StoreSettings,
        point: fp.Failpoints,
    ) -> None:
        self._directory, self._lock, self._thread, self._macs = directory, lock, thread, macs
        self._cipher, self._clock, self._settings, self._point = cipher, clock, settings, point
        self._database, facts, state, self._aside, log_unreadable = opened
        self.id = facts.store
        self._sealed = settings.sealed_kinds | facts.sealed
        self.identity: Identity = MappingProxyType(facts.identity)
        # Also above `floor`: after a restore or a removal offline the newest row may be older than a revision that clients know.
        revision = max(facts.floor, facts.compacted, state.revision)
        self._next = revision + 1
        self._present = Present()
        self._present.load(state.records.values())
        self._history = History(settings, revision=revision, compacted=facts.compacted)
        for entry, at in state.log:
            self._history.publish(entry, at)
        self._history.revision = revision
        self._observers: list[Callable[[list[LogEntry]], None]] = []
        self._writer = Writer(self._database, thread, settings, self._publish, self._forget, point, revision)
        # The bounds may have shrunk; the age counts from the next write on. A log that cannot be read through begins anew.
        self._writer.doom(self._history.trim(0.0, keep=0) if log_unreadable else self._history.trim(0.0))

    @classmethod
    async def open(
        cls,
        directory: Path,
        *,
        cipher: Cipher | None = None,
        macs: Macs | None = None,
        identity: Identity | None = None,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
        settings: StoreSettings | None = None,
        failpoints: fp.Failpoints = fp.none,
        judge: Judge = everything_is_readable,
    ) -> Store:
        """Open the store of a directory, or create it with these immutable facts; raises StoreError.

        Facts given for a store that exists must be those that it was created with (IdentityMismatch). With `macs` every row is
        authenticated, and a file that anybody else edited is refused (StoreForged). `judge` says of a body why it cannot be
        read; such records are set aside.
        """
        settings = settings or StoreSettings()
        thread = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        with contextlib.ExitStack() as undo:
            # The lock before the file: SQLite alone would let a second process in, whose memory would know nothing of our
            # writes.
            lock = files.DirectoryLock.acquire(directory)
            undo.callback(lock.release)
            fresh = (entropy or SystemEntropy()).uid()
            opening = thread.submit(_open, directory, fresh, identity or {}, cipher, macs, settings, failpoints, judge)
            undo.callback(_abandon, opening, thread)
            store = cls(
                directory, lock, thread, await asyncio.wrap_future(opening),
                cipher=cipher, macs=macs, clock=clock or SystemClock(), settings=settings, point=failpoints,
            )  # fmt: skip
            undo.pop_all()
        return store

    @property
    def revision(self) -> int:
        """The newest revision that is durable and visible; also what a bookmark may say to a watcher that is at the end."""
        return self._history.revision

    @property
    def compacted(self) -> int:
        """The oldest revision that can be asked for: watches and lists below it are refused."""
        return self._history.compacted

    @property
    def stats(self) -> Stats:
        """Figures for the metrics."""
        writer, history = self._writer, self._history
        return Stats(
            revision=self.revision, compacted=self.compacted, objects=len(self._present.records),
            log_entries=len(history), log_bytes=history.bytes, pending_changes=writer.pending_changes,
            watchers=history.watchers, writes=writer.writes, commits=writer.commits, failures=writer.failures,
        )  # fmt: skip

    @property
    def problem(self) -> Exception | None:
        """Why the last write or housekeeping failed, until one succeeds again; for readiness."""
        return self._writer.problem

    def get(self, key: Key) -> Record | None:
        """The committed record: what readers may see."""
        return self._present.records.get(key)

    @property
    def aside(self) -> Mapping[Key, Aside]:
        """The records that cannot be read: no list or watch has them, their names are taken."""
        return self._aside

    def head(self, key: Key) -> Record | None:
        """The newest record, on its way or committed: what writers decide on; also one that is set aside."""
        committed = self._present.records.get(key)
        if committed is None and key in self._aside:
            committed = self._aside[key].record
        return self._writer.head(key, committed)

    def range(
        self,
        group: str,
        plural: str,
        namespace: str = "",
        *,
        after: tuple[str, str] | None = None,
        limit: int = 0,
        at: int | None = None,
    ) -> Range:
        """Committed records in order of namespace and name, after a position, at the present or an older revision.

        Raises Compacted when `at` is older than the log and FutureRevision when it is newer than the present.
        """
        revision = self.revision
        if at is None or at == revision:
            records, remaining = self._present.page(group, plural, namespace, after, limit)
            return Range(records, revision, remaining)
        undo = self._history.undo(group, plural, namespace, at)
        records, remaining = self._present.page_before(group, plural, namespace, after, limit, undo)
        return Range(records, at, remaining)

    def count(self, group: str, plural: str, namespace: str = "") -> int:
        """How many committed records a collection has."""
        return self._present.count(group, plural, namespace)

    def collections(self, namespace: str = "") -> list[tuple[str, str]]:
        """Group and plural of all collections that have records, readable or not, everywhere or in one namespace."""
        unread = {key[:2] for key in self._aside if namespace in ("", key.namespace)}
        return sorted(unread.union(self._present.collections(namespace)))

    def subscribe(self, group: str, plural: str, namespace: str = "", *, since: int, name: str = "") -> Cursor:
        """A cursor on the changes after a revision; raises Compacted, FutureRevision."""
        return self._history.subscribe(group, plural, namespace, since, name)

    def observe(self, observer: Callable[[list[LogEntry]], None]) -> None:
        """Have a function see every change of every collection, in order, right after it became visible; it must not wait."""
        self._observers.append(observer)

    async def write(self, make: Make, *, frees: bool = False) -> list[Record]:
        """Decide and write; the records that were made (for a delete: the final one), durable and visible.

        `make` is called once, at once, with the revision of its first change (the second has that plus one, and so on). What
        it raises is raised here and nothing happens; no changes mean no write. Raises Stale when a change expects another
        head, StoreUnavailable when the disk failed, Overloaded, RecordTooLarge. Deletions, and writes on the way to one that the
        caller marks (`frees`), are taken on a full disk as well while there is room kept back for them.
        """
        self._writer.admit()
        decided = False
        try:
            made = make(self._next)
            entries = self._entries((made,) if isinstance(made, WriteStep) else made)
            rows = self._rows(entries)
            decided = True
        finally:
            # A refusal rests on the heads, some of which are not durable yet. If the disk fails now, "already exists" would have
            # been said of something that never was: so the refusal waits for what it was decided on, and fails with it.
            if not decided:
                await self._writer.settle()
        if not entries:
            await self._writer.settle()
            return []
        # Before the commit, and for good even if it fails: a revision that somebody may have heard of never means anything else.
        self._next += len(entries)
        self._point("write.reserved")
        frees = frees or all(entry.type is EventType.DELETED for entry in entries)
        return await self._writer.submit(entries, rows, frees=frees)

    async def compact(self, keep: int = 0) -> int:
        """Forget all but the newest `keep` entries of the log, in memory and on disk; the new oldest revision.

        The bounds in the settings do the same by themselves whenever something is written.
        """
        await self._writer.settle()
        self._writer.doom(self._history.trim(self._now(), keep=keep))
        await self._writer.flush_compaction()
        return self.compacted

    async def reseal(self, macs: Macs | None = None) -> int:
        """Seal every secret on disk with the cipher's present key, also those from before there was one; how many rows.

        Afterwards no old key is needed and no plaintext is left in the file. Writes go on in between. After a rotation `macs` are
        the keys of the new ring: rows and head are tagged anew with the first.
        """
        if self._cipher is None:
            return 0
        if self._macs is not None:
            self._macs = macs or self._macs
        run, kinds, step = asyncio.get_running_loop().run_in_executor, self._sealed, RESEAL_ROWS
        total = after = 0
        while True:
            after, count = await run(self._thread, self._database.reseal, after, kinds, self._cipher, step, self._macs)
            total += count
            if not after:
                break
        if self._macs is not None:
            await run(self._thread, self._database.renew_head, self._macs, kinds)
        # An UPDATE leaves the old pages free but filled, in the file and in the write-ahead log: with the old key they still
        # open.
        await run(self._thread, self._database.forget_the_past)
        return total

    async def backup(self, target: Path) -> BackupReport:
        """Copy everything acknowledged until now into a file that appears whole, while writes go on; raises StoreError."""
        source = self._directory / files.DATABASE
        return await asyncio.to_thread(backup, source, target, self._point, macs=self._macs)

    async def close(self) -> None:
        """Finish the writes that wait, end all watches and let go of the directory; calling it twice is harmless."""
        await self._writer.close()
        if self._history.closed:
            return
        self._history.close()
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._database.close)
        finally:
            self._thread.shutdown(wait=True)
            self._lock.release()

    def _entries(self, changes: Sequence[WriteStep]) -> list[LogEntry]:
        """The log entries of changes on top of the heads and of each other; raises Stale."""
        entries: list[LogEntry] = []
        heads: dict[Key, Record | None] = {}
        for revision, change in enumerate(changes, self._next):
            key = change.key
            head = heads[key] if key in heads else self.head(key)
            actual = head.revision if head is not None else 0
            # Optimistic concurrency is compared here, on the thread that decides, so there is no moment between the look and the
            # write.
            if change.expect is not None and change.expect != actual:
                raise Stale(key, change.expect, actual)
            if len(change.last if change.body is None else change.body) > self._settings.max_body:
                raise RecordTooLarge(f"{'/'.join(key)} is larger than {self._settings.max_body} bytes")
            if change.body is None:
                if head is None:
                    raise Stale(key, change.expect, 0)
                record = Record(key, revision, head.created, change.last)
                entries.append(LogEntry(EventType.DELETED, record, head))
                heads[key] = None
            else:
                record = Record(key, revision, head.created if head is not None else revision, change.body)
                entries.append(LogEntry(EventType.ADDED if head is None else EventType.MODIFIED, record, head))
                heads[key] = record
        return entries

    def _rows(self, entries: Sequence[LogEntry]) -> list[Row]:
        at = int(self._now() * 1000)
        sealed, cipher = self._sealed, self._cipher
        mac = self._macs.present if self._macs is not None else None
        return [
            encode(entry, at, cipher if (entry.record.key.group, entry.record.key.plural) in sealed else None, mac)
            for entry in entries
        ]

    def _publish(self, entries: list[LogEntry]) -> None:
        """Make a durable batch visible, to readers and to watchers."""
        now = self._now()
        for entry in entries:
            unread = self._aside.pop(entry.record.key, None)
            if entry.type is not EventType.DELETED:
                self._present.put(entry.record)
            elif unread is None:
                self._present.remove(entry.record.key)
            self._history.publish(entry, now)
        # Observers come last: they may read the store, and must find in it what they are told of.
        self._writer.doom(self._history.trim(now))
        for observer in self._observers:
            observer(entries)

    def _forget(self) -> None:
        self._writer.doom(self._history.trim(self._now(), keep=0))

    def _now(self) -> float:
        return self._clock.now().timestamp()


def _open(
    directory: Path,
    fresh: str,
    identity: Identity,
    cipher: Cipher | None,
    macs: Macs | None,
    settings: StoreSettings,
    point: fp.Failpoints,
    judge: Judge,
) -> Opened:
    """The blocking part of opening, in the writer thread."""
    if not files.exists(directory):
        create(directory, fresh, identity, point, macs=macs, sealed=settings.sealed_kinds)
    database = Database.open(directory / files.DATABASE, settings, point, macs=macs)
    try:
        facts = database.facts()
        # `simulated` is such a fact: a state whose machines proved nothing real must never go on as that of a real cluster.
        for fact, value in identity.items():
            if facts.identity.get(fact) != value:
                raise IdentityMismatch(f"{fact} is {facts.identity.get(fact)!r} in {directory}, not {value!r}")
        authentic = authentic_of(facts, macs)
        state = replay(database.rows(), facts.compacted, cipher, authentic)
        if authentic is not None:
            # Only now are there rows whose set the head confirms; sealing more kinds rewrites rows, and must not launder forged
            # ones.
            database.trust(authentic)
            if cipher is not None and not settings.sealed_kinds <= facts.sealed:
                _seal_more(database, cipher, authentic.macs, settings.sealed_kinds | facts.sealed)
        return Opened(database, facts, state, *set_aside(state, judge))
    except BaseException:
        database.close()
        raise


def _seal_more(database: Database, cipher: Cipher, macs: Macs, kinds: Kinds) -> None:
    """This version seals kinds that the one before left open: do it now, before anything relies on it."""
    after, _ = database.reseal(0, kinds, cipher, RESEAL_ROWS, macs)
    while after:
        after, _ = database.reseal(after, kinds, cipher, RESEAL_ROWS, macs)
    database.renew_head(macs, kinds)
    database.forget_the_past()


def _abandon(opening: Future[Opened], thread: ThreadPoolExecutor) -> None:
    """After a refused or cancelled opening: nothing may stay open when the directory is let go."""
    opening.cancel()
    thread.shutdown(wait=True)
    if not opening.cancelled() and opening.exception() is None:
        opening.result()[0].close()
