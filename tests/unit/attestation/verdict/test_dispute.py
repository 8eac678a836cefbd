"""Disputes: whose evidence is not the machine's, what it leaves on the Machine, and who ends it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.attestation.machine.decisions import ChipUnclear, chip_patch, named_chip, settle_patch
from fastness.attestation.policy.claims import TrustVector
from fastness.attestation.verdict.conclude import Conclusion, disputed
from fastness.attestation.verdict.dispute import (
    HIDDEN,
    MOST_DISPUTES,
    Dispute,
    chip_dispute,
    chip_settled,
    dispute_status,
    settled,
    told_disputes,
)
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, rfc3339, view
from fastness.kinds.trusted_execution.machine import Machine

NOW = datetime(2026, 6, 1, tzinfo=UTC)
CHIP, OTHER, THIRD = (f"snp:{digit * 128}" for digit in "abc")
ACCEPTED = Conclusion((), TrustVector({}), {}, "Affirmed", "", accepted=True)
REFUSED = Conclusion((), TrustVector({}), {}, "Refused", "policy-denied", accepted=False)


def stored(chip: str = CHIP, approved: str = "", **status: Any) -> JsonObject:
    return {
        "metadata": {"name": "machine-1", "namespace": "fastness-system", "uid": "u", "resourceVersion": "7"},
        "spec": {"id": "i", "approval": "Approved", **({"chip": approved} if approved else {})},
        "status": {"keyThumbprint": "sha256:1", "conditions": [], **({"chip": chip} if chip else {}), **status},
    }


def machine(**options: Any) -> Machine:
    return view(stored(**options), Machine)


def dispute(chip: str = OTHER) -> Dispute:
    disputed = chip_dispute(machine(), chip)
    assert disputed is not None
    return disputed


@pytest.mark.parametrize(
    ("pinned", "approved", "presented", "is_disputed"),
    [
        ("", "", CHIP, False),  # the first verdict pins
        (CHIP, "", CHIP, False),
        (CHIP, "", OTHER, True),
        (CHIP, "", HIDDEN, True),  # hiding the chip is no way around it
        (HIDDEN, "", CHIP, True),
        (HIDDEN, "", HIDDEN, False),  # nothing tells two hidden chips apart
        (CHIP, OTHER, OTHER, False),
        (CHIP, OTHER, CHIP, False),  # until it has moved it may stay
        (CHIP, OTHER, THIRD, True),  # an approval is for the chip that it names
        (OTHER, OTHER, CHIP, True),  # and does not let it back
        (CHIP, "", "", False),  # evidence that shows no chip: a TPM
    ],
)
def test_evidence_of_another_chip_is_not_the_machines(
    pinned: str, approved: str, presented: str, is_disputed: bool
) -> None:
    dispute = chip_dispute(machine(chip=pinned, approved=approved), presented)
    assert (dispute is not None) == is_disputed
    if dispute is not None:
        assert (dispute.shows, dispute.against, dispute.check.code) == (presented, pinned, "chip-changed")


def test_disputed_evidence_is_never_accepted_and_bad_evidence_stays_bad() -> None:
    question = disputed(ACCEPTED, dispute())
    assert (question.result, question.reason, question.accepted, question.retry) == (
        "NotAssessed", "approval-pending", False, True,
    )  # fmt: skip
    bad = disputed(REFUSED, dispute())
    assert (bad.result, bad.reason, bad.retry, [check.code for check in bad.checks]) == (
        "Refused", "policy-denied", False, ["chip-changed"],
    )  # fmt: skip
    assert disputed(ACCEPTED, None) is ACCEPTED


def test_what_was_shown_stands_there_once_and_the_list_is_bounded() -> None:
    status: JsonObject = stored()["status"]
    first = dispute_status(status, dispute(), "verdict-1", NOW)
    assert set(first) == {"disputes", "conditions"}
    status |= first
    assert dispute_status(status, dispute(), "verdict-2", NOW) == {}
    for number in range(MOST_DISPUTES + 3):
        status |= dispute_status(status, dispute(f"snp:{number:0128x}"), "verdict", NOW)
    assert len(status["disputes"]) == MOST_DISPUTES
    assert status["disputes"][-1]["shows"].endswith(f"{MOST_DISPUTES + 2:x}")


def test_moving_to_an_approved_chip_ends_the_disputes_about_that_one() -> None:
    status: JsonObject = stored()["status"]
    for chip in (OTHER, THIRD):
        status |= dispute_status(status, dispute(chip), "verdict", NOW)
    left = chip_settled(status, OTHER, NOW)
    assert [entry["shows"] for entry in left["disputes"]] == [THIRD]
    assert "conditions" not in left
    ended = chip_settled({**status, **left}, THIRD, NOW)
    disputed = condition({"status": ended}, "Disputed")
    assert disputed is not None
    assert (ended["disputes"], disputed["status"]) == (None, "False")
    assert chip_settled({}, OTHER, NOW) == {}


def test_a_person_settles_what_there_was_to_see_and_nothing_that_comes_later() -> None:
    machine_object, later = stored(), NOW + timedelta(minutes=1)
    machine_object["status"] |= dispute_status(machine_object["status"], dispute(), "verdict", NOW)
    patch = settle_patch(machine_object, "looked at")
    assert patch is not None
    assert patch["spec"] == {"settled": rfc3339(NOW), "settledReason": "looked at"}
    machine_object["spec"] |= patch["spec"]
    assert settled(machine_object, later)["disputes"] is None
    machine_object["status"] |= dispute_status(machine_object["status"], dispute(THIRD), "verdict", later)
    assert [entry["shows"] for entry in settled(machine_object, later)["disputes"]] == [THIRD]
    # A time to come would silence what nobody has looked at.
    machine_object["spec"]["settled"] = rfc3339(later + timedelta(days=1))
    assert settled(machine_object, later) == {}
    assert settle_patch(stored(), "nothing") is None
    assert settled(stored(), NOW) == {}


def test_a_person_names_the_chip_by_its_beginning_or_as_a_whole() -> None:
    machine_object = stored()
    for chip in (OTHER, THIRD):
        machine_object["status"] |= dispute_status(machine_object["status"], dispute(chip), "verdict", NOW)
    machine = view(machine_object, Machine)
    assert named_chip(machine, OTHER[:20]) == OTHER
    unseen = f"tdx:{'d' * 32}"
    assert named_chip(machine, unseen) == unseen
    for unclear in ("snp:", OTHER[:6], f"snp:{'d' * 10}", "", "hidde"):
        with pytest.raises(ChipUnclear):
            named_chip(machine, unclear)
    assert chip_patch(machine_object, OTHER, "moved") == {
        "metadata": {"resourceVersion": "7"}, "spec": {"chip": OTHER, "chipReason": "moved"},
    }  # fmt: skip
    lines = told_disputes(machine)
    assert len(lines) == 2
    assert f"chip {OTHER[:20]}…" in lines[0]
