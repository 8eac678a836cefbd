"""A mapping that forgets: the one bounded cache.

What strangers can make grow must have a bound, and so must what is remembered only to save work. What was neither put nor used
for the longest goes first.

    cache = BoundedCache[str, Config](most=64)
    cache.put(name, config)
    cache.use(name)      # its value, and it is young again: least recently used goes first
    cache.get(name)      # its value, and it ages: what was put longest ago goes first

A cache of large values is bounded by their weight besides. One value stays even if it is too heavy: it was just asked for.

`ExpiringCache` is for credentials that verified: an entry answers only between the two times it was stored with, so that a cache
cannot make a credential live longer than it says itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, ItemsView, ValuesView
from datetime import datetime
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """At most so many values, and at most so much `weight` of them if that is given."""

    __slots__ = ("_entries", "_heaviest", "_most", "_weigh", "_weight")

    def __init__(self, most: int, *, heaviest: int = 0, weigh: Callable[[V], int] | None = None) -> None:
        self._most = most
        self._heaviest, self._weigh, self._weight = heaviest, weigh, 0
        self._entries: OrderedDict[K, V] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def items(self) -> ItemsView[K, V]:
        """All keys with their values, the oldest first."""
        return self._entries.items()

    def values(self) -> ValuesView[V]:
        """All values, the oldest first."""
        return self._entries.values()

    def get(self, key: K) -> V | None:
        """The value; looking at it does not make it younger."""
        return self._entries.get(key)

    def use(self, key: K) -> V | None:
        """The value; it counts as young from now on."""
        value = self._entries.get(key)
        if value is not None:
            self._entries.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> list[tuple[K, V]]:
        """Remember a value as the youngest; returns what was forgotten to make room for it."""
        if self._weigh is not None:
            self.pop(key)
            self._weight += self._weigh(value)
        self._entries[key] = value
        self._entries.move_to_end(key)
        forgotten: list[tuple[K, V]] = []
        while len(self._entries) > self._most or (self._weight > self._heaviest and len(self._entries) > 1):
            oldest = next(iter(self._entries))
            forgotten.append((oldest, self._entries[oldest]))
            self.pop(oldest)
        return forgotten

    def pop(self, key: K) -> V | None:
        """Forget a value, and return it; None when there was none."""
        value = self._entries.pop(key, None)
        if value is not None and self._weigh is not None:
            self._weight -= self._weigh(value)
        return value

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._weight = 0


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
