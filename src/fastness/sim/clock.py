"""The clock of a simulated cluster: the system's, with leaps.

    clock.leap(timedelta(minutes=45))     # three quarters of an hour pass at once, for everything that holds this clock
    clock.back(timedelta(minutes=45))     # the wall clock is set back; nobody grows younger

A leap forward is what a suspended laptop does to its programs: the time of day has moved on, and whoever slept long enough wakes
up. So proofs grow old, intervals end and documents run out as they would have. Setting the clock back only moves the time of day:
monotonic time never does.

Certificates are judged by TLS libraries with the time of the system, so leaps are bounded: beyond `FARTHEST` the doors would
renew theirs for a time that has not come.
"""

from __future__ import annotations

import asyncio
import itertools
from datetime import datetime, timedelta
from typing import Final

from fastness.runtime.clock import Clock

# Half of the life of a serving certificate (90 days): the doors renew with a third left, by a clock that TLS does not share.
FARTHEST: Final = timedelta(days=45)


class LeapingClock:
    """A clock that can be made to leap."""

    def __init__(self, real: Clock) -> None:
        self._real = real
        self._ahead = timedelta()
        self._passed = 0.0
        self._numbers = itertools.count()
        self._sleepers: dict[int, tuple[float, asyncio.Future[None]]] = {}

    @property
    def ahead(self) -> timedelta:
        """How far the time of day is ahead of the system's."""
        return self._ahead

    def now(self) -> datetime:
        """The wall time, in UTC."""
        return self._real.now() + self._ahead

    def monotonic(self) -> float:
        """Seconds that never run backwards."""
        return self._real.monotonic() + self._passed

    async def sleep(self, seconds: float) -> None:
        """Wait for so long, or until a leap has skipped it."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        loop = asyncio.get_running_loop()
        woken, number = loop.create_future(), next(self._numbers)
        end = self.monotonic() + seconds
        self._sleepers[number] = end, woken
        alarm = loop.call_later(seconds, _wake, woken)
        try:
            while True:
                await woken
                left = end - self.monotonic()
                if left <= 0:
                    return
                # A leap that was not long enough, or a timer that came a little early.
                woken = loop.create_future()
                self._sleepers[number] = end, woken
                alarm.cancel()
                alarm = loop.call_later(left, _wake, woken)
        finally:
            alarm.cancel()
            del self._sleepers[number]

    def leap(self, by: timedelta) -> None:
        """Let time pass at once; raises ValueError for one that leads too far, or back."""
        if by <= timedelta() or self._ahead + by > FARTHEST:
            raise ValueError(f"a clock leaps forward, and never further than {FARTHEST.days} days")
        self._ahead += by
        self._passed += by.total_seconds()
        now = self.monotonic()
        # Woken and not cancelled: each looks at its own end, so a leap that was too short puts it back to sleep.
        for end, woken in list(self._sleepers.values()):
            if end <= now:
                _wake(woken)

    def back(self, by: timedelta) -> None:
        """Set the time of day back, at most to the system's."""
        self._ahead = max(timedelta(), self._ahead - by)

    def resume(self, ahead: timedelta) -> None:
        """Be ahead as an earlier run was, before anybody sleeps."""
        self._ahead = min(ahead, FARTHEST)


def _wake(sleeper: asyncio.Future[None]) -> None:
    if not sleeper.done():
        sleeper.set_result(None)
