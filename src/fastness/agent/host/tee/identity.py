"""The directory with a machine's identity: what may lie there, whose it must be, and how it gets to the disk.

    check(directory)                    # every file is the agent's own; raises IdentityRefused
    keep(from_memory, on_disk)          # after a first boot: the key that enrolled wins over whatever lies there
    seal_text(directory)                # what a TPM authenticates, so that files of another TPM or of nobody are not taken

Whoever owns the host writes its disks while the machine is off. A directory that was planted before a first boot would make the
machine speak with a key that somebody else knows. So on a first boot nothing on the disk counts: the key that the initial file
system made and enrolled replaces it. Afterwards files count that belong to the agent's user and to nobody else, and where a TPM
is, that carry its authentication code (`agent.host.tee.tpm`). Without a TPM a disk that nothing seals can still be exchanged
for another one; the Machine says "identity on an open disk" for as long as that is so.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from fastness.agent.host.errors import IdentityRefused
from fastness.crypto.digests import sha256

GUEST_KEY: Final = "guest.key"
PUBLIC, PRIVATE, CONTEXT = "ak.pub", "ak.priv", "ak.ctx"
BROKER, GATE, SEAL = "broker", "gate", "seal"
KEYS: Final = (GUEST_KEY, PUBLIC, PRIVATE)
# Where the machine goes is sealed with who it is: an address that somebody exchanged on the disk would send its evidence
# elsewhere.
_SEALED: Final = (PUBLIC, PRIVATE, BROKER, GATE)
_NAMES: Final = frozenset({*KEYS, CONTEXT, BROKER, GATE, SEAL})
_MAX_FILE: Final = 1 << 20
_OTHERS: Final = 0o077
_OTHERS_WRITE: Final = 0o022
# Contexts are written by the TPM's tools, whose own umask leaves them open to the group (0660), in a directory that is its
# owner's alone; and they mean nothing to another TPM.
_ALL_WRITE: Final = 0o002


def holds_identity(directory: Path) -> bool:
    """Whether anything lies there that an agent would take for its key."""
    return any(os.path.lexists(directory / name) for name in KEYS)


def check(directory: Path) -> None:
    """Refuse a directory that anybody but the agent's user could have filled; raises IdentityRefused."""
    _own(directory, directory=True, others=_OTHERS)
    try:
        names = sorted(entry.name for entry in os.scandir(directory))
    except OSError as error:
        raise IdentityRefused(f"{directory}: {error.strerror}") from error
    for name in names:
        if name.startswith("."):
            continue  # a draft of a write that was cut off; nobody reads it
        # Refused and not ignored: a file that nobody of us wrote shows that somebody else can write here.
        if name not in _NAMES:
            raise IdentityRefused(f"{directory / name} does not belong to an identity")
        _own(directory / name, directory=False, others=_ALL_WRITE if name == CONTEXT else _OTHERS)


def seal_text(directory: Path) -> bytes:
    """What a TPM authenticates: which files there are, and their digests; raises IdentityRefused."""
    lines = [b"fastness identity 1"]
    for name in _SEALED:
        try:
            content = (directory / name).read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise IdentityRefused(f"{directory / name}: {error.strerror}") from error
        lines.append(f"{name} {sha256(content)}".encode())
    return b"\n".join(lines)


def read_seal(directory: Path) -> bytes:
    """The code that lies beside the files; empty without one."""
    with suppress(OSError, ValueError):
        return bytes.fromhex((directory / SEAL).read_text("ascii"))
    return b""


def keep(source: Path, target: Path) -> bool:
    """Put the identity of a first boot on the disk, whole or not at all; whether it was not there already.

    Whatever else lies at the target is set aside as `<name>.refused` and never read. Raises IdentityRefused.
    """
    check(source)
    if not holds_identity(source):
        raise IdentityRefused(f"{source} holds no key", "The machine has not enrolled in this boot.")
    # Whoever may write in the parent could rename the whole directory away and put another one in its place.
    _own(target.parent, directory=True, others=_OTHERS_WRITE)
    if _same(source, target):
        return False
    draft, aside = (target.with_name(f"{target.name}.{word}") for word in ("new", "refused"))
    try:
        _remove(draft)
        _copy(source, draft)
        if os.path.lexists(target):
            _remove(aside)
            # Set aside, not deleted: who planted it, and what, is for an operator to look at.
            target.rename(aside)
        draft.rename(target)
        _synced(target.parent)
    except OSError as error:
        raise IdentityRefused(f"{target} cannot be written: {error.strerror}") from error
    return True


def set_aside(directory: Path) -> None:
    """Take an identity that was refused out of the way, so that a new one can be made; raises IdentityRefused."""
    aside = directory.with_name(f"{directory.name}.refused")
    try:
        _remove(aside)
        directory.rename(aside)
    except OSError as error:
        raise IdentityRefused(f"{directory} cannot be set aside: {error.strerror}") from error


def _own(path: Path, *, directory: bool, others: int) -> None:
    """Refuse what is a link, another kind of file, somebody else's, or open to others."""
    try:
        status = path.lstat()
    except OSError as error:
        raise IdentityRefused(f"{path}: {error.strerror}") from error
    if not (stat.S_ISDIR(status.st_mode) if directory else stat.S_ISREG(status.st_mode)):
        raise IdentityRefused(f"{path} is no {'directory' if directory else 'file'} of its own")
    # A file that another user of the machine planted, or that came with a disk which was prepared elsewhere.
    if status.st_uid != os.geteuid():
        raise IdentityRefused(f"{path} belongs to user {status.st_uid}, and the agent runs as {os.geteuid()}")
    if status.st_mode & others:
        raise IdentityRefused(f"{path} has mode {stat.S_IMODE(status.st_mode):04o}: others can reach it")
    # A second name is somebody's handle on the file: it could be written through that after this check.
    if not directory and (status.st_nlink != 1 or status.st_size > _MAX_FILE):
        raise IdentityRefused(f"{path} has another name too, or is far too large")


def _same(source: Path, target: Path) -> bool:
    """Whether the target is the agent's own and holds the same identity."""
    if not os.path.lexists(target):
        return False
    with suppress(IdentityRefused, OSError):
        check(target)
        return all(_content(source / name) == _content(target / name) for name in (*KEYS, BROKER, GATE, SEAL))
    return False


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _copy(source: Path, draft: Path) -> None:
    draft.mkdir(mode=0o700)
    for name in sorted(_NAMES - {CONTEXT}):
        content = _content(source / name)
        if content is None:
            continue
        descriptor = os.open(draft / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    _synced(draft)


def _remove(path: Path) -> None:
    """Remove whatever is there; a link is removed, not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _synced(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
