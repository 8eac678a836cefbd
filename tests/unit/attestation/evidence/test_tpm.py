"""Quotes of a TPM in software: schemes, selections, nonces, keys, and logs."""

from __future__ import annotations

import hashlib

import pytest

from fastness.attestation.evidence.checks import Appraisal
from fastness.attestation.evidence.tpm import TpmExpectations, appraise_tpm
from fastness.crypto.silicon.verify import AttestationKey
from fastness.formats.evidence.tpm.envelope import parse_envelope
from tests.evidence import tpm


def judged(data: bytes, expected: TpmExpectations | None = None) -> Appraisal:
    return appraise_tpm(parse_envelope(data), expected or TpmExpectations())


def codes(appraisal: Appraisal) -> list[str]:
    return [check.code for check in appraisal.checks if check.refuses]


@pytest.mark.parametrize("hash_name", ["sha256", "sha384"])
@pytest.mark.parametrize("scheme", ["RSASSA", "RSAPSS", "ECDSA"])
def test_every_scheme_is_accepted(scheme: str, hash_name: str) -> None:
    key = tpm.ec_key() if scheme == "ECDSA" else tpm.rsa_key()
    appraisal = judged(tpm.quoted(tpm.values(), key=key, scheme=scheme, hash_name=hash_name))
    assert appraisal.acceptable, codes(appraisal)


def test_sha1_signatures_are_refused() -> None:
    pcrs = tpm.values()
    data = tpm.message(tpm.digest_of(pcrs, "sha1"), [tpm.selection("sha256", range(24))])
    raw = tpm.envelope(data, tpm.sign(tpm.rsa_key(), data, bank="sha1"), pcrs, tpm.rsa_key())
    assert codes(judged(raw)) == ["signature-invalid"]


def test_a_scheme_of_the_other_key_type_is_refused() -> None:
    pcrs = tpm.values()
    data = tpm.message(tpm.digest_of(pcrs), [tpm.selection("sha256", range(24))])
    raw = tpm.envelope(data, tpm.sign(tpm.rsa_key(), data), pcrs, tpm.ec_key())
    assert "signature-invalid" in codes(judged(raw))


def test_short_rsa_keys_are_no_attestation_keys() -> None:
    assert "bad-key" in codes(judged(tpm.quoted(tpm.values(), key=tpm.rsa_key(1024))))


def test_the_sender_does_not_choose_a_bank_with_collisions() -> None:
    appraisal = judged(tpm.quoted(tpm.values(bank="sha1"), bank="sha1"))
    assert codes(appraisal) == ["bank-refused"]
    assert not appraisal.acceptable


@pytest.mark.parametrize("bank", ["sha256", "sha384"])
def test_other_banks_and_few_registers_are_accepted_when_exactly_those_are_signed(bank: str) -> None:
    appraisal = judged(tpm.quoted(tpm.values(bank=bank, registers=(0, 4, 7)), bank=bank))
    assert appraisal.acceptable, codes(appraisal)
    assert set(appraisal.claims["tpm"]) >= {"pcr00", "pcr04", "pcr07"}


@pytest.mark.parametrize("selected", [[*range(8), *range(9, 24)], [16], [], [*range(7), 16, *range(8, 24)]])
def test_values_outside_the_selection_are_refused(selected: list[int]) -> None:
    appraisal = judged(tpm.quoted(tpm.values(), selected=selected))
    assert codes(appraisal) == ["register-selection-differs"]
    assert not appraisal.authentic


def test_a_register_cannot_be_passed_off_as_another() -> None:
    honest = tpm.values(registers=(16,))
    data = tpm.message(tpm.digest_of(honest), [tpm.selection("sha256", [16])])
    signature = tpm.sign(tpm.rsa_key(), data)
    assert "register-selection-differs" in codes(judged(tpm.envelope(data, signature, {7: honest[16]}, tpm.rsa_key())))


def test_a_second_bank_in_the_selection_is_refused() -> None:
    pcrs = tpm.values()
    both = [tpm.selection("sha256", range(24)), tpm.selection("sha1", [0])]
    data = tpm.message(tpm.digest_of(pcrs), both)
    raw = tpm.envelope(data, tpm.sign(tpm.rsa_key(), data), pcrs, tpm.rsa_key())
    assert codes(judged(raw)) == ["register-selection-differs"]


def test_required_registers_must_be_quoted_and_may_not_be_resettable() -> None:
    raw = tpm.quoted(tpm.values(registers=(0, 4, 16)))
    assert judged(raw, TpmExpectations(registers=frozenset({0, 4}))).acceptable
    assert codes(judged(raw, TpmExpectations(registers=frozenset({0, 11})))) == ["register-missing"]
    assert codes(judged(raw, TpmExpectations(registers=frozenset({0, 16})))) == ["register-resettable"]


def test_the_enrolled_key_must_have_signed() -> None:
    raw = tpm.quoted(tpm.values(), key=tpm.ec_key(1), scheme="ECDSA")
    assert judged(raw, TpmExpectations(known_key=AttestationKey(tpm.public(tpm.ec_key(1))))).acceptable
    appraisal = judged(raw, TpmExpectations(known_key=AttestationKey(tpm.public(tpm.ec_key(2)))))
    assert codes(appraisal) == ["key-differs", "signature-invalid"]


def test_evidence_without_a_key_needs_the_enrolled_one() -> None:
    pcrs = tpm.values()
    data = tpm.message(tpm.digest_of(pcrs), [tpm.selection("sha256", range(24))])
    raw = tpm.envelope(data, tpm.sign(tpm.rsa_key(), data), pcrs, None)
    assert "key-missing" in codes(judged(raw))
    assert judged(raw, TpmExpectations(known_key=AttestationKey(tpm.public(tpm.rsa_key())))).acceptable


def test_a_nonce_must_be_equal_not_a_prefix() -> None:
    raw = tpm.quoted(tpm.values(), nonce=b"fresh")
    assert judged(raw, TpmExpectations(nonce=b"fresh")).acceptable
    for other in (b"fres", b"fresh\0", b"", b"stale"):
        assert codes(judged(raw, TpmExpectations(nonce=other))) == ["nonce-differs"]


def test_an_unsafe_clock_is_a_warning() -> None:
    pcrs = tpm.values()
    data = tpm.message(tpm.digest_of(pcrs), [tpm.selection("sha256", range(24))], safe=0)
    appraisal = judged(tpm.envelope(data, tpm.sign(tpm.rsa_key(), data), pcrs, tpm.rsa_key()))
    assert appraisal.acceptable
    assert "clock-unsafe" in [check.code for check in appraisal.checks]


EVENTS = [(0, 8, b"firmware"), (4, 0x80000003, b"loader"), (4, 0x80000003, b"kernel"), (14, 13, b"outside")]


def boot(bank: str = "sha256") -> dict[int, bytes]:
    values = {0: bytes(tpm.SIZES[bank]), 4: bytes(tpm.SIZES[bank])}
    for register, _, data in EVENTS:
        if register in values:
            digest = hashlib.new(bank, data).digest()
            values[register] = hashlib.new(bank, values[register] + digest).digest()
    return values


@pytest.mark.parametrize("bank", ["sha256", "sha384"])
def test_a_log_that_ends_in_the_signed_registers_verifies_its_events(bank: str) -> None:
    log = tpm.event_log(EVENTS, ("sha1", "sha256", "sha384"), filling=b"\xff" * 64)
    appraisal = judged(tpm.quoted(boot(bank), bank=bank), TpmExpectations(event_log=log))
    assert appraisal.acceptable, codes(appraisal)
    events = appraisal.claims["tpm"]["uefi_event_logs"]
    assert [event["verified"] for event in events] == [True, True, True, False]
    assert all(event["covers_data"] for event in events)
    assert "event-log-unverified" in [check.code for check in appraisal.checks]


@pytest.mark.parametrize("change", ["drop", "swap", "edit"])
def test_a_changed_log_is_refused_in_the_register_it_changes(change: str) -> None:
    events = list(EVENTS)
    if change == "drop":
        del events[2]
    elif change == "swap":
        events[1], events[2] = events[2], events[1]
    else:
        events[1] = (4, 0x80000003, b"evil")
    appraisal = judged(tpm.quoted(boot()), TpmExpectations(event_log=tpm.event_log(events)))
    assert [check.name for check in appraisal.checks if check.refuses] == ["event-log PCR 4"]
    assert [event["verified"] for event in appraisal.claims["tpm"]["uefi_event_logs"]][1] is False


def test_the_locality_of_the_start_is_the_first_value_of_register_0() -> None:
    first = bytes(31) + b"\x03"
    value = hashlib.sha256(first + hashlib.sha256(b"firmware").digest()).digest()
    log = tpm.event_log([(0, 3, b"StartupLocality\0\x03"), (0, 8, b"firmware")])
    assert judged(tpm.quoted({0: value}), TpmExpectations(event_log=log)).acceptable


def test_a_log_without_the_quoted_bank_is_refused() -> None:
    appraisal = judged(tpm.quoted(boot("sha384"), bank="sha384"), TpmExpectations(event_log=tpm.event_log(EVENTS)))
    assert codes(appraisal) == ["event-log-lacks-bank"]
