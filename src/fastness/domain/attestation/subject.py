"""Who was proved, and what may therefore leave.

A Subject is a machine as the last appraisal of its evidence knows it. A Grant is the only thing that opens a door: it names the
subject, what it may have, the key that the answer is sealed to, the verdict it rests on, and when it ends.

* A Grant cannot be made by hand: `grant.granted` holds the one call of the constructor, and refuses a verdict that is not good.
* `basis` says why it exists; an enforcing cluster accepts `verdict` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from fastness.model.kind import JsonObject


@dataclass(frozen=True, slots=True)
class Subject:
    """A machine that enrolled, by the key that is its identity; what was proved in an older epoch counts no more."""

    machine: str
    name: str
    thumbprint: str
    pool: str
    tenant: str = ""
    simulated: bool = False
    epoch: int = 0


class Basis(StrEnum):
    """What a grant rests on."""

    VERDICT = "verdict"
    AUDIT = "audit"


@dataclass(frozen=True, slots=True)
class Grant:
    """Leave to hand one resource to one machine, sealed to one key, until a time."""

    id: str
    subject: Subject
    resource: str
    recipient: JsonObject
    verdict: str
    basis: Basis
    expires: datetime

    def live(self, now: datetime) -> bool:
        """Whether it still counts."""
        return now < self.expires
