"""How often somebody may ask: token buckets by address and by ticket.

A bucket fills at a rate up to a burst; a request takes one token. The burst is what a rack that boots at once needs, the rate is
what a door can serve for long. The number of buckets is bounded: the one that was idle longest goes first, which can only be
generous to somebody who has waited.

* IPv6 addresses count by /64: a single host has that many.
* Time comes in; nothing here sleeps.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

MAX_BUCKETS: Final = 10_000
_V6_NETWORK: Final = 64


@dataclass(frozen=True, slots=True)
class Rate:
    """So many at once, and so many per second for long."""

    burst: float
    per_second: float


class Buckets:
    """Token buckets by key."""

    def __init__(self, rate: Rate, most: int = MAX_BUCKETS) -> None:
        self._rate = rate
        self._most = most
        self._kept: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, key: str, now: float, cost: float = 1.0) -> float:
        """Take tokens: 0 when there were enough, otherwise the seconds until there will be. A refusal costs nothing."""
        level, at = self._kept.pop(key, (self._rate.burst, now))
        level = min(self._rate.burst, level + (now - at) * self._rate.per_second)
        short = cost - level
        self._kept[key] = (level if short > 0 else level - cost, now)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return max(0.0, short / self._rate.per_second)

    def charge(self, key: str, now: float, cost: float) -> None:
        """Take tokens that were not asked for, down to an empty bucket."""
        level, at = self._kept.pop(key, (self._rate.burst, now))
        level = min(self._rate.burst, level + (now - at) * self._rate.per_second)
        self._kept[key] = (max(0.0, level - cost), now)


def network(address: str) -> str:
    """The part of an address that one client controls; text that is no address counts as itself."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 6:
        return str(ipaddress.ip_network((found, _V6_NETWORK), strict=False))
    return address
