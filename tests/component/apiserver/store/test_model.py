"""The store against the simplest thing that could be right: a dictionary, a list, and a picture of every revision.

Hypothesis invents runs of writes (alone, atomic, concurrent, refused, failing), lists at old revisions page by page, watches
from any revision, compactions and restarts; after each step both must tell the same story.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fastness.apiserver.store import (
    Compacted,
    Cursor,
    Key,
    LogEntry,
    Record,
    Stale,
    Store,
    StoreSettings,
    StoreUnavailable,
    WriteStep,
)
from fastness.kube.port import EventType
from tests.component.apiserver.store.store_parts import MACS, Faults, ManualClock, ToyCipher

NAMESPACES = ("", "a", "b")
KEYS = st.builds(
    Key, st.just(""), st.sampled_from(["secrets", "things"]), st.sampled_from(NAMESPACES[1:]), st.sampled_from("klmno")
)
BODIES = st.binary(min_size=1, max_size=40)
CHANGES = st.tuples(KEYS, BODIES | st.none())
Picture = dict[Key, tuple[int, bytes]]


def picture(records: list[Record]) -> list[tuple[Key, int, bytes]]:
    return [(record.key, record.revision, record.body) for record in records]


class StoreModel(RuleBasedStateMachine):
    """One run."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.directory = tempfile.TemporaryDirectory()
        self.clock = ManualClock()
        self.faults = Faults()
        self.watched: list[tuple[Cursor, Key, int, list[LogEntry]]] = []

    @initialize(entries=st.integers(1, 40), rows=st.integers(1, 4), every=st.integers(1, 10))
    def start(self, entries: int, rows: int, every: int) -> None:
        self.settings = StoreSettings(
            log_entries=entries, statement_rows=rows, compact_every=every, checkpoint_bytes=20_000, batch_changes=3
        )
        self.store = self.run(self.opened())
        self.now: Picture = {}
        self.pictures: dict[int, Picture] = {1: {}}
        self.events: list[tuple[int, str, Key, bytes]] = []
        self.handed_out = 1

    async def opened(self) -> Store:
        return await Store.open(
            Path(self.directory.name),
            cipher=ToyCipher(),
            macs=MACS,
            clock=self.clock,
            settings=self.settings,
            failpoints=self.faults,
        )

    def run(self, coroutine: Any) -> Any:
        return self.runner.run(coroutine)

    def apply(self, record: Record, deleted: bool) -> None:
        kind = EventType.DELETED if deleted else EventType.MODIFIED if record.key in self.now else EventType.ADDED
        self.now = dict(self.now)
        if deleted:
            del self.now[record.key]
        else:
            self.now[record.key] = (record.revision, record.body)
        self.pictures[record.revision] = self.now
        self.events.append((record.revision, kind.value, record.key, record.body))
        assert record.revision > self.handed_out
        self.handed_out = record.revision

    async def write(self, changes: list[tuple[Key, bytes | None]]) -> list[Record]:
        store: Store = self.store
        return await store.write(lambda _: [WriteStep(key, body, None, b"last") for key, body in changes])

    @rule(changes=st.lists(CHANGES, min_size=1, max_size=6))
    def atomic_write(self, changes: list[tuple[Key, bytes | None]]) -> None:
        present = set(self.now)
        possible = True
        for key, body in changes:
            possible &= body is not None or key in present
            present = present | {key} if body is not None else present - {key}
        if not possible:
            with pytest.raises(Stale):
                self.run(self.write(changes))
            return
        for record, (_, body) in zip(self.run(self.write(changes)), changes, strict=True):
            self.apply(record, body is None)

    @rule(changes=st.lists(st.tuples(KEYS, BODIES), min_size=2, max_size=12))
    def concurrent_writes(self, changes: list[tuple[Key, bytes]]) -> None:
        async def together() -> list[list[Record]]:
            return await asyncio.gather(*(self.write([change]) for change in changes))

        for [record] in self.run(together()):
            self.apply(record, deleted=False)

    @rule(key=KEYS, body=BODIES, wrong=st.integers(1, 5))
    def conditional_write(self, key: Key, body: bytes, wrong: int) -> None:
        head = self.now.get(key, (0, b""))[0]
        with pytest.raises(Stale):
            self.run(self.store.write(lambda _: WriteStep(key, body, head + wrong)))
        [record] = self.run(self.store.write(lambda _: WriteStep(key, body, head)))
        self.apply(record, deleted=False)

    @rule(changes=st.lists(st.tuples(KEYS, BODIES), min_size=1, max_size=8), late=st.booleans())
    def failing_writes(self, changes: list[tuple[Key, bytes]], late: bool) -> None:
        async def together() -> list[Any]:
            return await asyncio.gather(*(self.write([change]) for change in changes), return_exceptions=True)

        self.faults.arm("commit.after-commit" if late else "commit.before-begin", sqlite3.OperationalError("torn out"))
        results = self.run(together())
        assert all(isinstance(result, StoreUnavailable) for result in results)

    @rule(data=st.data(), plural=st.sampled_from(["secrets", "things"]), namespace=st.sampled_from(NAMESPACES))
    def list_at_any_revision(self, data: Any, plural: str, namespace: str) -> None:
        at = data.draw(st.sampled_from(sorted(self.pictures)))
        limit = data.draw(st.integers(0, 4))
        if at < self.store.compacted:
            with pytest.raises(Compacted):
                self.store.range("", plural, namespace, at=at)
            return
        expected = [
            (key, *self.pictures[at][key])
            for key in sorted(self.pictures[at])
            if key.plural == plural and namespace in ("", key.namespace)
        ]
        listed: list[Record] = []
        after: tuple[str, str] | None = None
        while True:
            page = self.store.range("", plural, namespace, after=after, limit=limit, at=at)
            listed += page.records
            assert page.revision == at
            assert page.remaining == len(expected) - len(listed)
            if not page.remaining:
                break
            assert len(page.records) == limit
            after = (listed[-1].key.namespace, listed[-1].key.name)
        assert picture(listed) == expected

    @rule(data=st.data(), plural=st.sampled_from(["secrets", "things"]), namespace=st.sampled_from(NAMESPACES))
    def watch_from_any_revision(self, data: Any, plural: str, namespace: str) -> None:
        since = data.draw(st.sampled_from(sorted(self.pictures)))
        if since < self.store.compacted:
            with pytest.raises(Compacted):
                self.store.subscribe("", plural, namespace, since=since)
            return
        cursor = self.store.subscribe("", plural, namespace, since=since)
        self.watched.append((cursor, Key("", plural, namespace, ""), since, []))

    @precondition(lambda self: self.watched)
    @rule(data=st.data(), limit=st.integers(1, 5))
    def read_a_watch(self, data: Any, limit: int) -> None:
        index = data.draw(st.integers(0, len(self.watched) - 1))
        cursor, scope, since, entries = self.watched[index]
        expected = [
            event
            for event in self.events
            if event[0] > since and event[2].plural == scope.plural and scope.namespace in ("", event[2].namespace)
        ]
        try:
            entries += cursor.take(limit)
        except Compacted:
            assert expected[len(entries)][0] <= self.store.compacted
            cursor.close()
            del self.watched[index]
            return
        delivered = [(entry.revision, entry.type.value, entry.record.key, entry.record.body) for entry in entries]
        assert delivered == expected[: len(entries)]
        if len(entries) == len(expected):
            assert cursor.progress == self.store.revision
        for entry in entries:
            before = self.pictures_before(entry.revision).get(entry.record.key)
            assert (entry.previous and (entry.previous.revision, entry.previous.body)) == before

    def pictures_before(self, revision: int) -> Picture:
        return self.pictures[max(earlier for earlier in self.pictures if earlier < revision)]

    @rule(keep=st.integers(0, 5))
    def compact(self, keep: int) -> None:
        self.run(self.store.compact(keep))

    @rule()
    def restart(self) -> None:
        self.run(self.store.close())
        for cursor, *_ in self.watched:
            assert self.run(cursor.next_batch()) == []
        self.watched.clear()
        self.store = self.run(self.opened())
        self.handed_out = self.store.revision

    @invariant()
    def the_present_is_the_models(self) -> None:
        if not hasattr(self, "store"):
            return
        for plural in ("secrets", "things"):
            records = self.store.range("", plural).records
            expected = [(key, *self.now[key]) for key in sorted(self.now) if key.plural == plural]
            assert picture(records) == expected
            assert self.store.count("", plural) == len(expected)
        assert self.store.revision == max(self.pictures)
        assert self.store.stats.log_entries <= self.settings.log_entries
        assert self.store.stats.pending_changes == 0

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.run(self.store.close())
        self.runner.close()
        self.directory.cleanup()


def test_the_store_tells_the_story_of_a_simple_model() -> None:
    run_state_machine_as_test(StoreModel)
