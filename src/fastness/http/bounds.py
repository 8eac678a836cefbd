"""How much a stranger may take: of memory, of descriptors, of time.

One set of bounds belongs to one listener and everything behind it, so that a test can make the waits short without waiting. Every
bound is enforced before a credential is looked at; those on connections as soon as one is accepted (`arrivals.py`).

The listeners of one process share its descriptors: each may have as many connections as leave the same for all others, so that a
flood at one door closes no other.
"""

from __future__ import annotations

import resource
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakSet

# For the store, logs, informers and what the interpreter opens: a process that cannot open a file cannot even say why.
RESERVED_DESCRIPTORS = 128


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of one listener; seconds are wall time of the loop."""

    # 20,400 silent connections once took every descriptor of a process with every door in it (decision 24).
    connections: int = 10_000
    handshakes: int = 4096  # of TLS, at once
    address_handshakes: int = 1024
    handshake_seconds: float = 10.0
    reserve: int = 32  # places beyond `connections`, for one answer each
    known_reserve: int = 512  # and for addresses that somebody proved itself from
    # A session cookie of the broker may have 12 KiB, and kubectl sends long selectors; the rest is room that costs little.
    head_bytes: int = 64 * 1024
    head_seconds: float = 20.0  # the handshake has no longer either
    body_seconds: float = 60.0
    discard_bytes: int = 1024 * 1024  # of a body that nobody wants any more
    discard_seconds: float = 5.0
    linger_seconds: float = 0.5
    keep_alive_seconds: float = 90.0
    stalled_seconds: float = 60.0  # without a byte taken by a client that has something to take
    shutdown_seconds: float = 3.0

    @property
    def descriptors(self) -> int:
        """What all of its connections take."""
        return self.connections + self.reserve + self.known_reserve

    def within(self, descriptors: int) -> Places:
        """How many connections there are of each kind where no more than so many descriptors are left."""
        room = max(1, min(self.descriptors, descriptors))
        reserve, recognised = min(self.reserve, max(1, room // 8)), min(self.known_reserve, room // 8)
        usual = max(1, room - reserve - recognised)
        return Places(usual, max(1, usual // 2), recognised, reserve)


class Places(NamedTuple):
    """Connections that may be open: as usual, of these from one address that nobody proved itself from, and in reserve."""

    usual: int
    of_one_address: int
    recognised: int
    late: int


class Share:
    """What one listener may have of the descriptors of this process, while it is open."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        _shares.add(self)
        _ask_for_room()

    @property
    def demand(self) -> int:
        """How many it would take."""
        return self._bounds.descriptors

    @property
    def places(self) -> Places:
        """How many connections fit now."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY:
            return self._bounds.within(self.demand)
        # In equal parts, whoever opened first: one door under a flood must not leave the others without descriptors.
        return self._bounds.within((soft - RESERVED_DESCRIPTORS) // len(_shares))

    def close(self) -> None:
        """Leave it to the others."""
        _shares.discard(self)


_shares: WeakSet[Share] = WeakSet()


def _ask_for_room() -> None:
    """Have the system allow what all listeners want, as far as it does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    need = sum(share.demand for share in _shares) + RESERVED_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and soft < need:
        soft = need if hard == resource.RLIM_INFINITY else min(need, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
