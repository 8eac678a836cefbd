"""Work on a store that no process has open: give it tags, take one object out of it.

settle(connection, checked, jump=…)        forget the log and go on at a later revision, under a new head
authenticate(directory, cipher, macs, …)   once, for a state from before rows were authenticated
remove(directory, key, macs)               take an object out, past the API
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.apiserver.store import files
from fastness.apiserver.store.copies import keep_before_migration
from fastness.apiserver.store.errors import NotAStore, StoreForged
from fastness.apiserver.store.journal import Row, replay, resealed, superseded, tagged
from fastness.apiserver.store.ledger import Ledger
from fastness.apiserver.store.migrations import migrate, require_known, version_of, write_meta
from fastness.apiserver.store.records import Key
from fastness.apiserver.store.seal import Cipher
from fastness.apiserver.store.tables import (
    Kinds,
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
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = FULL")
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
        kept = keep_before_migration(connection, directory / files.DATABASE, version)
        migrate(connection, version)
        facts = facts_of(connection)
        if facts.head:
            verified(connection, macs)
            kept.unlink()
            done()
            return Migrated(0, 0, kept)
        if macs.required:
            raise StoreForged("the rows carry no tags, and the vault key says that this store has them")
        replay(rows_of(connection), facts.compacted, cipher)  # everything opens, or nothing is changed
        rows, sealed = _tag_all(connection, cipher, macs, kinds)
        verified(connection, macs)
        done()
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return Migrated(rows, sealed, kept)


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
