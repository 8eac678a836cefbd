"""Private files: read only when they are private, written all or nothing.

* A file that group or others may access, that is a link, or that somebody else owns is refused with a hint, as ssh does: a key
  that was readable must count as known.
* A write goes to a fresh file in the same directory with mode 0600 from its first byte, is flushed to the disk, and then takes
  the name; a crash leaves the old or the new content, never a part.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from fastness.crypto.secret import SecretBytes
from fastness.keys.errors import DamagedKeyFile, UnsafeKeyFile

MAX_BYTES: Final = 1024 * 1024
_PRIVATE: Final = 0o600
_PUBLIC: Final = 0o644


def read_private(path: Path) -> SecretBytes | None:
    """The content of a private file, None when there is none; raises UnsafeKeyFile."""
    try:
        # Not through a link, which whoever owns the directory could point elsewhere; not blocking, because a FIFO would wait for
        # ever.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnsafeKeyFile(
            f"{path} cannot be opened: {error.strerror}", "It must be a plain file that this user can read."
        ) from error
    try:
        _check(path, os.fstat(handle))  # of the open file: its name may mean another one by now
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(MAX_BYTES + 1)
    finally:
        os.close(handle)
    if len(content) > MAX_BYTES:
        raise DamagedKeyFile(f"{path} is too large for a key file", f"Restore {path} from a backup.")
    return SecretBytes(content)


def write_private(path: Path, content: SecretBytes) -> None:
    """Replace a private file (0600) in one step; its directory is made (0700) when it is missing."""
    _write(path, content.reveal(), _PRIVATE)


def write_public(path: Path, content: bytes) -> None:
    """Replace a file that anybody may read (0644) in one step."""
    _write(path, content, _PUBLIC)


def _check(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnsafeKeyFile(f"{path} is not a plain file", f"Replace {path} by the key file itself.")
    if status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        raise UnsafeKeyFile(
            f"{path} is accessible to others (mode {mode:04o})",
            f"Run `chmod 600 {path}`, and replace the key if somebody may have read it.",
        )
    # Root may own it, who can read everything anyway; any other owner can put another key there tomorrow.
    if status.st_uid not in (os.geteuid(), 0):
        raise UnsafeKeyFile(f"{path} belongs to another user", f"Run `chown {os.geteuid()} {path}` as root.")


def _write(path: Path, content: bytes, mode: int) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # In the same directory: a rename is one step only within a file system.
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)  # left over by a crash between the two steps
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)  # whatever the umask says
            file.write(content)
            file.flush()
            # Content before name, or a power cut leaves the new name on an empty file: for a key that is the loss of everything
            # sealed.
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)  # on a full disk every block counts
        raise OSError(error.errno, error.strerror, str(path)) from error
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
