"""How often machines may come to enrol: what the door of enrolment is told by whoever starts it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastness.http.limits import Rate

USUAL_RATE: Final = 10.0
BURST_SECONDS: Final = 20.0
PER_ADDRESS: Final = Rate(USUAL_RATE * BURST_SECONDS, USUAL_RATE)
# Twice the rate of an address: a large site joins from more than one, with the same ticket.
PER_TICKET: Final = Rate(2 * USUAL_RATE * BURST_SECONDS, 2 * USUAL_RATE)


@dataclass(frozen=True, slots=True)
class Pace:
    """How many requests may come from one address, and with one ticket. A machine needs two."""

    address: Rate = PER_ADDRESS
    ticket: Rate = PER_TICKET

    @classmethod
    def of(cls, per_second: float) -> Pace:
        """So many a second for long from an address, with a ticket twice as many; a rack that boots may come at once."""
        ticket = 2 * per_second
        return cls(Rate(per_second * BURST_SECONDS, per_second), Rate(ticket * BURST_SECONDS, ticket))
