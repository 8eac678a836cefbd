"""User-data in a single file: QEMU's fw_cfg in sysfs, or a path that the image names.

`read_below` opens a path component by component and follows no link, as every reader of a foreign file system needs it.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.agent.host.errors import BadUserData, UserDataFailure
from fastness.protocol.user_data import MAX_BYTES

FW_CFG: Final = Path("/sys/firmware/qemu_fw_cfg/by_name/opt/com.coreos/config/raw")
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: a pipe in place of the file would hold the boot for ever.
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FilePlace:
    """A file that holds user-data."""

    path: Path
    name: str = "file"

    async def read(self) -> bytes | None:
        """Its content; raises UserDataFailure."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> bytes | None:
        try:
            descriptor = os.open(self.path, _FILE)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UserDataFailure(f"{self.path}: {error.strerror}") from error
        return _content(descriptor, str(self.path))


def fw_cfg() -> FilePlace:
    """What QEMU was started with: `-fw_cfg name=opt/com.coreos/config,file=…`."""
    return FilePlace(FW_CFG, "fw_cfg")


def read_below(directory: Path, steps: Sequence[str]) -> bytes | None:
    """A regular file below a directory, no link on the way; None when it is not there; raises BadUserData."""
    path_text = "/".join(steps)
    try:
        place = os.open(directory, _DIRECTORY)
        # Component by component: O_NOFOLLOW speaks of the last one alone, and a directory on the way may be a link.
        for step in steps[:-1]:
            try:
                below = os.open(step, _DIRECTORY, dir_fd=place)
            finally:
                os.close(place)
            place = below
        try:
            descriptor = os.open(steps[-1], _FILE, dir_fd=place)
        finally:
            os.close(place)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadUserData(f"{path_text} is not a plain file: {error.strerror}") from error
    return _content(descriptor, path_text)


def _content(descriptor: int, place: str) -> bytes | None:
    """All of a regular file, None when it is empty; closes the descriptor; raises UserDataFailure."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise BadUserData(f"{place} is not a plain file")
    with os.fdopen(descriptor, "rb") as file:
        try:
            return bounded(file.read(MAX_BYTES + 1), place)
        except OSError as error:
            raise UserDataFailure(f"{place}: {error.strerror}") from error


def bounded(data: bytes, place: str) -> bytes | None:
    """The same bytes, None for none; raises BadUserData for too many."""
    if len(data) > MAX_BYTES:
        raise BadUserData(f"{place} has more than {MAX_BYTES} bytes")
    return data or None
