"""What an agent sees to for its own process: it is the only one on its machine, it is never dumped, and it says when it is ready.

* **The only one** (`only_one`). Two agents at once keep each other's changes as originals, and write a record of what is not so.
  The lock is the kernel's (flock), so a crash or a power cut leaves none behind; the file stays and means nothing by itself.
* **Never dumped** (`forbid_core_dumps`). An image of the process would hold every secret that it ever had.
* **Ready** (`tell_ready`). The service manager is told (`Type=notify`), if it asked to be told.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from fastness.agent.host.errors import AlreadyRunning

LOCK: Final = "agent.lock"
VARIABLE: Final = "NOTIFY_SOCKET"
_SET_DUMPABLE: Final = 4  # PR_SET_DUMPABLE of prctl(2)


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
        # The number is for people: what keeps a second agent out is the lock.
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def forbid_core_dumps() -> None:
    """From now on nothing of this process is dumped, and no other process of the same user reads its memory."""
    # Two settings, because each leaves a gap. A limit of zero ends dumps into files, but the kernel hands a dump to a program
    # (systemd-coredump is one) whatever the limit; a process that is not dumpable is not dumped at all, but only for as long as
    # it does not start another program in its place.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Never refused for the value 0; where the call is missing, the limit remains.
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def tell_ready(environment: Mapping[str, str], status: str = "") -> bool:
    """Send READY to the socket that the environment names; whether somebody was there."""
    address = environment.get(VARIABLE, "")
    if not address.startswith(("/", "@")):
        return False
    target = f"\0{address[1:]}" if address.startswith("@") else address
    message = "READY=1" + (f"\nSTATUS={status}" if status else "")
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.sendto(message.encode(), target)
        return True
    return False
