"""How much a stranger may take: of memory, of descriptors, of time.

One set of bounds belongs to one listener and everything behind it, so that a test can make the waits short without waiting. Every
bound is enforced before a credential is looked at.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass

RESERVED_DESCRIPTORS = 128


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of one listener; seconds are wall time of the loop."""

    connections: int = 10_000
    head_bytes: int = 64 * 1024
    head_seconds: float = 20.0  # also for the handshake of TLS
    body_seconds: float = 60.0
    discard_bytes: int = 1024 * 1024  # of a body that nobody wants any more
    discard_seconds: float = 5.0
    linger_seconds: float = 0.5
    keep_alive_seconds: float = 90.0
    stalled_seconds: float = 60.0  # without a byte taken by a client that has something to take
    shutdown_seconds: float = 3.0


def descriptors_allowed(wanted: int) -> int:
    """How many connections fit, with some descriptors left for files; asks the system for room first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = wanted + RESERVED_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < need:
        soft = need if hard == resource.RLIM_INFINITY else min(need, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft - RESERVED_DESCRIPTORS))
