"""Copies the content of files of any size in little memory, holes as holes.

A hole costs nobody anything: an ordinary user makes a file of terabytes with one call. So blocks of zeros are neither written nor
hashed, holes are skipped where the file system tells them (SEEK_DATA), and what is read is bounded by the caller.

The digest is over the size and the blocks that are not zero, each with its place. It is the same for a file and for its copy
wherever their holes are, and costs what the data costs.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from typing import Final

from fastness.agent.host.errors import FileFailure, TooMuchToKeep

BLOCK: Final = 128 * 1024
_ZEROS: Final = bytes(BLOCK)


def copy(source: int, target: int, limit: int) -> tuple[str, int]:
    """Copy from one descriptor to another; the digest and the bytes of data; raises TooMuchToKeep, FileFailure, OSError."""
    size = os.fstat(source).st_size
    hasher, data = hashlib.sha256(), 0
    for offset, block in _blocks(source, size):
        data += len(block)
        # Counted as read, zeros included: a file of zeros without holes costs as much time as one of data.
        if data > limit:
            raise TooMuchToKeep(f"more than {limit} bytes of data")
        if block == _ZEROS[: len(block)]:
            continue
        # Place and length are hashed with the block: without them two files with the same data at other places would be one.
        hasher.update(offset.to_bytes(8, "big") + len(block).to_bytes(8, "big"))
        hasher.update(block)
        _write_at(target, block, offset)
    # Also makes a hole at the end.
    os.ftruncate(target, size)
    hasher.update(size.to_bytes(8, "big"))
    return f"sha256:{hasher.hexdigest()}", data


def _blocks(descriptor: int, size: int) -> Iterator[tuple[int, bytes]]:
    """The aligned blocks that may hold data, with their places."""
    offset = 0
    while offset < size:
        try:
            start = os.lseek(descriptor, offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole from here to the end
                return
            start = offset
        offset = start - start % BLOCK
        block = _read_at(descriptor, min(BLOCK, size - offset), offset)
        yield offset, block
        offset += BLOCK


def _read_at(descriptor: int, length: int, offset: int) -> bytes:
    block = os.pread(descriptor, length, offset)
    while len(block) < length:
        more = os.pread(descriptor, length - len(block), offset + len(block))
        if not more:
            raise FileFailure("it became shorter while it was copied", "Find out what writes to it.")
        block += more
    return block


def _write_at(descriptor: int, block: bytes, offset: int) -> None:
    view = memoryview(block)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written
