"""One rule of what can be decided about a machine, for the command line and the page."""

from __future__ import annotations

import pytest

from fastness.attestation.machine.decisions import (
    DECISIONS,
    DecisionState,
    decision_patch,
    open_decisions,
    standing,
    way_out,
)
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import Machine

OPEN, DONE, CLOSED = DecisionState.OPEN, DecisionState.DONE, DecisionState.CLOSED


def machine(approval: str, *conditions: str) -> JsonObject:
    """A Machine with a decision and the conditions that are true."""
    return {
        "metadata": {"name": "machine-one", "resourceVersion": "7"}, "spec": {"id": "x", "approval": approval},
        "status": {
            "keyThumbprint": "sha256:" + "ab" * 32,
            "conditions": [{"type": kind, "status": "True", "reason": "Because"} for kind in conditions],
        },
    }  # fmt: skip


TABLE = [
    (machine("Pending"), {"approve": OPEN, "release": CLOSED, "quarantine": OPEN}),
    (machine("Approved"), {"approve": DONE, "release": DONE, "quarantine": OPEN}),
    (machine("Approved", "Approved"), {"approve": DONE, "release": DONE, "quarantine": OPEN}),
    (machine("Quarantined", "Approved"), {"approve": CLOSED, "release": OPEN, "quarantine": DONE}),
    (machine("Approved", "Revoked"), {"approve": CLOSED, "release": CLOSED, "quarantine": OPEN}),
    (machine("Pending", "Revoked"), {"approve": CLOSED, "release": CLOSED, "quarantine": OPEN}),
    (machine("Quarantined", "Revoked"), {"approve": CLOSED, "release": CLOSED, "quarantine": DONE}),
    (machine("Nonsense"), {"approve": OPEN, "release": CLOSED, "quarantine": OPEN}),
]


@pytest.mark.parametrize(("machine_object", "expected"), TABLE)
def test_every_state_has_its_decisions(machine_object: JsonObject, expected: dict[str, DecisionState]) -> None:
    machine = view(machine_object, Machine)
    assert {verb: standing(machine, decision) for verb, decision in DECISIONS.items()} == expected
    assert [decision.verb for decision in open_decisions(machine)] == [
        verb for verb in DECISIONS if expected[verb] is OPEN
    ]


def test_a_decision_is_written_on_the_version_that_was_judged() -> None:
    patch = decision_patch(machine("Pending"), DECISIONS["quarantine"], "stolen")
    assert patch == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"approval": "Quarantined", "approvalReason": "stolen"},
    }
    assert decision_patch(machine("Pending"), DECISIONS["approve"], "")["spec"]["approvalReason"] is None


@pytest.mark.parametrize(
    ("machine_object", "words"),
    [
        (machine("Quarantined"), "machine release"),
        (machine("Approved", "Revoked"), "enrol anew"),
        (machine("Pending"), "Only a quarantined machine"),
    ],
)
def test_what_is_closed_has_a_way_out(machine_object: JsonObject, words: str) -> None:
    assert words in way_out(view(machine_object, Machine))
