"""Trying again: how long to wait, how long the other side asks one to wait, and the loop.

A delay is a pure function of the attempt and of a fraction from `Entropy`, so that a seed replays it. Half of it is fixed and
half is random: clients that failed together do not come back together, and none comes back at once.

`retry` knows nothing of errors. What is worth another attempt, and when to give up, is decided by the `pause` of its caller: it
returns seconds, or raises what the caller's caller is to see.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from fastness.runtime.clock import Clock

_MOST_DIGITS: Final = 5  # a day has 86400 seconds, and nobody of ours asks for more
T = TypeVar("T")
E = TypeVar("E", bound=Exception)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double from `first` seconds up to `most`."""

    first: float = 0.2
    most: float = 30.0

    def delay(self, attempt: int, fraction: float) -> float:
        """Seconds to wait after this many failures in a row (from 0)."""
        full = min(self.most, self.first * 2.0 ** min(attempt, 32))
        return full * (0.5 + 0.5 * fraction)


def retry_after(header: str | None) -> float | None:
    """The seconds of a Retry-After header (RFC 9110, 10.2.3); a date, which none of our peers sends, counts as none.

    How long is too long is for the caller to say: it is the other side's word.
    """
    if header is None or not (header.isascii() and header.isdigit()) or len(header) > _MOST_DIGITS:
        return None
    return float(header)


async def retry(
    call: Callable[[], Awaitable[T]], on: type[E] | tuple[type[E], ...], pause: Callable[[E], float], clock: Clock
) -> T:
    """What a call returns. After an error of a kind in `on` it is made again, `pause(error)` seconds later; `pause` may raise."""
    while True:
        try:
            return await call()
        except on as error:
            seconds = pause(error)
        if seconds > 0:
            await clock.sleep(seconds)
