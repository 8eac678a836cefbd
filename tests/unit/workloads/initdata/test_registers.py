"""What evidence shows for init data, against digests that were computed from real documents."""

from __future__ import annotations

import hashlib

import pytest

from fastness.formats.initdata import InitData
from fastness.workloads.initdata.registers import reference_value_set, registers

TEXT = b"any bytes"


def _document(algorithm: str, text: bytes = TEXT) -> InitData:
    return InitData(algorithm, {}, text)


def test_sha256_fits_hostdata_and_is_filled_up_for_mrconfigid() -> None:
    evidence = registers(_document("sha256"))
    assert evidence.digest == evidence.hostdata == hashlib.sha256(TEXT).hexdigest()
    assert evidence.mrconfigid == evidence.digest + "00" * 16
    assert evidence.pcr8 == hashlib.sha256(bytes(32) + hashlib.sha256(TEXT).digest()).hexdigest()


def test_sha384_fits_mrconfigid_and_is_cut_for_hostdata() -> None:
    evidence = registers(_document("sha384"))
    assert evidence.mrconfigid == evidence.digest == hashlib.sha384(TEXT).hexdigest()
    assert evidence.hostdata == evidence.digest[:64]


@pytest.mark.parametrize("algorithm", ["sha384", "sha512"])
def test_there_is_no_pcr_8_for_digests_that_a_tpm_cannot_take(algorithm: str) -> None:
    evidence = registers(_document(algorithm))
    assert evidence.pcr8 is None
    assert evidence.pcr8_refusal is not None
    assert algorithm in evidence.pcr8_refusal
    values = reference_value_set(evidence, "x")["spec"]["values"]
    assert [value["register"] for value in values] == ["hostdata", "mrconfigid"]


def test_a_newline_at_the_end_is_another_document() -> None:
    assert registers(_document("sha256")).digest != registers(_document("sha256", TEXT + b"\n")).digest


def test_the_set_of_values_has_all_that_policies_ask_for() -> None:
    made = reference_value_set(registers(_document("sha256")), "pods")
    assert [value["name"] for value in made["spec"]["values"]] == ["init_data", "init_data", "tpm_pcr8"]
    assert made["metadata"]["name"] == "pods"
