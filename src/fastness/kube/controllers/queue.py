"""A queue of keys, each at most once.

* A key that is added while it waits is not added again; a key that is added while it is worked on comes back when that is
  done. So a storm of events costs one more reconcile, and no key is ever worked on twice at the same time.
* `retry` puts a key back after a delay that doubles each time, with jitter, up to a ceiling; `forget` starts over.
* The queue holds keys, never objects: its size is bounded by the number of objects there are.

Time comes from the clock that is handed in, so tests run in virtual time.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

from fastness.runtime.clock import Clock, Entropy
from fastness.runtime.retries import Backoff

K = TypeVar("K", bound=Hashable)


class QueueClosed(Exception):
    """The queue was closed: there is no more work."""


class WorkQueue(Generic[K]):
    """Keys that wait, keys that are worked on, keys that come back later."""

    def __init__(self, clock: Clock, entropy: Entropy, backoff: Backoff | None = None) -> None:
        self._clock = clock
        self._entropy = entropy
        self._backoff = backoff or Backoff(first=0.005, most=60.0)
        self._ready: deque[K] = deque()
        self._waiting: set[K] = set()
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._due: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._count = 0
        self._failures: dict[K, int] = {}
        self._changed = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._ready)

    @property
    def busy(self) -> int:
        """How many keys are being worked on."""
        return len(self._working)

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing is worked on; delayed keys do not count."""
        return not (self._ready or self._working)

    @property
    def next_due(self) -> float | None:
        """When the next delayed key is due, on the monotonic clock."""
        while self._heap and self._due.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def add(self, key: K) -> None:
        """Have a key worked on soon."""
        self._due.pop(key, None)
        # Never handed out twice: two reconciles of one key would decide on the same state and undo each other.
        if key in self._working:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            self._ready.append(key)
            self._changed.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Have a key worked on later; an earlier appointment stays."""
        if seconds <= 0:
            self.add(key)
            return
        at = self._clock.monotonic() + seconds
        planned = self._due.get(key)
        # A retry in a minute must not put off what is due in a second.
        if planned is not None and planned <= at:
            return
        self._due[key] = at
        self._count += 1
        heapq.heappush(self._heap, (at, self._count, key))
        self._changed.set()

    def retry(self, key: K) -> float:
        """Have a key worked on after a delay that grows with its failures; the delay."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = self._backoff.delay(failures, self._entropy.fraction())
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """The key went well: its next failure is the first again."""
        self._failures.pop(key, None)

    def release_due(self) -> None:
        """Move delayed keys whose time has come to the ready ones."""
        now = self._clock.monotonic()
        while (due := self.next_due) is not None and due <= now:
            key = heapq.heappop(self._heap)[2]
            self._due.pop(key, None)
            self.add(key)

    async def next(self) -> K:
        """The next key; it counts as worked on until `done`. Raises QueueClosed."""
        while True:
            if self._closed:
                raise QueueClosed
            self.release_due()
            if self._ready:
                key = self._ready.popleft()
                self._waiting.discard(key)
                self._working.add(key)
                return key
            await self._wait()

    async def _wait(self) -> None:
        """Wait for a change or for the next delayed key."""
        self._changed.clear()
        due = self.next_due
        if due is None:
            await self._changed.wait()
            return
        sleeper = asyncio.ensure_future(self._clock.sleep(max(0.0, due - self._clock.monotonic())))
        waker = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait((sleeper, waker), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeper.cancel()
            waker.cancel()

    def done(self, key: K) -> None:
        """The work on a key has ended, well or not."""
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """No more work; whoever waits in `next` is told."""
        self._closed = True
        self._changed.set()
