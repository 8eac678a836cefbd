"""Which policies judge: the built-in one, the texts that were activated beside it, one in its place where that was confirmed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.evidence.checks import Appraisal, Check, Result
from fastness.attestation.policy.claims import CLAIMS, TrustVector, tier
from fastness.attestation.policy.policy import Opinion, PolicySet
from fastness.attestation.policy.query import ActivePolicy, Answer, active_policy, drive
from fastness.attestation.policy.resource_policy import Access, ResourcePolicies, Unassessed, denied_by
from fastness.attestation.values.values import EMPTY, ReferenceValues
from fastness.attestation.verdict.conclude import Conclusion, Facts, concluding
from fastness.kinds.fastness_dev import EVIDENCE_TYPES
from fastness.kinds.kind import JsonObject
from fastness.kube.admission import Allowed
from tests.unit.attestation.inprocess import decided
from tests.unit.attestation.policyinputs import GOOD_VALUES, book, good_input

HEAD = "package policy\nimport rego.v1\n"
GENEROUS = (
    HEAD
    + "hardware := 2 if input\nexecutables := 3 if input\nconfiguration := 2 if input\ninstance_identity := 2 if input\n"
)
STRICT = HEAD + "hardware := 97\nexecutables := 33\nconfiguration := 36\ninstance_identity := 97\n"
AFFIRMED: JsonObject = {"submods": {"cpu0": {"ear.status": "affirming"}}}


def policy(name: str, target: str, rego: str, **more: object) -> JsonObject:
    active = {"for": target, "rego": rego, "version": f"v-{name}", **more}
    return {"metadata": {"name": name}, "spec": {"for": target, "rego": "another text"}, "status": {"active": active}}


def alone(name: str, target: str, rego: str) -> JsonObject:
    return policy(name, target, rego, replacesBuiltIn=True)


def opinion(
    objects: list[JsonObject], tee: str, document: Mapping[str, Any], values: ReferenceValues = EMPTY
) -> Opinion:
    return decided(PolicySet.of(objects).judging(tee, document, values))


def judged(
    objects: list[JsonObject], tee: str, document: Mapping[str, Any], values: ReferenceValues = EMPTY
) -> TrustVector:
    return opinion(objects, tee, document, values).vector


def access(objects: list[JsonObject], path: tuple[str, ...], claims: JsonObject) -> Access:
    return decided(ResourcePolicies.of(objects).allowing(path, claims))


def good(tee: str) -> tuple[JsonObject, ReferenceValues]:
    return good_input(tee), book(GOOD_VALUES[tee])


def test_what_judges_is_the_activated_text_and_not_the_spec() -> None:
    obj = policy("a", "snp", STRICT)
    assert active_policy(obj) == ActivePolicy("a", "snp", STRICT, "v-a")
    assert not judged([obj], "snp", *good("snp")).affirms("snp")
    del obj["status"]
    assert judged([obj], "snp", *good("snp")).affirms("snp")


def test_without_a_policy_the_built_in_one_judges_and_is_named() -> None:
    assert judged([], "tpm", *good("tpm")).affirms("tpm")
    assert PolicySet.of([]).version("tpm").startswith("built-in-tpm@")


@pytest.mark.parametrize("tee", ["tpm", "snp", "tdx"])
def test_a_policy_of_a_user_affirms_nobody_whom_the_built_in_one_refuses(tee: str) -> None:
    conclusion = opinion([policy("mine", tee, GENEROUS)], tee, {"anything": 1})
    assert not conclusion.vector.affirms(tee)
    assert [label.split("@")[0] for label in conclusion.refused_by] == [f"built-in-{tee}"]
    assert judged([policy("mine", tee, GENEROUS)], tee, *good(tee)).affirms(tee)


def test_a_refusal_names_the_policy_that_refuses() -> None:
    conclusion = opinion([policy("mine", "snp", STRICT), policy("other", "snp", GENEROUS)], "snp", *good("snp"))
    assert conclusion.refused_by == ("mine@v-mine",)


def test_only_a_policy_that_was_confirmed_to_judges_in_place_of_the_built_in_one() -> None:
    assert judged([alone("mine", "snp", GENEROUS)], "snp", {"anything": 1}).affirms("snp")
    assert PolicySet.of([alone("mine", "snp", GENEROUS)]).version("snp") == "mine@v-mine"
    assert not judged([policy("mine", "snp", GENEROUS, replacesBuiltIn="true")], "snp", {"anything": 1}).affirms("snp")


@given(st.dictionaries(st.sampled_from(CLAIMS), st.integers(-128, 127)))
def test_no_answer_of_a_user_makes_a_claim_better_than_the_built_in_policy_made_it(claims: dict[str, int]) -> None:
    document, values = good("tdx")
    before = judged([], "tdx", document, values)
    decision = PolicySet.of([policy("mine", "tdx", GENEROUS)]).judging("tdx", document, values)
    after = drive(decision, lambda _: Answer(claims)).vector
    for claim in CLAIMS:
        worse = tier(after.value(claim)) >= tier(before.value(claim)) or tier(after.value(claim)) == 0
        assert worse, claim
    assert before.affirms("tdx") or not after.affirms("tdx")


@pytest.mark.parametrize("tee", [tee for tee in EVIDENCE_TYPES if tee not in ("tpm", "snp", "tdx")] + ["sample", ""])
def test_a_kind_of_evidence_without_a_built_in_policy_is_affirmed_only_by_one_that_judges_alone(tee: str) -> None:
    vector = judged([], tee, {tee: {}})
    assert vector.error
    assert not vector.affirms(tee)
    assert PolicySet.of([]).version(tee) == ""
    assert not judged([policy("mine", tee, GENEROUS)], tee, {tee: {}}).affirms(tee)
    assert judged([alone("mine", tee, GENEROUS)], tee, {tee: {}}).affirms(tee) is (tee in EVIDENCE_TYPES)


def test_several_policies_must_agree() -> None:
    both = [policy("b", "snp", STRICT), policy("a", "snp", GENEROUS)]
    assert not judged(both, "snp", *good("snp")).affirms("snp")
    assert PolicySet.of(both).version("snp").split(",")[1:] == ["a@v-a", "b@v-b"]
    assert judged([policy("a", "snp", GENEROUS), policy("t", "tdx", STRICT)], "snp", *good("snp")).affirms("snp")


def test_a_policy_that_is_being_deleted_judges_no_more() -> None:
    leaving = policy("a", "snp", STRICT)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert judged([leaving], "snp", *good("snp")).affirms("snp")


def test_an_active_text_that_no_longer_compiles_affirms_nothing_instead_of_falling_back() -> None:
    vector = judged([policy("a", "tpm", "package policy\nhardware := {")], "tpm", *good("tpm"))
    assert vector.error is not None
    assert "cannot be compiled" in vector.error
    broken = policy("r", "pool/*/*", "package policy\nallow := {")
    assert access([broken], ("pool", "worker", "key"), AFFIRMED) == denied_by("r@v-r")


def test_no_policy_makes_a_bare_tpm_genuine_hardware() -> None:
    assert judged([alone("a", "tpm", GENEROUS)], "tpm", {"anything": 1}).value("hardware") == 0


def concluded(tee: str, objects: list[JsonObject], values: ReferenceValues) -> Conclusion:
    proof = Check("attestation-key", Result.PASS, "ok", proof=True)
    decision = concluding(Appraisal(tee, (proof,), good_input(tee), None), Facts(), PolicySet.of(objects), values)
    return drive(decision, lambda _: Answer(exceeded="it ran for ever"))


def test_a_policy_beyond_its_bounds_leaves_a_good_machine_not_assessed_and_a_bad_one_refused() -> None:
    mine = [policy("mine", "tpm", GENEROUS)]
    waiting = concluded("tpm", mine, book(GOOD_VALUES["tpm"]))
    assert (waiting.accepted, waiting.result, waiting.reason, waiting.retry) == (
        False, "NotAssessed", "policy-exceeded", True,
    )  # fmt: skip
    assert "mine@v-mine: it ran for ever" in waiting.checks[-1].seen
    other = book({name: ["f" * 64] for name in GOOD_VALUES["tpm"]})
    assert (concluded("tpm", mine, other).result, concluded("tpm", mine, other).retry) == ("Refused", False)


def test_a_resource_policy_beyond_its_bounds_neither_refuses_for_good_nor_lets_in() -> None:
    decision = ResourcePolicies.of([policy("r", "*/*/*", HEAD + "allow := true")]).allowing(("a", "b", "c"), AFFIRMED)
    assert drive(decision, lambda _: Answer(exceeded="slow")) == Unassessed("r@v-r: slow")


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("pool/*/*", ("pool", "worker", "key"), True),
        ("pool/*/*", ("pool", "worker", "key", "more"), False),
        ("pool/*/*", ("machine", "worker", "key"), False),
        ("pool/w*r/k.y", ("pool", "worker", "k.y"), True),
        ("pool/w*r/k.y", ("pool", "worker", "key"), False),
        ("*/*/*", ("a", "b", "c"), True),
    ],
)
def test_a_resource_policy_speaks_of_paths_that_match_its_pattern(
    pattern: str, path: tuple[str, ...], matches: bool
) -> None:
    assert ActivePolicy("a", pattern, "", "v").matches(path) is matches


def test_resources_need_every_matching_policy_and_the_built_in_one() -> None:
    mine = HEAD + 'allow if input.sub == "me"\n'
    never = HEAD + "allow if input.never\n"
    gate = [policy("a", "pool/*/*", mine), policy("b", "pool/secret/*", never)]
    me = {"sub": "me", **AFFIRMED}
    assert access(gate, ("pool", "worker", "key"), me) == Allowed()
    assert access(gate, ("pool", "worker", "key"), {**me, "sub": "you"}) == denied_by("a@v-a")
    assert access(gate, ("pool", "worker", "key"), {"sub": "me"}) == denied_by("built-in-resource")
    assert access(gate, ("pool", "secret", "key"), me) == denied_by("b@v-b")
    assert access(gate, ("machine", "x", "key"), {"sub": "me"}) == denied_by("built-in-resource")
    assert access(gate, ("machine", "x", "key"), AFFIRMED) == Allowed()
    assert access([alone("a", "pool/*/*", mine)], ("pool", "worker", "key"), {"sub": "me"}) == Allowed()
