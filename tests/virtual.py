"""Virtual time and repeatable entropy for tests: nothing sleeps, a seed replays a run."""

from __future__ import annotations

import asyncio
import heapq
import random
from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 1, tzinfo=UTC)
TURNS = 50


class VirtualClock:
    """A clock that moves only when it is told to."""

    def __init__(self, start: datetime = START) -> None:
        self._start = start
        self._elapsed = 0.0
        self._count = 0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """The wall time."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Seconds since the start."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has been moved that far."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heapq.heappush(self._sleepers, (self._elapsed + seconds, self._count, wake))
        await wake

    async def advance(self, seconds: float) -> None:
        """Move on, waking sleepers in the order of their time and letting each do its work."""
        end = self._elapsed + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            at, _, wake = heapq.heappop(self._sleepers)
            self._elapsed = max(self._elapsed, at)
            if not wake.done():
                wake.set_result(None)
            await settle()
        self._elapsed = end
        await settle()


async def settle(turns: int = TURNS) -> None:
    """Let everything that can run, run."""
    for _ in range(turns):
        await asyncio.sleep(0)


class SeededEntropy:
    """Entropy that a seed repeats."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def token(self, length: int) -> bytes:
        """Bytes of the seed."""
        return self._random.randbytes(length)

    def uid(self) -> str:
        """A UUID of the seed."""
        text = self._random.randbytes(16).hex()
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-8{text[17:20]}-{text[20:]}"

    def fraction(self) -> float:
        """A number of the seed in [0, 1)."""
        return self._random.random()
