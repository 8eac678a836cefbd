"""How long to wait before trying again: exponential, capped, with jitter.

The delay is a pure function of the attempt and of a fraction from `Entropy`, so that a seed replays it. Half of it is fixed and
half is random: clients that failed together do not come back together, and none comes back at once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Delays that double from `first` seconds up to `most`."""

    first: float = 0.2
    most: float = 30.0

    def delay(self, attempt: int, fraction: float) -> float:
        """Seconds to wait after this many failures in a row (from 0)."""
        full = min(self.most, self.first * 2.0 ** min(attempt, 32))
        return full * (0.5 + 0.5 * fraction)
