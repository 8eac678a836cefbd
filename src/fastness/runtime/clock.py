"""Time and entropy as arguments.

Nothing that decides reads a clock by itself: it is handed one, so that tests and the simulator run in virtual time and a seed
replays a run exactly.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for what is written down, monotonic time for waiting."""

    def now(self) -> datetime:
        """The wall time, in UTC."""

    def monotonic(self) -> float:
        """Seconds that never run backwards."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class Entropy(Protocol):
    """Where unpredictable bytes come from."""

    def token(self, length: int) -> bytes:
        """That many unpredictable bytes."""

    def uid(self) -> str:
        """A fresh UUID."""

    def fraction(self) -> float:
        """A number in [0, 1), for jitter."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """The wall time, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait on the running loop."""
        await asyncio.sleep(seconds)


class SystemEntropy:
    """The kernel's generator."""

    def token(self, length: int) -> bytes:
        """That many unpredictable bytes."""
        return secrets.token_bytes(length)

    def uid(self) -> str:
        """A fresh random UUID (version 4), written out by hand: a third of the cost of the library's object."""
        raw = bytearray(os.urandom(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        text = raw.hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def fraction(self) -> float:
        """A number in [0, 1)."""
        return secrets.randbits(53) / (1 << 53)
