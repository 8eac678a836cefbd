"""Rows of the journal, and how they become a state again. Pure: no file is touched here.

The disk has one table of changes instead of a log beside a copy of the present state: a write appends one row and touches no
index, and the present state is what replaying the rows gives. Compaction deletes the rows that later ones replaced.

* A row at or below `compacted` is the live record of its key. A row above it is also an entry of the log.
* A row names the revision that it replaced (`previous`, 0: none), so that a missing row breaks the chain and is noticed.
* Each row carries a CRC-32 of all its columns: SQLite checks its own pages' structure, never their content. A CRC is there
  against rot and torn pages, not against an attacker, who could write a new sum of any kind; sealed bodies resist those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from zlib import crc32

from fastness.cluster.embedded.store.errors import StoreDamaged
from fastness.cluster.embedded.store.records import Key, LogEntry, Record
from fastness.cluster.embedded.store.seal import Cipher, context_of, unseal
from fastness.cluster.port import EventType

DELETED: Final = 1
SEALED: Final = 2
_HEAD: Final = "%d\0%d\0%s\0%s\0%s\0%s\0%d\0%d\0%d"


class Row(NamedTuple):
    """One change as the table holds it; `at` is in milliseconds since the epoch."""

    revision: int
    at: int
    grp: str
    plural: str
    namespace: str
    name: str
    created: int
    previous: int
    flags: int
    body: bytes
    crc: int


COLUMNS: Final = Row._fields


@dataclass(slots=True)
class Replayed:
    """What a journal says: the live records, and the log above `compacted` with the times of its entries."""

    records: dict[Key, Record] = field(default_factory=dict)
    log: list[tuple[LogEntry, float]] = field(default_factory=list)
    revision: int = 0


def checksum(row: tuple[int, int, str, str, str, str, int, int, int], body: bytes) -> int:
    """The CRC-32 over all columns but itself; raises ValueError for a name that is not Unicode text."""
    return crc32(body, crc32((_HEAD % row).encode()))


def encode(entry: LogEntry, at: int, cipher: Cipher | None) -> Row:
    """The row of a change; sealed when a cipher is given."""
    record = entry.record
    previous = entry.previous.revision if entry.previous is not None else 0
    flags = DELETED if entry.type is EventType.DELETED else 0
    body = record.body
    if cipher is not None:
        body = cipher.seal(body, context_of(record.key))
        flags |= SEALED
    head = (record.revision, at, *record.key, record.created, previous, flags)
    return Row(*head, body, checksum(head, body))


def resealed(row: Row, cipher: Cipher) -> Row:
    """The row with its body sealed by the cipher's present key, whatever it was before; raises StoreDamaged, SealBroken."""
    if checksum(row[:9], row.body) != row.crc:
        raise StoreDamaged(f"the row of revision {row.revision} does not match its checksum")
    key = Key(row.grp, row.plural, row.namespace, row.name)
    plain = unseal(cipher, row.body, key) if row.flags & SEALED else row.body
    fresh = row._replace(body=cipher.seal(plain, context_of(key)), flags=row.flags | SEALED)
    return fresh._replace(crc=checksum(fresh[:9], fresh.body))


@dataclass(slots=True)
class Chain:
    """The revisions that rows link: the present one of each key, and the newest."""

    present: dict[Key, int] = field(default_factory=dict)
    revision: int = 0

    def follow(self, row: Row, compacted: int) -> Key:
        """Check a row and its place in the chain; raises StoreDamaged."""
        if checksum(row[:9], row.body) != row.crc:
            raise StoreDamaged(f"the row of revision {row.revision} does not match its checksum")
        key = Key(row.grp, row.plural, row.namespace, row.name)
        present = self.present.get(key, 0)
        deleted = bool(row.flags & DELETED)
        if row.revision <= compacted:
            if present or deleted:
                raise StoreDamaged(f"revision {row.revision} of {'/'.join(key)} should have been compacted away")
        elif row.previous != present or (deleted and not present):
            raise StoreDamaged(f"revision {row.revision} of {'/'.join(key)} follows a revision that is missing")
        self.revision = row.revision
        if deleted:
            del self.present[key]
        else:
            self.present[key] = row.revision
        return key


def link(rows: Iterable[Row], compacted: int) -> Chain:
    """Check all rows in order of revision without opening their bodies; raises StoreDamaged."""
    chain = Chain()
    for row in rows:
        chain.follow(row, compacted)
    return chain


def replay(rows: Iterable[Row], compacted: int, cipher: Cipher | None) -> Replayed:
    """The state that rows in order of revision make; raises StoreDamaged, SealBroken."""
    state, chain = Replayed(), Chain()
    for row in rows:
        key = chain.follow(row, compacted)
        body = unseal(cipher, row.body, key) if row.flags & SEALED else row.body
        record = Record(key, row.revision, row.created, body)
        _apply(state, record, row, logged=row.revision > compacted)
    state.revision = chain.revision
    return state


def superseded(rows: Iterable[tuple[int, int, int]]) -> list[int]:
    """The revisions that no present record needs, out of (revision, previous, flags) of all rows."""
    gone: list[int] = []
    for revision, previous, flags in rows:
        if previous:
            gone.append(previous)
        if flags & DELETED:
            gone.append(revision)
    return gone


def _apply(state: Replayed, record: Record, row: Row, *, logged: bool) -> None:
    key = record.key
    present = state.records.get(key)
    if row.flags & DELETED:
        event = EventType.DELETED
        del state.records[key]
    else:
        event = EventType.ADDED if present is None else EventType.MODIFIED
        state.records[key] = record
    if logged:
        state.log.append((LogEntry(event, record, present), row.at / 1000))
