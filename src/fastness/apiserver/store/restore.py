"""Putting a backup in place.

* The backup is checked whole (structure, every checksum and tag, the chain of revisions, the head) before the directory is
  touched, and it is copied, never moved.
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
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fastness.apiserver.store import failpoints as fp
from fastness.apiserver.store import files
from fastness.apiserver.store.errors import DirectoryNotEmpty, StoreDamaged
from fastness.apiserver.store.offline import settle
from fastness.apiserver.store.tables import connect, translated
from fastness.apiserver.store.verified import Verified, verified
from fastness.crypto.store_mac import Macs

REVISION_JUMP: Final = 1_000_000_000  # more writes than any cluster makes between a backup and its loss

Place = Callable[[], None]
More = Callable[[sqlite3.Connection], Place]


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What was restored: the backup's revision, the one that the store starts with, and where the old store went."""

    backup_revision: int
    revision: int
    objects: int
    set_aside: Path | None


def verify(backup: Path, macs: Macs | None) -> Verified:
    """What a backup holds, if it is whole and nobody edited it; raises NotAStore, StoreDamaged, StoreForged, NewerSchema."""
    require_whole(backup)
    with translated(f"cannot read {backup}"), contextlib.closing(connect(backup, "ro")) as connection:
        return verified(connection, macs)


def restore(
    backup: Path,
    directory: Path,
    *,
    force: bool = False,
    macs: Macs | None = None,
    failpoints: fp.Failpoints = fp.none,
    more: More | None = None,
) -> RestoreReport:
    """Make a directory's store the one of a backup; blocking.

    `more` takes what lies beside the rows out of the copy, once that is checked; what it returns puts that in place, just before
    the store. Raises NotAStore, StoreDamaged, StoreForged, NewerSchema for the backup; StoreInUse, DirectoryNotEmpty,
    StoreReadOnly for the directory.
    """
    require_whole(backup)
    lock = files.DirectoryLock.acquire(directory)
    try:
        with translated(f"cannot restore into {directory}"):
            present = _remains(directory)
            # A restore into the wrong directory would otherwise be the loss of a cluster; set aside it can be had back.
            if present and not force:
                raise DirectoryNotEmpty(f"{directory} already has a store")
            coming = directory / files.RESTORING
            files.create_private(coming)
            try:
                # The copy is checked, not the backup: whoever can write the backup could exchange it between the check and the
                # copy.
                shutil.copyfile(backup, coming)
                report, place = _prepare(coming, macs, more)
                # Content before name: after a power cut a name whose content is not there yet would be an empty store.
                files.sync_file(coming)
                failpoints("restore.before-replace")
                aside = _set_aside(directory, present) if present else None
                failpoints("restore.set-aside")
                # The record before the store: a crash between the two leaves no store, which is said, and never a store without
                # its record.
                place()
                files.move_durably(coming, directory / files.DATABASE)
                failpoints("restore.after-replace")
            finally:
                coming.unlink(missing_ok=True)
            return replace(report, set_aside=aside)
    finally:
        lock.release()


def require_whole(backup: Path) -> None:
    """Refuse what is no store, and the main file of one that was not closed: the newest writes are in the log beside it."""
    files.require_database(backup)
    beside = Path(f"{backup}-wal")
    # Copied without its log, the file would be a store of some time ago, whole and unsuspicious.
    if beside.exists() and beside.stat().st_size:
        raise StoreDamaged(f"{backup} is not a backup: its newest writes are in {beside.name}")


def _prepare(path: Path, macs: Macs | None, more: More | None) -> tuple[RestoreReport, Place]:
    """Check a copy of the backup, compact it and jump ahead."""
    with contextlib.closing(connect(path)) as connection:
        checked = verified(connection, macs)
        place = more(connection) if more is not None else _nothing
        revision = settle(connection, checked, jump=REVISION_JUMP)
    return RestoreReport(checked.revision, revision, len(checked.present), None), place


def _nothing() -> None:
    """Nothing lies beside the rows."""


def _remains(directory: Path) -> list[Path]:
    """The files of a store, or of what is left of one, and its record."""
    own = [path for path in files.own_files(directory) if path.name != files.LOCK]
    return [path for path in [*own, directory / files.RECORD] if os.path.lexists(path)]


def _set_aside(directory: Path, present: list[Path]) -> Path:
    """Move the present files into a directory of their own, the main file first: without it nothing opens by mistake."""
    number = 1
    while (aside := directory / f"replaced-{number}").exists():
        number += 1
    aside.mkdir(mode=0o700)
    for path in present:
        files.move_durably(path, aside / path.name)
    return aside
