"""The newest ten verdicts of a machine stay, refusals stay for a month, and evidence stays as long as its verdict."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.verdict.retention import KEPT, REFUSALS_FOR, needed_part, next_look, superfluous, unreferenced
from fastness.kinds.objects import rfc3339

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def verdict(number: int, age: timedelta, result: str = "Affirmed") -> dict[str, Any]:
    return {
        "metadata": {"name": f"v{number}", "creationTimestamp": rfc3339(NOW - age)},
        "spec": {"result": result, "evidence": {"digest": f"sha256:{number}"}},
    }


def test_the_newest_ten_stay_whatever_they_say() -> None:
    verdicts = [verdict(number, timedelta(days=number * 40), "Refused") for number in range(KEPT)]
    assert superfluous(verdicts, NOW) == []


def test_an_eleventh_goes_when_it_is_good_and_stays_for_a_month_when_it_refuses() -> None:
    young = [verdict(number, timedelta(minutes=number)) for number in range(KEPT)]
    good, refusal = verdict(90, timedelta(days=2)), verdict(91, timedelta(days=2), "Refused")
    old = verdict(92, REFUSALS_FOR, "Refused")
    assert superfluous([*young, good, refusal, old], NOW) == ["v90", "v92"]


@given(st.lists(st.tuples(st.integers(0, 100), st.sampled_from(["Affirmed", "Refused"])), max_size=40))
def test_never_fewer_than_ten_stay_and_no_young_refusal_goes(ages: list[tuple[int, str]]) -> None:
    verdicts = [verdict(number, timedelta(days=age), result) for number, (age, result) in enumerate(ages)]
    gone = set(superfluous(verdicts, NOW))
    assert len(verdicts) - len(gone) >= min(KEPT, len(verdicts))
    for entry, (age, result) in zip(verdicts, ages, strict=True):
        if result == "Refused" and age < 30:
            assert entry["metadata"]["name"] not in gone


@given(st.lists(st.tuples(st.integers(0, 100), st.sampled_from(["Affirmed", "Refused"])), max_size=40))
def test_the_part_that_a_leader_holds_leads_to_the_same_decisions(ages: list[tuple[int, str]]) -> None:
    verdicts = [verdict(number, timedelta(days=age), result) for number, (age, result) in enumerate(ages)]
    held = [needed_part(entry) for entry in verdicts]
    assert superfluous(held, NOW) == superfluous(verdicts, NOW)
    assert next_look(held, NOW) == next_look(verdicts, NOW)


def test_what_is_held_of_a_verdict_is_without_its_checks_and_whatever_it_is_it_is_taken() -> None:
    whole = verdict(1, timedelta(0))
    whole["spec"] |= {"checks": [{"name": "pcr4"}], "subject": {"machine": "m"}}
    assert needed_part(whole) == {**whole, "spec": {"subject": {"machine": "m"}, "result": "Affirmed"}}
    assert "checks" in whole["spec"], "a copy: the object is somebody else's, too"
    for spec in ("text", None, ["list"]):
        assert needed_part({**whole, "spec": spec})["spec"] == spec


def test_the_next_look_is_when_the_oldest_refusal_is_a_month_old() -> None:
    young = [verdict(number, timedelta(minutes=number)) for number in range(KEPT)]
    assert next_look(young, NOW) is None
    assert next_look([*young, verdict(90, timedelta(days=29), "Refused")], NOW) == 86400.0


def test_evidence_without_a_verdict_goes_unless_it_was_just_written() -> None:
    blobs: list[dict[str, Any]] = [
        {"metadata": {"name": name, "creationTimestamp": rfc3339(NOW - age)}, "spec": {"digest": digest}}
        for name, age, digest in (
            ("kept", timedelta(days=9), "sha256:1"), ("gone", timedelta(days=9), "sha256:2"), ("young", timedelta(0), "sha256:3"),
        )
    ]  # fmt: skip
    assert unreferenced(blobs, [verdict(1, timedelta(0))], NOW, timedelta(minutes=10)) == ["gone"]
