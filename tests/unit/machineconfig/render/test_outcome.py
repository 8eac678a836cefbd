"""The conditions of a KubeletConfig: the last three outcomes, and the last one in the older form."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from fastness.kinds.kind import JsonObject
from fastness.machineconfig.render.outcome import outcome_conditions

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def after(*problems: str) -> list[JsonObject]:
    """The conditions after these outcomes, a minute apart."""
    conditions: list[JsonObject] = []
    for minute, problem in enumerate(problems):
        conditions = outcome_conditions(conditions, problem, NOW + timedelta(minutes=minute))
    return conditions


def short(conditions: list[JsonObject]) -> list[tuple[str, str, str]]:
    return [(entry["type"], entry["status"], entry["message"]) for entry in conditions]


def test_a_good_spec_is_accepted_and_a_success() -> None:
    assert short(after("")) == [("Accepted", "True", "Success"), ("Success", "True", "Success")]


def test_a_bad_spec_says_why_twice() -> None:
    assert short(after("no")) == [("Accepted", "False", "Error: no"), ("Failure", "True", "Error: no")]


def test_three_outcomes_are_kept_oldest_first_and_one_in_the_older_form() -> None:
    assert short(after("a", "", "b", "", "c")) == [
        ("Accepted", "False", "Error: b"),
        ("Accepted", "True", "Success"),
        ("Accepted", "False", "Error: c"),
        ("Failure", "True", "Error: c"),
    ]


def test_the_same_outcome_again_changes_nothing() -> None:
    assert after("", "", "") == after("")
    assert after("a", "a") == after("a")
    assert after("a", "b") != after("a")


def test_conditions_of_others_stay() -> None:
    other = {"type": "Mine", "status": "True"}
    assert outcome_conditions([other], "", NOW)[0] == other
