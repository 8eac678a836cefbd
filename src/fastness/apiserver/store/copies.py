"""Whole files: making an empty store, copying a running one.

A backup is checked before it gets its name: what could not be restored is no backup. Of an authenticated store it holds one head
alone, so that whoever has it cannot cut it back to an older one.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from fastness.apiserver.store import failpoints as fp
from fastness.apiserver.store import files
from fastness.apiserver.store.errors import StoreInUse
from fastness.apiserver.store.ledger import Ledger
from fastness.apiserver.store.migrations import MIGRATIONS, Step, migrate, write_meta
from fastness.apiserver.store.records import BackupReport, Identity
from fastness.apiserver.store.tables import IDENTITY, Kinds, connect, gather_heads, transaction, translated, write_head
from fastness.apiserver.store.verified import verified
from fastness.crypto.store_mac import Macs

FIRST_REVISION: Final = 1

More = Callable[[sqlite3.Connection], None]
"""Puts what belongs to a backup beside the rows into it."""


def create(
    directory: Path,
    store: str,
    identity: Identity,
    point: fp.Failpoints = fp.none,
    steps: Sequence[Step] = MIGRATIONS,
    *,
    macs: Macs | None = None,
    sealed: Kinds = frozenset(),
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
                write_meta(connection, facts | {IDENTITY + key: value for key, value in identity.items()})
                if macs is not None:
                    write_head(connection, Ledger(macs.present), sealed)
        finally:
            connection.close()
        files.sync_file(fresh)
        point("create.before-rename")
        files.move_durably(fresh, path)
    point("create.after-rename")


def backup(
    source: Path, target: Path, point: fp.Failpoints = fp.none, *, macs: Macs | None = None, more: More | None = None
) -> BackupReport:
    """Copy a running store at one moment into a file that appears whole; for any thread."""
    # A backup over `state.db` or its log, also by way of a link, would destroy what it is to save.
    if target.resolve() in {path.resolve() for path in files.own_files(source.parent)}:
        raise StoreInUse(f"{target} belongs to the store itself")
    partial = target.with_name(f".{target.name}.partial")
    with translated(f"cannot back up to {target}"):
        files.create_private(partial)
        point("backup.before-copy")
        try:
            with contextlib.closing(connect(source, "ro")) as connection:
                # A copy of the file itself would miss the write-ahead log and tear under writes; this reads one snapshot of
                # SQLite, and leaves no free pages behind in which older bodies could be read.
                connection.execute("VACUUM INTO ?", (str(partial),))
            with contextlib.closing(connect(partial)) as copy:
                report = _finished(copy, macs)
                if more is not None:
                    more(copy)
            files.sync_file(partial)
            point("backup.before-rename")
            files.move_durably(partial, target)
        finally:
            partial.unlink(missing_ok=True)
    point("backup.after-rename")
    return BackupReport(*report, os.stat(target).st_size)


def keep_before_migration(connection: sqlite3.Connection, path: Path, version: int) -> Path:
    """Leave a copy of the file as it was, so that a migration can be gone back on."""
    copy = path.with_name(f"{path.name}.v{version}")
    files.create_private(copy)
    connection.execute("VACUUM INTO ?", (str(copy),))
    files.sync_file(copy)
    return copy


def _finished(connection: sqlite3.Connection, macs: Macs | None) -> tuple[int, int]:
    """Check a copy and leave it one head; its revision and how many objects it has."""
    checked = verified(connection, macs)
    if checked.ledger is not None:
        gather_heads(connection, checked.ledger)
    return checked.revision, len(checked.present)
