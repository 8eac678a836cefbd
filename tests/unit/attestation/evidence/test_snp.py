"""Reports of every generation and version, minted with a root of our own: what is accepted and what is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fastness.attestation.evidence.checks import Appraisal, Result
from fastness.attestation.evidence.snp import SnpExpectations, appraise_snp
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.x509 import Certificate
from fastness.formats.evidence.snp.report import parse_report
from fastness.formats.evidence.snp.tcb import Generation, Tcb
from tests.evidence.authority import issue, new_key
from tests.evidence.snp import Chip

AT = datetime(2026, 1, 1, tzinfo=UTC)


def judged(
    chip: Chip, raw: bytes, *, pool: list[Certificate] | None = None, expected: SnpExpectations | None = None
) -> Appraisal:
    expectations = replace(expected or SnpExpectations(), roots=chip.roots)
    return appraise_snp(parse_report(raw), chip.certificates() if pool is None else pool, expectations, AT)


def codes(appraisal: Appraisal) -> list[str]:
    return [check.code for check in appraisal.checks if check.refuses]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("version", [2, 3, 4, 5])
@pytest.mark.parametrize("generation", list(Generation))
def test_every_generation_and_version_is_accepted(generation: str, version: int, shared: bool) -> None:
    chip = Chip(generation, shared)
    appraisal = judged(chip, chip.report(version, nonce=b"n"), expected=SnpExpectations(nonce=b"n"))
    assert appraisal.acceptable, codes(appraisal)
    assert appraisal.identity is not None
    assert appraisal.identity.value == ("CN=cloud.example" if shared else chip.chip_id.hex())
    assert appraisal.claims["snp"]["reported_tcb_microcode"] == 230


def test_a_minted_chip_is_worth_nothing_under_the_real_roots() -> None:
    chip = Chip()
    appraisal = appraise_snp(parse_report(chip.report()), chip.certificates(), SnpExpectations(), AT)
    assert not appraisal.authentic
    assert "untrusted-certificate" in codes(appraisal)


def test_another_chips_certificate_is_refused() -> None:
    chip, other = Chip(), Chip()
    assert "signature-invalid" in codes(judged(chip, chip.report(), pool=other.certificates()))


def test_a_certificate_of_the_vendors_name_that_says_nothing_of_a_chip_makes_no_report_authentic() -> None:
    chip = Chip()
    hollow = load_certificates(issue("SEV-VCEK", new_key(), "SEV-Milan", new_key()))
    appraisal = judged(chip, chip.report(), pool=[*hollow, *chip.certificates()])
    assert not appraisal.authentic
    assert codes(appraisal) == ["endorsement-unusable"]


def test_a_chip_cannot_claim_another_chips_id() -> None:
    chip = Chip()
    assert codes(judged(chip, chip.report(x1A0=bytes(64)))) == ["chip-id-differs"]


def test_on_turin_all_bytes_behind_the_eighth_must_be_zero() -> None:
    chip = Chip("Turin")
    assert codes(judged(chip, chip.report(x1A8=b"\x01"))) == ["chip-id-differs"]


def test_versions_must_be_those_of_the_certificate() -> None:
    chip = Chip()
    appraisal = judged(chip, chip.report(x180=chip.tcb(microcode=229)))
    assert codes(appraisal) == ["endorsement-versions-differ"]
    assert not appraisal.authentic


def test_a_report_of_another_generation_is_refused() -> None:
    chip = Chip("Genoa")
    assert codes(judged(chip, chip.report(3, x188=b"\x19\x01"))) == ["generation-differs"]
    assert codes(judged(chip, chip.report(3, x188=b"\x1a\x50"))) == ["generation-differs"]


def test_a_certificate_of_the_other_kind_is_not_used() -> None:
    chip, cloud = Chip(), Chip(shared=True)
    assert codes(judged(chip, chip.report(), pool=cloud.certificates())) == ["endorsement-missing"]


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        (0x30000 | 1 << 19, "debug-allowed"),
        (0x30000 | 1 << 18, "migration-allowed"),
        (0x10000, "policy-reserved"),
        (0x30000 | 1 << 40, "policy-reserved"),
    ],
)
def test_dangerous_policies_are_hard_failures_of_authentic_reports(policy: int, code: str) -> None:
    chip = Chip()
    appraisal = judged(chip, chip.report(policy=policy))
    assert appraisal.authentic
    assert codes(appraisal) == [code]


def test_under_simulated_roots_debugging_is_a_warning_and_nothing_else_is() -> None:
    chip, simulated = Chip(), SnpExpectations(simulated=True)
    appraisal = judged(chip, chip.report(policy=0x30000 | 1 << 19), expected=simulated)
    assert appraisal.acceptable
    (check,) = [check for check in appraisal.checks if check.name == "debug"]
    assert (check.result, check.code) == (Result.WARN, "debug-allowed")
    assert codes(judged(chip, chip.report(policy=0x30000 | 1 << 18), expected=simulated)) == ["migration-allowed"]


def test_another_privilege_level_is_refused_unless_expected() -> None:
    chip = Chip()
    assert codes(judged(chip, chip.report(vmpl=2))) == ["vmpl-differs"]
    assert judged(chip, chip.report(vmpl=2), expected=SnpExpectations(vmpl=2)).acceptable


@pytest.mark.parametrize(("place", "name"), [("x1E0", "committed"), ("x1F0", "launch")])
def test_minimums_hold_for_committed_and_launch_versions_too(place: str, name: str) -> None:
    chip = Chip()
    floor = {Generation.MILAN: Tcb(bootloader=3, tee=0, snp=28, microcode=230)}
    assert judged(chip, chip.report(), expected=SnpExpectations(minimum=floor)).acceptable
    appraisal = judged(chip, chip.report(3, fields={place: chip.tcb(snp=27)}), expected=SnpExpectations(minimum=floor))
    assert codes(appraisal) == ["tcb-behind"]
    failed = next(check for check in appraisal.checks if check.refuses)
    assert failed.name == f"tcb-{name}"
    assert "Behind: snp." in failed.hint


def test_a_minimum_holds_for_the_reported_version() -> None:
    chip = Chip(versions={"bootloader": 3, "tee": 0, "snp": 27, "microcode": 230})
    newer = chip.tcb(snp=28)
    floor = {Generation.MILAN: Tcb(bootloader=3, tee=0, snp=28, microcode=230)}
    appraisal = judged(chip, chip.report(x1E0=newer, x1F0=newer, x038=newer), expected=SnpExpectations(minimum=floor))
    assert [check.name for check in appraisal.checks if check.refuses] == ["tcb-reported"]


def test_a_generation_can_be_switched_off() -> None:
    chip = Chip()
    appraisal = judged(chip, chip.report(), expected=SnpExpectations(generations=frozenset({Generation.TURIN})))
    assert codes(appraisal) == ["generation-refused"]


def test_a_masked_key_and_an_odd_algorithm_are_refused() -> None:
    chip = Chip()
    assert "report-unsigned" in codes(judged(chip, chip.report(x048=b"\x02")))
    assert "report-unsigned" in codes(judged(chip, chip.report(x048=b"\x1c")))
    assert "signature-invalid" in codes(judged(chip, chip.report(x034=b"\x02")))


def test_dates_refuse_and_leave_the_report_authentic() -> None:
    late = Chip(end=datetime(2025, 1, 1, tzinfo=UTC))
    early = Chip(start=datetime(2027, 1, 1, tzinfo=UTC))
    for chip in (late, early):
        appraisal = judged(chip, chip.report())
        assert appraisal.authentic
        assert codes(appraisal) == ["certificate-dates"]


def test_a_nonce_is_compared_with_the_whole_field() -> None:
    chip = Chip()
    raw = chip.report(nonce=b"abc")
    assert judged(chip, raw, expected=SnpExpectations(nonce=b"abc")).acceptable
    for other in (b"ab", b"abcd", b"", b"abc" + bytes(62)):
        assert codes(judged(chip, raw, expected=SnpExpectations(nonce=other))) == ["nonce-differs"]


def test_firmware_that_is_not_committed_is_a_warning() -> None:
    chip = Chip()
    appraisal = judged(chip, chip.report(x038=chip.tcb(snp=29)))
    assert appraisal.acceptable
    assert ("tcb-rollback", Result.WARN) in [(check.name, check.result) for check in appraisal.checks]


def test_pitfall_26_memory_that_the_firmware_did_not_check_for_aliases_is_told_and_a_policy_can_ask_for_it() -> None:
    chip = Chip()
    checked, unchecked = judged(chip, chip.report()), judged(chip, chip.report(x040=(0x01).to_bytes(8, "little")))
    assert [appraisal.claims["snp"]["platform_alias_check_complete"] for appraisal in (checked, unchecked)] == [
        True,
        False,
    ]
    assert ("alias-check", Result.WARN) in [(check.name, check.result) for check in unchecked.checks]
    assert "alias-check" not in [check.name for check in checked.checks]
