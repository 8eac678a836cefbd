"""The agent's own files move below /var/lib/fastness, where an encrypted volume can be under them.

    /var/lib/fastness-agent                       ─▶ /var/lib/fastness/agent          journal, copies, what was set aside
    /etc/machine-config-daemon/{orig,noorig}      ─▶ /var/lib/fastness/originals/…    what stood there before a config replaced it

An original can be a secret that a config replaced, and /etc is on the disk that the host reads, or gone with the boot where it is
transient. What other programs look for stays in /etc/machine-config-daemon: currentconfig, currentimage, baseimage and the
annotations of the node, which the machine-config daemon's own tools read; overlays and trust, which a served config lays there.

* A directory is moved whole or not at all: renamed where one file system holds both places, else copied beside its place, written
  back, renamed, and then removed where it was. A power cut leaves the old one or both; with both the new one is complete.
* Done twice it changes nothing.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fastness.agent.host.errors import FileFailure

HOME: Final = Path("/var/lib/fastness")
MOVES: Final[Mapping[str, str]] = {
    "var/lib/fastness-agent": "var/lib/fastness/agent",
    "etc/machine-config-daemon/orig": "var/lib/fastness/originals/orig",
    "etc/machine-config-daemon/noorig": "var/lib/fastness/originals/noorig",
}


def move_state(root: Path = Path("/")) -> tuple[str, ...]:
    """Bring what an older agent kept to its new place; which directories moved; raises FileFailure."""
    moved = []
    for before, after in MOVES.items():
        source, target = root / before, root / after
        try:
            if source.is_dir() and not source.is_symlink():
                _move(source, target)
                moved.append(f"/{before}")
        except OSError as error:
            raise FileFailure(f"{source} cannot be moved to {target}: {error.strerror}") from error
    return tuple(moved)


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not target.exists():
        try:
            source.rename(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy(source, target)
    _synced(target.parent)
    # Here the new one is whole: either it was renamed just now, or a power cut came before the old one was gone.
    shutil.rmtree(source, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    draft = target.with_name(f".{target.name}.moving")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.copytree(source, draft, symlinks=True, copy_function=_copied)
    for directory, _, _ in os.walk(draft):
        _like(source / Path(directory).relative_to(draft), Path(directory))
        _synced(Path(directory))
    draft.rename(target)


def _copied(source: str, target: str) -> None:
    shutil.copy2(source, target, follow_symlinks=False)
    if not os.path.islink(target):
        _like(Path(source), Path(target))
        descriptor = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _like(source: Path, target: Path) -> None:
    """Owner and mode as they were: a copy of somebody's file must not become root's."""
    status = source.stat()
    os.chown(target, status.st_uid, status.st_gid)
    target.chmod(status.st_mode & 0o7777)


def _synced(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
