"""The tickets as a door knows them: from its cache, and of those that the cache does not hold, from the API.

    found = book.known(shown, pool)                 # what the cache says
    found = await book.asked(shown, pool)           # when it does not know the ticket

A machine ends at the first refusal that is final, so a door must be sure before it calls a ticket unknown. A cache is a moment
behind: somebody may make a ticket and use it within that moment. So a ticket that nobody here knows is looked up once, by a label
that every ticket of ours has; only then it is unknown.

* Strangers make up tickets, and each would cost the API a request. Lookups are bounded in number at once and per second, and one
  that found nothing is remembered for a while. Beyond the bounds the answer is to come again, not to go away.
* While the cache is cut off from the API nobody asks: it cannot be told what is there.
* A ticket without the label, written by hand, counts as soon as the caches have heard of it.
"""

from __future__ import annotations

from typing import Final

from fastness.crypto.secret import SecretText
from fastness.enrolment.live.tickets import HASH_LABEL, TicketCheck, TicketProblem, check, hash_label, well_formed
from fastness.keys.errors import TicketUnclear
from fastness.kinds.fastness_dev.join_ticket import JOIN_TICKET
from fastness.kube.errors import ApiError
from fastness.kube.informers import Informer
from fastness.kube.port import Cluster, Scope
from fastness.runtime.cache import BoundedCache
from fastness.runtime.clock import Clock

AT_ONCE: Final = 16
BURST: Final = 50.0
PER_SECOND: Final = 10.0
UNKNOWN_SECONDS: Final = 10.0
MOST_UNKNOWN: Final = 4096


class TicketCache:
    """Finds tickets."""

    def __init__(self, cluster: Cluster, tickets: Informer, clock: Clock) -> None:
        self.tickets = tickets
        self._cluster = cluster
        self._clock = clock
        self._asking = 0
        self._level, self._at = BURST, clock.monotonic()
        self._unknown = BoundedCache[str, float](MOST_UNKNOWN)

    def known(self, shown: str, pool: str | None) -> TicketCheck:
        """What the cache says about a ticket."""
        return check(shown, pool, self.tickets.list(), self._clock.now())

    async def asked(self, shown: str, pool: str | None) -> TicketCheck:
        """What cache and API say about a ticket; raises TicketUnclear when neither can tell now."""
        found = self.known(shown, pool)
        if found.problem is not TicketProblem.UNKNOWN or not well_formed(shown):
            return found
        if not self.tickets.in_touch:
            raise TicketUnclear("the cluster cannot be asked about this ticket now", "look at the API server")
        label = hash_label(SecretText(shown))
        if (self._unknown.get(label) or 0.0) > self._clock.monotonic():
            return found
        found = await self._looked_up(shown, pool, label)
        if found.problem is TicketProblem.UNKNOWN:
            self._unknown.put(label, self._clock.monotonic() + UNKNOWN_SECONDS)
        return found

    async def _looked_up(self, shown: str, pool: str | None, label: str) -> TicketCheck:
        self._take()
        self._asking += 1
        try:
            page = await self._cluster.list(JOIN_TICKET.resource, Scope(labels=f"{HASH_LABEL}={label}"))
        except ApiError as error:
            raise TicketUnclear(
                "the cluster cannot be asked about this ticket now", "look at the API server"
            ) from error
        finally:
            self._asking -= 1
        return check(shown, pool, page.items, self._clock.now())

    def _take(self) -> None:
        """Take one lookup out of the budget; raises TicketUnclear."""
        now = self._clock.monotonic()
        self._level, self._at = min(BURST, self._level + (now - self._at) * PER_SECOND), now
        if self._level < 1 or self._asking >= AT_ONCE:
            raise TicketUnclear(
                "too many tickets that nobody knows are asked about: try again in a moment", "look who floods this door"
            )
        self._level -= 1
