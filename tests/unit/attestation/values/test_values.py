"""The book of reference values: what counts now, and who stood behind what does not."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.values.measured import is_measured
from fastness.attestation.values.values import (
    ReferenceValues,
    Validity,
    next_change,
    set_state,
    set_version,
    standing_of,
)
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339
from tests.unit.attestation.policyinputs import NOW, reference_set

IMAGE = "registry.example/os@sha256:" + "ab" * 32
HOUR = timedelta(hours=1)


def approval(image: str = IMAGE, **meta: Any) -> JsonObject:
    return {"metadata": {"name": "os", **meta}, "spec": {"image": image}}


def valid(begin: datetime | None = None, end: datetime | None = None) -> JsonObject:
    bounds = {"notBefore": begin, "notAfter": end}
    return {"validity": {name: rfc3339(moment) for name, moment in bounds.items() if moment is not None}}


def test_values_of_all_sets_are_accepted_under_one_name() -> None:
    sets = [reference_set({"tpm_pcr4": ["aa"]}, "one"), reference_set({"tpm_pcr4": ["bb", "aa"]}, "two")]
    book = ReferenceValues.of(sets, NOW)
    assert book.query("tpm_pcr4") == ["aa", "bb"]
    assert [name for name, _ in book.versions] == ["one", "two"]


def test_a_name_without_a_value_gives_nothing() -> None:
    assert ReferenceValues.of([], NOW).query("tpm_pcr4") is None
    assert ReferenceValues.of([], NOW).empty


@pytest.mark.parametrize(
    ("validity", "standing"),
    [
        (valid(), Validity.COUNTS),
        (valid(NOW - HOUR, NOW + HOUR), Validity.COUNTS),
        (valid(NOW), Validity.COUNTS),
        (valid(NOW + HOUR), Validity.NOT_YET),
        (valid(None, NOW - HOUR), Validity.EXPIRED),
        (valid(None, NOW), Validity.EXPIRED),
        ({"validity": {"notAfter": "soon"}}, Validity.UNREADABLE),
        ({"validity": {"notAfter": "2030-01-01T00:00:00"}}, Validity.UNREADABLE),
    ],
)
def test_pitfall_21_validity_is_looked_at_when_a_value_is_read(validity: JsonObject, standing: Validity) -> None:
    book = ReferenceValues.of([reference_set({"tpm_pcr4": ["aa"]}, "set", **validity)], NOW)
    assert book.query("tpm_pcr4") == (["aa"] if standing is Validity.COUNTS else None)
    owner = book.owner("tpm_pcr4", "aa")
    assert owner is not None
    assert owner.standing is standing


def test_pitfall_21_the_same_sets_give_another_book_when_time_has_passed() -> None:
    sets = [reference_set({"tpm_pcr4": ["aa"]}, **valid(NOW, NOW + HOUR))]
    assert ReferenceValues.of(sets, NOW).query("tpm_pcr4") == ["aa"]
    assert ReferenceValues.of(sets, NOW).until == NOW + HOUR
    assert ReferenceValues.of(sets, NOW + HOUR).query("tpm_pcr4") is None


def test_pitfall_21_a_withdrawn_set_gives_no_value_and_keeps_its_owner() -> None:
    gone = {"at": rfc3339(NOW - HOUR), "reason": "the approval was removed"}
    book = ReferenceValues.of([reference_set({"tpm_pcr4": ["aa"]}, withdrawn=gone)], NOW)
    assert book.query("tpm_pcr4") is None
    assert book.versions == ()
    owner = book.owner("tpm_pcr4", "aa")
    assert owner is not None
    assert (owner.standing, owner.since, owner.reason) == (
        Validity.WITHDRAWN,
        rfc3339(NOW - HOUR),
        "the approval was removed",
    )


def test_an_owner_that_counts_goes_before_one_that_was_withdrawn() -> None:
    old = reference_set({"tpm_pcr4": ["aa"]}, "a-old", withdrawn={"at": rfc3339(NOW)})
    new = reference_set({"tpm_pcr4": ["aa"]}, "b-new")
    owner = ReferenceValues.of([old, new], NOW).owner("tpm_pcr4", "aa")
    assert owner is not None
    assert (owner.set, owner.counts) == ("b-new", True)
    assert ReferenceValues.of([old, new], NOW).owner("tpm_pcr4", "cc") is None


@pytest.mark.parametrize(
    ("images", "counts"),
    [
        ([approval()], True),
        ([], False),
        ([approval("registry.example/os@sha256:" + "cd" * 32)], False),
        ([approval(deletionTimestamp=rfc3339(NOW))], False),
        ([approval(deletionTimestamp=rfc3339(NOW)), approval()], True),
    ],
    ids=["approved", "removed", "another-image", "being-deleted", "approved-twice"],
)
def test_values_of_an_image_count_only_while_it_is_approved(images: list[JsonObject], counts: bool) -> None:
    made = reference_set({"tpm_pcr4": ["aa"]}, image=IMAGE)
    made["spec"]["source"] = "image"
    assert (ReferenceValues.of([made], NOW, images).query("tpm_pcr4") == ["aa"]) is counts


def test_an_approval_is_not_asked_for_values_that_a_person_wrote() -> None:
    assert ReferenceValues.of([reference_set({"a": ["1"]})], NOW, []).query("a") == ["1"]


def typed_set(*values: JsonObject, name: str = "typed") -> JsonObject:
    return {"metadata": {"name": name}, "spec": {"source": "manual", "values": list(values)}}


def test_numbers_and_flags_keep_their_type_and_single_values_stand_alone() -> None:
    book = ReferenceValues.of(
        [
            typed_set(
                {"name": "svn", "value": "3", "type": "Number"},
                {"name": "svn", "value": "4", "type": "Number"},
                {"name": "smt", "value": "true", "type": "Boolean", "single": True},
                {"name": "abi", "value": "1", "type": "Number", "single": True},
                {"name": "text", "value": "1"},
            )
        ],
        NOW,
    )
    assert book.query("svn") == [3, 4]
    assert book.query("smt") is True
    assert book.query("abi") == 1
    assert book.query("text") == ["1"]


def test_a_flag_and_the_number_one_are_two_values() -> None:
    values = ({"name": "a", "value": "true", "type": "Boolean"}, {"name": "a", "value": "1", "type": "Number"})
    assert [repr(value) for value in ReferenceValues.of([typed_set(*values)], NOW).query("a") or ()] == ["True", "1"]


def test_sets_that_disagree_about_a_single_value_give_none() -> None:
    first = typed_set({"name": "smt", "value": "true", "type": "Boolean", "single": True}, name="one")
    two = typed_set({"name": "smt", "value": "false", "type": "Boolean", "single": True}, name="two")
    listed = typed_set({"name": "smt", "value": "true", "type": "Boolean"}, name="three")
    assert ReferenceValues.of([first, first], NOW).query("smt") is True
    assert ReferenceValues.of([first, two], NOW).query("smt") is None
    assert ReferenceValues.of([first, listed], NOW).query("smt") is None
    assert "smt" not in ReferenceValues.of([first, two], NOW).document


def test_events_explain_and_are_no_values_for_policies() -> None:
    book = ReferenceValues.of([reference_set({"event_pcr4": ["aa"], "tpm_pcr4": ["bb"]})], NOW)
    assert set(book.document) == {"tpm_pcr4"}
    assert book.owner("event_pcr4", "aa") is not None


@pytest.mark.parametrize(
    "damaged",
    [
        {},
        {"spec": None},
        {"spec": {"values": None}},
        {"spec": {"values": [None, {"name": 1, "value": "a"}, {"name": "a"}]}},
        {"spec": {"values": [], "validity": 5, "withdrawn": "yes"}},
    ],
)
def test_a_damaged_set_gives_nothing_and_breaks_nothing(damaged: JsonObject) -> None:
    assert ReferenceValues.of([{"metadata": {"name": "x"}, **damaged}], NOW).empty


def test_the_version_of_a_set_follows_from_what_it_says() -> None:
    spec = reference_set({"a": ["1"]})["spec"]
    assert set_version(spec) == set_version(dict(reversed(list(spec.items()))))
    assert set_version(spec) != set_version({**spec, "values": []})
    assert set_version(spec) != set_version({**spec, **valid(NOW)})


def test_the_state_of_a_set_is_that_of_the_value_furthest_from_current() -> None:
    def state(*states: str) -> str:
        return set_state({"values": [{"name": "a", "value": str(n), "state": s} for n, s in enumerate(states)]})

    assert state("Current") == "Current"
    assert state("Current", "Retiring") == "Retiring"
    assert state("Transition", "Retiring") == "Transition"
    assert set_state({"values": [], "withdrawn": {"at": "x"}}) == "Withdrawn"


def test_a_kind_of_evidence_that_measures_nothing_has_no_measured_values() -> None:
    assert is_measured("tpm", "tpm_pcr4")
    assert not is_measured("sample", "tpm_pcr4")
    assert not is_measured("tpm", "snp_launch_measurement")


def test_a_set_changes_by_itself_at_the_next_bound_of_its_validity() -> None:
    spec = valid(NOW - HOUR, NOW + HOUR)
    assert next_change(spec, NOW) == NOW + HOUR
    assert next_change(spec, NOW + HOUR) is None
    assert standing_of(spec, NOW + HOUR) is Validity.EXPIRED


NAMES = st.sampled_from(["a", "b", "c"])
SETS = st.lists(
    st.dictionaries(NAMES, st.lists(st.sampled_from(["1", "2", "3"]), max_size=3)).map(reference_set), max_size=3
)


@given(SETS, NAMES, st.sampled_from(["1", "9"]))
def test_adding_a_value_changes_no_other_name(sets: list[JsonObject], name: str, value: str) -> None:
    before = ReferenceValues.of(sets, NOW)
    after = ReferenceValues.of([*sets, reference_set({name: [value]}, "more")], NOW)
    assert {key: after.query(key) for key in "abc" if key != name} == {
        key: before.query(key) for key in "abc" if key != name
    }
    assert value in (after.query(name) or [])


@given(SETS)
def test_the_order_of_sets_does_not_matter(sets: list[JsonObject]) -> None:
    named = [{**entry, "metadata": {"name": f"s{number}"}} for number, entry in enumerate(sets)]
    assert ReferenceValues.of(named, NOW).digest == ReferenceValues.of(list(reversed(named)), NOW).digest
