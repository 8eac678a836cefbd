"""Whether a machine may take part in the cluster, as its Machine says.

* A decision of an administrator stands in `spec.approval`. Approval counts only together with the condition `Approved`, which
  says that it is on the record; a quarantine counts at once, whatever the status says.
* Whatever is missing or unknown means Pending: nobody gets in by a gap.
"""

from __future__ import annotations

from enum import StrEnum

from fastness.kinds.objects import holds
from fastness.kinds.trusted_execution.machine import Machine


class Membership(StrEnum):
    """Whether a machine may take part; only Approved may attest."""

    PENDING = "Pending"
    APPROVED = "Approved"
    QUARANTINED = "Quarantined"
    REVOKED = "Revoked"


def membership_of(machine: Machine) -> Membership:
    """Whether the machine may take part."""
    if holds(machine.status.conditions, "Revoked"):
        return Membership.REVOKED
    if machine.spec.approval == Membership.QUARANTINED:
        return Membership.QUARANTINED
    approved = machine.spec.approval == Membership.APPROVED and holds(machine.status.conditions, "Approved")
    return Membership.APPROVED if approved and machine.status.key_thumbprint else Membership.PENDING
