"""Changes of files: as the kernel tells them (inotify), or by looking again and again where it does not.

**inotify** is shared by all agents of a process. A kernel allows few inotify instances per user and many watches per instance,
so a process has one `Inotify` and every agent a subscription. Directories are watched, not files: a file that is replaced by a
rename keeps its watch, and one that does not exist yet is seen when it comes. When the kernel's queue overflows, or a directory
is exchanged for another, every subscriber is told all of its paths. The standard library has no inotify; three functions of the
C library are called through ctypes, nothing else.

**Polling** compares what `lstat` says of a path (kind, mode, size, inode, times in nanoseconds), so a look costs one system call
per path and reads nothing. Slower than inotify by up to one interval; never misses a change that lasts.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import struct
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fastness.agent.host.errors import DriverError
from fastness.runtime.clock import Clock

_EVENT: Final = struct.Struct("iIII")
_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x4, 0x8, 0x40, 0x80, 0x100, 0x200
_MOVE_SELF, _ONLYDIR, _OVERFLOW, _IGNORED = 0x800, 0x01000000, 0x4000, 0x8000
_MASK: Final = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _MOVE_SELF | _ONLYDIR
_READ: Final = 64 * 1024

INTERVAL: Final = 2.0
Print = tuple[int, ...]


class NoInotify(DriverError):
    """The kernel gives no inotify instance."""

    code = "no-inotify"
    hint = "Raise fs.inotify.max_user_instances, or let the polling watcher do it."


@dataclass(frozen=True, eq=False, slots=True)
class _Subscription:
    """Who wants to know: real paths to the caller's names, and the names that changed and were not told yet."""

    names: dict[str, str]
    waiting: dict[str, None]
    wake: asyncio.Event

    def tell(self, real: str) -> None:
        name = self.names.get(real)
        if name is not None:
            self.waiting[name] = None
            self.wake.set()

    def tell_all(self) -> None:
        self.waiting.update(dict.fromkeys(self.names.values()))
        self.wake.set()


class Inotify:
    """One inotify instance of the kernel, read by the running loop."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise NoInotify(f"inotify: {os.strerror(ctypes.get_errno())}")
        self._directories: dict[int, str] = {}
        self._subscriptions: dict[str, list[_Subscription]] = {}
        asyncio.get_running_loop().add_reader(self._descriptor, self._readable)

    def close(self) -> None:
        """Give the instance back."""
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

    @asynccontextmanager
    async def follow(self, names: dict[str, str]) -> AsyncIterator[AsyncIterator[str]]:
        """The names of the real paths (keys) that change, as they change."""
        subscription = _Subscription(names, {}, asyncio.Event())
        directories = sorted({os.path.dirname(real) for real in names})
        for directory in directories:
            self._subscriptions.setdefault(directory, []).append(subscription)
            self._add(directory)
        try:
            yield _changes(subscription)
        finally:
            for directory in directories:
                self._subscriptions[directory].remove(subscription)
                if not self._subscriptions[directory]:
                    self._forget(directory)

    def _add(self, directory: str) -> None:
        if directory in self._directories.values():
            return
        watch = self._libc.inotify_add_watch(self._descriptor, os.fsencode(directory), _MASK)
        if watch >= 0:
            self._directories[watch] = directory
        elif ctypes.get_errno() not in (errno.ENOENT, errno.ENOTDIR):
            raise NoInotify(f"{directory}: {os.strerror(ctypes.get_errno())}")

    def _forget(self, directory: str) -> None:
        del self._subscriptions[directory]
        for watch in [number for number, watched in self._directories.items() if watched == directory]:
            del self._directories[watch]
            self._libc.inotify_rm_watch(self._descriptor, watch)

    def _readable(self) -> None:
        try:
            data = os.read(self._descriptor, _READ)
        except BlockingIOError:
            return
        for watch, mask, name in _events(data):
            # inotify(7): events were lost, and nobody knows which. Every path is looked at again.
            if mask & _OVERFLOW:
                for subscription in {subscriber for every in self._subscriptions.values() for subscriber in every}:
                    subscription.tell_all()
            elif mask & _IGNORED:
                self._gone(watch)
            elif mask & _MOVE_SELF:
                self._moved(watch)
            elif directory := self._directories.get(watch):
                for subscription in self._subscriptions.get(directory, ()):
                    subscription.tell(f"{directory}/{name}")

    def _gone(self, watch: int) -> None:
        """A watched directory was removed, and what is in it with it."""
        directory = self._directories.pop(watch, None)
        if directory is not None:
            for subscription in self._subscriptions.get(directory, ()):
                subscription.tell_all()

    def _moved(self, watch: int) -> None:
        """A watched directory has another name now: whatever has the old one is what counts, so it is watched instead."""
        directory = self._directories.get(watch)
        if directory is not None:
            self._libc.inotify_rm_watch(self._descriptor, watch)  # its events name paths that are no longer so
            self._gone(watch)
            self._add(directory)


async def _changes(subscription: _Subscription) -> AsyncIterator[str]:
    while True:
        while subscription.waiting:
            name = next(iter(subscription.waiting))
            del subscription.waiting[name]
            yield name
        subscription.wake.clear()
        await subscription.wake.wait()


def _events(data: bytes) -> Iterator[tuple[int, int, str]]:
    offset = 0
    while offset + _EVENT.size <= len(data):
        watch, mask, _, length = _EVENT.unpack_from(data, offset)
        offset += _EVENT.size
        yield watch, mask, os.fsdecode(data[offset : offset + length].rstrip(b"\0"))
        offset += length


class InotifyWatcher:
    """The watcher of one machine's root, on the shared instance."""

    def __init__(self, inotify: Inotify, root: Path) -> None:
        self._inotify = inotify
        self._root = root

    @asynccontextmanager
    async def watch(self, paths: Collection[str]) -> AsyncIterator[AsyncIterator[str]]:
        """The paths out of these that change."""
        base = str(self._root).rstrip("/")
        async with self._inotify.follow({f"{base}{path}": path for path in paths}) as changes:
            yield changes


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

    async def _changes(self, prints: dict[str, Print]) -> AsyncIterator[str]:
        while True:
            await self._clock.sleep(self._interval)
            for path, before in list(prints.items()):
                now = self._look(path)
                if now != before:
                    prints[path] = now
                    yield path

    def _look(self, path: str) -> Print:
        try:
            status = os.lstat(f"{str(self._root).rstrip('/')}{path}")
        except OSError:
            return ()
        # The change time as well: whoever writes to a file can set its modification time back, and not that one.
        return (status.st_mode, status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
