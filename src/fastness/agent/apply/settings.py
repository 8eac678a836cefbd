"""How long an agent waits for what. The defaults are those that users of machine configuration know; simulations are faster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastness.runtime.backoff import Backoff

_RETRY: Final = Backoff(first=1.0, most=60.0)


@dataclass(frozen=True, slots=True)
class Settings:
    """Seconds, unless it says otherwise."""

    drain_timeout: float = 3600.0
    uncordon_timeout: float = 600.0
    retry: Backoff = _RETRY
    resync: float = 600.0
    drift_settle: float = 0.2


FAST: Final = Settings(
    drain_timeout=120.0, uncordon_timeout=60.0, retry=Backoff(0.2, 5.0), resync=60.0, drift_settle=0.02
)
