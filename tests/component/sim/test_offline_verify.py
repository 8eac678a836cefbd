"""`fastness attest verify` knows the pinned roots alone: simulated evidence is refused, whatever comes along with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fastness.cli.main import cli
from fastness.formats.evidence.snp.tcb import Generation
from fastness.sim.tee import SimVendor
from fastness.sim.tee.tdx import pem
from fastness.sim.tee.vendor import EPOCH

VENDOR = SimVendor()
NONCE = bytes(range(48))


def verdict(tee: str, evidence: dict[str, Any], directory: Path, *words: str | Path) -> tuple[int, dict[str, Any]]:
    (directory / "evidence").write_text(json.dumps(evidence))
    given = ("--nonce", NONCE.hex(), "--at", f"{EPOCH:%Y-%m-%dT%H:%M:%SZ}", "-o", "json", *map(str, words))
    result = CliRunner().invoke(cli, ["attest", "verify", "--tee", tee, str(directory / "evidence"), *given])
    report: dict[str, Any] = json.loads(result.stdout)
    return result.exit_code, report


@pytest.mark.parametrize("generation", list(Generation))
def test_simulated_snp_is_refused_even_with_its_own_roots_beside_it(generation: Generation, tmp_path: Path) -> None:
    chip = VENDOR.chip("snp", generation=generation)
    roots = tmp_path / "roots"
    roots.mkdir()
    (roots / "simulated.pem").write_text(pem(*chip.certificates))
    code, report = verdict("snp", chip.boot().quote(NONCE), tmp_path, "--roots", roots)
    assert (code, report["authentic"], report["reason"]) == (1, False, "untrusted-certificate")
    assert report["identity"] is None
    assert report["simulated"] is True


@pytest.mark.parametrize("version", [4, 5])
def test_simulated_tdx_is_refused_even_with_its_own_collateral(version: int, tmp_path: Path) -> None:
    (tmp_path / "collateral").write_text(VENDOR.collateral().raw)
    evidence = VENDOR.chip("tdx").boot(version=version).quote(NONCE)
    code, report = verdict("tdx", evidence, tmp_path, "--collateral", tmp_path / "collateral")
    assert (code, report["authentic"], report["reason"]) == (1, False, "untrusted-certificate")
    assert report["simulated"] is True


def test_a_simulated_tpm_is_as_good_as_the_key_that_is_given(tmp_path: Path) -> None:
    machine, other = VENDOR.chip("tpm").boot(), VENDOR.chip("tpm").boot()
    for name, owner in (("mine", machine), ("theirs", other)):
        text = pem(owner.identity_key.public_der()).replace("CERTIFICATE", "PUBLIC KEY")
        (tmp_path / name).write_text(text)
    evidence = machine.quote(NONCE)
    code, report = verdict("tpm", evidence, tmp_path, "--ak", tmp_path / "mine")
    assert (code, report["simulated"]) == (0, True), "accepted by the key that was given, and it says what it is"
    code, report = verdict("tpm", evidence, tmp_path, "--ak", tmp_path / "theirs")
    assert (code, report["reason"]) == (1, "key-differs")
