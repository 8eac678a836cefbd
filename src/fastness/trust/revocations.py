"""Whether a token still counts: its machine must still be one of ours, and nothing that it proved distrusted since.

Asked on every release and by introspection, from the cache: a quarantine, a revocation, a deletion or a Distrust stops all tokens
of the machine as soon as the cache hears of it, long before they expire.

* A token that was found good is good for as long as the same Machine and the same Distrusts stand: objects in the cache are never
  changed, they are replaced, and a Distrust that stands can only end. So asking again costs three comparisons.
* The epoch of a Machine rises whenever trust in it ends. A token of a lower epoch never comes to life again, also when the trust
  does; no clock is compared for that.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from fastness.cluster.clock import Clock
from fastness.cluster.informers import Informer, Informers
from fastness.domain.attestation.distrust import Distrusted, about_claims, about_machine
from fastness.domain.attestation.membership import NAMESPACE, Membership, membership_of
from fastness.model.kind import JsonObject
from fastness.model.trusted_execution.machine import MACHINE
from fastness.trust.distrusts import Distrusts
from fastness.trust.machines import known_machine

GRACE_SECONDS: Final = 2.0
REMEMBERED: Final = 8192


class _Good(NamedTuple):
    """A token that was found good, and what was looked at."""

    claims: Mapping[str, Any]
    machine: JsonObject
    distrusts: tuple[Distrusted, ...]


class MachineRevocations:
    """Revocation by the state of the Machine and by what is distrusted."""

    def __init__(self, informers: Informers, clock: Clock) -> None:
        self._machines: Informer = informers.of(MACHINE.resource)
        self._distrusts = Distrusts(informers)
        self._clock = clock
        self._good: OrderedDict[str, _Good] = OrderedDict()

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
        return self._examined(subject, claims)

    def _examined(self, subject: str, claims: Mapping[str, Any]) -> bool:
        now = self._clock.now()
        if self._distrusts.against(about_claims(claims), now):
            return True
        ours = claims.get("fastness")
        machine = known_machine(self._machines, subject)
        if machine is None:
            # It may have enrolled at another replica a moment ago; a cache that is that far behind catches up in time.
            issued = claims.get("iat")
            return not isinstance(issued, int) or now.timestamp() - issued > GRACE_SECONDS
        if not isinstance(ours, dict) or machine.metadata.uid != ours.get("machine"):
            return True
        epoch = ours.get("epoch", 0)
        if membership_of(machine) is not Membership.APPROVED or type(epoch) is not int or epoch < machine.status.epoch:
            return True
        if self._distrusts.against(about_machine(machine), now):
            return True
        self._remember(subject, claims, machine.metadata.name)
        return False

    def _remember(self, subject: str, claims: Mapping[str, Any], name: str) -> None:
        found = self._machines.get(NAMESPACE, name)
        if found is not None:
            self._good[subject] = _Good(claims, found, self._distrusts.all)
            self._good.move_to_end(subject)
            while len(self._good) > REMEMBERED:
                self._good.popitem(last=False)
