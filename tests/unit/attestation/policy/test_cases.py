"""Trying policies: cases are run as they say, and a policy that accepts nothing at all is refused."""

from __future__ import annotations

import pytest

from fastness.attestation.policy.cases import NOTHING, Trial, proven_by_nothing, try_policy
from fastness.attestation.policy.policy import BUILT_IN, built_in_text
from fastness.kinds.kind import JsonObject
from tests.unit.attestation.policyinputs import GOOD_VALUES, good_input

HEAD = "package policy\nimport rego.v1\n"
SIMPLE = HEAD + 'default hardware := 97\nhardware := 2 if input.a in query_reference_value("a")\n'


def spec(rego: str = SIMPLE, target: str = "nvidia", *cases: JsonObject) -> JsonObject:
    return {"for": target, "rego": rego, "cases": list(cases)}


def case(expect: str, **more: object) -> JsonObject:
    return {"name": "c", "input": {"a": 1}, "expect": expect, **more}


@pytest.mark.parametrize("tee", BUILT_IN)
def test_built_in_policies_pass_a_trial_with_good_and_bad_machines(tee: str) -> None:
    good = {"name": "good", "input": good_input(tee), "data": GOOD_VALUES[tee], "expect": "Affirmed"}
    bad = {"name": "no values", "input": good_input(tee), "data": {}, "expect": "Refused"}
    trial = try_policy(spec(built_in_text(tee), tee, good, bad))
    assert trial.good, trial
    assert trial.passed == "2/2"


def test_a_case_that_fails_says_what_came_out() -> None:
    wrong = case("Refused", data={"a": [1]}, expectVector={"hardware": 3, "file_system": 0})
    trial = try_policy(spec(SIMPLE + "configuration := 2\n", "nvidia", wrong))
    assert not trial.good
    assert trial.passed == "0/1"
    assert trial.failed[0].detail == "the result is Affirmed, expected Refused; hardware is 2, expected 3"


def test_a_case_that_ends_in_an_error_says_why() -> None:
    trial = try_policy(spec(HEAD + 'hardware := 2 if not to_number("five") == 1\n', "snp", case("Affirmed")))
    assert "built-in function" in trial.failed[-1].detail


def test_a_text_that_is_no_policy_has_an_error_and_no_results() -> None:
    trial = try_policy(spec("package policy\nhardware := {"))
    assert (trial.parsed, trial.good, trial.results) == (False, False, ())
    assert trial.code == "policy-unreadable"


def test_pitfall_2_a_policy_that_accepts_a_machine_which_showed_nothing_is_refused() -> None:
    generous = HEAD + "hardware := 2\nexecutables := 3\nconfiguration := 2\ninstance_identity := 2\n"
    trial = try_policy(spec(generous, "snp"))
    assert [result.name for result in trial.failed] == [NOTHING]


def test_pitfall_2_a_resource_policy_that_allows_everybody_is_refused() -> None:
    trial = try_policy(spec(HEAD + "allow := true\n", "pool/*/*"))
    assert trial.parsed
    assert [result.name for result in trial.failed] == [NOTHING]


def test_a_resource_policy_is_tried_with_requests() -> None:
    text = HEAD + 'default allow := false\nallow if { data["resource-path"][1] == "worker"; input.sub == "me" }\n'
    request = {"plugin": "resource", "resource-path": ["pool", "worker", "key"]}
    good = {"name": "mine", "input": {"sub": "me"}, "data": request, "expect": "Affirmed"}
    bad = {"name": "other", "input": {"sub": "you"}, "data": request, "expect": "Refused"}
    assert try_policy(spec(text, "pool/*/*", good, bad)).good
    assert not try_policy(spec(text, "pool/*/*", {**good, "data": {}})).good


def test_a_trial_survives_the_way_between_processes() -> None:
    trial = try_policy(spec(SIMPLE, "nvidia", case("Refused"), case("Affirmed")))
    assert Trial.from_json(trial.as_json()) == trial


@pytest.mark.parametrize("damaged", [{}, {"for": "snp"}, {"for": 1, "rego": None, "cases": [None, 1]}])
def test_a_damaged_spec_is_a_trial_that_fails(damaged: JsonObject) -> None:
    assert not try_policy(damaged).good


@pytest.mark.parametrize(
    ("cases", "good"),
    [
        ((), False),
        ((case("Affirmed", data={"a": [1]}),), False),
        ((case("Affirmed", data={"a": [1]}), case("NotAffirmed", name="other")), True),
        ((case("NotAffirmed"),), True),
    ],
)
def test_a_policy_counts_only_with_a_case_that_it_refuses(cases: tuple[JsonObject, ...], good: bool) -> None:
    trial = try_policy(spec(SIMPLE + "configuration := 2\n", "nvidia", *cases))
    assert (trial.failed, trial.refuses, trial.good) == ((), good, good)


@pytest.mark.parametrize("target", ["tpm", "*/*/*"])
def test_the_case_for_those_who_cannot_write_any_refuses_who_shows_nothing(target: str) -> None:
    rego = HEAD + ("hardware := 97\n" if target == "tpm" else "allow if input.sub\n")
    trial = try_policy({"for": target, "rego": rego, "cases": [proven_by_nothing(target)]})
    assert (trial.good, trial.passed) == (True, "1/1")


def test_every_case_is_announced_so_that_each_has_its_own_bound() -> None:
    announced = list[int]()
    try_policy(spec(SIMPLE, "snp", case("NotAffirmed"), case("NotAffirmed", name="d")), lambda: announced.append(1))
    assert len(announced) == 3
