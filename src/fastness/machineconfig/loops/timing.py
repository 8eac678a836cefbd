"""How long these loops wait: the constants of the field, and faster ones for simulated clusters."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds. Delays absorb bursts; the drain times are those that operators of this field know."""

    render_delay: float = 5.0
    rollout_delay: float = 5.0
    drain_delay: float = 5.0
    drain_attempt: float = 90.0
    drain_retry: float = 60.0
    drain_slow_after: float = 600.0
    drain_slow_retry: float = 300.0
    drain_failed_after: float = 3600.0
    evict_retry: float = 5.0
    prune_every: float = 600.0
    authority_quiet: float = 60.0
    streams_retry: float = 60.0


FIELD = Timing()
SIMULATED = Timing(
    render_delay=0.2, rollout_delay=0.1, drain_delay=0.05, drain_attempt=5.0, drain_retry=1.0, drain_slow_after=10.0,
    drain_slow_retry=5.0, drain_failed_after=60.0, evict_retry=0.2, prune_every=30.0, authority_quiet=1.0, streams_retry=2.0,
)  # fmt: skip
