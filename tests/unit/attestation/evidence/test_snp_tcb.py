"""Whether an SNP chip is still good: AMD's lists, the minimums of a cluster, generations."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fastness.attestation.evidence.checks import Appraisal, Result
from fastness.attestation.evidence.roots import Minimums, TdxMinimum, minimums
from fastness.attestation.evidence.snp import SnpExpectations, appraise_snp
from fastness.attestation.evidence.tdx import TdxExpectations, appraise_tdx
from fastness.crypto.silicon.revocation import RevocationList
from fastness.formats.evidence.snp.report import parse_report
from fastness.formats.evidence.snp.tcb import Generation, Tcb
from fastness.formats.evidence.tdx.quote import parse_evidence
from fastness.sim.tee import SimVendor
from tests.evidence.snp import VENDOR, Chip

AT = datetime(2026, 1, 1, tzinfo=UTC)
ASK, ASVK = 0x10001, 0x10002  # serial numbers of the authorities below a simulated root


def listed(generation: str, *serials: int, at: datetime = AT, vendor: SimVendor = VENDOR) -> RevocationList:
    return RevocationList(vendor.revocations(Generation(generation), at, serials))


def judged(chip: Chip, expected: SnpExpectations) -> Appraisal:
    expectations = replace(expected, roots=chip.roots)
    return appraise_snp(parse_report(chip.report()), chip.certificates(), expectations, AT)


def codes(appraisal: Appraisal) -> list[str]:
    return [check.code for check in appraisal.checks if check.refuses]


@pytest.mark.parametrize("generation", list(Generation))
@pytest.mark.parametrize("shared", [False, True])
def test_a_chain_that_no_list_names_is_accepted(generation: Generation, shared: bool) -> None:
    expected = SnpExpectations(revocations={generation: listed(generation, 1, 2)}, revocations_required=True)
    assert judged(Chip(generation, shared), expected).acceptable


def test_pitfall_19_a_revoked_authority_refuses_every_chip_below_it() -> None:
    revoked = SnpExpectations(revocations={Generation.GENOA: listed("Genoa", ASK)})
    appraisal = judged(Chip("Genoa"), revoked)
    assert codes(appraisal) == ["certificate-revoked"]
    assert appraisal.authentic, "genuine, and no longer vouched for"
    assert judged(Chip("Genoa", shared=True), revoked).acceptable, "the authority of clouds is another one"
    clouds = SnpExpectations(revocations={Generation.GENOA: listed("Genoa", ASVK)})
    assert codes(judged(Chip("Genoa", shared=True), clouds)) == ["certificate-revoked"]


def test_the_serial_number_zero_of_endorsement_keys_revokes_nobody() -> None:
    assert judged(Chip("Milan"), SnpExpectations(revocations={Generation.MILAN: listed("Milan", 0)})).acceptable


@pytest.mark.parametrize("days", [-400, 400])
def test_pitfall_19_a_list_that_is_not_current_refuses(days: int) -> None:
    old = listed("Milan", at=AT + timedelta(days=days))
    assert codes(judged(Chip("Milan"), SnpExpectations(revocations={Generation.MILAN: old}))) == ["crl-expired"]


def test_a_list_of_another_root_refuses() -> None:
    forger = SimVendor.of(b"somebody else".ljust(32, b"!"))
    for other in (listed("Genoa", vendor=VENDOR), listed("Milan", vendor=forger)):
        expected = SnpExpectations(revocations={Generation.MILAN: other})
        assert codes(judged(Chip("Milan"), expected)) == ["crl-unusable"]


def test_a_missing_list_refuses_only_where_lists_are_required() -> None:
    assert judged(Chip(), SnpExpectations()).acceptable
    appraisal = judged(Chip(), SnpExpectations(revocations_required=True))
    assert codes(appraisal) == ["crl-missing"]
    assert [check.result for check in appraisal.checks if check.code == "crl-missing"] == [Result.NOT_ASSESSED]


def test_pitfall_9_milan_can_be_switched_off() -> None:
    newer = SnpExpectations(generations=frozenset({Generation.GENOA, Generation.TURIN}))
    assert codes(judged(Chip("Milan"), newer)) == ["generation-refused"]
    assert judged(Chip("Genoa"), newer).acceptable


@pytest.mark.parametrize("component", ["bootloader", "tee", "snp", "microcode"])
@pytest.mark.parametrize("generation", list(Generation))
def test_pitfall_9_every_component_below_the_minimum_of_a_cluster_refuses(
    generation: Generation, component: str
) -> None:
    chip = Chip(generation)
    equal = minimums({"snp": {component: chip.versions[component]}})
    above = minimums({"snp": {component: chip.versions[component] + 1}})
    assert judged(chip, SnpExpectations(minimum=equal.snp)).acceptable
    appraisal = judged(chip, SnpExpectations(minimum=above.snp))
    assert set(codes(appraisal)) == {"tcb-behind"}
    assert [check.name for check in appraisal.checks if check.refuses] == [
        "tcb-reported",
        "tcb-committed",
        "tcb-launch",
    ]


def test_first_mutable_code_counts_where_it_exists() -> None:
    newest = minimums({"snp": {"fmc": 9}})
    assert codes(judged(Chip("Turin"), SnpExpectations(minimum=newest.snp))) == ["tcb-behind"] * 3
    assert judged(Chip("Milan"), SnpExpectations(minimum=newest.snp)).acceptable


def test_minimums_are_read_as_the_kind_writes_them() -> None:
    assert minimums(None) == minimums({}) == Minimums()
    floors = minimums({"snp": {"snp": 20}, "tdx": {"evaluationDataNumber": 17, "tcbDate": "2025-01-01T00:00:00Z"}})
    assert floors.snp[Generation.MILAN] == Tcb(0, 0, 20, 0)
    assert floors.snp[Generation.TURIN] == Tcb(0, 0, 20, 0, fmc=0)
    assert floors.tdx == TdxMinimum(17, datetime(2025, 1, 1, tzinfo=UTC))


def test_pitfall_9_tdx_documents_and_levels_older_than_the_minimum_refuse() -> None:
    machine = VENDOR.chip("tdx").boot()
    documents = VENDOR.collateral(AT)
    quote = parse_evidence(json.dumps(machine.quote(bytes(64))).encode()).quote

    def judged_with(least: TdxMinimum) -> list[str]:
        expectations = TdxExpectations(collateral=documents, minimum=least, root=VENDOR.roots.intel)
        return codes(appraise_tdx(quote, (), expectations, AT))

    assert judged_with(TdxMinimum()) == []
    now = min(documents.tcb_info.evaluation, documents.qe_identity.evaluation)
    assert judged_with(TdxMinimum(evaluation=now)) == []
    assert judged_with(TdxMinimum(evaluation=now + 1)) == ["tcb-behind"]
    assert judged_with(TdxMinimum(date=datetime(2000, 1, 1, tzinfo=UTC))) == []
    assert judged_with(TdxMinimum(date=datetime(2100, 1, 1, tzinfo=UTC))) == ["tcb-behind"]
