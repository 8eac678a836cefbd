"""The trust vector: tiers, what affirms, and what is never good enough."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.attestation.policy.claims import CLAIMS, MANDATORY, Tier, TrustVector, tier, worst_of

SCORES = st.integers(-128, 127)
VECTORS = st.dictionaries(st.sampled_from(CLAIMS), SCORES).map(TrustVector.of)
AFFIRMING_TPM = {"instance-identity": 2, "executables": 3, "configuration": 2}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (-128, Tier.CONTRAINDICATED), (-97, Tier.CONTRAINDICATED), (-96, Tier.WARNING), (-33, Tier.WARNING),
        (-32, Tier.AFFIRMING), (-2, Tier.AFFIRMING), (-1, Tier.NONE), (0, Tier.NONE), (1, Tier.NONE), (2, Tier.AFFIRMING),
        (31, Tier.AFFIRMING), (32, Tier.WARNING), (95, Tier.WARNING), (96, Tier.CONTRAINDICATED), (127, Tier.CONTRAINDICATED),
    ],
)  # fmt: skip
def test_the_tier_of_a_value(value: int, expected: Tier) -> None:
    assert tier(value) is expected


def test_a_machine_is_affirmed_when_every_mandatory_claim_is() -> None:
    vector = TrustVector.of(AFFIRMING_TPM)
    assert vector.affirms("tpm")
    assert vector.result("tpm") == "Affirmed"
    assert str(vector.status) == "affirming"


@pytest.mark.parametrize("claim", MANDATORY["tpm"])
@pytest.mark.parametrize("value", [0, 1, -1, 33, 97])
def test_pitfall_22_no_assertion_or_worse_is_not_good_enough_for_a_mandatory_claim(claim: str, value: int) -> None:
    vector = TrustVector.of({**AFFIRMING_TPM, claim: value})
    assert not vector.affirms("tpm")
    assert claim in vector.unaffirmed("tpm")


@pytest.mark.parametrize("claim", MANDATORY["tpm"])
def test_pitfall_22_a_mandatory_claim_that_is_missing_is_not_affirmed(claim: str) -> None:
    left = {name: value for name, value in AFFIRMING_TPM.items() if name != claim}
    assert not TrustVector.of(left).affirms("tpm")


def test_pitfall_22_a_claim_of_an_unknown_name_crashes_nothing_and_helps_nobody() -> None:
    assert TrustVector.of({**AFFIRMING_TPM, "colour": 2}).affirms("tpm")
    assert not TrustVector.of({**AFFIRMING_TPM, "hardwear": 97}).affirms("tpm"), "a typing error hides no warning"
    assert not TrustVector.of({"colour": 2, "taste": 3}).affirms("tpm")


def test_a_claim_that_is_not_mandatory_may_be_silent_but_not_bad() -> None:
    assert TrustVector.of({**AFFIRMING_TPM, "file-system": 0}).affirms("tpm")
    assert not TrustVector.of({**AFFIRMING_TPM, "file-system": 35}).affirms("tpm")


@pytest.mark.parametrize("answer", [None, [], "2", 2, True, {"hardware": "2"}, {"hardware": True}, {"hardware": 2.5}])
def test_an_answer_of_another_shape_affirms_nothing(answer: object) -> None:
    vector = TrustVector.of(answer)
    assert vector.error
    assert vector.status is Tier.CONTRAINDICATED
    assert not any(vector.affirms(tee) for tee in MANDATORY)


def test_an_error_without_words_affirms_nothing_either() -> None:
    silent = TrustVector(TrustVector.of(AFFIRMING_TPM).claims, error="")
    assert TrustVector.of(AFFIRMING_TPM).affirms("tpm")
    assert not silent.affirms("tpm")
    assert not worst_of([TrustVector.of(AFFIRMING_TPM), silent]).affirms("tpm")


@pytest.mark.parametrize("value", [128, -129, 2**40])
def test_a_value_that_is_no_signed_byte_is_an_error(value: int) -> None:
    assert TrustVector.of({"hardware": value}).error


def test_underscores_and_whole_floats_are_read_as_what_they_mean() -> None:
    assert TrustVector.of({"instance_identity": 2.0, "file_system": 0}).claims == {
        "instance-identity": 2,
        "file-system": 0,
    }


def test_a_kind_of_evidence_that_nobody_knows_is_never_affirmed_by_a_few_claims() -> None:
    assert not TrustVector.of(AFFIRMING_TPM).affirms("sample")


def test_a_bare_tpm_never_affirms_hardware() -> None:
    vector = TrustVector.of({**AFFIRMING_TPM, "hardware": 2})
    assert vector.seen_by("tpm").value("hardware") == 0
    assert vector.seen_by("snp").value("hardware") == 2
    assert TrustVector.of({"hardware": 97}).seen_by("tpm").value("hardware") == 97, "what is bad stays bad"


def test_a_policy_that_asserts_nothing_assesses_nothing() -> None:
    assert TrustVector.of({"hardware": 0}).result("snp") == "NotAssessed"
    assert TrustVector.of({"hardware": 97}).result("snp") == "Refused"


@given(st.lists(VECTORS, min_size=1, max_size=4), VECTORS, st.sampled_from(sorted(MANDATORY)))
def test_one_more_policy_never_helps_a_machine(vectors: list[TrustVector], more: TrustVector, tee: str) -> None:
    if not worst_of(vectors).affirms(tee):
        assert not worst_of([*vectors, more]).affirms(tee)


@given(st.lists(VECTORS, min_size=2, max_size=4), st.sampled_from(sorted(MANDATORY)))
def test_several_policies_affirm_only_together(vectors: list[TrustVector], tee: str) -> None:
    if worst_of(vectors).affirms(tee):
        assert not any(vector.unaffirmed(tee) for vector in vectors)


@pytest.mark.parametrize(
    ("values", "worst"),
    [([2, 3], 3), ([2, 0], 0), ([0, 33], 33), ([2, 33, 97], 97), ([2, -2], 2), ([97, 0], 97), ([33, 35], 35)],
)
def test_of_several_values_the_one_that_helps_least_is_kept(values: list[int], worst: int) -> None:
    vectors = [TrustVector.of({"hardware": value}) for value in values]
    assert worst_of(vectors).value("hardware") == worst
    assert worst_of(reversed(vectors)).value("hardware") == worst


def test_a_claim_that_one_policy_leaves_out_is_not_asserted() -> None:
    assert worst_of([TrustVector.of({"hardware": 2}), TrustVector.of({"executables": 3})]).claims == {
        "executables": 0,
        "hardware": 0,
    }


def test_no_policy_at_all_affirms_nothing() -> None:
    assert worst_of([]).error
