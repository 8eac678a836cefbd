"""The embedded API's store: what etcd is to Kubernetes, in one process and one file.

The present state lives in memory as immutable records; SQLite makes every change durable before it is visible or answered; a
shared log serves watchers and consistent pages. The first seven modules stand as a write flows through them; the others look
after the file.

    store.py       The store: the present state in memory, every change durable on disk, a log for those who watch
    writer.py      Writes on their way to the disk: one batch at a time, everything that waits in the next
    journal.py     Rows of the journal, and how they become a state again. Pure: no file is touched here
    database.py    `state.db`: the one place that talks to SQLite
    snapshot.py    The present state in memory, in order
    history.py     The log that watchers share
    records.py     What the store holds: records, the changes that make them, the log entries that remember them
    copies.py      Whole files: making an empty store, copying a running one
    errors.py      Why the store said no
    failpoints.py  The places where a process may die, by name
    files.py       The store's files: names, exclusive use, and making things durable
    ledger.py      The ledger: which rows a store holds, in one short value that only the holder of the vault key can make
    migrations.py  The schema of `state.db` and the way forward to it
    offline.py     Work on a store that no process has open: give it tags, take one object out of it, see that a key opens it
    reserve.py     Room that is kept back: what deletions live on when the disk is full
    restore.py     Putting a backup in place
    seal.py        Sealing: what reaches the disk of kinds that are secret
    set_aside.py   Records that nobody can read: found when a store is opened, and kept out of everybody's way
    tables.py      What is in a `state.db`, read and written over a connection that the caller owns: facts, rows, the head
    verified.py    A whole file, checked: structure, every checksum and tag, the chain of revisions, the head

How it is used:

    store = await Store.open(directory, cipher=vault, macs=vault.macs, identity={"simulated": "true"})
    [record] = await store.write(lambda revision: Change(key, body_with(revision), expect=0))
    store.get(key); store.head(key); store.range("", "configmaps", "default", limit=500)
    cursor = store.subscribe("", "configmaps", since=store.revision); entries = await cursor.next_batch()
"""

from fastness.apiserver.store.errors import (
    Compacted,
    DirectoryNotEmpty,
    DiskFull,
    FutureRevision,
    IdentityMismatch,
    NewerSchema,
    NotAStore,
    NotMigrated,
    Overloaded,
    RecordTooLarge,
    SealBroken,
    Stale,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreForged,
    StoreInUse,
    StoreReadOnly,
    StoreUnavailable,
)
from fastness.apiserver.store.history import Cursor
from fastness.apiserver.store.records import (
    BackupReport,
    Identity,
    Key,
    LogEntry,
    Range,
    Record,
    Stats,
    StoreSettings,
    WriteStep,
)
from fastness.apiserver.store.restore import RestoreReport, restore
from fastness.apiserver.store.seal import Cipher
from fastness.apiserver.store.set_aside import Aside, Judge
from fastness.apiserver.store.store import Make, Store

__all__ = [
    "Aside",
    "BackupReport",
    "Cipher",
    "Compacted",
    "Cursor",
    "DirectoryNotEmpty",
    "DiskFull",
    "FutureRevision",
    "Identity",
    "IdentityMismatch",
    "Judge",
    "Key",
    "LogEntry",
    "Make",
    "NewerSchema",
    "NotAStore",
    "NotMigrated",
    "Overloaded",
    "Range",
    "Record",
    "RecordTooLarge",
    "RestoreReport",
    "SealBroken",
    "Stale",
    "Stats",
    "Store",
    "StoreClosed",
    "StoreDamaged",
    "StoreError",
    "StoreForged",
    "StoreInUse",
    "StoreReadOnly",
    "StoreSettings",
    "StoreUnavailable",
    "WriteStep",
    "restore",
]
