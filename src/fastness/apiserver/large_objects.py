"""Work on one large object, away from the event loop.

The loop serves everybody; merging, tracking ownership of and validating an object of 3 MiB takes a second of it. Such work runs
in one thread instead: the interpreter takes turns between that thread and the loop every few milliseconds, so that a second
caller waits for turns and not for the work. Rules:

* One thread, not many: large requests wait for each other and share one half of the interpreter, whoever sends them.
* A bounded number may wait; more are refused with 429, because what waits is held in memory.
* Whoever leaves the loop decided on a state that may be another one when it is back: compare the head, and begin again.
* Small work stays where it is. The bound is where leaving costs less than the work.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from fastness.kube.errors import TooManyRequests

HEAVY_BYTES: Final = 32 * 1024
MAX_WAITING: Final = 16
T = TypeVar("T")


class HeavyWork:
    """The thread, and how much waits for it."""

    def __init__(self, most: int = MAX_WAITING) -> None:
        """`most` may wait; 0: as many as come, for callers that are ours."""
        self._most = most
        self._waiting = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="large-objects")

    async def run(self, size: int, work: Callable[[], T]) -> T:
        """Do the work, here when it is about few bytes, else in the thread; raises what it raises, and TooManyRequests."""
        if size <= HEAVY_BYTES:
            return work()
        if self._most and self._waiting >= self._most:
            raise TooManyRequests(f"{self._waiting} large objects are being worked on already", retry_after=1)
        self._waiting += 1
        try:
            # The correlation id of the request is a context variable, and log lines of the thread must carry it.
            inside = partial(contextvars.copy_context().run, work)
            return await asyncio.get_running_loop().run_in_executor(self._thread, inside)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Let the thread end after what it is doing."""
        self._thread.shutdown(wait=False, cancel_futures=True)
