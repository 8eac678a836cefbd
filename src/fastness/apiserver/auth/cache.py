"""A bounded memory of credentials that verified.

Least recently used entries go first. An entry answers only between the two times it was stored with: a cache cannot make a
credential live longer than it says itself.
"""

from __future__ import annotations

from datetime import datetime
from typing import Generic, TypeVar

from fastness.runtime.cache import BoundedCache

Value = TypeVar("Value")


class ExpiringCache(Generic[Value]):
    """Values by hash, each valid from one time until another."""

    def __init__(self, capacity: int) -> None:
        self._entries = BoundedCache[bytes, tuple[Value, datetime, datetime]](capacity)

    def get(self, key: bytes, now: datetime) -> Value | None:
        """The value, when it is known and valid now."""
        entry = self._entries.use(key)
        if entry is None:
            return None
        value, since, until = entry
        if not since <= now < until:
            self._entries.pop(key)
            return None
        return value

    def put(self, key: bytes, value: Value, since: datetime, until: datetime) -> None:
        """Remember a value; the oldest makes room."""
        self._entries.put(key, (value, since, until))

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)
