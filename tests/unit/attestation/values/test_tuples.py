"""Values that belong together: what one image measures is accepted as a whole, and never in part."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.attestation.evidence.checks import Appraisal, Check, Result
from fastness.attestation.policy.policy import PolicySet
from fastness.attestation.policy.query import ActivePolicy
from fastness.attestation.values.differences import IMAGE_CHECK
from fastness.attestation.values.tuples import MOST_TRIED, uncovered
from fastness.attestation.values.values import ReferenceValues, unclear_names
from fastness.attestation.verdict.conclude import Conclusion, Facts, concluding
from fastness.crypto.silicon.registers import hashed
from fastness.formats.initdata import InitData
from fastness.kinds.kind import JsonObject
from tests.unit.attestation.inprocess import decided
from tests.unit.attestation.policyinputs import NOW, PCRS, good_input, reference_set, register

A, B = (f"registry.example/os@sha256:{digit * 64}" for digit in "ab")
Values = dict[str, list[str]]
# A policy of a user, as it was written when values were a heap.
LOOSE = """package policy
import rego.v1
default instance_identity := 97
default executables := 33
default configuration := 36
instance_identity := 2 if input.appraisal.authentic
executables := 3 if {
	input.tpm.pcr04 in query_reference_value("tpm_pcr4")
	some value in query_reference_value("tpm_pcr11")
	value == input.tpm.pcr11
}
configuration := 2 if input.tpm.pcr07 in query_reference_value("tpm_pcr7")
"""
# The same question asked so that nobody can tell from the text which values it wants.
DYNAMIC = LOOSE.replace('query_reference_value("tpm_pcr4")', 'query_reference_value(concat("", ["tpm_", "pcr4"]))')


def values(tee: str, image: str) -> Values:
    """What an image measures: its own boot chain, and the platform that all images share."""
    if tee == "tpm":
        return {f"tpm_pcr{n}": [register(n, 63) + (image if n in (4, 11) else "0")] for n in PCRS}
    return {name: [register(n, 95) + image] for n, name in enumerate(("mr_td", "rtmr_0", "rtmr_1", "rtmr_2"))}


def image_set(tee: str, image: str, reference: str) -> JsonObject:
    return reference_set(values(tee, image), f"image-{image}", source="image", image=reference)


def claims_document(tee: str, measured: dict[str, str]) -> JsonObject:
    document = good_input(tee)
    if tee == "tpm":
        document["tpm"] |= {f"pcr{int(name[7:]):02}": value for name, value in measured.items()}
    else:
        document["tdx"]["quote"]["body"] |= measured
    return document


def first(values: Values) -> dict[str, str]:
    return {name: listed[0] for name, listed in values.items()}


def concluded(
    tee: str, measured: dict[str, str], book: ReferenceValues, *rego: str, replacing: bool = False
) -> Conclusion:
    document = claims_document(tee, measured)
    proof = Check("attestation-key", Result.PASS, "ok", proof=True)
    appraisal = Appraisal(tee, (proof,), document, None)
    policies = PolicySet(ActivePolicy(f"p{n}", tee, text, "v", replacing) for n, text in enumerate(rego))
    return decided(concluding(appraisal, Facts(), policies, book))


MIXED = {
    "tpm": ("tpm_pcr4", "tpm_pcr7", "tpm_pcr11", "tpm_pcr12", "tpm_pcr14"),
    "tdx": ("mr_td", "rtmr_0", "rtmr_1", "rtmr_2"),
}


@pytest.mark.parametrize("source", ["image", "manual"])
@pytest.mark.parametrize("tee", ["tpm", "tdx"])
def test_registers_of_two_approved_images_are_refused_and_each_image_as_a_whole_is_not(tee: str, source: str) -> None:
    sets = [image_set(tee, "a", A), image_set(tee, "b", B)]
    if source == "manual":
        sets = [{**value_set, "spec": {**value_set["spec"], "source": "manual", "image": None}} for value_set in sets]
    book = ReferenceValues.of(sets, NOW)
    image_a, image_b = first(values(tee, "a")), first(values(tee, "b"))
    assert concluded(tee, image_a, book).accepted
    assert concluded(tee, image_b, book).accepted
    own = [name for name in MIXED[tee] if image_a[name] != image_b[name]]
    assert len(own) > 1
    for name in own:
        assert not concluded(tee, {**image_a, name: image_b[name]}, book).accepted


@pytest.mark.parametrize("rego", [LOOSE, DYNAMIC])
def test_the_policy_of_a_user_sees_one_image_at_a_time_however_it_asks(rego: str) -> None:
    book = ReferenceValues.of([image_set("tpm", "a", A), image_set("tpm", "b", B)], NOW)
    image_a, image_b = first(values("tpm", "a")), first(values("tpm", "b"))
    assert concluded("tpm", image_a, book, rego).accepted
    assert concluded("tpm", image_b, book, rego).accepted
    assert not concluded("tpm", {**image_a, "tpm_pcr4": image_b["tpm_pcr4"]}, book, rego).accepted


def test_init_data_that_the_hardware_did_not_sign_is_a_check_that_refuses() -> None:
    book = ReferenceValues.of([image_set("tdx", "a", A)], NOW)
    text = b'version = "0.1.0"'
    proof = Check("attestation-key", Result.PASS, "ok", proof=True)
    for signed, bound in ((hashed("sha384", text), True), (hashed("sha384", b"another text"), False), (b"", False)):
        document = {**claims_document("tdx", first(values("tdx", "a"))), "init_data": signed.hex()}
        facts = Facts(init_data=InitData("sha384", {}, text))
        conclusion = decided(concluding(Appraisal("tdx", (proof,), document, None), facts, PolicySet(()), book))
        check = next(entry for entry in conclusion.checks if entry.name == "init-data")
        assert (check.refuses, check.code) == (not bound, "ok" if bound else "init-data-differs")


def test_no_policy_of_a_user_makes_a_bare_tpm_genuine_hardware() -> None:
    book = ReferenceValues.of([image_set("tpm", "a", A)], NOW)
    conclusion = concluded("tpm", first(values("tpm", "a")), book, LOOSE + "hardware := 2\n")
    assert (conclusion.accepted, conclusion.vector.value("hardware")) == (True, 0)


def test_a_refusal_names_the_image_that_came_nearest_and_where_it_differs() -> None:
    book = ReferenceValues.of([image_set("tpm", "a", A), image_set("tpm", "b", B)], NOW)
    mixed = {**first(values("tpm", "a")), "tpm_pcr4": values("tpm", "b")["tpm_pcr4"][0]}
    conclusion = concluded("tpm", mixed, book)
    assert conclusion.reason == "value-of-another-image"
    checks = {check.name: check for check in conclusion.checks}
    four = checks["PCR 4 (boot loader and kernel)"]
    assert (four.result, four.expected) == (Result.FAIL, values("tpm", "a")["tpm_pcr4"][0])
    assert f"{B}, which is approved" in four.hint
    assert A in four.hint
    near = checks[IMAGE_CHECK]
    assert (near.result, near.code, near.expected) == (Result.FAIL, "image-differs", A)
    assert near.hint == "It differs in PCR 4 (boot loader and kernel)."
    whole = {check.name: check for check in concluded("tpm", first(values("tpm", "b")), book).checks}[IMAGE_CHECK]
    assert (whole.result, whole.seen) == (Result.PASS, B)


def test_a_machine_of_which_no_image_knows_anything_differs_from_some_image_and_not_from_a_mixture() -> None:
    book = ReferenceValues.of([image_set("tpm", "a", A)], NOW)
    conclusion = concluded("tpm", {f"tpm_pcr{n}": "f" * 64 for n in PCRS}, book)
    assert (conclusion.accepted, conclusion.reason) == (False, "value-differs")


def variants(listed: list[tuple[str, str, list[str]]]) -> JsonObject:
    entries = [{"name": name, "value": value, **({"variants": of} if of else {})} for name, value, of in listed]
    return {"metadata": {"name": "s"}, "spec": {"source": "image", "image": A, "values": entries}}


def test_boot_phases_and_states_of_an_update_are_tuples_of_their_own() -> None:
    own = first(values("tpm", "a"))
    shared: list[tuple[str, str, list[str]]] = [
        (name, value, []) for name, value in own.items() if name not in ("tpm_pcr4", "tpm_pcr11")
    ]
    book = ReferenceValues.of([variants([
        *shared, ("tpm_pcr4", "new", []), ("tpm_pcr4", "old", ["old loader"]),
        ("tpm_pcr11", "initrd", ["initrd"]), ("tpm_pcr11", "ready", ["ready"]), ("tpm_pcr11", "before", ["old loader"]),
    ])], NOW)  # fmt: skip
    good = [("new", "initrd"), ("new", "ready"), ("old", "before"), ("new", "before")]
    for loader in ("new", "old"):
        for kernel in ("initrd", "ready", "before"):
            measured = {**own, "tpm_pcr4": loader, "tpm_pcr11": kernel}
            assert concluded("tpm", measured, book).accepted is ((loader, kernel) in good), (loader, kernel)
    conclusion = concluded("tpm", {**own, "tpm_pcr4": "new", "tpm_pcr11": "ready"}, book)
    assert next(check.seen for check in conclusion.checks if check.name == IMAGE_CHECK) == f"{A} (ready)"


def test_a_heap_of_values_accepts_nobody_and_says_so() -> None:
    heap = {name: [*values("tpm", "a")[name], *values("tpm", "b")[name]] for name in values("tpm", "a")}
    made = reference_set({name: sorted(set(listed)) for name, listed in heap.items()})
    assert unclear_names(made) == ("tpm_pcr11", "tpm_pcr4")
    book = ReferenceValues.of([made], NOW)
    assert not concluded("tpm", first(values("tpm", "a")), book).accepted
    assert not concluded("tpm", first(values("tpm", "a")), book, LOOSE).accepted
    assert uncovered("tpm", book.tuples("tpm")) == {f"tpm_pcr{n}" for n in PCRS}


def test_one_register_may_have_alternatives() -> None:
    made = reference_set({**values("tpm", "a"), "tpm_pcr7": ["one", "two"]})
    assert unclear_names(made) == ()
    book = ReferenceValues.of([made], NOW)
    for value, good in (("one", True), ("two", True), ("three", False)):
        assert concluded("tpm", {**first(values("tpm", "a")), "tpm_pcr7": value}, book).accepted is good


PLATFORM = ("tpm_pcr7", "tpm_pcr12", "tpm_pcr14")


def part(digit: str, names: tuple[str, ...], **spec: Any) -> JsonObject:
    chosen = {name: listed for name, listed in values("tpm", digit).items() if name in names}
    return reference_set(chosen, f"part-{digit}-{names[0]}", **spec)


def test_what_an_image_leaves_out_may_come_from_a_set_of_the_platform_and_from_no_other_image() -> None:
    chain = ("tpm_pcr4", "tpm_pcr11")
    image = part("a", chain, source="image", image=A)
    measured = first(values("tpm", "a"))
    assert not concluded("tpm", measured, ReferenceValues.of([image], NOW)).accepted
    assert concluded("tpm", measured, ReferenceValues.of([image, part("a", PLATFORM)], NOW)).accepted
    other = part("b", PLATFORM, source="image", image=B)
    book = ReferenceValues.of([image, other], NOW)
    assert not concluded("tpm", measured, book).accepted
    assert uncovered("tpm", book.tuples("tpm"), A) == set(PLATFORM)
    # A set that has its own word about the boot chain vouches for no part of another image.
    both = reference_set({**values("tpm", "b")}, "whole-b")
    assert not concluded("tpm", measured, ReferenceValues.of([image, both], NOW)).accepted


def test_a_set_that_names_a_register_of_the_image_completes_nothing_of_it() -> None:
    image = part("a", ("tpm_pcr4", "tpm_pcr11"), source="image", image=A)
    other = part("b", ("tpm_pcr4", *PLATFORM))
    measured = {**first(values("tpm", "a")), "tpm_pcr4": values("tpm", "b")["tpm_pcr4"][0]}
    book = ReferenceValues.of([image, other], NOW)
    assert not concluded("tpm", measured, book).accepted
    registers = {name: measured[name] for name in measured}
    assert not any(candidate.whole for candidate in book.candidates("tpm", registers))
    assert uncovered("tpm", book.tuples("tpm"), A) == set(PLATFORM)


def test_a_set_of_the_platform_must_agree_in_all_that_it_names() -> None:
    image = part("a", ("tpm_pcr4", "tpm_pcr11"), source="image", image=A)
    old = reference_set({"tpm_pcr7": ["old keys"], "tpm_pcr12": ["none"], "tpm_pcr14": ["old owner"]}, "old")
    new = reference_set({"tpm_pcr7": ["new keys"], "tpm_pcr12": ["none"], "tpm_pcr14": ["new owner"]}, "new")
    book = ReferenceValues.of([image, old, new], NOW)
    measured = {**first(values("tpm", "a")), "tpm_pcr12": "none"}
    for keys, owner, good in (("old", "old", True), ("new", "new", True), ("old", "new", False)):
        registers = {**measured, "tpm_pcr7": f"{keys} keys", "tpm_pcr14": f"{owner} owner"}
        assert concluded("tpm", registers, book).accepted is good, (keys, owner)


def test_of_many_images_the_one_that_a_policy_of_a_user_means_is_found() -> None:
    rego = LOOSE.replace('query_reference_value("tpm_pcr4")', 'query_reference_value("tpm_pcr9")').replace(
        "pcr04", "pcr09"
    )
    rego = rego.replace("pcr11", "pcr14")
    sets = [
        reference_set({"tpm_pcr9": [f"{n:064x}"], "tpm_pcr7": ["keys"], "tpm_pcr14": ["owner"]}, f"set-{n:03}")
        for n in range(100)
    ]
    book = ReferenceValues.of(sets, NOW)
    for number, good in ((0, True), (57, True), (99, True), (100, False)):
        measured = {"tpm_pcr9": f"{number:064x}", "tpm_pcr7": "keys", "tpm_pcr14": "owner"}
        assert concluded("tpm", measured, book, rego, replacing=True).accepted is good, number
    assert len(book.candidates("tpm", {"tpm_pcr7": "keys"})) <= MOST_TRIED


def test_init_data_that_is_expected_goes_with_every_image() -> None:
    expected = reference_set({"tpm_pcr8": ["cd" * 32, "ef" * 32]}, "init-data")
    book = ReferenceValues.of([image_set("tpm", "a", A), image_set("tpm", "b", B), expected], NOW)
    for image in "ab":
        for value, good in (("cd" * 32, True), ("ef" * 32, True), ("ab" * 32, False)):
            assert concluded("tpm", {**first(values("tpm", image)), "tpm_pcr8": value}, book).accepted is good


def test_a_set_for_other_pools_does_not_count() -> None:
    sets = [{**image_set("tpm", "a", A)}]
    sets[0]["spec"]["pools"] = ["infra"]
    measured = first(values("tpm", "a"))
    assert concluded("tpm", measured, ReferenceValues.of(sets, NOW, pool="infra")).accepted
    conclusion = concluded("tpm", measured, ReferenceValues.of(sets, NOW, pool="worker"))
    assert (conclusion.accepted, conclusion.reason) == (False, "values-not-published")
    book = ReferenceValues.of([*sets, image_set("tpm", "b", B)], NOW, pool="worker")
    conclusion = concluded("tpm", measured, book)
    assert not conclusion.accepted
    assert any("it counts in other pools only" in check.hint for check in conclusion.checks)
