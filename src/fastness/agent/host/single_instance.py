"""One agent on one machine: a lock that ends with the process that holds it, however that ends.

Two agents at once keep each other's changes as originals, and write a record of what is not so. The lock is the kernel's (flock),
so a crash or a power cut leaves none behind; the file stays and means nothing by itself.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fastness.agent.host.errors import AlreadyRunning

LOCK: Final = "agent.lock"


@contextmanager
def only_one(state: Path) -> Iterator[None]:
    """Own a machine by its state directory for the time of the block; raises AlreadyRunning, OSError."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(state / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            raise AlreadyRunning(f"process {owner} is the agent of this machine already") from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
