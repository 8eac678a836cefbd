"""Putting a backup in place.

* The backup is checked whole (structure, every checksum, the chain of revisions) before the directory is touched, and it is
  copied, never moved.
* A store that is in the way is refused, or with `force` set aside under its own name: nothing is deleted.
* The revision jumps far ahead and the log starts there. A client that had seen the lost future of the backup asks for a
  revision that is now below the log and is told to list again, instead of being served another history under the same numbers.

If the process dies in between, the directory has the old store, the restored one, or none with a clear error; running it again
finishes the work.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.cluster.embedded.store import failpoints as fp
from fastness.cluster.embedded.store import files
from fastness.cluster.embedded.store.database import (
    check_structure,
    connect,
    delete_rows,
    facts_of,
    rows_of,
    transaction,
    translated,
)
from fastness.cluster.embedded.store.errors import DirectoryNotEmpty, StoreDamaged
from fastness.cluster.embedded.store.journal import link, superseded
from fastness.cluster.embedded.store.migrations import migrate, require_known, version_of, write_meta

REVISION_JUMP: Final = 1_000_000_000  # more writes than any cluster makes between a backup and its loss


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was restored: the backup's revision, the one that the store starts with, and where the old store went."""

    backup_revision: int
    revision: int
    objects: int
    set_aside: Path | None


def restore(
    backup: Path, directory: Path, *, force: bool = False, failpoints: fp.Failpoints = fp.none
) -> RestoreReport:
    """Make a directory's store the one of a backup; blocking.

    Raises NotAStore, StoreDamaged, NewerSchema for the backup; StoreInUse, DirectoryNotEmpty, StoreReadOnly for the directory.
    """
    files.require_database(backup)
    _require_whole(backup)
    lock = files.DirectoryLock.acquire(directory)
    try:
        with translated(f"cannot restore into {directory}"):
            present = _remains(directory)
            if present and not force:
                raise DirectoryNotEmpty(f"{directory} already has a store")
            coming = directory / files.RESTORING
            files.create_private(coming)
            try:
                shutil.copyfile(backup, coming)
                last, revision, objects = _prepare(coming)
                files.sync_file(coming)
                failpoints("restore.before-replace")
                aside = _set_aside(directory, present) if present else None
                failpoints("restore.set-aside")
                files.move_durably(coming, directory / files.DATABASE)
                failpoints("restore.after-replace")
            finally:
                coming.unlink(missing_ok=True)
            return RestoreReport(last, revision, objects, aside)
    finally:
        lock.release()


def _require_whole(backup: Path) -> None:
    """Refuse the main file of a store that was not closed: the newest writes are in the log beside it."""
    beside = Path(f"{backup}-wal")
    if beside.exists() and beside.stat().st_size:
        raise StoreDamaged(f"{backup} is not a backup: its newest writes are in {beside.name}")


def _prepare(path: Path) -> tuple[int, int, int]:
    """Check a copy of the backup, compact it and jump ahead; the old and the new revision and the number of records."""
    with contextlib.closing(connect(path)) as connection:
        version = version_of(connection)
        require_known(version)
        check_structure(connection)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA synchronous = FULL")
        migrate(connection, version)
        facts = facts_of(connection)
        chain = link(rows_of(connection), facts.compacted)
        last = max(facts.floor, facts.compacted, chain.revision)
        revision = last + REVISION_JUMP
        with transaction(connection):
            delete_rows(connection, superseded(_links(connection)))
            write_meta(connection, {"compacted": str(revision), "floor": str(revision)})
        connection.execute("VACUUM")
    return last, revision, len(chain.present)


def _links(connection: sqlite3.Connection) -> list[tuple[int, int, int]]:
    return list(connection.execute("SELECT revision, previous, flags FROM journal ORDER BY revision"))


def _remains(directory: Path) -> list[Path]:
    """The files of a store, or of what is left of one."""
    return [path for path in files.own_files(directory) if path.name != files.LOCK and os.path.lexists(path)]


def _set_aside(directory: Path, present: list[Path]) -> Path:
    """Move the present files into a directory of their own, the main file first: without it nothing opens by mistake."""
    number = 1
    while (aside := directory / f"replaced-{number}").exists():
        number += 1
    aside.mkdir(mode=0o700)
    for path in present:
        files.move_durably(path, aside / path.name)
    return aside
