"""Backups of an embedded control plane: one file with all objects and the whole record.

    make_backup(state, target, vault)      while the control plane runs
    check_backup(file, vault)              whole, and written by a holder of this vault key; says why not
    restore_backup(file, state, vault)     checked the same way before anything is touched

The file is a store (`apiserver.store`) with one more table, `record`, for the tiles. They need no tag of their own: the
head of the record is an object of the store, which has one, and the tiles must lead to its root.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness import apiserver
from fastness.apiserver import RECORD, BackupReport, Key, RestoreReport
from fastness.app.backup_file import require_of_state_directory
from fastness.formats.tlog import TlogError
from fastness.keys.errors import DamagedRecord
from fastness.keys.vault import Vault
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.record.live.backup_tiles import Read, check_tiles, tiles_at
from fastness.record.live.head import NAME, RecordHead, parse_head

_HEAD: Final = Key("", "configmaps", NAMESPACE, NAME)
_COMING: Final = f"{RECORD}.restoring"


@dataclass(frozen=True, slots=True)
class Checked:
    """What a good backup holds."""

    revision: int
    objects: int
    entries: int


def make_backup(state: Path, target: Path, vault: Vault) -> BackupReport:
    """Copy a state directory's objects and record into a file that appears whole; raises StoreError, DamagedRecord."""

    def put_record(connection: sqlite3.Connection) -> None:
        put_tiles(connection, checked_tiles(tiles_at(state / RECORD), head_of(connection, vault)))

    return apiserver.back_up(state, target, vault, put_record)


def check_backup(file: Path, vault: Vault) -> Checked:
    """What a backup holds, if nobody edited it; raises StoreError, DamagedRecord."""
    objects = apiserver.verify_backup(file, vault)
    with apiserver.open_backup(file) as connection:
        head = head_of(connection, vault)
        checked_tiles(tiles_in(connection), head)
    return Checked(objects.revision, len(objects.present), head.size)


def restore_backup(file: Path, state: Path, vault: Vault, *, force: bool = False) -> RestoreReport:
    """Make a directory's state the one of a backup; raises StoreError, DamagedRecord.

    A backup from before rows were authenticated is taken where the vault does not know better either; its record is taken if it
    has one.
    """

    def take_record(connection: sqlite3.Connection) -> Callable[[], None]:
        require_of_state_directory(apiserver.identity_of(connection))
        pieces = checked_tiles(tiles_in(connection), head_of(connection, vault))
        connection.execute("DROP TABLE IF EXISTS record")
        return _extracted(pieces, state)

    return apiserver.restore_backup(file, state, vault, take_record, force=force)


def _extracted(pieces: dict[str, bytes], state: Path) -> Callable[[], None]:
    """Lay tiles beside their place; calling the result puts them there."""
    coming = state / _COMING
    shutil.rmtree(coming, ignore_errors=True)
    for path, data in pieces.items():
        tile = coming / path
        tile.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(tile, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())

    def place() -> None:
        if pieces:
            coming.rename(state / RECORD)

    return place


def put_tiles(connection: sqlite3.Connection, pieces: dict[str, bytes]) -> None:
    """Put the record beside the rows of a backup."""
    connection.execute("CREATE TABLE record (path TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO record VALUES (?, ?)", sorted(pieces.items()))
    connection.execute("COMMIT")


def checked_tiles(read: Read, head: RecordHead) -> dict[str, bytes]:
    """All tiles up to a head; raises DamagedRecord when they do not lead to its root."""
    try:
        return check_tiles(read, head.size, head.root) if head.size else {}
    except TlogError as error:
        raise DamagedRecord(
            f"the record is not whole: {error}",
            "Take a backup of before, or put the tiles back from `fastness audit export`.",
        ) from error


def head_of(connection: sqlite3.Connection, vault: Vault) -> RecordHead:
    """Where the record stood when the store was copied; raises DamagedRecord, SealBroken."""
    config_map = apiserver.object_in(connection, _HEAD, vault)
    return parse_head(config_map) if config_map is not None else RecordHead()


def tiles_in(connection: sqlite3.Connection) -> Read:
    """Reads the tiles of a backup."""
    (there,) = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'record'").fetchone()

    def read(path: str) -> bytes | None:
        if not there:
            return None
        row = connection.execute("SELECT body FROM record WHERE path = ?", (path,)).fetchone()
        return None if row is None else bytes(row[0])

    return read
