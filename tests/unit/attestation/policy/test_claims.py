"""What policies get to see: the claims that hardware signed, and nothing that only the caller says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from fastness.attestation.evidence.checks import Appraisal, Check, Findings, Identity, Result
from fastness.attestation.policy.claims import init_data_bound, policy_input
from fastness.attestation.policy.policy import compile_policy
from fastness.attestation.values.values import EMPTY
from fastness.crypto.silicon.registers import extend

DIGEST = bytes(range(32))


def appraised(tee: str, claims: Mapping[str, Any], *checks: Check) -> Appraisal:
    return Appraisal(tee, checks or (Check("signature", Result.PASS, "ok", proof=True),), claims, Identity("chip", "c"))


def test_the_shape_is_that_of_the_field() -> None:
    appraisal = appraised("snp", {"snp": {"measurement": "aa"}, "report_data": "01", "init_data": "00" * 32})
    assert policy_input(appraisal, {"nonce": "n", "tee-pubkey": {"kty": "EC"}}) == {
        "snp": {"measurement": "aa"},
        "report_data": "01",
        "init_data": "00" * 32,
        "runtime_data_claims": {"nonce": "n", "tee-pubkey": {"kty": "EC"}},
        "init_data_claims": None,
        "appraisal": {
            "authentic": True,
            "acceptable": True,
            "identity": {"kind": "chip", "value": "c"},
            "checks": {"signature": "Pass"},
        },
    }


def test_evidence_that_is_not_authentic_names_nobody() -> None:
    bad = appraised("snp", {"snp": {}}, Check("signature", Result.FAIL, "signature-invalid", proof=True))
    summary = policy_input(bad, {})["appraisal"]
    assert (summary["authentic"], summary["acceptable"], summary["identity"]) == (False, False, None)


def test_of_checks_with_one_name_the_worst_is_shown() -> None:
    checks = [Check("tcb", result, "x") for result in (Result.PASS, Result.FAIL, Result.WARN)]
    assert policy_input(appraised("snp", {"snp": {}}, *checks), {})["appraisal"]["checks"] == {"tcb": "Fail"}


@pytest.mark.parametrize(
    ("field", "digest", "bound"),
    [
        (DIGEST, DIGEST, True),
        (DIGEST + bytes(16), DIGEST, True),
        (DIGEST[:16], DIGEST, True),
        (bytes(32), DIGEST, False),
        (DIGEST, bytes(32), False),
        (DIGEST + b"\1" + bytes(15), DIGEST, False),
        (b"", DIGEST, False),
        (DIGEST, b"", False),
        (bytes(32), b"", False),
    ],
    ids=[
        "exact",
        "filled-up",
        "cut",
        "nothing-measured",
        "other-text",
        "trailing-byte",
        "no-field",
        "no-digest",
        "neither",
    ],
)
def test_pitfall_11_the_text_counts_only_when_the_hardware_signed_its_digest(
    field: bytes, digest: bytes, bound: bool
) -> None:
    appraisal = appraised("tdx", {"tdx": {}, "init_data": field.hex()})
    assert init_data_bound(appraisal, digest) is bound
    claims = policy_input(appraisal, {}, digest, {"machine-id": "me"})["init_data_claims"]
    assert claims == ({"machine-id": "me"} if bound else None)


def test_pitfall_11_a_policy_gains_nothing_from_a_text_that_was_not_measured() -> None:
    policy = compile_policy('package policy\nhardware := 2 if { input.init_data_claims["machine-id"] == "me" }\n')
    measured = appraised("snp", {"snp": {}, "init_data": DIGEST.hex()})
    empty = appraised("snp", {"snp": {}, "init_data": "00" * 32})
    text = {"machine-id": "me"}
    assert policy.evaluate(policy_input(measured, {}, DIGEST, text), EMPTY).value("hardware") == 2
    assert policy.evaluate(policy_input(empty, {}, DIGEST, text), EMPTY).value("hardware") == 0
    assert policy.evaluate(policy_input(measured, {}, None, text), EMPTY).value("hardware") == 0


def test_pitfall_11_for_a_tpm_the_text_must_be_in_pcr_8() -> None:
    value = extend("sha256", bytes(32), DIGEST).hex()
    good = {"bank": "sha256", "pcr08": value}
    assert init_data_bound(appraised("tpm", {"tpm": good}), DIGEST)
    assert not init_data_bound(appraised("tpm", {"tpm": {"bank": "sha256"}}), DIGEST)
    assert not init_data_bound(appraised("tpm", {"tpm": {**good, "bank": "sha384"}}), DIGEST)
    assert not init_data_bound(appraised("tpm", {"tpm": good}), DIGEST + bytes(16))


def test_pitfall_18_events_that_no_signed_register_confirms_are_not_shown() -> None:
    events = [
        {"register": 2, "digest": "aa", "verified": True},
        {"register": 9, "digest": "bb", "verified": False},
        {"register": 0, "digest": "cc"},
    ]
    document = policy_input(appraised("tdx", {"tdx": {"uefi_event_logs": events}}), {})
    assert [event["digest"] for event in document["tdx"]["uefi_event_logs"]] == ["aa"]
    walks = compile_policy('package policy\nexecutables := 3 if { input.tdx.uefi_event_logs[_].digest == "bb" }\n')
    assert walks.evaluate(document, EMPTY).value("executables") == 0
    assert len(events) == 3, "the appraisal itself is not changed"


def test_stale_collateral_is_said_in_the_words_of_the_field() -> None:
    findings = Findings()
    findings.expect("signature", True, "", proof=True)
    fresh = findings.appraisal("tdx", {"tdx": {"tcb_status": "UpToDate"}}, None)
    assert policy_input(fresh, {})["tdx"]["collateral_expiration_status"] == "0"
    findings.expect("tcb-info-dates", False, "collateral-expired")
    stale = findings.appraisal("tdx", {"tdx": {"tcb_status": "UpToDate"}}, None)
    assert policy_input(stale, {})["tdx"]["collateral_expiration_status"] == "1"
    unknown = findings.appraisal("tdx", {"tdx": {}}, None)
    assert "collateral_expiration_status" not in policy_input(unknown, {})["tdx"]
