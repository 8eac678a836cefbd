"""What the words of all doors about vendors' documents come to: the condition CollateralFresh."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from fastness.attestation.status.collateral import MOST, SILENT_AFTER, CollateralState, freshness

NOW = datetime(2026, 6, 1, tzinfo=UTC)
SOON = NOW + timedelta(days=3)


def status_and_reason(*states: CollateralState, at: datetime = NOW) -> tuple[bool | None, str]:
    condition = freshness([state.to_text(at) for state in states], NOW)
    return condition.status, condition.reason


def test_documents_that_count_are_current_and_the_first_end_is_named() -> None:
    state = CollateralState({"tdx/a": SOON, "snp/Genoa/authorities.pem": None})
    condition = freshness([state.to_text(NOW)], NOW)
    assert (condition.status, condition.reason) == (True, "Current")
    assert "2 documents" in condition.message
    assert "2026-06-04" in condition.message


def test_one_door_that_lacks_something_is_enough_to_say_so() -> None:
    lacking = CollateralState({}, {"snp/Genoa/crl.der": "it is in no directory"})
    assert status_and_reason(CollateralState({"tdx/a": SOON}), lacking) == (False, "Missing")


def test_what_ran_out_since_it_was_told_is_not_current() -> None:
    assert status_and_reason(CollateralState({"tdx/a": NOW - timedelta(seconds=1)}), at=NOW - timedelta(minutes=1)) == (
        False,
        "Expired",
    )


def test_nothing_needed_is_well_and_nothing_told_is_unknown() -> None:
    assert status_and_reason(CollateralState()) == (True, "NotNeeded")
    assert status_and_reason() == (None, "NotTold")
    assert status_and_reason(CollateralState({"tdx/a": SOON}), at=NOW - SILENT_AFTER - timedelta(seconds=1)) == (
        None,
        "NotTold",
    )


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"at":"yesterday"}', '{"at":"2026-06-01T00:00:00Z","documents":[]}']
)
def test_what_no_door_wrote_says_nothing(text: str) -> None:
    assert freshness([text], NOW).status is None


def test_a_door_with_very_many_documents_tells_those_that_end_first() -> None:
    many = {f"tdx/{number}": NOW + timedelta(days=number) for number in range(1000, 0, -1)}
    text = CollateralState(many).to_text(NOW)
    assert len(text) < 128 * MOST
    assert "2026-06-02" in freshness([text], NOW).message
