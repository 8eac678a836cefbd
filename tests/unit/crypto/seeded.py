"""Entropy that repeats, and a fixed time: what the tests of keys and credentials share."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime

NOW = datetime(2026, 11, 15, 12, 0, 0, tzinfo=UTC)


class Seeded:
    """Entropy from a seed: the same in every run."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)

    def token(self, length: int) -> bytes:
        """Bytes that repeat with the seed."""
        return self._random.randbytes(length)

    def uid(self) -> str:
        """A UUID that repeats with the seed."""
        return str(uuid.UUID(bytes=self._random.randbytes(16), version=4))

    def fraction(self) -> float:
        """A number in [0, 1) that repeats with the seed."""
        return self._random.random()
