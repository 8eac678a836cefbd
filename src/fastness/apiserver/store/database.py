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
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from fastness.apiserver.store import failpoints as fp
from fastness.apiserver.store import files
from fastness.apiserver.store.copies import keep_before_migration
from fastness.apiserver.store.journal import COLUMNS, SEALED, Authentic, Row, resealed, tagged
from fastness.apiserver.store.ledger import Ledger
from fastness.apiserver.store.migrations import (
    MIGRATIONS,
    Step,
    migrate,
    read_meta,
    require_known,
    version_of,
    write_meta,
)
from fastness.apiserver.store.records import StoreSettings
from fastness.apiserver.store.reserve import Reserve
from fastness.apiserver.store.seal import Cipher
from fastness.apiserver.store.tables import (
    Facts,
    Kinds,
    check_structure,
    connect,
    delete_rows,
    entries_at,
    facts_of,
    gather_heads,
    ledger_of,
    not_authenticated,
    rewrite_rows,
    rows_above,
    rows_of,
    transaction,
    translated,
    write_head,
)
from fastness.crypto.store_mac import Macs

_INSERT: Final = f"INSERT INTO journal ({', '.join(COLUMNS)}) VALUES "  # noqa: S608 - our own column names
_PLACES: Final = f"({', '.join('?' * len(COLUMNS))})"


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
        self._ledger: Ledger | None = None
        self._facts = b""

    @classmethod
    def open(
        cls,
        path: Path,
        settings: StoreSettings,
        point: fp.Failpoints = fp.none,
        steps: Sequence[Step] = MIGRATIONS,
        *,
        macs: Macs | None = None,
    ) -> Database:
        """Open, check and migrate an existing file; raises NotAStore, StoreDamaged, NewerSchema, StoreReadOnly, DiskFull.

        With `macs` an older file is refused (NotMigrated, StoreForged): what it holds must be looked at before it gets tags.
        """
        # SQLite takes an empty file for a new database and would open it without a word: an emptied state would look like a
        # fresh one.
        files.require_database(path)
        Reserve(path.parent, settings.reserve_bytes).begin()
        with translated(f"cannot open {path.name}"):
            connection = connect(path)
            try:
                version = version_of(connection)
                require_known(version, steps)
                # Before the first row is read: what SQLite returns from broken pages is undefined, and replay would blame the
                # wrong row.
                check_structure(connection)
                # Tags over what somebody may have edited before would vouch for the edit.
                if version < len(steps) and macs is not None:
                    raise not_authenticated(macs)
                if version < len(steps):
                    # A schema migration cannot be undone; an operator who goes back to the older version needs the file that it
                    # can read.
                    keep_before_migration(connection, path, version)
                # Readers (a backup, `doctor`) then never stop a commit, and a commit never waits for them.
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

    def trust(self, authentic: Authentic) -> None:
        """Go on from rows that were all followed; raises StoreForged unless the newest head is about them."""
        facts = self.facts()
        self._ledger, self._facts = ledger_of(authentic, facts), facts.digest

    def append(self, rows: Sequence[Row]) -> None:
        """Make rows durable, all or none; raises StoreUnavailable and its kin."""
        self._point("commit.before-begin")
        ledger = self._ledger
        if ledger is not None:
            # A new value and not a change of the old one: if the batch fails, the ledger of before is still there to go on from.
            ledger = ledger.adding([row.entry for row in rows])
            # The head rides in the last row, so rows and head are one statement: no crash leaves rows that no head is about.
            rows = [*rows[:-1], rows[-1]._replace(head=ledger.head(self._facts))]
        with translated("cannot write"):
            if len(rows) <= self._rows:
                self._insert(rows)
            else:
                self._append_in_parts(rows)
        self._point("commit.after-commit")
        self._ledger = ledger  # not earlier: after a failure `resume` takes the rows back

    def resume(self, committed: int) -> None:
        """After a failed batch: leave no transaction open, and no row above the last revision that was published."""
        with translated("cannot write"):
            self._point("resume.before")
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            # Rows of a commit that failed and yet arrived: nobody was told of them, so they must not show after a restart.
            self._connection.execute("DELETE FROM journal WHERE revision > ?", (committed,))
        self._point("resume.after")

    def compact(self, upto: int, doomed: Sequence[int]) -> None:
        """Move the beginning of the log to a revision and delete rows that nothing needs, in one transaction."""
        self._point("compact.before-begin")
        ledger, digest = self._ledger, b""
        with translated("cannot compact"), transaction(self._connection):
            self._drop_unpublished()
            if ledger is not None:
                ledger = ledger.removing(entries_at(self._connection, doomed))
            delete_rows(self._connection, doomed)
            write_meta(self._connection, {"compacted": str(upto)})
            if ledger is not None:
                digest = write_head(self._connection, ledger)
            self._point("compact.after-delete")
        self._ledger, self._facts = ledger, digest
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

    def reseal(self, after: int, kinds: Kinds, cipher: Cipher, limit: int, macs: Macs | None = None) -> tuple[int, int]:
        """Seal anew up to `limit` rows of some kinds above a revision, and tag all of them anew when they have tags.

        Returns the last revision (0: no more) and how many were sealed.
        """
        ledger = self._ledger
        with translated("cannot seal anew"):
            self._drop_unpublished()
            rows = rows_above(self._connection, after, limit)
            sealed = [resealed(row, cipher) for row in rows if (row.grp, row.plural) in kinds or row.flags & SEALED]
            fresh = sealed
            if ledger is not None and macs is not None:
                renewed = {row.revision: row for row in sealed}
                fresh = [tagged(renewed.get(row.revision, row), macs.present) for row in rows]
                ledger = ledger.removing(row.entry for row in rows).adding(row.entry for row in fresh)
            with transaction(self._connection):
                rewrite_rows(self._connection, fresh)
                if ledger is not None:
                    write_head(self._connection, ledger)
                self._point("reseal.before-commit")
        self._ledger = ledger
        self._point("reseal.after-commit")
        return (rows[-1].revision if rows else 0), len(sealed)

    def renew_head(self, macs: Macs, sealed: Kinds) -> None:
        """After all rows were sealed and tagged anew: count them under the present key, and say which kinds lie sealed."""
        with translated("cannot seal anew"), transaction(self._connection):
            # Counted from the rows on disk, not from memory: the head of a new key must be about what is there.
            ledger = Ledger(macs.present, self._ledger.last if self._ledger is not None else 0)
            ledger = ledger.adding(row.entry for row in rows_of(self._connection))
            digest = write_head(self._connection, ledger, sealed)
        self._ledger, self._facts = ledger, digest

    def forget_the_past(self) -> None:
        """Overwrite what was replaced: free pages in the main file and the whole write-ahead log."""
        with translated("cannot clean up"):
            # An UPDATE leaves the old body in free pages: a secret that was stored in the clear before would stay readable in the
            # file.
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        """Fold the write-ahead log into the main file and close; a failure to fold loses nothing."""
        self._point("close.before-checkpoint")
        with contextlib.suppress(sqlite3.Error):
            if self._ledger is not None:
                self._drop_unpublished()
                gather_heads(self._connection, self._ledger)
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._connection.close()

    def _drop_unpublished(self) -> None:
        """Rows of a commit that was reported as failed and could not be taken back yet: no head may be written beside them."""
        if self._ledger is not None:
            self._connection.execute("DELETE FROM journal WHERE revision > ?", (self._ledger.last,))

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


def _configure(connection: sqlite3.Connection, settings: StoreSettings) -> None:
    # FULL: in WAL mode NORMAL does not sync at commit, and a power cut would lose writes that were answered. No automatic
    # checkpoint: SQLite would run it inside somebody's commit. In memory: SQLite puts the temporary file of a VACUUM into a
    # directory that is not ours (sqlite.org/tempfiles.html).
    for pragma in ("synchronous = FULL", "wal_autocheckpoint = 0", "cache_size = -8192", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {pragma}")
    _limit(connection, settings)


def _limit(connection: sqlite3.Connection, settings: StoreSettings, more: int = 0) -> None:
    """Set the quota of the file, if there is one; never below what the file has already."""
    if settings.max_bytes is not None:
        (page,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute(f"PRAGMA max_page_count = {max(1, (settings.max_bytes + more) // page)}")
