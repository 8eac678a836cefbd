"""The files of one machine below a root directory, which nothing can leave (`rooted.py`).

- The last component of a path is never followed. Writing replaces a link by a file, looking at it says "link".
- Nothing is opened that could wait for somebody (a FIFO), and what was opened is looked at again: its name may mean another thing
  by then.
- What is held in memory is bounded; what is larger is copied from descriptor to descriptor (`reading`, `writing`).
- A write is a temporary file in the same directory, mode and owner before the content, fsync, rename, fsync of the directory: at
  every moment the path has the old state or the new one.

Where the process cannot set owners, a look says nothing about them either.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from fastness.agent.host.errors import FileFailure, PathTaken
from fastness.agent.host.rooted import RootedPaths, split, translated
from fastness.agent.host.states import ABSENT, DEFAULT_DIRECTORY_MODE, Absent, File, Large, Link, Other, State, Stored

# What is read into memory without a bound of the caller's own: root's own files, such as the record of a config.
MAX_FILE = 32 * 1024 * 1024
TEMPORARY = ".fastness-new"
_BLOCK = 512  # of st_blocks, whatever the file system


class RootedFiles:
    """Files below a root directory."""

    def __init__(self, root: Path, *, owners: bool | None = None) -> None:
        self.root = root
        self._paths = RootedPaths(root, owners=owners)

    def look(self, path: str) -> State:
        """What is at a path, with its content; raises UnsafePath, FileFailure."""
        state = self.inspect(path, MAX_FILE)
        if isinstance(state, Large):
            raise FileFailure(
                f"{path} has {state.size} bytes", f"No more than {MAX_FILE} bytes are read. Move it away."
            )
        return state

    def inspect(self, path: str, up_to: int) -> State | Large:
        """What is at a path, with its content if that has at most so many bytes; raises UnsafePath, FileFailure."""
        with translated(path), self._paths.parent(path) as (parent, name):
            return ABSENT if parent is None else self._inspect(parent, name, up_to)

    def put(
        self, path: str, state: State, *, directory_mode: int = DEFAULT_DIRECTORY_MODE, own_directories: bool = False
    ) -> None:
        """Bring a path into a state, atomically; missing directories are made, with the owner of the file if asked.

        Raises UnsafePath, FileFailure.
        """
        match state:
            case Absent():
                self._remove(path)
            case File():
                with self.writing(
                    path, state, directory_mode=directory_mode, own_directories=own_directories
                ) as target:
                    _write_all(target, state.content)
            case Link():
                with (
                    translated(path),
                    self._paths.parent(path, directory_mode) as (parent, name),
                    self._replacing(path, parent, name) as (directory, temporary),
                ):
                    os.symlink(state.target, temporary, dir_fd=directory)
            case Other(what):
                raise FileFailure(f"{path}: {what} cannot be written", "An update writes files and links only.")

    @contextmanager
    def writing(
        self, path: str, meta: File | Large | Stored, *, directory_mode: int = DEFAULT_DIRECTORY_MODE,
        own_directories: bool = False,
    ) -> Iterator[int]:  # fmt: skip
        """A descriptor that becomes the content of a path, with the mode and owner of `meta`, when the block ends well."""
        owner = (meta.uid, meta.gid) if own_directories else (None, None)
        with (
            translated(path),
            self._paths.parent(path, directory_mode, owner) as (parent, name),
            self._replacing(path, parent, name) as (directory, temporary),
        ):
            # 0600 until it has its owner and mode: nobody opens it in between and keeps a descriptor to what is written later.
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(temporary, flags, 0o600, dir_fd=directory)
            try:
                # Owner before mode: the other way round our own group would have, for a moment, what is meant for the file's.
                self._paths.own(descriptor, meta.uid, meta.gid)
                os.fchmod(descriptor, meta.mode)
                yield descriptor
                # Before the rename: a file system may write the new name first, and a machine that loses power would come up with
                # an empty file.
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    @contextmanager
    def reading(self, path: str) -> Iterator[tuple[int, Large] | None]:
        """A regular file, open, and what it is; None if there is none."""
        with translated(path), self._paths.parent(path) as (parent, name):
            descriptor = None if parent is None else _open(parent, name)
            if descriptor is None:
                yield None
                return
            try:
                yield descriptor, self._meta(os.fstat(descriptor))
            finally:
                os.close(descriptor)

    def append(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """Add bytes at the end of a file and wait until they and its name are on disk; raises UnsafePath, FileFailure."""
        with translated(path), self._paths.parent(path, 0o700) as (parent, name):
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(name, flags, mode, dir_fd=parent)
            try:
                # The name of a new file is content of its directory. It is made durable before the first byte, so that a file
                # with bytes has its name for sure, also when the agent is killed in between.
                if parent is not None and not os.fstat(descriptor).st_size:
                    os.fsync(parent)
                _write_all(descriptor, data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def truncate(self, path: str, size: int) -> None:
        """Cut a file off after so many bytes, durably; raises UnsafePath, FileFailure."""
        with translated(path), self._paths.parent(path) as (parent, name):
            descriptor = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
            try:
                os.ftruncate(descriptor, size)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def move(self, path: str, target: str) -> None:
        """Give a file or a directory another name, atomically and durably; nothing if it is not there; raises FileFailure."""
        with translated(path), self._paths.parent(path) as (parent, name):
            if parent is None:
                return
            with self._paths.parent(target, 0o700) as (place, new_name), suppress(FileNotFoundError):
                os.rename(name, new_name, src_dir_fd=parent, dst_dir_fd=place)
                for directory in (place, parent):
                    if directory is not None:
                        os.fsync(directory)

    def free(self) -> int:
        """The bytes that can still be written here."""
        with translated("/"):
            figures = os.statvfs(self.root)
            # `f_bavail`: what root could take beyond it is the reserve that keeps a full machine usable.
            return figures.f_bavail * figures.f_frsize

    def missing_directories(self, path: str) -> list[str]:
        """The directories above a path that do not exist, outermost first."""
        parts = split(path)[:-1]
        with translated(path):
            for count in range(len(parts), 0, -1):
                with self._paths.directory(parts[:count]) as reached:
                    if reached is not None:
                        return ["/" + "/".join(parts[:n]) for n in range(count + 1, len(parts) + 1)]
            return ["/" + "/".join(parts[:n]) for n in range(1, len(parts) + 1)]

    def remove_empty(self, directory: str) -> None:
        """Remove a directory if it is there and empty."""
        with translated(directory), self._paths.parent(directory) as (parent, name):
            if parent is not None:
                with suppress(FileNotFoundError, NotADirectoryError):
                    try:
                        os.rmdir(name, dir_fd=parent)
                    except OSError as error:
                        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):
                            raise

    def names(self, directory: str) -> list[str]:
        """The names in a directory, in order; none if it does not exist."""
        with translated(directory), self._paths.directory(split(directory)) as reached:
            return sorted(os.listdir(reached)) if reached is not None else []

    def _inspect(self, parent: int, name: str, up_to: int) -> State | Large:
        try:
            status = os.lstat(name, dir_fd=parent)
        except FileNotFoundError:
            return ABSENT
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(name, dir_fd=parent)
            # What is kept in the journal is text; a target with control characters could not be put back as it was.
            return Link(target) if target.isprintable() else Other("a link whose target is no text")
        if not stat.S_ISREG(status.st_mode):
            return Other("a directory" if stat.S_ISDIR(status.st_mode) else "no regular file")
        descriptor = _open(parent, name)
        if descriptor is None:
            return Other("no regular file")
        with os.fdopen(descriptor, "rb") as handle:
            # Asked of the open file, so that content, type and mode belong together.
            meta = self._meta(os.fstat(descriptor))
            content = handle.read(up_to + 1) if meta.size <= up_to else b""
        if meta.size > up_to or len(content) > up_to:
            return meta
        return File(content, meta.mode, meta.uid, meta.gid)

    def _meta(self, status: os.stat_result) -> Large:
        owner = (status.st_uid, status.st_gid) if self._paths.owners else (None, None)
        return Large(status.st_size, status.st_blocks * _BLOCK, stat.S_IMODE(status.st_mode), *owner)

    def _remove(self, path: str) -> None:
        with translated(path), self._paths.parent(path) as (parent, name):
            if parent is None:
                return
            if (what := _in_the_way(parent, name)) is not None:
                # A directory may hold what no config knows of; taking it away is a decision of a person.
                raise PathTaken(f"{path} is {what}", "Remove it by hand.")
            # What a crash left of a write to this path: it would keep a directory that we made from being empty.
            with suppress(FileNotFoundError):
                os.unlink(_temporary(name), dir_fd=parent)
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=parent)
                os.fsync(parent)

    @contextmanager
    def _replacing(self, path: str, parent: int | None, name: str) -> Iterator[tuple[int, str]]:
        """The directory and a temporary name in it; whatever has that name when the block ends well gets the real one."""
        if parent is None:
            raise FileFailure(f"{path}: its directory cannot be made")
        if (what := _in_the_way(parent, name)) is not None:
            raise PathTaken(f"{path} is {what}")
        temporary = _temporary(name)
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=parent)
        try:
            yield parent, temporary
            os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except (OSError, FileFailure):
            with suppress(OSError):
                os.unlink(temporary, dir_fd=parent)
            raise
        os.fsync(parent)


def _temporary(name: str) -> str:
    """The name that a file has beside its place until it is whole; names of files have at most 255 bytes."""
    # A name of its own for each file, so that a write to one place never removes what another one is being written to.
    return f"{TEMPORARY}.{name}"[:255]


def _in_the_way(parent: int, name: str) -> str | None:
    """What stands at a name, if it is something that is never replaced."""
    try:
        mode = os.lstat(name, dir_fd=parent).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(mode) or stat.S_ISREG(mode):
        return None
    return "a directory" if stat.S_ISDIR(mode) else "no regular file"


def _open(parent: int, name: str) -> int | None:
    """A regular file, open for reading; None for anything else, also for what became something else meanwhile."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
            return None
        raise
    # After the open: between a look at the name and this line its owner could have put a device there.
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
