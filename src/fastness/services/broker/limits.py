"""How much callers may take at once: all together, each alone, and of the costly step.

Everything is refused at once with 503 and Retry-After instead of being queued: a queue of strangers only makes everybody late.
A caller is an address; of IPv6 the first 64 bits, because whoever has one of them has them all. Callers are remembered in a
bounded table, the ones least lately seen forgotten first.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from fastness.cluster.clock import Clock
from fastness.services.refusals import Refusal

MAX_CALLERS: Final = 16_384
RETRY_SECONDS: Final = 2


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one broker; rates are requests per second."""

    in_flight: int = 512
    appraisals: int = 64
    caller_in_flight: int = 64
    caller_rate: float = 1000.0
    caller_burst: float = 2000.0


@dataclass(slots=True)
class _Caller:
    tokens: float
    seen: float
    in_flight: int = 0


@dataclass(slots=True)
class Turnstile:
    """Lets requests in within the limits."""

    limits: Limits
    clock: Clock
    _callers: OrderedDict[str, _Caller] = field(default_factory=OrderedDict)
    _in_flight: int = 0
    _appraisals: int = 0

    @contextmanager
    def entered(self, address: str) -> Iterator[None]:
        """Count one request for the time of the block; raises Refusal."""
        caller = self._caller(_group(address))
        if self._in_flight >= self.limits.in_flight or caller.in_flight >= self.limits.caller_in_flight:
            raise _overload()
        if caller.tokens < 1:
            raise _overload()
        caller.tokens -= 1
        caller.in_flight += 1
        self._in_flight += 1
        try:
            yield
        finally:
            caller.in_flight -= 1
            self._in_flight -= 1

    @contextmanager
    def appraising(self) -> Iterator[None]:
        """Count one appraisal for the time of the block; raises Refusal."""
        if self._appraisals >= self.limits.appraisals:
            raise _overload()
        self._appraisals += 1
        try:
            yield
        finally:
            self._appraisals -= 1

    def _caller(self, group: str) -> _Caller:
        now = self.clock.monotonic()
        caller = self._callers.get(group)
        if caller is None:
            caller = self._callers[group] = _Caller(self.limits.caller_burst, now)
            if len(self._callers) > MAX_CALLERS:
                self._forget()
        else:
            self._callers.move_to_end(group)
            gained = (now - caller.seen) * self.limits.caller_rate
            caller.tokens, caller.seen = min(self.limits.caller_burst, caller.tokens + gained), now
        return caller

    def _forget(self) -> None:
        """Drop the caller least lately seen that has nothing in flight."""
        for group, caller in self._callers.items():
            if not caller.in_flight:
                del self._callers[group]
                return


def _group(address: str) -> str:
    if ":" not in address:
        return address
    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    mapped = found.ipv4_mapped
    return str(mapped) if mapped else str(int(found) >> 64)


def _overload() -> Refusal:
    return Refusal(503, "overload", "too many requests at once: try again in a moment", retry=RETRY_SECONDS)
