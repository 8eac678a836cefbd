"""Whether a token still counts: its machine must still be one of ours, and nothing that it proved distrusted since.

Asked on every release and by introspection, from the cache: a quarantine, a revocation, a deletion or a Distrust stops all tokens
of the machine as soon as the cache hears of it, long before they expire.

* The epoch of a Machine rises whenever trust in it ends. A token of a lower epoch never comes to life again, also when the trust
  does; no clock is compared for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastness.cluster.clock import Clock
from fastness.cluster.informers import Informer, Informers
from fastness.domain.attestation.distrust import about_claims, about_machine
from fastness.domain.attestation.membership import Membership, membership_of
from fastness.model.trusted_execution.machine import MACHINE
from fastness.trust.distrusts import Distrusts
from fastness.trust.machines import known_machine

GRACE_SECONDS: Final = 2.0


class MachineRevocations:
    """Revocation by the state of the Machine and by what is distrusted."""

    def __init__(self, informers: Informers, clock: Clock) -> None:
        self._machines: Informer = informers.of(MACHINE.resource)
        self._distrusts = Distrusts(informers)
        self._clock = clock

    async def synced(self) -> None:
        """Wait until the state of all machines is known."""
        await self._machines.synced()
        await self._distrusts.synced()

    def revoked(self, claims: Mapping[str, Any]) -> bool:
        """Whether the machine of a token is gone, replaced, no longer approved, or distrusted."""
        now = self._clock.now()
        if self._distrusts.against(about_claims(claims), now):
            return True
        ours = claims.get("fastness")
        machine = known_machine(self._machines, str(claims.get("sub", "")))
        if machine is None:
            # It may have enrolled at another replica a moment ago; a cache that is that far behind catches up in time.
            issued = claims.get("iat")
            return not isinstance(issued, int) or now.timestamp() - issued > GRACE_SECONDS
        if not isinstance(ours, dict) or machine.metadata.uid != ours.get("machine"):
            return True
        epoch = ours.get("epoch", 0)
        if membership_of(machine) is not Membership.APPROVED or type(epoch) is not int or epoch < machine.status.epoch:
            return True
        return bool(self._distrusts.against(about_machine(machine), now))
