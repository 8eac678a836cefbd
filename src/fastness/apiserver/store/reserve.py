"""Room that is kept back: what deletions live on when the disk is full.

A deletion is written before it frees anything, so on a disk without a free byte nothing could ever be deleted. `state.reserve` is
a file of nothing but allocated blocks. When the disk is full it is given up, deletions are written into its place, the log is cut
short, and the file is made anew as soon as there is room for it. A start on a full disk gives it up as well, so that there is a
server which takes deletions.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from fastness.apiserver.store.files import RESERVE

NEEDED_TO_START: Final = 1024 * 1024  # kubeconfig, endpoints, the first writes
LEAST: Final = 1024 * 1024


class Reserve:
    """The kept-back room of one state directory; with no size there is none."""

    def __init__(self, directory: Path, size: int) -> None:
        self._path = directory / RESERVE
        self.size = size

    def keep(self) -> bool:
        """Allocate the room, or as much of it as there is; whether there was any. A disk without room is no error."""
        size = self.size
        while size >= min(self.size, LEAST) > 0:
            if self._allocated(size):
                return True
            size //= 2
        return False

    def _allocated(self, size: int) -> bool:
        try:
            # O_NOFOLLOW: a link under this name would make us allocate, and later unlink, somewhere else.
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return False
        try:
            # Allocated, not truncated to size: a sparse file holds no blocks that could be given up.
            os.posix_fallocate(handle, 0, size)
        except OSError:
            self.give_up()
            return False
        finally:
            os.close(handle)
        return True

    def give_up(self) -> None:
        """Let others have the room."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def begin(self) -> None:
        """Keep the room back, or give it up where a start would fail for want of it."""
        if self.size and self._held() and self._free() < NEEDED_TO_START:
            self.give_up()
        elif self._free() > self.size + NEEDED_TO_START:
            self.keep()

    def _held(self) -> bool:
        try:
            return self._path.stat().st_size > 0
        except OSError:
            return False

    def _free(self) -> int:
        try:
            usage = os.statvfs(self._path.parent)
        except OSError:
            return 0
        return usage.f_bavail * usage.f_frsize
