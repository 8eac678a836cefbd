"""What was proved, in plain words: of real claims, and of nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastness.attestation.machine.proof_age import label_value
from fastness.attestation.values.values import EMPTY, ReferenceValues
from fastness.attestation.verdict.conclude import measured_images, properties_of

NOW = datetime(2026, 3, 1, tzinfo=UTC)
A, B = (f"registry.example/os@sha256:{digit * 64}" for digit in "ab")
PCRS = (4, 7, 11, 12, 14)


def claims(**values: str) -> dict[str, Any]:
    return {"tpm": {f"pcr{number:02d}": values.get(f"p{number}", "same") for number in PCRS}}


def book(*images: tuple[str, dict[str, str]]) -> ReferenceValues:
    sets = [
        {
            "metadata": {"name": f"set-{number}"},
            "spec": {
                "source": "image", "image": image,
                "values": [{"name": f"tpm_pcr{register}", "value": values.get(f"p{register}", "same")} for register in PCRS],
            },
        }
        for number, (image, values) in enumerate(images)
    ]  # fmt: skip
    return ReferenceValues.of(sets, NOW)


OLD, NEW = {"p4": "old-loader", "p11": "old-kernel"}, {"p4": "new-loader", "p11": "new-kernel"}


def test_a_machine_that_booted_one_image_names_it_alone() -> None:
    both = book((A, OLD), (B, NEW))
    assert measured_images("tpm", claims(**OLD), both) == ([A], [])
    assert properties_of("tpm", claims(**NEW), both) == {"image": B, "tee": "tpm"}


def test_a_machine_between_two_images_names_both_as_parts() -> None:
    mixed = claims(p4="new-loader", p11="old-kernel")
    assert properties_of("tpm", mixed, book((A, OLD), (B, NEW))) == {"image-parts": f"{A},{B}", "tee": "tpm"}


def test_images_that_measure_alike_are_all_named() -> None:
    assert measured_images("tpm", claims(**OLD), book((A, OLD), (B, OLD))) == ([A, B], [])


def test_a_machine_that_nobody_knows_names_no_image() -> None:
    assert properties_of("tpm", claims(p4="x"), EMPTY) == {"tee": "tpm"}
    strange = {"tpm": {f"pcr{number:02d}": "strange" for number in PCRS}}
    assert properties_of("tpm", strange, book((A, OLD))) == {"tee": "tpm"}
    assert properties_of("tpm", {}, book((A, OLD))) == {"tee": "tpm"}


def test_a_withdrawn_image_is_still_recognised() -> None:
    spec = {"source": "image", "image": A, "values": [{"name": "snp_launch_measurement", "value": "m"}]}
    references = ReferenceValues.of(
        [{"metadata": {"name": "s"}, "spec": {**spec, "withdrawn": {"at": "2026-01-01T00:00:00Z"}}}], NOW
    )
    assert properties_of("snp", {"snp": {"measurement": "m"}}, references)["image"] == A


def test_platforms_say_their_generation_and_versions() -> None:
    snp = {
        "generation": "Turin",
        **{f"reported_tcb_{part}": 3 for part in ("bootloader", "tee", "snp", "microcode", "fmc")},
    }
    assert properties_of("snp", {"snp": snp}, EMPTY) == {
        "tee": "snp", "chip-generation": "Turin", "tcb-bootloader": "3", "tcb-fmc": "3", "tcb-microcode": "3", "tcb-snp": "3",
        "tcb-tee": "3",
    }  # fmt: skip
    tdx = {"fmspc": "00806f050000", "tcb_eval_num": 17, "tcb_date": "2026-01-01T00:00:00Z"}
    assert properties_of("tdx", {"tdx": tdx}, EMPTY) == {
        "tee": "tdx", "chip-generation": "00806f050000", "tcb-evaluation": "17", "tcb-date": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    odd = {"generation": None, "reported_tcb_microcode": True, "reported_tcb_snp": "7"}
    assert properties_of("snp", {"snp": odd}, EMPTY) == {"tee": "snp"}


def test_what_cannot_be_a_label_is_none() -> None:
    assert label_value("Milan") == "Milan"
    assert label_value(A) == "a" * 40
    for odd in ("", "a b", "-x", "x" * 64, f"{A},{B}", "ä"):
        assert label_value(odd) == ""
