"""The store's files: names, exclusive use, and making things durable.

* `state.lock` is locked by the process that owns the directory and holds its pid. It stays when the process ends: the lock is
  the flock, not the file.
* A store appears whole: it is made beside its place and renamed. So an empty `state.db`, or a write-ahead log without one, is
  damage and never a new store.
* Files are readable by their owner alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final

from fastness.apiserver.store.errors import NotAStore, StoreDamaged, StoreInUse, translate

DATABASE: Final = "state.db"
LOCK: Final = "state.lock"
RESERVE: Final = "state.reserve"
RECORD: Final = (
    "record"  # the tiles of the record, which others keep beside the store; a restore replaces both together
)
RESTORING: Final = "state.db.restoring"
SIDE_FILES: Final = ("-wal", "-shm")
_MAGIC: Final = b"SQLite format 3\0"


class DirectoryLock:
    """Exclusive use of a state directory until `release`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, directory: Path) -> DirectoryLock:
        """Make the directory if needed and own it; raises StoreInUse with the owner's pid, StoreReadOnly."""
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise translate(error, f"cannot use {directory}") from error
        try:
            # flock and not a pid file: the kernel lets go of it when the process dies in any way, and a pid may be somebody
            # else's by then.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError as error:
            owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise StoreInUse(f"{directory} is in use by process {owner}") from error
        except OSError as error:
            os.close(descriptor)
            raise translate(error, f"cannot lock {directory}") from error
        return cls(descriptor)

    def release(self) -> None:
        """Let others have the directory; calling it twice is harmless."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def require_database(path: Path) -> None:
    """Check from the outside that a file can be a store; raises NotAStore, StoreDamaged, StoreReadOnly."""
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as error:
        raise translate(error, f"cannot read {path}") from error
    if not magic:
        raise StoreDamaged(f"{path} is empty")
    if magic != _MAGIC:
        raise NotAStore(f"{path} is not a SQLite database")


def own_files(directory: Path) -> list[Path]:
    """The files that are a store, the main one first."""
    return [directory / name for name in (DATABASE, *(DATABASE + side for side in SIDE_FILES), LOCK, RESERVE)]


def exists(directory: Path) -> bool:
    """Whether the directory has a store; raises StoreDamaged for the remains of one."""
    database = directory / DATABASE
    if os.path.lexists(database):
        return True
    log = directory / (DATABASE + "-wal")
    # A write-ahead log alone is what is left when somebody copied or deleted half a store; a new one here would bury its writes.
    if log.exists() and log.stat().st_size:
        raise StoreDamaged(f"{log} is there but {database} is missing")
    if (directory / RESTORING).exists():
        raise StoreDamaged(f"a restore into {directory} was interrupted; run it again")
    return False


def create_private(path: Path) -> None:
    """An empty file for its owner alone, replacing a leftover of an attempt that died."""
    for name in (str(path), *(str(path) + side for side in SIDE_FILES), f"{path}-journal"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    # O_EXCL: a link that somebody planted under this name would have the state written where it points. The mode is given at
    # creation, so there is no moment in which others can open the file.
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def sync_file(path: Path) -> None:
    """Make a file's content durable."""
    _sync(path, os.O_RDONLY)


def move_durably(source: Path, target: Path) -> None:
    """Rename and make the new name durable."""
    os.replace(source, target)
    # fsync of a file does not cover its name (fsync(2)): without that of the directory a power cut brings the old name back.
    _sync(target.parent, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
