"""The files of one machine below a root directory, which nothing can leave.

A path is walked one component at a time with directory descriptors, and no component is followed by the kernel:

- Paths are absolute, without `.` and `..`, without NUL.
- A symbolic link on the way is resolved here. It may lead anywhere below the root; one that climbs above the root, or is absolute
  while the root is not `/`, is refused: for every other program it would lead out.
- A link of somebody else is followed only to a directory of that same somebody, as the kernel's protected_symlinks does:
  otherwise the owner of one directory on the way would choose where root reads and writes.
- The last component is never followed. Writing replaces a link by a file, looking at it says "link".
- Nothing is opened that could wait for somebody (a FIFO), and what was opened is looked at again: its name may mean another thing
  by then.
- What is read is bounded, because whoever replaces a file keeps what it was.
- A write is a temporary file in the same directory, mode and owner before the content, fsync, rename, fsync of the directory: at
  every moment the path has the old state or the new one.

Owners are set only where the process may (`owners`): a virtual machine of an ordinary user keeps its files as that user's. There
a look says nothing about owners either.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from fastness.drivers.errors import DriverError, FileFailure, UnsafePath
from fastness.drivers.states import ABSENT, DEFAULT_DIRECTORY_MODE, Absent, File, Link, Other, State

MAX_LINKS = 40
MAX_FILE = 128 * 1024 * 1024
TEMPORARY = ".fastness-new"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class RootedFiles:
    """Files below a root directory."""

    def __init__(self, root: Path, *, owners: bool | None = None) -> None:
        self.root = root
        self._owners = os.geteuid() == 0 if owners is None else owners

    def look(self, path: str) -> State:
        """What is at a path; raises UnsafePath, FileFailure."""
        with _told(path), self._parent(path) as (parent, name):
            return ABSENT if parent is None else self._look(parent, name)

    def put(
        self, path: str, state: State, *, directory_mode: int = DEFAULT_DIRECTORY_MODE, own_directories: bool = False
    ) -> None:
        """Bring a path into a state, atomically; missing directories are made, with the owner of the file if asked.

        Raises UnsafePath, FileFailure.
        """
        if isinstance(state, Absent):
            self._remove(path)
            return
        if isinstance(state, Other):
            raise FileFailure(f"{path}: {state.what} cannot be written", "An update writes files and links only.")
        owner = (state.uid, state.gid) if own_directories and isinstance(state, File) else (None, None)
        with _told(path), self._parent(path, make=directory_mode, owner=owner) as (parent, name):
            if parent is None:
                raise FileFailure(f"{path}: its directory cannot be made")
            present = self._look(parent, name)
            if isinstance(present, Other):
                raise FileFailure(f"{path} is {present.what}", "Remove it, or choose another path.")
            self._place(parent, name, state)

    def append(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """Add bytes at the end of a file and wait until they are on disk; raises UnsafePath, FileFailure."""
        with _told(path), self._parent(path, make=0o700) as (parent, name):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(name, flags, mode, dir_fd=parent)
            try:
                _write_all(descriptor, data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def missing_directories(self, path: str) -> list[str]:
        """The directories above a path that do not exist, outermost first."""
        parts = _parts(path)[:-1]
        with _told(path):
            for count in range(len(parts), 0, -1):
                with self._directory(parts[:count]) as found:
                    if found is not None:
                        return ["/" + "/".join(parts[:n]) for n in range(count + 1, len(parts) + 1)]
            return ["/" + "/".join(parts[:n]) for n in range(1, len(parts) + 1)]

    def remove_empty(self, directory: str) -> None:
        """Remove a directory if it is there and empty."""
        with _told(directory), self._parent(directory) as (parent, name):
            if parent is not None:
                with suppress(FileNotFoundError, NotADirectoryError):
                    try:
                        os.rmdir(name, dir_fd=parent)
                    except OSError as error:
                        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):
                            raise

    def names(self, directory: str) -> list[str]:
        """The names in a directory, in order; none if it does not exist."""
        with _told(directory), self._directory(_parts(directory)) as found:
            return sorted(os.listdir(found)) if found is not None else []

    def _look(self, parent: int, name: str) -> State:
        try:
            found = os.lstat(name, dir_fd=parent)
        except FileNotFoundError:
            return ABSENT
        if stat.S_ISLNK(found.st_mode):
            target = os.readlink(name, dir_fd=parent)
            return Link(target) if target.isprintable() else Other("a link whose target is no text")
        if not stat.S_ISREG(found.st_mode):
            return Other("a directory" if stat.S_ISDIR(found.st_mode) else "no regular file")
        read = _read(parent, name)
        if read is None:
            return Other("no regular file")
        content, opened = read
        owner = (opened.st_uid, opened.st_gid) if self._owners else (None, None)
        return File(content, stat.S_IMODE(opened.st_mode), *owner)

    def _remove(self, path: str) -> None:
        with _told(path), self._parent(path) as (parent, name):
            if parent is None:
                return
            present = self._look(parent, name)
            if isinstance(present, Other):
                raise FileFailure(f"{path} is {present.what}", "Remove it by hand.")
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=parent)
                os.fsync(parent)

    def _place(self, parent: int, name: str, state: File | Link) -> None:
        temporary = f"{TEMPORARY}.{name}"[:255]
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=parent)
        try:
            if isinstance(state, Link):
                os.symlink(state.target, temporary, dir_fd=parent)
            else:
                self._fill(parent, temporary, state)
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=parent)
            raise
        os.fsync(parent)

    def _fill(self, parent: int, name: str, state: File) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=parent)
        try:
            self._own(descriptor, state.uid, state.gid)
            os.fchmod(descriptor, state.mode)
            _write_all(descriptor, state.content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _own(self, descriptor: int, uid: int | None, gid: int | None) -> None:
        if self._owners and (uid is not None or gid is not None):
            os.fchown(descriptor, -1 if uid is None else uid, -1 if gid is None else gid)

    @contextmanager
    def _parent(
        self, path: str, make: int | None = None, owner: tuple[int | None, int | None] = (None, None)
    ) -> Iterator[tuple[int | None, str]]:
        """The directory that holds the last component, and that component."""
        parts = _parts(path)
        if not parts:
            raise UnsafePath(f"{path!r} names the root itself")
        with self._directory(parts[:-1], make, owner) as found:
            yield found, parts[-1]

    @contextmanager
    def _directory(
        self, parts: list[str], make: int | None = None, owner: tuple[int | None, int | None] = (None, None)
    ) -> Iterator[int | None]:
        """A descriptor of a directory below the root, None if it is not there."""
        stack = [os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
        try:
            yield stack[-1] if self._walk(stack, parts, make, owner) else None
        finally:
            for descriptor in stack:
                os.close(descriptor)

    def _walk(self, stack: list[int], parts: list[str], make: int | None, owner: tuple[int | None, int | None]) -> bool:
        """Open the directories one after the other; the stack holds the way, so that `..` of a link is a step back."""
        waiting: list[str | _LinkOf] = list(reversed(parts))
        links = 0
        while waiting:
            name = waiting.pop()
            if isinstance(name, _LinkOf):
                name.check(stack[-1], parts)
                continue
            if name == "..":
                if len(stack) == 1:
                    raise UnsafePath(f"a symbolic link on the way to /{'/'.join(parts)} leads out of the root")
                os.close(stack.pop())
                continue
            try:
                stack.append(os.open(name, _DIRECTORY, dir_fd=stack[-1]))
            except FileNotFoundError:
                if make is None:
                    return False
                stack.append(self._make(stack[-1], name, make, owner))
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.ENOTDIR):
                    raise
                links += 1
                waiting += self._resolved(stack, name, parts, links)
        return True

    def _resolved(self, stack: list[int], name: str, parts: list[str], links: int) -> list[str | _LinkOf]:
        """What a link stands for, last first, and before it who may have made it; raises UnsafePath when it leads out."""
        shown = "/" + "/".join(parts)
        try:
            owner = _LinkOf(os.lstat(name, dir_fd=stack[-1]).st_uid)
            target = os.readlink(name, dir_fd=stack[-1])
        except OSError as error:
            raise FileFailure(f"{shown}: {name} is not a directory") from error
        if links > MAX_LINKS:
            raise UnsafePath(f"too many symbolic links on the way to {shown}")
        if target.startswith("/"):
            if self.root != Path("/"):
                raise UnsafePath(f"a symbolic link on the way to {shown} leads out of the root, to {target}")
            while len(stack) > 1:
                os.close(stack.pop())
        return [owner, *(part for part in reversed(target.split("/")) if part not in ("", "."))]

    def _make(self, parent: int, name: str, mode: int, owner: tuple[int | None, int | None]) -> int:
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent)
        descriptor = os.open(name, _DIRECTORY, dir_fd=parent)
        os.fchmod(descriptor, mode)
        self._own(descriptor, *owner)
        os.fsync(parent)
        return descriptor


@dataclass(frozen=True, slots=True)
class _LinkOf:
    """A link on the way that somebody made; where it led is checked when that is open."""

    uid: int

    def check(self, reached: int, parts: list[str]) -> None:
        """Raise UnsafePath unless the link is root's, ours, or leads to a directory of its own owner."""
        if self.uid not in (0, os.geteuid(), os.fstat(reached).st_uid):
            raise UnsafePath(
                f"a symbolic link on the way to /{'/'.join(parts)} belongs to user {self.uid} and leads to what is not theirs"
            )


def _read(parent: int, name: str) -> tuple[bytes, os.stat_result] | None:
    """The content of a regular file, and what it is; None for what became something else meanwhile; raises FileFailure."""
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    with os.fdopen(descriptor, "rb") as handle:
        # Asked of the open file, so that content, type and mode belong together.
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return None
        content = handle.read(MAX_FILE + 1) if found.st_size <= MAX_FILE else b""
        if found.st_size > MAX_FILE or len(content) > MAX_FILE:
            raise FileFailure(
                f"{name} has {found.st_size} bytes", "What is replaced is kept; move so large a file away."
            )
        return content, found


def _parts(path: str) -> list[str]:
    """The components of an absolute path; raises UnsafePath."""
    if not path.startswith("/") or "\0" in path:
        raise UnsafePath(f"{path!r} is not an absolute path")
    parts = [part for part in path.split("/") if part]
    if any(part in (".", "..") for part in parts):
        raise UnsafePath(f"{path!r} has dot segments")
    return parts


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


@contextmanager
def _told(path: str) -> Iterator[None]:
    """Errors of the system as errors of this package."""
    try:
        yield
    except DriverError:
        raise
    except OSError as error:
        raise FileFailure(f"{path}: {error.strerror or error}") from error
