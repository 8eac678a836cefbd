"""What a person reads first about a machine: the outcome, what decided it, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.attestation.verdict import explain as explaining
from fastness.attestation.verdict.explain import Explanation, Unproved, unproved_of
from fastness.attestation.verdict.machine_standing import machine_standing
from fastness.kinds.objects import view
from fastness.kinds.trusted_execution.machine import Machine

THUMBPRINT = f"sha256:{'a' * 64}"


def machine(attested: str = "True", reason: str = "Affirmed") -> dict[str, Any]:
    conditions = [
        {"type": "Approved", "status": "True", "reason": "Automatic", "message": ""},
        {"type": "Attested", "status": attested, "reason": reason, "message": ""},
    ]
    status = {
        "keyThumbprint": THUMBPRINT, "nodeName": "worker-a", "pool": "worker", "tee": "tdx", "simulated": True,
        "lastVerdict": "v", "lastAttested": "2026-01-01T00:00:00Z", "conditions": conditions,
    }  # fmt: skip
    return {"metadata": {"name": "machine-a"}, "spec": {"id": "x", "approval": "Approved"}, "status": status}


def verdict(result: str = "Affirmed", reason: str = "", *checks: tuple[str, str]) -> dict[str, Any]:
    check_entries = [{"name": code, "result": outcome, "code": code} for outcome, code in checks]
    subject = {"machine": "machine-a", "keyThumbprint": THUMBPRINT}
    spec = {
        "subject": subject,
        "result": result,
        "reason": reason,
        "checks": check_entries,
        "evidence": {"type": "tdx", "digest": THUMBPRINT},
    }
    return {"metadata": {"name": "v"}, "spec": spec}


def explain(body: dict[str, Any], judged: dict[str, Any], lately: Sequence[Unproved] = ()) -> Explanation:
    """As it stands a minute after its last proof, or an hour later where that is said to be old."""
    old = any(condition["reason"] == "ProofExpired" for condition in body["status"]["conditions"])
    now = datetime(2026, 1, 1, tzinfo=UTC) + (timedelta(hours=1) if old else timedelta(minutes=1))
    standing = machine_standing(view(body, Machine), now, timedelta(minutes=15))
    return explaining.explain(body, standing, judged, lately)


def codes(explanation: Explanation) -> list[str]:
    return [check.code for check in explanation.why]


def test_a_proof_that_grew_old_is_no_proof_and_says_where_to_look() -> None:
    explanation = explain(machine("False", "ProofExpired"), verdict())
    assert (explanation.attested, explanation.answer) == (False, "is no longer attested: its last proof is too old")
    assert "reaches the broker" in explanation.actions[0]


def test_a_refusal_is_told_in_the_words_of_its_verdict_and_without_one_in_those_of_the_machine() -> None:
    refused = machine("False", "TcbBehind")
    assert explain(refused, verdict("Refused", "tcb-behind", ("Fail", "tcb-behind"))).answer == "is refused: tcb-behind"
    standing = machine_standing(view(refused, Machine), datetime(2026, 1, 1, tzinfo=UTC), timedelta(minutes=15))
    assert explaining.explain(refused, standing, None).answer == "is refused: TcbBehind"


def test_the_warning_that_a_policy_refused_for_is_among_the_reasons_and_others_are_not() -> None:
    checks = (("Warn", "debug-allowed"), ("Warn", "other"), ("Fail", "policy-denied"), ("Pass", "ok"))
    explanation = explain(machine("False", "debug-allowed"), verdict("Refused", "debug-allowed", *checks))
    assert codes(explanation) == ["debug-allowed", "policy-denied"]
    assert explanation.actions == ("Start the machine without debug mode: its owner can read its memory.",)
    good = explain(machine(), verdict("Affirmed", "", ("Warn", "debug-allowed")))
    assert (codes(good), good.attested) == ([], True)


@pytest.mark.parametrize("attested", [True, False])
def test_what_was_refused_without_proof_is_told_once_by_code_and_changes_no_verdict(attested: bool) -> None:
    lately = [Unproved(f"2026-01-01T00:0{minute}:00Z", "nonce-differs") for minute in range(3)]
    judged = verdict() if attested else verdict("Refused", "value-differs", ("Fail", "value-differs"))
    explanation = explain(machine(str(attested), "Affirmed" if attested else "ValueDiffers"), judged, lately)
    assert explanation.attested is attested
    assert explanation.unproved == (lately[-1],)
    assert any("another challenge" in action for action in explanation.actions)
    assert explanation.to_json()["unproved"] == [{"time": "2026-01-01T00:02:00Z", "code": "nonce-differs"}]


def test_a_machine_whose_newer_evidence_is_refused_says_until_when_it_is_attested_still() -> None:
    body = machine()
    body["status"]["attestedUntil"] = "2026-01-01T00:30:00Z"
    explanation = explain(body, verdict(), [Unproved("2026-01-01T00:02:00Z", "nonce-differs")])
    assert explanation.answer.startswith("is still attested")
    assert explanation.answer.endswith(
        "by its last proof, until 2026-01-01T00:30:00Z; newer evidence in its name is refused: nonce-differs"
    )
    assert "still" not in explain(body, verdict()).answer
    body["status"].pop("attestedUntil")
    assert "until" not in explain(body, verdict(), [Unproved("2026-01-01T00:02:00Z", "nonce-differs")]).answer


def test_only_refusals_without_a_verdict_since_the_last_proof_count_as_unproved() -> None:
    body = machine()
    body["status"]["lastAttested"] = "2026-01-01T00:01:00Z"
    entry = {"what": "refusal", "time": "2026-01-01T00:02:00Z", "detail": {"code": "nonce-differs"}}
    others = [{**entry, "what": "release"}, {**entry, "verdict": "one"}, {**entry, "time": "2026-01-01T00:00:30Z"}]
    assert unproved_of(body, [*others, entry]) == [Unproved("2026-01-01T00:02:00Z", "nonce-differs")]
