"""Changes of files by looking again and again, where the kernel does not tell.

A path is compared by what `lstat` says of it (kind, mode, size, inode, times in nanoseconds), so a look costs one system call per
path and reads nothing. Slower than inotify by up to one interval; never misses a change that lasts.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from fastness.runtime.clock import Clock

INTERVAL: Final = 2.0
Print = tuple[int, ...]


class PollingWatcher:
    """Looks at paths below a root at an interval."""

    def __init__(self, root: Path, clock: Clock, interval: float = INTERVAL) -> None:
        self._root = root
        self._clock = clock
        self._interval = interval

    @asynccontextmanager
    async def watch(self, paths: Collection[str]) -> AsyncIterator[AsyncIterator[str]]:
        """The paths out of these that change."""
        yield self._changes({path: self._look(path) for path in paths})

    async def _changes(self, known: dict[str, Print]) -> AsyncIterator[str]:
        while True:
            await self._clock.sleep(self._interval)
            for path, before in list(known.items()):
                now = self._look(path)
                if now != before:
                    known[path] = now
                    yield path

    def _look(self, path: str) -> Print:
        try:
            found = os.lstat(f"{str(self._root).rstrip('/')}{path}")
        except OSError:
            return ()
        return (found.st_mode, found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
