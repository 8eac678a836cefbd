"""Whether a token still counts: its machine must still be one of ours, and nothing that it proved distrusted since.

`revoked` answers from the caches, on every release and for introspection: a quarantine, a revocation, a deletion or a Distrust
stops all tokens of the machine as soon as they hear of it, long before they expire. `ended` reads the Machine at the API itself,
once for each release, just before the bytes leave: caches are always a little late, and sometimes much. Whether the caches can be
believed at all is asked elsewhere (`trust.touch`).

* A token that was found good is good for as long as the same Machine and the same Distrusts stand: objects in the cache are never
  changed, they are replaced, and a Distrust that stands can only end. So asking again costs three comparisons.
* The epoch of a Machine rises whenever trust in it ends. A token of a lower epoch never comes to life again, also when the trust
  does; no clock is compared for that.
* What the API said and the cache does not know yet is remembered until the cache says something else: a machine that is found out
  costs one read, not one for each time that it asks.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeVar

from fastness.cluster.clock import Clock
from fastness.cluster.errors import ApiError
from fastness.cluster.informers import Informer, Informers
from fastness.cluster.port import Cluster
from fastness.domain.attestation.distrust import Distrusted, about_claims, about_machine
from fastness.domain.attestation.membership import NAMESPACE, Membership, membership_of
from fastness.model.kind import JsonObject
from fastness.model.trusted_execution.machine import MACHINE, Machine
from fastness.trust.distrusts import Distrusts
from fastness.trust.errors import CannotKnow
from fastness.trust.machines import find_machine, known_machine

GRACE_SECONDS: Final = 2.0
ASK_SECONDS: Final = 3.0
REMEMBERED: Final = 8192
V = TypeVar("V")


class _Good(NamedTuple):
    """A token that was found good, and what was looked at."""

    claims: Mapping[str, Any]
    machine: JsonObject
    distrusts: tuple[Distrusted, ...]


class MachineRevocations:
    """Revocation by the state of the Machine and by what is distrusted."""

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self._cluster = cluster
        self._machines: Informer = informers.of(MACHINE.resource)
        self._distrusts = Distrusts(informers)
        self._clock = clock
        self._good: OrderedDict[str, _Good] = OrderedDict()
        # Whose trust has ended at the API, and what the cache held then.
        self._ahead: OrderedDict[str, tuple[Any, JsonObject | None]] = OrderedDict()

    async def synced(self) -> None:
        """Wait until the state of all machines is known."""
        await self._machines.synced()
        await self._distrusts.synced()

    def enrolled(self, thumbprint: str) -> bool:
        """Whether the cache knows a machine with this key."""
        return known_machine(self._machines, thumbprint) is not None

    def revoked(self, claims: Mapping[str, Any]) -> bool:
        """Whether the machine of a token is gone, replaced, no longer approved, or distrusted."""
        subject = str(claims.get("sub", ""))
        good = self._good.get(subject)
        if good is not None and good.claims is claims and good.distrusts is self._distrusts.all:
            meta = good.machine["metadata"]
            if self._machines.get(NAMESPACE, meta["name"]) is good.machine:
                return False
        return self._ended_at_the_api(subject, claims) or self._examined(subject, claims)

    async def ended(self, claims: Mapping[str, Any]) -> bool:
        """Whether the machine of a token is gone, replaced or no longer approved, as the API says now; raises CannotKnow."""
        subject = str(claims.get("sub", ""))
        try:
            async with asyncio.timeout(ASK_SECONDS):
                machine = await find_machine(self._cluster, subject)
        except (ApiError, TimeoutError) as error:
            raise CannotKnow("the API does not answer for this machine", "Look at the API server.") from error
        if machine is not None and _counts(machine, claims):
            return bool(self._distrusts.against(about_machine(machine), self._clock.now()))
        self._good.pop(subject, None)
        _put(self._ahead, subject, (claims.get("fastness"), self._cached(subject)))
        return True

    def _ended_at_the_api(self, subject: str, claims: Mapping[str, Any]) -> bool:
        found = self._ahead.get(subject)
        if found is None or found[0] != claims.get("fastness"):
            return False
        if found[1] is self._cached(subject):
            return True
        del self._ahead[subject]
        return False

    def _cached(self, subject: str) -> JsonObject | None:
        known = known_machine(self._machines, subject)
        return self._machines.get(NAMESPACE, known.metadata.name) if known is not None else None

    def _examined(self, subject: str, claims: Mapping[str, Any]) -> bool:
        now = self._clock.now()
        if self._distrusts.against(about_claims(claims), now):
            return True
        machine = known_machine(self._machines, subject)
        if machine is None:
            # It may have enrolled at another replica a moment ago; a cache that is that far behind catches up in time.
            issued = claims.get("iat")
            return not isinstance(issued, int) or now.timestamp() - issued > GRACE_SECONDS
        if not _counts(machine, claims):
            return True
        if self._distrusts.against(about_machine(machine), now):
            return True
        self._remember(subject, claims, machine.metadata.name)
        return False

    def _remember(self, subject: str, claims: Mapping[str, Any], name: str) -> None:
        found = self._machines.get(NAMESPACE, name)
        if found is not None:
            _put(self._good, subject, _Good(claims, found, self._distrusts.all))


def _counts(machine: Machine, claims: Mapping[str, Any]) -> bool:
    """Whether a token is of this very machine, of its present epoch, and the machine is approved."""
    ours = claims.get("fastness")
    if not isinstance(ours, dict) or machine.metadata.uid != ours.get("machine"):
        return False
    epoch = ours.get("epoch", 0)
    return membership_of(machine) is Membership.APPROVED and type(epoch) is int and epoch >= machine.status.epoch


def _put(table: OrderedDict[str, V], key: str, value: V) -> None:
    """Remember, and forget those that were remembered longest ago."""
    table[key] = value
    table.move_to_end(key)
    while len(table) > REMEMBERED:
        table.popitem(last=False)
