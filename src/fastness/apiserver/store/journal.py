"""Rows of the journal, and how they become a state again. Pure: no file is touched here.

The disk has one table of changes instead of a log beside a copy of the present state: a write appends one row and touches no
index, and the present state is what replaying the rows gives. Compaction deletes the rows that later ones replaced.

* A row at or below `compacted` is the live record of its key. A row above it is also an entry of the log.
* A row names the revision that it replaced (`previous`, 0: none), so that a missing row breaks the chain and is noticed.
* Each row carries a CRC-32 of all its columns: SQLite checks its own pages' structure, never their content. It is there against
  rot and torn pages, and can be checked without a key.
* Each row carries a tag under a key of the vault (`mac`), over the same columns: against whoever edits the file. The last row of
  a batch also carries the `head`, which says what rows there are (`ledger`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Final, NamedTuple
from zlib import crc32

from fastness.apiserver.store.errors import StoreDamaged, StoreForged
from fastness.apiserver.store.ledger import LedgerRow
from fastness.apiserver.store.records import Key, LogEntry, Record
from fastness.apiserver.store.seal import Cipher, context_of, unseal
from fastness.crypto.store_mac import Macs, StoreMac
from fastness.kube.port import EventType

DELETED: Final = 1
SEALED: Final = 2
_HEAD: Final = "%d\0%d\0%s\0%s\0%s\0%s\0%d\0%d\0%d"
# Ends the header: without it `flags` 1 before a body "2…" would have the tag of `flags` 12 before "…". No column that we write
# holds a zero byte, so a header with one in a name has too many of them to be one of ours.
_END: Final = b"\0"


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
    mac: bytes = b""
    head: bytes = b""

    @property
    def key(self) -> Key:
        """Where the record of this row lives."""
        return Key(self.grp, self.plural, self.namespace, self.name)

    @property
    def entry(self) -> LedgerRow:
        """What the ledger needs of it."""
        return LedgerRow(self.revision, self.key, self.mac)


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


def tagged(row: Row, mac: StoreMac) -> Row:
    """The row with the tag of a key."""
    return row._replace(mac=mac.row(_header(row), row.body))


def encode(entry: LogEntry, at: int, cipher: Cipher | None, mac: StoreMac | None = None) -> Row:
    """The row of a change; sealed when a cipher is given, authenticated when a key for that is."""
    record = entry.record
    previous = entry.previous.revision if entry.previous is not None else 0
    flags = DELETED if entry.type is EventType.DELETED else 0
    body = record.body
    if cipher is not None:
        body = cipher.seal(body, context_of(record.key))
        flags |= SEALED
    head = (record.revision, at, *record.key, record.created, previous, flags)
    columns = (_HEAD % head).encode()
    tag = mac.row(columns + _END, body) if mac is not None else b""
    return Row(*head, body, crc32(body, crc32(columns)), tag)


def _header(row: Row) -> bytes:
    return (_HEAD % row[:9]).encode() + _END


def resealed(row: Row, cipher: Cipher) -> Row:
    """The row with its body sealed by the cipher's present key, whatever it was before; raises StoreDamaged, SealBroken."""
    if checksum(row[:9], row.body) != row.crc:
        raise StoreDamaged(f"the row of revision {row.revision} does not match its checksum")
    key = row.key
    plain = unseal(cipher, row.body, key) if row.flags & SEALED else row.body
    fresh = row._replace(body=cipher.seal(plain, context_of(key)), flags=row.flags | SEALED)
    return fresh._replace(crc=checksum(fresh[:9], fresh.body))


@dataclass(slots=True)
class Authentic:
    """Checks that a holder of the vault key wrote each row, sealed where its kind is, and gathers what the ledger needs."""

    macs: Macs
    sealed_kinds: frozenset[tuple[str, str]]
    entries: list[LedgerRow] = field(default_factory=list)
    head: bytes = b""

    def follow(self, row: Row) -> None:
        """Check one row; raises StoreForged."""
        header = _header(row)
        # Several keys, because a rotation of the vault that was killed half way leaves rows of both.
        if not any(compare_digest(mac.row(header, row.body), row.mac) for mac in self.macs.keys):
            raise StoreForged(f"revision {row.revision} of {'/'.join(row.key)} was not written by this control plane")
        # The tag says who wrote the row, not that it may lie open: a genuine row from before its kind was sealed, put back by
        # whoever has the file, would pass the tag alone.
        if (row.grp, row.plural) in self.sealed_kinds and not row.flags & SEALED:
            raise StoreForged(f"revision {row.revision} of {'/'.join(row.key)} lies open, and its kind is sealed")
        self.entries.append(row.entry)
        self.head = row.head


@dataclass(slots=True)
class Chain:
    """The revisions that rows link: the present one of each key, and the newest."""

    present: dict[Key, int] = field(default_factory=dict)
    revision: int = 0

    def follow(self, row: Row, compacted: int) -> Key:
        """Check a row and its place in the chain; raises StoreDamaged."""
        if checksum(row[:9], row.body) != row.crc:
            raise StoreDamaged(f"the row of revision {row.revision} does not match its checksum")
        key = row.key
        present = self.present.get(key, 0)
        deleted = bool(row.flags & DELETED)
        if row.revision <= compacted:
            if present or deleted:
                raise StoreDamaged(f"revision {row.revision} of {'/'.join(key)} should have been compacted away")
        # Each row names the one it replaced, so a row that is lost in the middle is noticed without a key, too.
        elif row.previous != present or (deleted and not present):
            raise StoreDamaged(f"revision {row.revision} of {'/'.join(key)} follows a revision that is missing")
        self.revision = row.revision
        if deleted:
            del self.present[key]
        else:
            self.present[key] = row.revision
        return key


def link(rows: Iterable[Row], compacted: int, authentic: Authentic | None = None) -> Chain:
    """Check all rows in order of revision without opening their bodies; raises StoreDamaged, StoreForged."""
    chain = Chain()
    for row in rows:
        chain.follow(row, compacted)
        if authentic is not None:
            authentic.follow(row)
    return chain


def replay(rows: Iterable[Row], compacted: int, cipher: Cipher | None, authentic: Authentic | None = None) -> Replayed:
    """The state that rows in order of revision make; raises StoreDamaged, StoreForged, SealBroken."""
    state, chain = Replayed(), Chain()
    for row in rows:
        key = chain.follow(row, compacted)
        # Before the body is opened: no decryption of bytes that nobody vouched for.
        if authentic is not None:
            authentic.follow(row)
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
