"""Work on a store that no process has open: give it tags, take one object out of it, see that a key opens it.

    settle(connection, checked, jump=…)        forget the log and go on at a later revision, under a new head
    authenticate(directory, cipher, macs, …)   once, for a state from before rows were authenticated
    unreadable_records(directory, judge, …)    what no reader can decode; the store may be in use
    remove_unreadable(directory, key, …)       take one of these out
    remove(directory, key, macs)               take any object out, past the API
    check_with_key(directory, cipher, macs)    everything is tagged and opens with this key

An object that no reader can decode cannot be deleted through the API: finalizers, admission and watchers all need its content.
Any other object has a path of its own, with its finalizers and its entry in the record, so `remove_unreadable` refuses it.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.apiserver.store import files
from fastness.apiserver.store.copies import keep_before_migration
from fastness.apiserver.store.errors import NotAStore, NotSetAside, StoreForged
from fastness.apiserver.store.journal import Row, replay, resealed, superseded, tagged
from fastness.apiserver.store.ledger import Ledger
from fastness.apiserver.store.migrations import migrate, require_known, version_of, write_meta
from fastness.apiserver.store.records import Key
from fastness.apiserver.store.seal import Cipher
from fastness.apiserver.store.set_aside import Aside, Judge, set_aside
from fastness.apiserver.store.tables import (
    Kinds,
    authentic_of,
    check_structure,
    connect,
    delete_rows,
    entries_at,
    facts_of,
    rewrite_rows,
    rows_above,
    rows_of,
    transaction,
    translated,
    write_head,
)
from fastness.apiserver.store.verified import Verified, verified
from fastness.crypto.store_mac import Macs

_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a migration did: how many rows got a tag, how many were sealed, where the file from before is."""

    rows: int
    sealed: int
    before: Path


def settle(connection: sqlite3.Connection, checked: Verified, *, jump: int, gone: Key | None = None) -> int:
    """Keep the live records alone, without one of them if it is named, and begin the log `jump` revisions later; where."""
    # Out of WAL mode, so that the file is whole by itself: a restore moves it alone, and its log would stay behind.
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = FULL")
    # Never the same number again: a client that holds a version of the other history must hear that it is gone.
    revision = checked.revision + jump
    doomed = superseded(connection.execute("SELECT revision, previous, flags FROM journal ORDER BY revision"))
    if gone is not None:
        doomed.append(checked.present[gone])
    with transaction(connection):
        ledger = checked.ledger
        if ledger is not None:
            ledger = ledger.removing(entries_at(connection, doomed))
        delete_rows(connection, doomed)
        write_meta(connection, {"compacted": str(revision), "floor": str(revision)})
        if ledger is not None:
            connection.execute("UPDATE journal SET head = x'' WHERE length(head) > 0")
            write_head(connection, ledger)
    connection.execute("VACUUM")
    return revision


def remove(directory: Path, key: Key, macs: Macs | None) -> int:
    """Take a live object out of a store that is not in use; the revision that it goes on with. Raises KeyError, StoreError.

    The log is forgotten, so that clients which saw the object list again and learn that it is gone.
    """
    with _owned(directory) as connection:
        return settle(connection, verified(connection, macs), jump=1, gone=key)


def unreadable_records(directory: Path, judge: Judge, cipher: Cipher | None, macs: Macs | None) -> Mapping[Key, Aside]:
    """What a store would set aside, also while it is in use; raises StoreError."""
    with _reading(directory) as connection:
        connection.execute("BEGIN")  # one moment for both reads
        facts = facts_of(connection)
        state = replay(rows_of(connection), facts.compacted, cipher, authentic_of(facts, macs))
        return set_aside(state, judge)[0]


def remove_unreadable(directory: Path, key: Key, judge: Judge, cipher: Cipher | None, macs: Macs | None) -> Aside:
    """Take away a record that is set aside; raises NotSetAside, StoreInUse and other StoreErrors."""
    aside = unreadable_records(directory, judge, cipher, macs).get(key)
    if aside is None:
        raise NotSetAside(f"{'/'.join(filter(None, key))} is not set aside: it can be read, or is not there")
    remove(directory, key, macs)
    return aside


def check_with_key(directory: Path, cipher: Cipher, macs: Macs) -> None:
    """Check every row and open every sealed one with these keys alone; raises StoreError."""
    with _reading(directory) as connection:
        verified(connection, macs)
        facts = facts_of(connection)
        replay(rows_of(connection), facts.compacted, cipher, authentic_of(facts, macs))


def authenticate(
    directory: Path, cipher: Cipher, macs: Macs, kinds: Kinds, done: Callable[[], None] = lambda: None
) -> Migrated:
    """Give every row of a state from before a tag, and seal the rows of `kinds`; raises StoreError.

    `done` is called while the directory is still owned: it tells the vault that from now on tags are required. A state that has
    its tags already (the last attempt died before `done`) is checked instead.
    """
    with _owned(directory) as connection:
        version = version_of(connection)
        require_known(version)
        check_structure(connection)
        before = keep_before_migration(connection, directory / files.DATABASE, version)
        migrate(connection, version)
        facts = facts_of(connection)
        if facts.head:
            verified(connection, macs)
            before.unlink()
            done()
            return Migrated(0, 0, before)
        if macs.required:
            raise StoreForged("the rows carry no tags, and the vault key says that this store has them")
        replay(rows_of(connection), facts.compacted, cipher)  # everything opens, or nothing is changed
        rows, sealed = _tag_all(connection, cipher, macs, kinds)
        verified(connection, macs)
        done()
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return Migrated(rows, sealed, before)


def _tag_all(connection: sqlite3.Connection, cipher: Cipher, macs: Macs, kinds: Kinds) -> tuple[int, int]:
    sealed = 0

    def renewed(row: Row) -> Row:
        nonlocal sealed
        if (row.grp, row.plural) in kinds:
            sealed += 1
            row = resealed(row, cipher)
        return tagged(row, macs.present)

    with transaction(connection):
        ledger = Ledger(macs.present)
        after, rows = 0, rows_above(connection, 0, _AT_ONCE)
        while rows:
            after, fresh = rows[-1].revision, [renewed(row) for row in rows]
            rewrite_rows(connection, fresh)
            ledger = ledger.adding(row.entry for row in fresh)
            rows = rows_above(connection, after, _AT_ONCE)
        write_head(connection, ledger, kinds)
    return ledger.count, sealed


@contextlib.contextmanager
def _owned(directory: Path) -> Iterator[sqlite3.Connection]:
    """The database of a directory, for this process alone."""
    lock = files.DirectoryLock.acquire(directory)
    try:
        with translated(f"cannot work on {directory}"):
            if not files.exists(directory):
                raise NotAStore(f"{directory} holds no store")
            files.require_database(directory / files.DATABASE)
            with contextlib.closing(connect(directory / files.DATABASE)) as connection:
                yield connection
    finally:
        lock.release()


@contextlib.contextmanager
def _reading(directory: Path) -> Iterator[sqlite3.Connection]:
    """The database of a directory, which others may have open."""
    database = directory / files.DATABASE
    files.require_database(database)
    with translated(f"cannot read {database.name}"), contextlib.closing(connect(database, "ro")) as connection:
        yield connection
