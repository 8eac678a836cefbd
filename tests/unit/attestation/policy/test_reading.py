"""What a policy reads: what is left out never changes an answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.policy import policy as policies
from fastness.attestation.policy.policy import BUILT_IN, Policy, built_in_text, compile_policy, default_policy
from fastness.attestation.policy.reading import Reading, reading_of
from fastness.attestation.values.values import ReferenceValues
from fastness.kinds.kind import JsonObject
from tests.unit.attestation.policyinputs import GOOD_VALUES, NOW, book, good_input, reference_set

HEAD = "package policy\nimport rego.v1\n"


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("hardware := 2 if input.a.b", {("a", "b")}),
        ('hardware := 2 if input["a-b"].c == input.d', {("a-b", "c"), ("d",)}),
        ("hardware := 2 if input.a[_].b == 1", {("a",)}),
        ("hardware := 2 if { x := input.a; x.b }", {("a",)}),
        ("import input.a as x", {("a",)}),
        ("hardware := 2", set()),
        ("hardware := 2 if myinput.a", set()),
        ("hardware := 2 if { some k; input[k] }", None),
        ('hardware := 2 if object.get(input, "a", 1)', None),
        ("hardware := 2 if input", None),
        ("# input is the claims\nhardware := 2 if input.a", None),
        ("hardware := 2 if { x with input as {} }", None),
    ],
)
def test_only_paths_that_are_written_out_are_believed(text: str, paths: set[tuple[str, ...]] | None) -> None:
    assert reading_of(text).paths == paths


@pytest.mark.parametrize(
    ("text", "names", "members"),
    [
        ('x if { input.a in query_reference_value("n") }', {"n"}, {"n"}),
        ('x if input.a in query_reference_value("n")', {"n"}, {"n"}),
        ('x if {\n  not input.a in query_reference_value("n")\n}', {"n"}, {"n"}),
        ('x if { input.a == query_reference_value("n") }', {"n"}, set()),
        ('x if { lower(input.a) in query_reference_value("n") }', {"n"}, set()),
        ('x if { 1 + input.a in query_reference_value("n") }', {"n"}, set()),
        ('x if { input.a in query_reference_value("n"); count(query_reference_value("n")) > 2 }', {"n"}, set()),
        ('x if { input.a in query_reference_value("n"); input[y] }', {"n"}, set()),
        ('x if { input.a in query_reference_value(sprintf("n%d", [1])) }', None, set()),
        ('x if { f := query_reference_value; input.a }', None, set()),
    ],
)  # fmt: skip
def test_only_names_that_are_written_out_are_believed(text: str, names: set[str] | None, members: set[str]) -> None:
    reading = reading_of(text)
    assert reading.names == (None if names is None else frozenset(names))
    assert reading.members == frozenset(members)


def test_built_in_policies_read_little() -> None:
    for tee in BUILT_IN:
        reading = reading_of(built_in_text(tee))
        assert reading.paths is not None, tee
        assert reading.names is not None, tee


def test_overlapping_paths_keep_the_larger_part() -> None:
    document = {"a": {"b": {"c": 1, "d": 2}, "e": 3}, "f": [1]}
    for paths in ([("a", "b"), ("a", "b", "c")], [("a", "b", "c"), ("a", "b")]):
        assert Reading(frozenset(paths), None).of_input(document) == {"a": {"b": {"c": 1, "d": 2}}}
    assert Reading(frozenset({("f", "x"), ("g",)}), None).of_input(document) == {"f": [1]}
    assert document == {"a": {"b": {"c": 1, "d": 2}, "e": 3}, "f": [1]}


class Whole(Policy):
    """A policy that is handed everything."""

    def __init__(self, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(policies, "reading_of", lambda _text: Reading(None, None))
            super().__init__(text)


@pytest.mark.parametrize("tee", BUILT_IN)
def test_leaving_out_changes_no_answer(tee: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, narrow = Whole(built_in_text(tee), monkeypatch), default_policy(tee)
    values = {name: [*listed, "f" * 64, "0"] for name, listed in GOOD_VALUES[tee].items()}

    @given(st.data())
    def search(data: st.DataObject) -> None:
        document = good_input(tee)
        part = data.draw(st.sampled_from(sorted(document)))
        if isinstance(document[part], dict) and document[part]:
            name = data.draw(st.sampled_from(sorted(document[part])))
            changed: Any = data.draw(st.sampled_from([None, "", 0, False, True, "f" * 64, [], {}, "0" * 96]))
            document[part] = {**document[part], name: changed}
        references = book(dict(data.draw(st.lists(st.sampled_from(sorted(values.items()))))) | {"more": ["1"]})
        assert narrow.evaluate(document, references) == whole.evaluate(document, references)
        assert narrow.recall(document, references) == whole.evaluate(document, references)

    search()


SCALARS: list[Any] = [0, 1, 1.0, 2, True, False, None, "1", "true", "", "a"]


@given(st.sampled_from(SCALARS), st.lists(st.sampled_from([value for value in SCALARS if value is not None])))
def test_membership_means_the_same_as_in_rego(claim: Any, listed: list[Any]) -> None:
    policy = compile_policy(HEAD + 'hardware := 2 if input.a in query_reference_value("n")\n')
    references = ReferenceValues({"n": listed}, {}, (), None)
    same = any(type(claim) is type(value) and claim == value for value in listed) or (
        not isinstance(claim, bool) and any(not isinstance(value, bool) and claim == value for value in listed)
    )
    assert (policy.evaluate({"a": claim}, references).value("hardware") == 2) is same


def test_an_answer_from_memory_follows_the_values_and_the_claims() -> None:
    policy = compile_policy(HEAD + 'hardware := 2 if input.a in query_reference_value("n")\n')
    for _ in range(2):
        assert policy.recall({"a": "1"}, book({"n": ["1"]})).value("hardware") == 2
        assert policy.recall({"a": "1"}, book({"n": ["2"]})).value("hardware") == 0
        assert policy.recall({"a": "2"}, book({"n": ["1"]})).value("hardware") == 0
        assert policy.recall({"a": "1", "b": 7}, book({"n": ["1"]})).value("hardware") == 2


def test_memory_is_bounded() -> None:
    policy = compile_policy(HEAD + "hardware := 2 if input.a == 5\n")
    for number in range(policies.MAX_REMEMBERED + 10):
        policy.recall({"a": number}, book({}))
    assert len(policy._vectors) <= policies.MAX_REMEMBERED


def test_a_policy_that_reads_the_clock_is_asked_every_time() -> None:
    policy = compile_policy(HEAD + "hardware := 2 if { input.a; time.now_ns() > 0 }\n")
    assert policy.recall({"a": 1}, book({})).value("hardware") == 2
    assert policy._vectors == {}


def test_values_of_an_expired_set_are_gone_from_memory_too() -> None:
    policy = compile_policy(HEAD + 'hardware := 2 if input.a in query_reference_value("n")\n')
    sets: list[JsonObject] = [reference_set({"n": ["1"]}, "s", validity={"notAfter": "2027-01-01T00:00:00Z"})]
    assert policy.recall({"a": "1"}, ReferenceValues.of(sets, NOW)).value("hardware") == 2
    later = NOW.replace(year=2028)
    assert policy.recall({"a": "1"}, ReferenceValues.of(sets, later)).value("hardware") == 0
