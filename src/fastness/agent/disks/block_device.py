"""A disk, or a file that stands for one: whole reads and writes, and errors that say which.

A block device that is mounted or mapped is refused: the kernel is asked for it alone (`O_EXCL`) once, and not longer, because
the mapper will claim it next. After a flush the kernel's copies are dropped, so that what is read to prove a write comes from the
disk.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import Final

from fastness.agent.disks.errors import DiskError

_READ_ONLY_GET: Final = 0x125E  # BLKROGET
_CODES: Final = {
    errno.ENOSPC: "disk-full", errno.EDQUOT: "disk-full", errno.EFBIG: "disk-full",
    errno.EBUSY: "disk-busy", errno.EROFS: "disk-read-only", errno.EACCES: "disk-read-only", errno.EPERM: "disk-read-only",
}  # fmt: skip


class FileDevice:
    """The adapter of `BlockDevice` to a path; closed by `close` or at the end of a `with`."""

    def __init__(self, path: Path | str) -> None:
        self._path = str(path)
        try:
            is_block = stat.S_ISBLK(os.stat(self._path).st_mode)
            if is_block:
                os.close(os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_EXCL))
            self._fd = os.open(self._path, os.O_RDWR | os.O_CLOEXEC | os.O_NOCTTY)
            self._number = os.fstat(self._fd).st_rdev if is_block else 0
            self._size = os.lseek(self._fd, 0, os.SEEK_END)
            read_only = is_block and _is_read_only(self._fd)
        except OSError as error:
            raise _failed("open", self._path, error) from error
        if read_only:
            self.close()
            raise DiskError("disk-read-only", f"the host attached {self._path} for reading only")

    @property
    def path(self) -> str:
        """The path."""
        return self._path

    @property
    def number(self) -> str:
        """`major:minor`; `0:0` of a file."""
        return f"{os.major(self._number)}:{os.minor(self._number)}"

    @property
    def size(self) -> int:
        """Its length when it was opened."""
        return self._size

    def read(self, offset: int, length: int) -> bytes:
        """Exactly that many bytes; raises DiskError."""
        pieces, at, end = [], offset, offset + length
        while at < end:
            try:
                piece = os.pread(self._fd, end - at, at)
            except OSError as error:
                raise _failed(f"read {end - at} bytes at {at} of", self._path, error) from error
            if not piece:
                raise DiskError("disk-short-read", f"{self._path} ends at {at}; {end - at} bytes more were to be read")
            pieces.append(piece)
            at += len(piece)
        return b"".join(pieces)

    def write(self, offset: int, data: bytes) -> None:
        """All of the bytes; raises DiskError."""
        rest, at = memoryview(data), offset
        if offset + len(data) > self._size:
            raise DiskError("disk-full", f"{self._path} has {self._size} bytes; {len(data)} at {offset} do not fit")
        while rest:
            try:
                written = os.pwrite(self._fd, rest, at)
            except OSError as error:
                raise _failed(f"write {len(rest)} bytes at {at} of", self._path, error) from error
            rest, at = rest[written:], at + written

    def flush(self) -> None:
        """Everything written is on the disk; raises DiskError."""
        try:
            os.fsync(self._fd)
            os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError as error:
            raise _failed("make durable what was written to", self._path, error) from error

    def close(self) -> None:
        """Give the device back; twice is once."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> FileDevice:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_read_only(descriptor: int) -> bool:
    """Whether the kernel takes no writes: it lets such a device be opened for them all the same."""
    answer = bytearray(4)
    fcntl.ioctl(descriptor, _READ_ONLY_GET, answer)
    return any(answer)


def _failed(deed: str, path: str, error: OSError) -> DiskError:
    code = _CODES.get(error.errno or 0, "disk-io")
    return DiskError(code, f"could not {deed} {path}: {error.strerror or error}")
