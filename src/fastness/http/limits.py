"""How much callers may take at once: each machine, each address, all strangers together, and of the costly step.

Everything is refused at once with 503 and Retry-After instead of being queued: a queue of strangers only makes everybody late,
and what a machine may see while it boots must not be final. Callers go through lanes that share nothing:

    known      a machine that proved itself: its own rate, its own share of what runs at once
    ours       administrators and our own parts
    stranger   everybody else: by address, and all of them together in a share that leaves the other lanes alone
    reading    bodies that are still on their way, so that slow senders hold nothing but their own places

* Whoever showed a wrong credential pays for it: `doubt` turns an address, and all strangers together, away before a signature is
  computed once too many of theirs were wrong. A credential that names a machine which enrolled is doubted under that machine and
  address, so that nobody else's guesses count against it. What a credential claims decides who pays, and nothing else.
* An address is what one client controls: of IPv6 the first 64 bits.
* Everybody is remembered in bounded tables, the ones least lately seen forgotten first. Time comes in; nothing here sleeps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final

from fastness.http.arrivals import network
from fastness.http.refusals import Refusal
from fastness.observe import metrics
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock

# Bounded, because whoever has many addresses fills it: the least lately seen goes, and begins with a full bucket if it returns.
MAX_BUCKETS: Final = 10_000
RETRY_SECONDS: Final = 2
# A bucket that is deeply empty would send a booting machine away for longer than its cause may last.
LONGEST_RETRY: Final = 60.0
OVERLOAD: Final = "overload"
_EVERYBODY: Final = ""


@dataclass(frozen=True, slots=True)
class Rate:
    """So many at once, and so many per second for long."""

    burst: float
    per_second: float


class Buckets:
    """Token buckets by key."""

    def __init__(self, rate: Rate, most: int = MAX_BUCKETS) -> None:
        self._rate = rate
        self._levels = BoundedCache[str, tuple[float, float]](most)

    def __len__(self) -> int:
        return len(self._levels)

    def take(self, key: str, now: float, cost: float = 1.0) -> float:
        """Take tokens: 0 when there were enough, otherwise the seconds until there will be. A refusal costs nothing."""
        level = self._level(key, now)
        # A refusal takes nothing: a client that tries again while it waits must not move its own turn away.
        short = cost - level
        self._keep(key, level if short > 0 else level - cost, now)
        return max(0.0, short / self._rate.per_second)

    def charge(self, key: str, now: float, cost: float = 1.0) -> None:
        """Take tokens that were not asked for, down to an empty bucket."""
        self._keep(key, max(0.0, self._level(key, now) - cost), now)

    def empty(self, key: str, now: float) -> bool:
        """Whether there is less than one token; looking costs nothing, and nobody is remembered for being looked at."""
        level, at = self._levels.get(key) or (self._rate.burst, now)
        return level + (now - at) * self._rate.per_second < 1

    def _level(self, key: str, now: float) -> float:
        level, at = self._levels.get(key) or (self._rate.burst, now)
        return min(self._rate.burst, level + (now - at) * self._rate.per_second)

    def _keep(self, key: str, level: float, now: float) -> None:
        self._levels.put(key, (level, now))


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one door."""

    in_flight: int = 512
    # A boot asks half a dozen times; a machine that asks twenty times a second for long is broken or taken over.
    machine: Rate = Rate(burst=200, per_second=20)
    machine_in_flight: int = 16
    strangers_in_flight: int = 256
    address: Rate = Rate(burst=2000, per_second=1000)
    address_in_flight: int = 64
    reading: int = 512
    address_reading: int = 64
    # The one step that costs processor time: certificates, quotes and a policy in another process. More at once only makes all of
    # them late.
    appraisals: int = 64
    # A rack behind one address may have stale tickets for a moment; four a second is nothing to somebody who guesses 256 bits.
    wrong: Rate = Rate(burst=40, per_second=4)
    wrong_of_all: Rate = Rate(burst=400, per_second=100)


class RateLimiter:
    """Lets requests in within the limits."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._machines = Buckets(limits.machine)
        self._addresses = Buckets(limits.address)
        self._wrong = Buckets(limits.wrong)
        self._wrong_of_all = Buckets(limits.wrong_of_all)
        # Who has something running, by lane; whoever has nothing is not in it, so the lanes' bounds are its bound.
        self._inside: dict[str, dict[str, int]] = {"known": {}, "stranger": {}, "reading": {}}
        self._running = {"known": 0, "stranger": 0, "reading": 0, "appraising": 0}

    def proven(self, thumbprint: str) -> AbstractContextManager[None]:
        """Count one request of a machine that proved itself, for the time of the block; raises Refusal."""
        return _Known(self, thumbprint)

    def begin(self, lane: str, key: str, most_of_one: int, most: int) -> None:
        """Count one more in a lane, until `end`; raises Refusal."""
        inside, running = self._inside[lane], self._running
        mine = inside.get(key, 0)
        if mine >= most_of_one or running[lane] >= most:
            raise overload(lane)
        inside[key] = mine + 1
        running[lane] += 1

    def end(self, lane: str, key: str) -> None:
        """Count one less in a lane."""
        inside = self._inside[lane]
        self._running[lane] -= 1
        left = inside[key] - 1
        if left:
            inside[key] = left
        else:
            del inside[key]

    def enter(self, thumbprint: str) -> None:
        """Count one request of a machine that proved itself, until `end` of lane `known`; raises Refusal."""
        limits = self._limits
        self.begin("known", thumbprint, limits.machine_in_flight, limits.in_flight)
        wait = self._machines.take(thumbprint, self._clock.monotonic())
        if wait:
            # Given back at once: a refusal must not hold a place until a block ends that is never entered.
            self.end("known", thumbprint)
            _paced("known", wait)

    @contextmanager
    def ours(self) -> Iterator[None]:
        """Count one request of an administrator or of a part of ours; raises Refusal."""
        with self._counted("known", _EVERYBODY, self._limits.in_flight, self._limits.in_flight):
            yield

    @contextmanager
    def stranger(self, address: str) -> Iterator[None]:
        """Count one request of somebody who proved nothing; raises Refusal."""
        limits, group = self._limits, network(address)
        with self._counted("stranger", group, limits.address_in_flight, limits.strangers_in_flight):
            _paced("stranger", self._addresses.take(group, self._clock.monotonic()))
            yield

    @contextmanager
    def reading(self, address: str) -> Iterator[None]:
        """Count one body that is still on its way; raises Refusal."""
        with self._counted("reading", network(address), self._limits.address_reading, self._limits.reading):
            yield

    @contextmanager
    def appraising(self) -> Iterator[None]:
        """Count one appraisal for the time of the block; raises Refusal."""
        if self._running["appraising"] >= self._limits.appraisals:
            raise overload("appraising")
        self._running["appraising"] += 1
        try:
            yield
        finally:
            self._running["appraising"] -= 1

    def doubt(self, address: str, thumbprint: str = "") -> None:
        """Turn away who was wrong too often, before anything is computed; raises Refusal.

        `thumbprint` is that of an enrolled machine, where the credential claims to be one's.
        """
        now, group = self._clock.monotonic(), network(address)
        if self._wrong.empty(f"{thumbprint}@{group}", now):
            raise overload("doubted")
        # A named machine is spared this bucket, or strangers' guesses would shut everybody out.
        if not thumbprint and self._wrong_of_all.empty(_EVERYBODY, now):
            raise overload("doubted")

    def wrong(self, address: str, thumbprint: str = "") -> None:
        """Count one wrong credential."""
        now = self._clock.monotonic()
        self._wrong.charge(f"{thumbprint}@{network(address)}", now)
        if not thumbprint:
            self._wrong_of_all.charge(_EVERYBODY, now)

    @contextmanager
    def _counted(self, lane: str, key: str, most_of_one: int, most: int) -> Iterator[None]:
        self.begin(lane, key, most_of_one, most)
        try:
            yield
        finally:
            self.end(lane, key)


class _Known:
    """One request of a machine that proved itself: on the way of every release, so without the cost of a generator."""

    __slots__ = ("_thumbprint", "_turnstile")

    def __init__(self, turnstile: RateLimiter, thumbprint: str) -> None:
        self._turnstile = turnstile
        self._thumbprint = thumbprint

    def __enter__(self) -> None:
        self._turnstile.enter(self._thumbprint)

    def __exit__(self, *_: object) -> None:
        self._turnstile.end("known", self._thumbprint)


def overload(lane: str, wait: float = RETRY_SECONDS) -> Refusal:
    """The refusal of whoever comes too often, or when too many come at once; it passes."""
    metrics.TURNED_AWAY.inc(lane)
    detail = "too many requests at once: try again in a moment"
    return Refusal(503, OVERLOAD, detail, retry=max(RETRY_SECONDS, math.ceil(wait)))


def _paced(lane: str, wait: float) -> None:
    if wait:
        raise overload(lane, min(wait, LONGEST_RETRY))
