"""Whether a token still counts: its machine must still be one of ours.

Asked on every release and by introspection, from the cache: a quarantine, a revocation or a deletion stops all tokens of
the machine as soon as the cache hears of it, long before they expire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastness.cluster.clock import Clock
from fastness.cluster.informers import Informer, Informers
from fastness.domain.attestation.membership import Membership, membership_of
from fastness.model.trusted_execution.machine import MACHINE
from fastness.trust.machines import known_machine

GRACE_SECONDS: Final = 2.0


class MachineRevocations:
    """Revocation by the state of the Machine."""

    def __init__(self, informers: Informers, clock: Clock) -> None:
        self._machines: Informer = informers.of(MACHINE.resource)
        self._clock = clock

    async def synced(self) -> None:
        """Wait until the state of all machines is known."""
        await self._machines.synced()

    def revoked(self, claims: Mapping[str, Any]) -> bool:
        """Whether the machine of a token is gone, replaced, or no longer approved."""
        ours = claims.get("fastness")
        machine = known_machine(self._machines, str(claims.get("sub", "")))
        if machine is None:
            # It may have enrolled at another replica a moment ago; a cache that is that far behind catches up in time.
            issued = claims.get("iat")
            return not isinstance(issued, int) or self._clock.now().timestamp() - issued > GRACE_SECONDS
        if not isinstance(ours, dict) or machine.metadata.uid != ours.get("machine"):
            return True
        return membership_of(machine) is not Membership.APPROVED
