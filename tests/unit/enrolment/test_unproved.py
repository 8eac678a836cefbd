"""Machines that proved nothing: who gives way, in which order, and who never does."""

from __future__ import annotations

from typing import Any

from fastness.attestation.machine.machine import SUPERSEDED
from fastness.enrolment.unproved import bound, counted_at_enrolment, giving_way
from fastness.kinds.kind import JsonObject

SINCE = "2026-06-01T00:00:00Z"


def machine(name: str, age: int, approval: str = "Approved", approved: str = "Automatic", **status: Any) -> JsonObject:
    conditions = [{"type": "Approved", "status": "True", "reason": approved, "lastTransitionTime": SINCE}]
    if revoked := status.pop("revoked", ""):
        conditions.append({**conditions[0], "type": "Revoked", "reason": revoked})
    return {
        "metadata": {"name": name, "creationTimestamp": f"2026-06-{age:02}T00:00:00Z"},
        "spec": {"id": "i", "approval": approval},
        "status": {"keyThumbprint": "sha256:1", "conditions": conditions, **status},
    }


def names(*machines: JsonObject) -> list[str]:
    return [machine["metadata"]["name"] for machine in giving_way(machines)]


def test_the_oldest_without_a_verdict_is_the_first() -> None:
    assert names(machine("young", 9), machine("looked-at", 1, lastVerdict="v"), machine("old", 2)) == [
        "old", "young", "looked-at",
    ]  # fmt: skip


def test_whoever_proved_something_or_must_not_be_forgotten_stays() -> None:
    certified, first_use = "ek-certificate", "trust-on-first-use"
    assert names(machine("a", 1, lastAttested=SINCE)) == []
    assert names(machine("a", 1, endorsedBy=certified)) == []
    assert names(machine("a", 1, endorsedBy=first_use)) == ["a"]
    assert names(machine("a", 1, approval="Quarantined")) == []
    assert names(machine("a", 1, revoked="Distrusted")) == []
    assert names(machine("a", 1, revoked=SUPERSEDED, endorsedBy=certified)) == ["a"]
    assert names(machine("a", 1, approved="Approved")) == []
    assert names({**machine("a", 1), "metadata": {"name": "a", "deletionTimestamp": SINCE}}) == []


def test_a_ticket_for_many_makes_room_for_many() -> None:
    assert bound(1000, 10) == 1000
    assert bound(1000, 4000) == 8000


def test_only_a_tpm_is_counted_at_enrolment() -> None:
    assert [tee for tee in ("tpm", "snp", "tdx", "az-snp-vtpm", "az-tdx-vtpm") if counted_at_enrolment(tee)] == ["tpm"]
