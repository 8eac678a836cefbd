"""Mistakes that verifiers have made, each by its number in the list of pitfalls; removing the check fails the test.

Others stand beside the parts they concern: 6 in test_endorsement and the driver's tests with swtpm, 9 and 19 in
test_snpstanding, 19 in the tests of collateral.
"""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from fastness.attestation.evidence.checks import Appraisal, Findings
from fastness.attestation.evidence.replay import judge_log, replay
from fastness.attestation.evidence.roots import minimums
from fastness.attestation.evidence.snp import SnpExpectations, appraise_snp
from fastness.attestation.evidence.tdx import TdxExpectations, appraise_tdx
from fastness.attestation.evidence.tpm import TpmExpectations, appraise_tpm
from fastness.crypto.silicon.verify import AttestationKey
from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.eventlog.log import MAX_LOG, parse_log
from fastness.formats.evidence.snp.report import parse_report
from fastness.formats.evidence.tdx.collateral import parse_collateral
from fastness.formats.evidence.tdx.quote import parse_evidence
from fastness.formats.evidence.tpm.envelope import parse_envelope
from fastness.protocol.user_data_event import PCR
from fastness.sim.tee import SimVendor, default_image
from tests.evidence import tpm
from tests.evidence.snp import VENDOR, Chip
from tests.evidence.tdx import Platform

AT = datetime(2026, 1, 1, tzinfo=UTC)
NEEDED = frozenset({4, 7, 8, 11, 12, 14})


def codes(appraisal: Appraisal) -> list[str]:
    return [check.code for check in appraisal.checks if check.refuses]


def extended(data: bytes) -> bytes:
    """A register after one event."""
    return hashlib.sha256(bytes(32) + hashlib.sha256(data).digest()).digest()


def quoted(raw: bytes, registers: frozenset[int] | None = NEEDED) -> Appraisal:
    expected = TpmExpectations(known_key=AttestationKey(tpm.public(tpm.rsa_key())), registers=registers)
    return appraise_tpm(parse_envelope(raw), expected)


def test_pitfall_5_the_sender_does_not_choose_what_is_quoted() -> None:
    everything = tpm.values()
    assert quoted(tpm.quoted(everything)).acceptable
    lacking = {index: value for index, value in everything.items() if index != 8}
    assert codes(quoted(tpm.quoted(lacking))) == ["register-missing"]


@pytest.mark.parametrize("soft", [16, 23])
def test_pitfall_5_a_resettable_register_does_not_stand_in_for_another(soft: int) -> None:
    everything = tpm.values()
    exchanged = {index: value for index, value in everything.items() if index != 8} | {soft: everything[soft]}
    data = tpm.message(tpm.digest_of(exchanged), [tpm.selection("sha256", sorted(exchanged))])
    honest = tpm.envelope(data, tpm.sign(tpm.rsa_key(), data), exchanged, tpm.rsa_key())
    assert codes(quoted(honest)) == ["register-missing"]
    # The same signed values under other numbers: position must not count for number.
    shifted = dict(zip(sorted({*exchanged, 8} - {soft}), exchanged.values(), strict=False))
    forged = tpm.envelope(data, tpm.sign(tpm.rsa_key(), data), shifted, tpm.rsa_key())
    assert not quoted(forged).authentic


@pytest.mark.parametrize("soft", [16, 23])
def test_pitfall_5_no_expectation_rests_on_a_resettable_register(soft: int) -> None:
    assert codes(quoted(tpm.quoted(tpm.values()), frozenset({4, soft}))) == ["register-resettable"]


def test_pitfall_5_values_of_another_bank_do_not_count() -> None:
    pcrs = tpm.values()
    data = tpm.message(tpm.digest_of(pcrs), [tpm.selection("sha1", range(24))])
    raw = tpm.envelope(data, tpm.sign(tpm.rsa_key(), data), pcrs, tpm.rsa_key())
    assert not quoted(raw).authentic


def test_pitfall_6_a_key_on_its_own_word_is_not_the_enrolled_one() -> None:
    raw = tpm.quoted(tpm.values(), key=tpm.rsa_key(number=9))
    assert "key-differs" in codes(quoted(raw))
    alone = appraise_tpm(parse_envelope(raw), TpmExpectations())
    assert next(check for check in alone.checks if check.name == "attestation-key").code == "key-not-given"


def test_pitfall_6_a_bare_tpm_never_vouches_for_memory() -> None:
    appraisal = quoted(tpm.quoted(tpm.values()))
    assert next(check for check in appraisal.checks if check.name == "hardware").code == "memory-not-protected"


@pytest.mark.parametrize("generation", ["Milan", "Genoa", "Turin"])
def test_pitfall_8_a_foreign_chips_key_is_refused_whatever_its_name_says(generation: str) -> None:
    chip, other = Chip(generation), Chip(generation)
    report = parse_report(chip.report())
    appraisal = appraise_snp(report, other.certificates(), SnpExpectations(roots=chip.roots), AT)
    assert not appraisal.authentic
    assert {"signature-invalid", "chip-id-differs"} <= set(codes(appraisal))


@pytest.mark.parametrize("generation", ["Milan", "Genoa", "Turin"])
def test_pitfall_8_the_chip_id_is_compared_with_the_length_of_its_generation(generation: str) -> None:
    chip = Chip(generation)
    size = len(chip.chip_id)
    assert size == (8 if generation == "Turin" else 64)
    last = chip.chip_id[:-1] + bytes([chip.chip_id[-1] ^ 1])
    for changed in (last, bytes(size)):
        raw = chip.report(fields={"x1A0": changed})
        assert codes(appraise_snp(parse_report(raw), chip.certificates(), SnpExpectations(roots=chip.roots), AT)) == [
            "chip-id-differs"
        ]


def test_pitfall_8_the_kind_of_key_comes_from_the_report_and_the_issuer() -> None:
    clouds, chip = Chip("Genoa", shared=True), Chip("Genoa")
    report = parse_report(chip.report())
    appraisal = appraise_snp(report, clouds.certificates(), SnpExpectations(roots=chip.roots), AT)
    assert codes(appraisal) == ["endorsement-missing"]


@pytest.mark.parametrize("name", ["x1E0", "x1F0"])
def test_pitfall_9_a_host_that_could_roll_back_is_behind(name: str) -> None:
    chip = Chip("Genoa")
    old = chip.tcb(snp=1)
    expected = SnpExpectations(roots=chip.roots, minimum=minimums({"snp": {"snp": 8}}).snp)
    assert codes(appraise_snp(parse_report(chip.report(fields={name: old})), chip.certificates(), expected, AT)) == [
        "tcb-behind"
    ]


def test_pitfall_18_events_of_registers_that_nobody_signed_are_not_verified() -> None:
    log = tpm.event_log([(4, 13, b"loader"), (5, 13, b"unsigned"), (40, 13, b"no register"), (4, 3, b"no action")])
    ends = {4: extended(b"loader")}
    raw = tpm.quoted(ends)
    expected = TpmExpectations(known_key=AttestationKey(tpm.public(tpm.rsa_key())), event_log=log)
    appraisal = appraise_tpm(parse_envelope(raw), expected)
    assert appraisal.acceptable, codes(appraisal)
    verified_by_register = [
        (event["register"], event["verified"]) for event in appraisal.claims["tpm"]["uefi_event_logs"]
    ]
    assert verified_by_register == [(4, True), (5, False), (40, False), (4, False)]
    assert "event-log-unverified" in [check.code for check in appraisal.checks]


def test_pitfall_18_data_that_the_digest_does_not_cover_is_said_to_be_so() -> None:
    honest = tpm.event_log([(4, 13, b"loader")])
    lying = honest.replace(b"loader", b"LOADER")
    expected = TpmExpectations(known_key=AttestationKey(tpm.public(tpm.rsa_key())), event_log=lying)
    appraisal = appraise_tpm(parse_envelope(tpm.quoted({4: extended(b"loader")})), expected)
    assert [(event["verified"], event["covers_data"]) for event in appraisal.claims["tpm"]["uefi_event_logs"]] == [
        (True, False)
    ]


def test_pitfall_18_a_log_that_lacks_the_signed_bank_verifies_nothing() -> None:
    log = tpm.event_log([(4, 13, b"loader")], ("sha1",))
    appraisal = appraise_tpm(
        parse_envelope(tpm.quoted({4: extended(b"loader")})),
        TpmExpectations(known_key=AttestationKey(tpm.public(tpm.rsa_key())), event_log=log),
    )
    assert codes(appraisal) == ["event-log-lacks-bank"]
    assert appraisal.claims["tpm"]["uefi_event_logs"] == []


def test_pitfall_19_collateral_of_yesterday_and_of_tomorrow_refuses() -> None:
    machine = VENDOR.chip("tdx").boot()
    quote = parse_evidence(json.dumps(machine.quote(bytes(64))).encode()).quote
    for year, code in ((2025, "collateral-expired"), (2027, "collateral-from-the-future")):
        documents = VENDOR.collateral(datetime(year, 1, 1, tzinfo=UTC))
        appraisal = appraise_tdx(quote, (), TdxExpectations(collateral=documents, root=VENDOR.roots.intel), AT)
        assert code in codes(appraisal)


@pytest.mark.parametrize("changes", [{"vendor": bytes(16)}, {"qe_debug": True}])
def test_pitfall_20_the_vendor_and_the_mode_of_the_quoting_enclave_are_asked_for(changes: dict[str, Any]) -> None:
    platform = Platform()
    appraisal = appraise_tdx(
        parse_evidence(platform.quote(**changes)).quote, (), TdxExpectations(root=VENDOR.roots.intel), AT
    )
    assert not appraisal.authentic
    assert "qe-unknown" in codes(appraisal)


@pytest.mark.parametrize("members", [{"sgxtcbcomponents": 15}, {"tdxtcbcomponents": 17}])
def test_pitfall_20_components_are_compared_all_sixteen_or_not_at_all(members: dict[str, int]) -> None:
    whole = json.loads(VENDOR.collateral(AT).raw)
    info = json.loads(whole["tcb_info"])
    for name, count in members.items():
        entries = info["tcbLevels"][0]["tcb"][name]
        info["tcbLevels"][0]["tcb"][name] = (entries * 2)[:count]
    with pytest.raises(EvidenceError):
        parse_collateral(json.dumps({**whole, "tcb_info": json.dumps(info)}).encode())


@pytest.mark.parametrize("size", [MAX_LOG + 1, 16 * 1024 * 1024])
def test_pitfall_20_sizes_are_bounded_before_anything_is_read(size: int) -> None:
    with pytest.raises(EvidenceError, match="at most"):
        parse_log(bytes(size))
    with pytest.raises(EvidenceError):
        parse_envelope(b"{" + b" " * size)


def test_pitfall_20_lengths_inside_structures_allocate_nothing() -> None:
    log = bytearray(tpm.event_log([(4, 13, b"loader")]))
    log[-10:-6] = b"\xff\xff\xff\x7f"
    with pytest.raises(EvidenceError, match="ends inside"):
        parse_log(bytes(log))


@pytest.mark.parametrize("tail", [b"\0", b"\x01", bytes(64)])
def test_trailing_bytes_of_tpm_structures_are_refused_even_zeros(tail: bytes) -> None:
    raw = json.loads(tpm.quoted(tpm.values()))
    for part in ("message", "signature"):
        changed = json.loads(json.dumps(raw))
        data = base64.b64decode(changed["tpm_quote"][part]) + tail
        changed["tpm_quote"][part] = base64.b64encode(data).decode()
        with pytest.raises(EvidenceError) as caught:
            parse_envelope(json.dumps(changed).encode())
        assert caught.value.code == "trailing-bytes"


def test_pitfall_18_a_log_that_was_read_before_is_compared_with_what_is_signed_now() -> None:
    machine = SimVendor().chip("tpm").boot(default_image())
    log = machine.event_log
    signed = {index: value for index, value in replay(parse_log(log))["sha256"].items() if index < 24}
    first = judge_log(Findings(), log, "sha256", signed, PCR)
    assert first is not None
    assert any(event["verified"] for event in first if event["register"] == 4)
    findings = Findings()
    again = judge_log(findings, log, "sha256", {**signed, 4: bytes(32)}, PCR)
    assert again is not None
    assert not any(event["verified"] for event in again if event["register"] == 4)
    assert any(event["verified"] for event in again if event["register"] == 7)
    assert [check.code for check in findings.checks if check.refuses] == ["event-log-differs"]
