"""The comparison itself: it sees what differs, forgives only what it must, and notices entries that nobody needs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from tests.differential.compare import Allowed, Difference, differences, side_by_side, stale, unexplained
from tests.differential.normal import normal
from tests.differential.step import Step, fill, pick

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
UID = "11111111-2222-3333-4444-555555555555"


def normalised(body: Any, **captured: str) -> Any:
    return normal({"body": body}, {"run": "d123456", **captured}, NOW)["body"]


def test_equal_answers_have_no_difference() -> None:
    assert not list(differences("s", {"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}))


def test_every_difference_is_named_by_its_path() -> None:
    occurring = list(differences("s", {"a": {"b": 1}, "c": 2}, {"a": {"b": 2}, "d": 3}))
    assert {(each.path, each.embedded, each.real) for each in occurring} == {
        ("a.b", 1, 2), ("d", "<absent>", 3), ("c", 2, "<absent>"),
    }  # fmt: skip


def test_null_absent_and_types_are_told_apart() -> None:
    assert [each.path for each in differences("s", {"a": None}, {})] == ["a"]
    assert [each.path for each in differences("s", {"a": 1}, {"a": True})] == ["a"]
    assert [each.path for each in differences("s", {"a": []}, {"a": {}})] == ["a"]


def test_lists_of_another_length_differ_as_a_whole() -> None:
    assert [each.path for each in differences("s", [1], [1, 2], "items")] == ["items"]


def test_only_listed_differences_are_forgiven() -> None:
    entry = Allowed(("a.*",), ("body.x",), "because")
    occurring = [
        Difference("a.one", "body.x", 1, 2),
        Difference("a.one", "code", 1, 2),
        Difference("b.one", "body.x", 1, 2),
    ]
    assert unexplained(occurring, [entry]) == occurring[1:]


def test_an_entry_is_stale_pattern_by_pattern() -> None:
    entry = Allowed(("a.one", "a.two"), ("body.x", "body.y"), "because")
    assert stale([Difference("a.one", "body.x", 1, 2)], [entry]) == ["a.two (because)", "body.y (because)"]


def test_identities_versions_and_times_of_today_are_forgiven() -> None:
    meta = {"uid": UID, "resourceVersion": "17", "creationTimestamp": "2026-01-02T00:00:00Z"}
    assert normalised({"metadata": meta}) == {
        "metadata": {"uid": "<uid>", "resourceVersion": "<version>", "creationTimestamp": "<now>"}
    }


def test_times_of_other_days_are_compared() -> None:
    assert normalised({"expires": "2030-01-01T00:00:00Z"}) == {"expires": "2030-01-01T00:00:00Z"}


def test_a_captured_version_is_compared_as_the_same_version() -> None:
    meta = {"uid": UID, "resourceVersion": "17"}
    assert normalised({"metadata": meta}, **{"one.version": "17"})["metadata"]["resourceVersion"] == "${one.version}"
    assert normalised({"metadata": meta}, **{"list.start": "17"})["metadata"]["resourceVersion"] == "<version>"


def test_sentences_count_only_as_being_there() -> None:
    cause = {"field": "spec.a", "reason": "FieldValueInvalid", "message": "nonsense"}
    assert normalised({"message": "no", "details": {"causes": [cause, {**cause, "message": "other"}]}}) == {
        "message": "<text>", "details": {"causes": [{**cause, "message": "<text>"}]},
    }  # fmt: skip


def test_names_of_the_run_are_forgiven_in_values_and_keys() -> None:
    assert normalised({"d123456-a": ["x-d123456"]}) == {"RUN-a": ["x-RUN"]}


def test_a_step_is_filled_with_what_was_captured() -> None:
    step = Step("s", "POST", "/x", {"metadata": {"resourceVersion": "${one.version}"}})
    assert step.content({"one.version": "5"}) == b'{"metadata": {"resourceVersion": "5"}}'
    assert fill("${unknown}", {}) == "${unknown}"
    assert pick({"items": [{"metadata": {"name": "a"}}]}, "items.0.metadata.name") == "a"
    assert pick({"items": []}, "items.0.name") is None


def test_two_answers_are_shown_side_by_side() -> None:
    table = side_by_side({"code": 1}, {"code": 2})
    assert "embedded" in table
    assert "≠" in table
