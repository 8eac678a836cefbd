"""Time that passes only when somebody sleeps, and entropy that is always the same."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class VirtualClock:
    """A clock whose sleeps take no time and are remembered."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        """The wall time, in UTC."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        """Let others run, and let the time pass."""
        self.slept.append(seconds)
        self.seconds += seconds
        await asyncio.sleep(0)


class FixedEntropy:
    """The middle of everything."""

    def token(self, length: int) -> bytes:
        """Zeros."""
        return bytes(length)

    def uid(self) -> str:
        """Always the same."""
        return "00000000-0000-4000-8000-000000000000"

    def fraction(self) -> float:
        """A half."""
        return 0.5
