"""Who may hold a connection, from the moment that it is accepted.

A connection costs a descriptor before anything is known of who made it: before TLS, before a byte. So each is counted here as
soon as the kernel hands it over, by the address that it came from and in all:

    unfinished   its handshake of TLS is not done. At the bound of an address, or of all, the oldest unfinished one goes, of the
                 address that has most of them: whoever says nothing makes room for whoever speaks. A real client is done in
                 milliseconds, so a flood of silent ones takes places from itself
    open         all that are there. Above the bound, or that of its address, a newcomer takes one of a few places in reserve:
    reserve        for addresses that a machine or a user proved itself from lately: a place as any other
                   for everybody else, health probes too: one answer, and the connection ends. When these places are taken the
                   oldest goes, so that a probe that is quick is answered however many others wait

An address is what one client controls: of IPv6 the first 64 bits. Nothing here does I/O but ending a connection.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from enum import Enum
from typing import Final

from fastness.http.bounds import Bounds, Places
from fastness.observe import metrics
from fastness.runtime.cache import BoundedCache

# Remembered by network, so that this many sites and not this many addresses have their place while others flood.
MOST_KNOWN: Final = 10_000
# A host has a /64 to itself (RFC 4291 §2.5.1) and may take any address in it: counted one by one it would be 2^64 clients.
_V6_NETWORK: Final = 64


class ConnectionState(Enum):
    """What a connection holds."""

    OPEN = "open"
    KNOWN = "known"
    LATE = "late"


class Arrival:
    """One connection, while it is there."""

    __slots__ = ("_arrivals", "cut", "here", "network", "place", "unfinished")

    def __init__(self, arrivals: Arrivals, network: str, place: ConnectionState, cut: Callable[[], None]) -> None:
        self._arrivals = arrivals
        self.network, self.place, self.cut = network, place, cut
        self.here = self.unfinished = True

    def finished(self) -> None:
        """Its handshake is done."""
        if self.unfinished and self.here:
            self._arrivals.shaken(self)

    def gone(self) -> None:
        """It has ended; saying so twice is saying so once."""
        if self.here:
            self._arrivals.leave(self)

    def recognised(self) -> None:
        """Somebody proved itself over it."""
        self._arrivals.recognise(self.network)

    @property
    def brief(self) -> bool:
        """Whether it is answered once and ends."""
        return self.place is ConnectionState.LATE


Held = OrderedDict[Arrival, None]


class Arrivals:
    """The connections of one listener."""

    def __init__(self, bounds: Bounds, places: Callable[[], Places]) -> None:
        self._bounds = bounds
        self._most = places
        self._unfinished: dict[str, Held] = {}
        self._shaking = 0
        self._open: dict[str, int] = {}
        self._taken = dict.fromkeys(ConnectionState, 0)
        self._late: Held = OrderedDict()
        self._known = BoundedCache[str, bool](MOST_KNOWN)

    def __len__(self) -> int:
        return sum(self._taken.values())

    @property
    def unfinished(self) -> int:
        """How many handshakes are not done."""
        return self._shaking

    def come(self, address: str, cut: Callable[[], None]) -> Arrival:
        """A place for a newcomer; others may lose theirs, and `cut` ends this one if it does."""
        group = network(address)
        mine = self._unfinished.get(group)
        # Its own bound before that of all: an address that floods pushes itself out, and nobody else.
        if mine is not None and len(mine) >= self._bounds.address_handshakes:
            self._evict(mine)
        elif self._shaking >= self._bounds.handshakes:
            self._evict(self._heaviest())
        most = self._most()
        arrival = Arrival(self, group, self._place(group, most), cut)
        if arrival.brief:
            if len(self._late) >= most.late:
                self._evict(self._late)
            self._late[arrival] = None
        self._taken[arrival.place] += 1
        self._open[group] = self._open.get(group, 0) + 1
        self._unfinished.setdefault(group, OrderedDict())[arrival] = None
        self._shaking += 1
        return arrival

    def shaken(self, arrival: Arrival) -> None:
        """The handshake of a connection is done."""
        arrival.unfinished = False
        self._shaking -= 1
        held = self._unfinished[arrival.network]
        del held[arrival]
        if not held:
            del self._unfinished[arrival.network]

    def leave(self, arrival: Arrival) -> None:
        """A connection has ended."""
        if arrival.unfinished:
            self.shaken(arrival)
        arrival.here = False
        self._taken[arrival.place] -= 1
        self._late.pop(arrival, None)
        left = self._open[arrival.network] - 1
        if left:
            self._open[arrival.network] = left
        else:
            del self._open[arrival.network]

    def recognise(self, group: str) -> None:
        """Somebody proved itself from there."""
        self._known.put(group, True)

    def _place(self, group: str, most: Places) -> ConnectionState:
        # By address, for want of anything better before TLS: a neighbour behind the same translator gets the same place.
        recognised = group in self._known
        full = self._taken[ConnectionState.OPEN] >= most.usual
        if not full and (recognised or self._open.get(group, 0) < most.of_one_address):
            return ConnectionState.OPEN
        if recognised and self._taken[ConnectionState.KNOWN] < most.recognised:
            return ConnectionState.KNOWN
        return ConnectionState.LATE

    def _heaviest(self) -> Held:
        """The unfinished ones of the address that has most of them; of known addresses only where there are no others."""
        strangers = [held for group, held in self._unfinished.items() if group not in self._known]
        # The heaviest and not the oldest of all: a flood pays for its own newcomers, and a slow honest handshake elsewhere stays.
        return max(strangers or self._unfinished.values(), key=len)

    def _evict(self, held: Held) -> None:
        oldest = next(iter(held))
        metrics.TURNED_AWAY.inc("handshake" if oldest.unfinished else "connection")
        # Counted out before it is cut: the end of the socket is told later, and the newcomer's place must be free now.
        oldest.gone()
        oldest.cut()


def network(address: str) -> str:
    """The part of an address that one client controls; text that is no address counts as itself."""
    if ":" not in address:
        return address
    try:
        parsed = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    # On a dual-stack socket an IPv4 client comes as ::ffff:a.b.c.d; all of them are in one /64.
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed.packed, _V6_NETWORK), strict=False))
