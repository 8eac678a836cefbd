"""Chips: what counts as one, who waits because of one, and what a verdict writes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from fastness.attestation.evidence.checks import Appraisal, Findings, Identity, Result
from fastness.attestation.machine.chip import (
    barring,
    chip_of,
    chip_status,
    kept_against,
    kept_bar,
    on_chip,
    waits_for_bar_alone,
    why_wait,
)
from fastness.attestation.machine.decisions import DECISIONS, DecisionState, decision_patch, standing
from fastness.attestation.machine.machine import SUPERSEDED, approval_condition, waits_for_chip
from fastness.attestation.policy.claims import TrustVector
from fastness.attestation.verdict.conclude import Conclusion, held, warned_of_chip
from fastness.attestation.verdict.dispute import HIDDEN, short
from fastness.attestation.verdict.distrust import Distrusted, read_distrust
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, view
from fastness.kinds.trusted_execution.machine import CHIP_BARRED, Machine

NOW = datetime(2026, 6, 1, tzinfo=UTC)
CHIP, OTHER = (f"snp:{digit * 128}" for digit in "ab")


def appraisal(identity: Identity | None) -> Appraisal:
    return Findings().appraisal("snp", {}, identity)


def stored(approval: str = "Approved", chip: str = "", revoked: str = "", **status: Any) -> JsonObject:
    conditions = [
        {"type": "Approved", "status": "True", "reason": "Automatic", "lastTransitionTime": "2026-06-01T00:00:00Z"}
    ]
    if revoked:
        conditions.append({**conditions[0], "type": "Revoked", "reason": revoked})
    return {
        "metadata": {"name": "machine-1", "namespace": "fastness-system", "uid": "u", "resourceVersion": "7"},
        "spec": {"id": "i", "approval": approval, **({"chip": chip} if chip else {})},
        "status": {"keyThumbprint": "sha256:1", "conditions": conditions, **status},
    }


def machine(**options: Any) -> Machine:
    return view(stored(**options), Machine)


@pytest.mark.parametrize(
    ("identity", "chip"),
    [
        (Identity("chip", "ab" * 64), f"snp:{'ab' * 64}"),
        (Identity("chip", "00" * 64), HIDDEN),
        (Identity("cloud-provider", "cloud"), HIDDEN),
        (Identity("platform-instance", "cd" * 16), f"tdx:{'cd' * 16}"),
        (Identity("platform", "cd" * 16), f"tdx:{'cd' * 16}"),
        (Identity("attestation-key", "name"), ""),
        (None, ""),
    ],
)
def test_a_cloud_and_an_id_of_zeros_are_no_chip(identity: Identity | None, chip: str) -> None:
    assert chip_of(appraisal(identity)) == chip
    assert list(on_chip({"status": {"chip": chip}})) == ([chip] if ":" in chip else [])


def test_who_bars_a_chip() -> None:
    named = Distrusted("d", "machine", "u")
    assert barring(machine()) is None
    assert barring(machine(approval="Quarantined")) == "quarantined"
    assert barring(machine(revoked="Distrusted")) == "revoked"
    assert barring(machine(revoked=SUPERSEDED)) is None
    assert barring(machine(approval="Quarantined", revoked=SUPERSEDED)) == "quarantined"
    assert barring(machine(), [named]) == "distrusted"
    assert barring(machine(), [Distrusted("d", "chipGeneration", "Milan")]) is None


def test_what_a_deleted_machine_leaves_bars_its_own_chip_and_nobody_elses() -> None:
    left = read_distrust(kept_bar(view(stored("Quarantined") | {"status": {"chip": CHIP}}, Machine)))
    assert left is not None
    assert "quarantined" in (kept_against(CHIP, [left]) or "")
    assert kept_against(OTHER, [left]) is None


def test_a_machine_whose_chip_nobody_knows_waits_for_no_place_that_somebody_left_empty() -> None:
    spec = {"machine": "u", "reason": "by hand", "bars": {"chip": ""}}
    entry = read_distrust({"metadata": {"name": "kept"}, "spec": spec})
    assert entry is not None
    assert kept_against("", [entry]) is None


def test_newcomers_wait_for_what_stands_against_a_chip_and_nobody_else() -> None:
    def waits(chip: str, against: str | None = None, **options: Any) -> bool:
        wait = why_wait(machine(**options), chip, against)
        return wait is not None and wait.chip == chip

    assert not waits(CHIP)
    assert not waits("", "x is quarantined")
    assert waits(CHIP, "x is quarantined")
    assert not waits(CHIP, "x is quarantined", lastAttested="2026-06-01T00:00:00Z")
    assert why_wait(view(stored(chip=CHIP), Machine), CHIP, "x is quarantined") is None
    attested = machine(lastAttested="2026-06-01T00:00:00Z")
    assert why_wait(attested, CHIP, "x is quarantined") is None


def test_only_an_acceptance_is_held_and_a_refusal_stays_one() -> None:
    accepted = Conclusion((), TrustVector({}), {}, "Affirmed", "", accepted=True)
    refused = Conclusion((), TrustVector({}), {}, "Refused", "policy-denied", accepted=False)
    wait = why_wait(machine(), CHIP, "x is quarantined")
    question = held(accepted, wait)
    assert (question.result, question.reason, question.accepted, question.retry) == (
        "NotAssessed", "approval-pending", False, True,
    )  # fmt: skip
    assert question.detail == "chip: chip-barred"
    assert held(refused, wait) is refused
    assert held(accepted, None) is accepted
    warned = warned_of_chip(accepted, HIDDEN)
    assert (warned.accepted, [check.result for check in warned.checks]) == (True, [Result.WARN])
    assert warned_of_chip(accepted, CHIP) is accepted


def test_a_verdict_pins_the_chip_once_or_takes_the_approval_back_once() -> None:
    wait = why_wait(machine(), CHIP, "x is quarantined")
    assert chip_status({}, CHIP, None, NOW, accepted=True) == {"chip": CHIP}
    assert chip_status({"chip": CHIP}, CHIP, None, NOW, accepted=True) == {}
    assert chip_status({"awaitedChip": CHIP}, CHIP, None, NOW, accepted=True) == {"chip": CHIP, "awaitedChip": None}
    assert chip_status({}, CHIP, None, NOW, accepted=False) == {}
    status = chip_status({"epoch": 2}, CHIP, wait, NOW, accepted=False)
    assert (status["awaitedChip"], status["epoch"], status["conditions"][0]["status"]) == (CHIP, 3, "False")
    assert chip_status(status, CHIP, wait, NOW, accepted=False) == {}


def test_an_approval_that_names_no_chip_does_not_end_the_wait() -> None:
    waiting = stored(awaitedChip=CHIP)
    waiting["status"]["conditions"] = approval_condition(waiting, NOW)
    approved = condition(waiting, "Approved")
    assert approved is not None
    assert (approved["status"], approved["reason"]) == ("False", CHIP_BARRED)
    assert waits_for_bar_alone(waiting)
    assert not waits_for_chip(stored(chip=CHIP))  # one was approved, and none is waited for
    assert not waits_for_bar_alone({**waiting, "status": {**waiting["status"], "awaitedChip": None}})
    assert standing(view(waiting, Machine), DECISIONS["approve"]) is DecisionState.OPEN
    assert standing(view(waiting, Machine), DECISIONS["release"]) is DecisionState.CLOSED
    patch = decision_patch(waiting, DECISIONS["approve"], "looked at")
    assert patch["spec"] == {"approval": "Approved", "approvalReason": "looked at", "chip": CHIP}
    assert "chip" not in decision_patch(waiting, DECISIONS["quarantine"], "no")["spec"]
    decided = {**waiting, "spec": {**waiting["spec"], **patch["spec"]}}
    assert standing(view(decided, Machine), DECISIONS["approve"]) is DecisionState.DONE
    approval = next(entry for entry in approval_condition(decided, NOW) if entry["type"] == "Approved")
    assert approval["status"] == "True"


def test_a_chip_in_a_sentence_is_short() -> None:
    assert short(CHIP) == f"chip snp:{'a' * 16}…"
    assert short(HIDDEN) == "a chip that its provider hides"
