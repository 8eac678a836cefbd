"""Machines that never proved anything: how many there may be, and which one gives way.

Enrolment takes a guest's key on a ticket alone; only evidence shows whether there is hardware behind it. So a holder of a ticket
can make Machines without end. Their number is bounded per pool, and at the bound a newcomer takes the place of the oldest one
that proved nothing: closing the pool would let a holder of one ticket keep everybody out.

* A TPM with a certified endorsement key opened a credential, which is a proof: it does not give way.
* Nor does a Machine that a person approved, or one that must not be forgotten: quarantined, or revoked for a reason.
* Authentic evidence that was refused counts a little: such a Machine gives way after those without any.

Giving way costs a machine that is real one more enrolment, which its agent makes by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastness.attestation.machine.machine import SUPERSEDED
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, is_being_deleted, view
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kinds.trusted_execution.membership import Membership, membership_of
from fastness.kinds.trusted_execution.subject import Endorsement

# A rack or ten may wait for approval at once; a thousand objects cost the API nothing that it notices (pitfall 30).
MOST_UNPROVED: Final = 1000


def counted_at_enrolment(tee: str) -> bool:
    """Whether enrolment proves enough to count a use of the ticket; a guest's use counts at its first affirmed verdict."""
    return tee == "tpm"


def bound(most: int, uses: int) -> int:
    """How many Machines of a pool may wait for their first attestation: more where a ticket is for more."""
    # Twice, because machines that fail and come again are two: a pool of honest machines must never push itself out.
    return max(most, 2 * uses)


def giving_way(machines: Iterable[JsonObject]) -> list[JsonObject]:
    """Of Machines that never attested those that may give way, the first one first."""
    ages = [(_age(machine), machine) for machine in machines if _gives_way(machine)]
    return [machine for _, machine in sorted(ages, key=lambda entry: entry[0])]


def _gives_way(machine: Mapping[str, Any]) -> bool:
    typed = view(machine, Machine)
    if typed.status.last_attested or is_being_deleted(machine) or typed.spec.approval == Membership.QUARANTINED:
        return False
    if membership_of(typed) is Membership.REVOKED:
        return (condition(machine, "Revoked") or {}).get("reason") == SUPERSEDED
    if (condition(machine, "Approved") or {}).get("reason") == "Approved":
        return False
    # Trust on first use gives way, too: a TPM in software opens its own credentials, and there can be as many as somebody likes.
    return typed.status.endorsed_by != Endorsement.EK_CERTIFICATE


def _age(machine: Mapping[str, Any]) -> tuple[bool, str, str]:
    typed = view(machine, Machine)
    return bool(typed.status.last_verdict), typed.metadata.creation_timestamp or "", typed.metadata.name
