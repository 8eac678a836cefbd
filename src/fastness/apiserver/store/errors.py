"""Why the store said no.

    StoreError                    code, message, hint
    ├── StoreInUse                another process owns the directory
    ├── NotAStore                 the file is no database, or not one of ours
    ├── StoreDamaged              structure, a checksum or the chain of revisions is wrong
    ├── StoreForged               a tag does not fit: somebody without the vault key wrote, dropped or put back a row
    ├── NotMigrated               the store is from before rows were authenticated
    ├── NewerSchema               written by a newer version of Fastness
    ├── IdentityMismatch          the directory belongs to a store with other immutable facts
    ├── SealBroken                a sealed body does not open with this key
    ├── DirectoryNotEmpty         restore would replace a store and was not told to
    ├── StoreUnavailable          nothing was written, reads go on; the next write tries again
    │   ├── StoreReadOnly         the directory or the file cannot be written
    │   ├── DiskFull              no space, or the quota is reached
    │   └── StoreClosed           the store is closing or closed
    ├── Overloaded                too many writes are waiting; try again later
    ├── RecordTooLarge            a body is beyond the limit of the settings
    ├── NotSetAside               a record that can be read is not to be taken away past the API
    ├── Stale                     the record moved on: a write was decided on an old revision
    ├── Compacted                 the asked revision is older than the log
    └── FutureRevision            the asked revision does not exist yet

Exceptions of SQLite and of the operating system are translated by `translate` where they enter and never leave the package.
"""

from __future__ import annotations

import errno
import sqlite3
from typing import Final

from fastness.apiserver.store.records import Key
from fastness.runtime.errors import FastnessError


class StoreError(FastnessError):
    """Base of all refusals: `code` is stable, `hint` tells the operator what to do."""

    code = "store-error"
    hint = "See the server's log."


class StoreInUse(StoreError):
    """Another process owns the directory."""

    code, hint = "store-in-use", "Stop the process that the message names, or choose another state directory."


class NotAStore(StoreError):
    """The file is not a SQLite database, or belongs to another program."""

    code, hint = "not-a-store", "Point at the right state directory; nothing was changed."


class StoreDamaged(StoreError):
    """The file's structure, a checksum or the chain of revisions is wrong."""

    code, hint = "store-damaged", "Keep the directory as it is and restore the last backup with `fastness restore`."


class StoreForged(StoreError):
    """The rows, the head or the facts are not those that a holder of the vault key wrote."""

    code = "store-forged"
    hint = (
        "Somebody edited it, or the vault key is another cluster's. Keep it as evidence, and restore a backup that passes"
        " `fastness backup verify`."
    )


class NotMigrated(StoreError):
    """The store is from before rows were authenticated."""

    code = "state-not-migrated"
    hint = "If you trust the directory as it is now, run `fastness state migrate` once; afterwards edits are refused."


class NewerSchema(StoreError):
    """The file was written by a newer version."""

    code, hint = "newer-schema", "Run the version of Fastness that wrote it, or a later one."


class IdentityMismatch(StoreError):
    """The store was created with other immutable facts."""

    code, hint = "identity-mismatch", "Use a fresh state directory: such facts are fixed when a store is created."


class SealBroken(StoreError):
    """A sealed body does not open."""

    code, hint = "seal-broken", "Give the vault key that this state directory was written with."


class DirectoryNotEmpty(StoreError):
    """Restore would replace an existing store."""

    code, hint = "directory-not-empty", "Choose an empty directory, or say that the present state may be replaced."


class StoreUnavailable(StoreError):
    """The write did not happen; reads go on and the next write tries again."""

    code, hint = "store-unavailable", "Look at the disk under the state directory; the next write tries again."


class StoreReadOnly(StoreUnavailable):
    """The directory or the file cannot be written."""

    code, hint = "store-read-only", "Make the state directory writable for this user, or remount it read-write."


class DiskFull(StoreUnavailable):
    """No space is left, or the quota is reached."""

    code, hint = "disk-full", "Free space under the state directory or raise the quota; the next write tries again."


class StoreClosed(StoreUnavailable):
    """The store is closing or closed."""

    code, hint = "store-closed", "The server is stopping: try again when it is back."


class Overloaded(StoreError):
    """Too many writes are waiting for the disk."""

    code, hint = "store-overloaded", "Slow down and try again in a second."


class RecordTooLarge(StoreError):
    """A body is beyond the limit."""

    code, hint = "record-too-large", "Split the object, or move large content out of it."


class NotSetAside(StoreError):
    """The record can be read, or is not there."""

    code, hint = (
        "not-set-aside",
        "`fastness state list` names what is set aside; everything else is deleted through the API.",
    )


class Stale(StoreError):
    """A change expected another head revision than there is (0: none; None: any, and there was none to delete)."""

    code, hint = "stale", "Read the object again and repeat the change."

    def __init__(self, key: Key, expected: int | None, actual: int) -> None:
        described = "any revision" if expected is None else f"revision {expected}" if expected else "none"
        super().__init__(f"{'/'.join(key)}: expected {described}, found {f'revision {actual}' if actual else 'none'}")
        self.key, self.expected, self.found = key, expected, actual


class Compacted(StoreError):
    """The asked revision is older than the log; `oldest` is the first that can still be asked."""

    code, hint = "compacted", "List again and watch from the revision of that list."

    def __init__(self, revision: int, oldest: int) -> None:
        super().__init__(f"revision {revision} was compacted; the oldest is {oldest}")
        self.asked, self.oldest = revision, oldest


class FutureRevision(StoreError):
    """The asked revision does not exist yet."""

    code, hint = "future-revision", "Wait for the revision, or list again: a restored store starts over at a jump."

    def __init__(self, revision: int, current: int) -> None:
        super().__init__(f"revision {revision} is in the future; the current is {current}")
        self.asked, self.current = revision, current


_READ_ONLY: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def translate(error: sqlite3.Error | OSError, doing: str) -> StoreError:
    """The store's own error for one of SQLite or of the operating system."""
    message = f"{doing}: {error}"
    if isinstance(error, OSError):
        if error.errno in _READ_ONLY:
            return StoreReadOnly(message)
        return DiskFull(message) if error.errno in _FULL else StoreUnavailable(message)
    primary = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    match primary:
        case sqlite3.SQLITE_FULL:
            return DiskFull(message)
        case sqlite3.SQLITE_IOERR if getattr(error, "sqlite_errorname", "") == "SQLITE_IOERR_SHMSIZE":
            return DiskFull(f"{message}: there is no room for its index")  # the file beside the write-ahead log
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            return StoreReadOnly(message)
        case sqlite3.SQLITE_NOTADB:
            return NotAStore(message)
        case sqlite3.SQLITE_CORRUPT:
            return StoreDamaged(message)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreInUse(message)
        case _:
            return StoreUnavailable(message)
