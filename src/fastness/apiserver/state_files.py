"""A state directory without a server: copies of it, and work on one that nobody has open.

Each function takes the directory or a copy, and the vault key that opens it (`keys.vault`).

    back_up, verify_backup, restore_backup   one file with all objects, and what the caller puts beside them
    write_backup, checked_copy, objects_of    the same file for objects that lie in another API server
    unreadable_objects, remove_unreadable    what a server sets aside, because no reader can decode it
    authenticate_state                       once, for a state from before rows were authenticated
    check_with_key                           the whole directory opens with this key

A state from before rows were authenticated can be backed up and restored too, where the vault does not know better either:
otherwise nobody could keep a copy before the migration.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path

from fastness.apiserver.storable import unreadable
from fastness.apiserver.store import offline
from fastness.apiserver.store.copies import More, backup
from fastness.apiserver.store.errors import NotMigrated
from fastness.apiserver.store.files import DATABASE
from fastness.apiserver.store.journal import SEALED
from fastness.apiserver.store.records import SEALED_KINDS, BackupReport, Identity, Key, WriteStep
from fastness.apiserver.store.restore import Place, RestoreReport, require_whole, restore, verify
from fastness.apiserver.store.seal import unseal
from fastness.apiserver.store.set_aside import Aside
from fastness.apiserver.store.store import Store
from fastness.apiserver.store.tables import body_of, connect, facts_of, rows_of, translated
from fastness.apiserver.store.verified import Verified, verified
from fastness.crypto.store_mac import Macs
from fastness.formats import json
from fastness.keys.vault import Vault
from fastness.kinds.kind import JsonObject


@contextlib.contextmanager
def open_backup(file: Path) -> Iterator[sqlite3.Connection]:
    """A backup, to be read."""
    with contextlib.closing(connect(file, "ro")) as connection:
        yield connection


def identity_of(connection: sqlite3.Connection) -> Identity:
    """The facts that a store or a copy was made with; raises StoreDamaged."""
    return facts_of(connection).identity


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


async def write_backup(
    target: Path, objects: AsyncIterator[tuple[Key, JsonObject]], vault: Vault, identity: Identity, more: More
) -> BackupReport:
    """Put objects of another API server into a file that appears whole; raises StoreError, and what `objects` raises.

    `identity` are facts about the whole, which a head covers as it covers the rows.
    """
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
        store = await Store.open(Path(scratch), cipher=vault, macs=vault.macs, identity=identity)
        try:
            async for key, obj in objects:
                step = WriteStep(key, json.encode(obj), expect=0)
                await store.write(lambda _revision, step=step: step)  # type: ignore[misc]  # a default binds this one
        finally:
            await store.close()
        return backup(Path(scratch) / DATABASE, target, macs=vault.macs, more=more)


@contextlib.contextmanager
def checked_copy(file: Path, vault: Vault) -> Iterator[tuple[Verified, sqlite3.Connection]]:
    """A private copy of a backup that is whole and was written by a holder of the vault key; raises StoreError.

    Of a copy, because whoever can write the file could exchange it between the check and the reading.
    """
    require_whole(file)
    with tempfile.TemporaryDirectory(prefix="fastness-backup-") as scratch:
        own = Path(scratch) / DATABASE
        with translated(f"cannot read {file}"):
            shutil.copyfile(file, own)
        with contextlib.closing(connect(own, "ro")) as connection:
            with translated(f"cannot read {file}"):
                checked = verified(connection, vault.macs)
            yield checked, connection


def objects_of(checked: Verified, connection: sqlite3.Connection, vault: Vault) -> Iterator[tuple[Key, JsonObject]]:
    """All objects of a checked copy, in the order in which they were written; raises SealBroken."""
    for row in rows_of(connection):
        if checked.present.get(row.key) == row.revision:
            body = unseal(vault, row.body, row.key) if row.flags & SEALED else row.body
            yield row.key, json.decode(body)


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
