"""A state directory without a server: copies of it, and work on one that nobody has open.

Each function takes the directory or a copy, and the vault key that opens it (`keys.vault`).

    back_up, verify_backup, restore_backup   one file with all objects, and what the caller puts beside them
    unreadable_objects, remove_unreadable    what a server sets aside, because no reader can decode it
    authenticate_state                       once, for a state from before rows were authenticated
    check_with_key                           the whole directory opens with this key

A state from before rows were authenticated can be backed up and restored too, where the vault does not know better either:
otherwise nobody could keep a copy before the migration.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from fastness.apiserver.storable import unreadable
from fastness.apiserver.store import offline
from fastness.apiserver.store.copies import More, backup
from fastness.apiserver.store.errors import NotMigrated
from fastness.apiserver.store.files import DATABASE
from fastness.apiserver.store.records import SEALED_KINDS, BackupReport, Key
from fastness.apiserver.store.restore import Place, RestoreReport, restore, verify
from fastness.apiserver.store.set_aside import Aside
from fastness.apiserver.store.tables import body_of, connect
from fastness.apiserver.store.verified import Verified
from fastness.crypto.store_mac import Macs
from fastness.formats import json
from fastness.keys.vault import Vault
from fastness.kinds.kind import JsonObject


@contextlib.contextmanager
def open_backup(file: Path) -> Iterator[sqlite3.Connection]:
    """A backup, to be read."""
    with contextlib.closing(connect(file, "ro")) as connection:
        yield connection


def object_in(connection: sqlite3.Connection, key: Key, vault: Vault) -> JsonObject | None:
    """The newest version of an object in a copy; None if it is deleted or never was. Raises SealBroken."""
    body = body_of(connection, key, vault)
    if body is None:
        return None
    obj: JsonObject = json.decode(body)
    return obj


def back_up(state: Path, target: Path, vault: Vault, more: More) -> BackupReport:
    """Copy the objects of a state directory, also while it is in use, into a file that appears whole; raises StoreError.

    `more` puts what else belongs to the copy into it.
    """
    try:
        return backup(state / DATABASE, target, macs=vault.macs, more=more)
    except NotMigrated:
        return backup(state / DATABASE, target, more=more)


def verify_backup(file: Path, vault: Vault) -> Verified:
    """What a backup holds, if it is whole and a holder of the vault key wrote it; raises StoreError."""
    return verify(file, vault.macs)


def restore_backup(
    file: Path, state: Path, vault: Vault, more: Callable[[sqlite3.Connection], Place], *, force: bool = False
) -> RestoreReport:
    """Make the state of a directory the one of a backup; raises StoreError.

    `more` takes what lies beside the objects out of the checked copy; what it returns puts that in place, just before the store.
    """
    try:
        return restore(file, state, force=force, macs=vault.macs, more=more)
    except NotMigrated:
        return restore(file, state, force=force)


def unreadable_objects(state: Path, vault: Vault) -> Mapping[Key, Aside]:
    """The objects that a server sets aside, also while one runs; raises StoreError."""
    return offline.unreadable_records(state, unreadable, vault, vault.macs)


def remove_unreadable(state: Path, key: Key, vault: Vault) -> Aside:
    """Take away an object that no reader can decode; raises NotSetAside for any other, StoreInUse, StoreError."""
    return offline.remove_unreadable(state, key, unreadable, vault, vault.macs)


def authenticate_state(state: Path, vault: Vault) -> offline.Migrated:
    """Tag every row and seal what is confidential; from then on the vault demands the tags. Raises StoreError."""
    return offline.authenticate(state, vault, vault.macs, SEALED_KINDS, vault.require_macs)


def check_with_key(state: Path, vault: Vault) -> None:
    """Read all of a directory that is not in use with this vault key; raises StoreError."""
    offline.check_with_key(state, vault, Macs(vault.macs.keys, required=True))
