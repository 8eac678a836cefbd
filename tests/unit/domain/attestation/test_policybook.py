"""Which policy judges: the text that was activated, all that match together, the built-in one where there is none."""

from __future__ import annotations

import pytest

from fastness.domain.attestation.policybook import ActivePolicy, PolicyBook, active_policy
from fastness.domain.attestation.values import EMPTY
from fastness.model.fastness_dev import EVIDENCE_TYPES
from fastness.model.kind import JsonObject
from tests.unit.domain.attestation.policyinputs import GOOD_VALUES, book, good_input

HEAD = "package policy\nimport rego.v1\n"
GENEROUS = (
    HEAD
    + "hardware := 2 if input\nexecutables := 3 if input\nconfiguration := 2 if input\ninstance_identity := 2 if input\n"
)
STRICT = HEAD + "hardware := 97\nexecutables := 33\nconfiguration := 36\ninstance_identity := 97\n"
AFFIRMED: JsonObject = {"submods": {"cpu0": {"ear.status": "affirming"}}}


def policy(name: str, target: str, rego: str) -> JsonObject:
    active = {"for": target, "rego": rego, "version": f"v-{name}"}
    return {"metadata": {"name": name}, "spec": {"for": target, "rego": "another text"}, "status": {"active": active}}


def test_what_judges_is_the_activated_text_and_not_the_spec() -> None:
    obj = policy("a", "snp", GENEROUS)
    assert active_policy(obj) == ActivePolicy("a", "snp", GENEROUS, "v-a")
    assert PolicyBook.of([obj]).judge("snp", {}, EMPTY).affirms("snp")
    del obj["status"]
    assert not PolicyBook.of([obj]).judge("snp", {}, EMPTY).affirms("snp")


def test_without_a_policy_the_built_in_one_judges_and_is_named() -> None:
    empty = PolicyBook.of([])
    assert empty.judge("tpm", good_input("tpm"), book(GOOD_VALUES["tpm"])).affirms("tpm")
    assert empty.version("tpm").startswith("built-in-tpm@")


@pytest.mark.parametrize("tee", [tee for tee in EVIDENCE_TYPES if tee not in ("tpm", "snp", "tdx")] + ["sample", ""])
def test_a_kind_of_evidence_without_a_policy_is_never_affirmed(tee: str) -> None:
    vector = PolicyBook.of([]).judge(tee, {tee: {}}, EMPTY)
    assert vector.error
    assert not vector.affirms(tee)
    assert PolicyBook.of([]).version(tee) == ""


def test_several_policies_must_agree() -> None:
    together = PolicyBook.of([policy("b", "snp", STRICT), policy("a", "snp", GENEROUS)])
    assert not together.judge("snp", {}, EMPTY).affirms("snp")
    assert together.version("snp") == "a@v-a,b@v-b"
    assert (
        PolicyBook.of([policy("a", "snp", GENEROUS), policy("t", "tdx", STRICT)]).judge("snp", {}, EMPTY).affirms("snp")
    )


def test_a_policy_that_is_being_deleted_judges_no_more() -> None:
    leaving = policy("a", "snp", GENEROUS)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not PolicyBook.of([leaving]).judge("snp", {}, EMPTY).affirms("snp")


def test_an_active_text_that_no_longer_compiles_affirms_nothing_instead_of_falling_back() -> None:
    broken = PolicyBook.of([policy("a", "tpm", "package policy\nhardware := {")])
    vector = broken.judge("tpm", good_input("tpm"), book(GOOD_VALUES["tpm"]))
    assert "cannot be compiled" in vector.error
    gate = PolicyBook.of([policy("r", "pool/*/*", "package policy\nallow := {")])
    assert gate.allows(("pool", "worker", "key"), AFFIRMED) == "r@v-r"


def test_no_policy_makes_a_bare_tpm_genuine_hardware() -> None:
    assert PolicyBook.of([policy("a", "tpm", GENEROUS)]).judge("tpm", {}, EMPTY).value("hardware") == 0


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


def test_resources_need_every_matching_policy_and_the_built_in_one_where_none_matches() -> None:
    mine = HEAD + 'allow if input.sub == "me"\n'
    never = HEAD + "allow if input.never\n"
    gate = PolicyBook.of([policy("a", "pool/*/*", mine), policy("b", "pool/secret/*", never)])
    assert gate.allows(("pool", "worker", "key"), {"sub": "me"}) == ""
    assert gate.allows(("pool", "worker", "key"), {"sub": "you"}) == "a@v-a"
    assert gate.allows(("pool", "secret", "key"), {"sub": "me"}) == "b@v-b"
    assert gate.allows(("machine", "x", "key"), {"sub": "me"}) == "built-in-resource"
    assert gate.allows(("machine", "x", "key"), AFFIRMED) == ""
