"""The embedded API's store: what etcd is to Kubernetes, in one process and one file.

    store = await Store.open(directory, cipher=vault, macs=vault.macs, identity={"simulated": "true"})
    [record] = await store.write(lambda revision: Change(key, body_with(revision), expect=0))
    store.get(key); store.head(key); store.range("", "configmaps", "default", limit=500)
    cursor = store.subscribe("", "configmaps", since=store.revision); entries = await cursor.next_batch()

The present state lives in memory as immutable records; SQLite makes every change durable before it is visible or answered; a
shared log serves watchers and consistent pages. The modules, as a write flows: `store` (decide) → `writer` (group commit) →
`journal` (rows) → `database` (SQLite) → `present` (state) and `history` (log, watchers). `files`, `migrations`, `copies`,
`restore`, `offline` and `surgery` look after the file, over `tables` and `verified`; `seal` keeps secrets out of it, `ledger`
editors, and `aside` what cannot be read out of the state; `failpoints` names the places where a process may die.
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
    Change,
    Identity,
    Key,
    LogEntry,
    Range,
    Record,
    Stats,
    StoreSettings,
)
from fastness.apiserver.store.restore import RestoreReport, restore
from fastness.apiserver.store.seal import Cipher
from fastness.apiserver.store.set_aside import Aside, Judge
from fastness.apiserver.store.store import Make, Store

__all__ = [
    "Aside",
    "BackupReport",
    "Change",
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
    "restore",
]
