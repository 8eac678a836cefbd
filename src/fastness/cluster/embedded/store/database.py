"""`state.db`: the one place that talks to SQLite.

A `Database` belongs to one thread. WAL with `synchronous=FULL`: a commit returns after the write-ahead log was fsynced.

* A batch is one multi-row INSERT outside any explicit transaction, so that the whole commit is one step of SQLite: the
  interpreter lock is given up and taken back once per batch, not once per row. Under a busy event loop each taking-back may
  cost a switch interval (5 ms), which is why this matters more than the speed of the statements.
* A failed batch leaves nothing behind. `resume` makes sure of it before the next one: an error may be reported for a commit
  that reached the disk, and rows that nobody was told about must not stay between those that were.
* Checkpoints are run by `checkpoint`, between batches and after answers, instead of inside a commit.

Errors of SQLite leave as `StoreError`.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.cluster.embedded.store import failpoints as fp
from fastness.cluster.embedded.store import files
from fastness.cluster.embedded.store.errors import StoreDamaged, StoreInUse, translate
from fastness.cluster.embedded.store.journal import COLUMNS, SEALED, Row, resealed
from fastness.cluster.embedded.store.migrations import (
    MIGRATIONS,
    Step,
    migrate,
    read_meta,
    require_known,
    version_of,
    write_meta,
)
from fastness.cluster.embedded.store.records import BackupReport, Identity, StoreSettings
from fastness.cluster.embedded.store.reserve import Reserve
from fastness.cluster.embedded.store.seal import Cipher

FIRST_REVISION: Final = 1
_INSERT: Final = f"INSERT INTO journal ({', '.join(COLUMNS)}) VALUES "  # noqa: S608 - our own column names
_PLACES: Final = f"({', '.join('?' * len(COLUMNS))})"
_SELECT: Final = f"SELECT {', '.join(COLUMNS)} FROM journal ORDER BY revision"  # noqa: S608 - our own column names
_SELECT_ABOVE: Final = _SELECT.replace("ORDER BY", "WHERE revision > ? ORDER BY") + " LIMIT ?"
_IDENTITY: Final = "identity/"
_DELETE_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class Facts:
    """What `meta` says: the store's id, its immutable identity, where the log begins, and the least revision."""

    store: str
    identity: dict[str, str]
    compacted: int
    floor: int


class Database:
    """An open `state.db`, used by one thread."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, settings: StoreSettings, point: fp.Failpoints
    ) -> None:
        self._connection = connection
        self._path = path
        self._rows = settings.statement_rows
        self._point = point
        self._settings = settings
        self._reserve = Reserve(path.parent, settings.reserve_bytes)
        self._inserts: dict[int, str] = {}

    @classmethod
    def open(
        cls,
        path: Path,
        settings: StoreSettings,
        point: fp.Failpoints = fp.none,
        steps: Sequence[Step] = MIGRATIONS,
    ) -> Database:
        """Open, check and migrate an existing file; raises NotAStore, StoreDamaged, NewerSchema, StoreReadOnly, DiskFull."""
        files.require_database(path)
        Reserve(path.parent, settings.reserve_bytes).begin()
        with translated(f"cannot open {path.name}"):
            connection = connect(path)
            try:
                version = version_of(connection)
                require_known(version, steps)
                check_structure(connection)
                if version < len(steps):
                    _keep_before_migration(connection, path, version)
                connection.execute("PRAGMA journal_mode = WAL")
                _configure(connection, settings)
                migrate(connection, version, steps)
                read_meta(connection)
                return cls(connection, path, settings, point)
            except BaseException:
                connection.close()
                raise

    def facts(self) -> Facts:
        """The facts in `meta`; raises StoreDamaged."""
        with translated("cannot read the store's facts"):
            return facts_of(self._connection)

    def rows(self) -> Iterator[Row]:
        """All rows in order of revision."""
        with translated("cannot read the journal"):
            yield from rows_of(self._connection)

    def append(self, rows: Sequence[Row]) -> None:
        """Make rows durable, all or none; raises StoreUnavailable and its kin."""
        self._point("commit.before-begin")
        with translated("cannot write"):
            if len(rows) <= self._rows:
                self._insert(rows)
            else:
                self._append_in_parts(rows)
        self._point("commit.after-commit")

    def resume(self, committed: int) -> None:
        """After a failed batch: leave no transaction open, and no row above the last revision that was published."""
        with translated("cannot write"):
            self._point("resume.before")
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            self._connection.execute("DELETE FROM journal WHERE revision > ?", (committed,))
        self._point("resume.after")

    def compact(self, upto: int, doomed: Sequence[int]) -> None:
        """Move the beginning of the log to a revision and delete rows that nothing needs, in one transaction."""
        self._point("compact.before-begin")
        with translated("cannot compact"), transaction(self._connection):
            delete_rows(self._connection, doomed)
            write_meta(self._connection, {"compacted": str(upto)})
            self._point("compact.after-delete")
        self._point("compact.after-commit")

    def checkpoint(self) -> None:
        """Move the write-ahead log into the main file as far as readers allow."""
        self._point("checkpoint.before")
        with translated("cannot checkpoint"):
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        self._point("checkpoint.after")

    def open_reserve(self) -> None:
        """The disk is full: give up what was kept back for deletions, on the disk and of the quota."""
        self._reserve.give_up()
        with contextlib.suppress(sqlite3.Error):  # what is not in the main file now stays in the write-ahead log
            _limit(self._connection, self._settings, more=self._settings.reserve_bytes)
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def keep_reserve(self) -> None:
        """Hand back what deletions freed, and keep room back for the next ones if there is any; raises StoreUnavailable."""
        with translated("cannot checkpoint"):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            _limit(self._connection, self._settings)
        self._reserve.keep()

    def reseal(self, after: int, kinds: frozenset[tuple[str, str]], cipher: Cipher, limit: int) -> tuple[int, int]:
        """Seal anew up to `limit` rows of some kinds above a revision; the last revision (0: no more) and how many."""
        with translated("cannot seal anew"):
            found = self._connection.execute(_SELECT_ABOVE, (after, limit)).fetchall()
            rows = [
                row
                for row in (Row(*values) for values in found)
                if (row.grp, row.plural) in kinds or row.flags & SEALED
            ]
            fresh = [resealed(row, cipher) for row in rows]
            with transaction(self._connection):
                self._connection.executemany(
                    "UPDATE journal SET body = ?, flags = ?, crc = ? WHERE revision = ?",
                    [(row.body, row.flags, row.crc, row.revision) for row in fresh],
                )
                self._point("reseal.before-commit")
        self._point("reseal.after-commit")
        return (found[-1][0] if found else 0), len(fresh)

    def forget_the_past(self) -> None:
        """Overwrite what was replaced: free pages in the main file and the whole write-ahead log."""
        with translated("cannot clean up"):
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Fold the write-ahead log into the main file and close; a failure to fold loses nothing."""
        self._point("close.before-checkpoint")
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._connection.close()

    def _append_in_parts(self, rows: Sequence[Row]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._point("commit.after-begin")
            for start in range(0, len(rows), self._rows):
                self._insert(rows[start : start + self._rows])
                self._point("commit.after-statement")
            self._point("commit.before-commit")
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _insert(self, rows: Sequence[Row]) -> None:
        count = len(rows)
        statement = self._inserts.get(count)
        if statement is None:
            statement = self._inserts[count] = _INSERT + ", ".join([_PLACES] * count)
        self._connection.execute(statement, [value for row in rows for value in row])


def connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    """A connection in autocommit that never creates a file."""
    quoted = path.resolve().as_uri()
    return sqlite3.connect(
        f"{quoted}?mode={mode}", uri=True, isolation_level=None, cached_statements=300, check_same_thread=False
    )


def check_structure(connection: sqlite3.Connection) -> None:
    """Ask SQLite whether its pages hold together; raises StoreDamaged."""
    try:
        found = [row[0] for row in connection.execute("PRAGMA quick_check(3)")]
    except sqlite3.DatabaseError as error:
        raise StoreDamaged(f"the file is damaged: {error}") from error
    if found != ["ok"]:
        raise StoreDamaged(f"the file is damaged: {'; '.join(map(str, found))}")


def create(
    directory: Path, store: str, identity: Identity, point: fp.Failpoints = fp.none, steps: Sequence[Step] = MIGRATIONS
) -> None:
    """Make a new, empty store in a directory that has none; it appears whole or not at all."""
    fresh, path = directory / (files.DATABASE + ".new"), directory / files.DATABASE
    with translated(f"cannot create {path.name}"):
        files.create_private(fresh)
        connection = connect(fresh)
        try:
            migrate(connection, 0, steps)
            facts = {"store": store, "compacted": str(FIRST_REVISION), "floor": str(FIRST_REVISION)}
            with transaction(connection):
                write_meta(connection, facts | {_IDENTITY + key: value for key, value in identity.items()})
        finally:
            connection.close()
        files.sync_file(fresh)
        point("create.before-rename")
        files.move_durably(fresh, path)
    point("create.after-rename")


def backup(source: Path, target: Path, point: fp.Failpoints = fp.none) -> BackupReport:
    """Copy a running store at one moment into a file that appears whole; for any thread."""
    if target.resolve() in {path.resolve() for path in files.own_files(source.parent)}:
        raise StoreInUse(f"{target} belongs to the store itself")
    partial = target.with_name(f".{target.name}.partial")
    with translated(f"cannot back up to {target}"):
        files.create_private(partial)
        point("backup.before-copy")
        try:
            with contextlib.closing(connect(source, "ro")) as connection:
                connection.execute("VACUUM INTO ?", (str(partial),))
            with contextlib.closing(connect(partial, "ro")) as copy:
                check_structure(copy)
                report = _report(copy, partial)
            files.sync_file(partial)
            point("backup.before-rename")
            files.move_durably(partial, target)
        finally:
            partial.unlink(missing_ok=True)
    point("backup.after-rename")
    return report


def facts_of(connection: sqlite3.Connection) -> Facts:
    """The facts in a file's `meta`; raises StoreDamaged when one is missing or wrong."""
    meta = read_meta(connection)
    try:
        store, compacted, floor = meta["store"], int(meta["compacted"]), int(meta["floor"])
    except (KeyError, ValueError) as error:
        raise StoreDamaged(f"a fact is missing or wrong: {error}") from error
    identity = {key.removeprefix(_IDENTITY): value for key, value in meta.items() if key.startswith(_IDENTITY)}
    return Facts(store, identity, compacted, floor)


def rows_of(connection: sqlite3.Connection) -> Iterator[Row]:
    """All rows of a file in order of revision."""
    return (Row(*values) for values in connection.execute(_SELECT))


def delete_rows(connection: sqlite3.Connection, revisions: Sequence[int]) -> None:
    """Delete rows by revision inside the caller's transaction."""
    for start in range(0, len(revisions), _DELETE_AT_ONCE):
        part = revisions[start : start + _DELETE_AT_ONCE]
        places = ", ".join("?" * len(part))
        connection.execute(f"DELETE FROM journal WHERE revision IN ({places})", part)  # noqa: S608 - only places


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All statements inside, or none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


@contextlib.contextmanager
def translated(doing: str) -> Iterator[None]:
    """Errors of SQLite and of the operating system inside become the store's own."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise translate(error, doing) from error


def _configure(connection: sqlite3.Connection, settings: StoreSettings) -> None:
    for pragma in ("synchronous = FULL", "wal_autocheckpoint = 0", "cache_size = -8192", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {pragma}")
    _limit(connection, settings)


def _limit(connection: sqlite3.Connection, settings: StoreSettings, more: int = 0) -> None:
    """Set the quota of the file, if there is one; never below what the file has already."""
    if settings.max_bytes is not None:
        (page,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute(f"PRAGMA max_page_count = {max(1, (settings.max_bytes + more) // page)}")


def _keep_before_migration(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """Leave a copy of the file as it was, so that a migration can be gone back on."""
    kept = path.with_name(f"{path.name}.v{version}")
    files.create_private(kept)
    connection.execute("VACUUM INTO ?", (str(kept),))
    files.sync_file(kept)


def _report(connection: sqlite3.Connection, path: Path) -> BackupReport:
    facts = facts_of(connection)
    (last,) = connection.execute("SELECT coalesce(max(revision), 0) FROM journal").fetchone()
    (objects,) = connection.execute(
        "SELECT count(*) FROM (SELECT flags, max(revision) FROM journal GROUP BY grp, plural, namespace, name)"
        " WHERE flags & 1 = 0"
    ).fetchone()
    return BackupReport(max(facts.floor, facts.compacted, last), objects, os.stat(path).st_size)
