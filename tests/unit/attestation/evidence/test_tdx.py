"""Quotes minted with a root of our own, judged by both implementations: they agree, and each rule has a quote that breaks it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from fastness.attestation.evidence.checks import Appraisal, Result
from fastness.attestation.evidence.tdx import TdxExpectations, appraise_tdx
from fastness.crypto.silicon.dcap import Opinion
from fastness.formats.evidence.tdx.collateral import parse_collateral
from fastness.formats.evidence.tdx.quote import parse_quote
from fastness.sim.tee.firmware import TDX_LEVELS
from tests.evidence.authority import issue, pem
from tests.evidence.tdx import LEAF, NOW, PLATFORM, SGX, Platform, new_key
from tests.evidence.tpm import event_log


def judged(
    platform: Platform,
    quote: bytes,
    collateral: bytes | None = None,
    *,
    at: datetime = NOW,
    expected: TdxExpectations | None = None,
) -> Appraisal:
    documents = parse_collateral(collateral or platform.collateral())
    expectations = replace(expected or TdxExpectations(), collateral=documents, root=platform.pin)
    return appraise_tdx(parse_quote(quote), [], expectations, at)


def codes(appraisal: Appraisal) -> list[str]:
    return [check.code for check in appraisal.checks if check.refuses]


def opinion(appraisal: Appraisal) -> str:
    return next(check.seen for check in appraisal.checks if check.name == "second-opinion")


@pytest.mark.parametrize("version", [4, 5])
def test_both_versions_are_accepted_by_both_implementations(version: int) -> None:
    platform = Platform()
    appraisal = judged(platform, platform.quote(version, nonce=b"n"), expected=TdxExpectations(nonce=b"n"))
    assert appraisal.acceptable, [(check.name, check.seen) for check in appraisal.checks if check.refuses]
    assert opinion(appraisal) == "UpToDate"
    assert appraisal.identity is not None
    assert appraisal.identity.value == "11" * 16


def test_a_minted_platform_is_worth_nothing_under_the_real_root() -> None:
    platform = Platform()
    appraisal = appraise_tdx(parse_quote(platform.quote()), [], TdxExpectations(), NOW)
    assert not appraisal.authentic
    assert codes(appraisal)[0] == "untrusted-certificate"


@pytest.mark.parametrize(
    ("attributes", "code"),
    [
        (1 << 28 | 1, "debug-allowed"),
        (1 << 28 | 2, "attributes-reserved"),
        (0, "sept-ve-enabled"),
        (1 << 28 | 1 << 29, "migration-allowed"),
    ],
)
def test_attributes_that_open_the_domain_are_hard_failures(attributes: int, code: str) -> None:
    platform = Platform()
    appraisal = judged(platform, platform.quote(attributes=attributes))
    assert appraisal.authentic
    assert codes(appraisal) == [code]


def test_a_domain_that_another_one_serves_is_refused() -> None:
    platform = Platform()
    assert judged(platform, platform.quote(5)).acceptable
    appraisal = judged(platform, platform.quote(5, servicetd=b"\x01" * 48))
    assert appraisal.authentic
    assert codes(appraisal) == ["service-domain-bound"]


@pytest.mark.parametrize(
    ("attributes", "code"),
    [(1 << 28 | 1, "debug-allowed"), (1 << 28 | 1 << 29, "migration-allowed"), (1 << 28, "service-domain-bound")],
)
def test_what_opens_a_domain_is_refused_without_the_second_implementation(
    attributes: int, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def agrees(*_: object) -> Opinion:
        return Opinion("UpToDate", ())

    monkeypatch.setattr("fastness.attestation.evidence.tdx.second_opinion", agrees)
    platform = Platform()
    servicetd = b"\x01" * 48 if code == "service-domain-bound" else bytes(48)
    appraisal = judged(platform, platform.quote(5, attributes=attributes, servicetd=servicetd))
    assert codes(appraisal) == [code]


def test_exceptions_of_pages_are_a_warning_where_the_cluster_allows_them_and_nothing_else_is() -> None:
    platform, allowed = Platform(), TdxExpectations(allow_sept_ve=True)
    appraisal = judged(platform, platform.quote(attributes=0), expected=allowed)
    assert appraisal.acceptable, codes(appraisal)
    checks = {check.name: check for check in appraisal.checks}
    for name in ("sept-ve-disable", "second-opinion"):
        assert (checks[name].result, checks[name].code) == (Result.WARN, "sept-ve-enabled")
    for attributes, code in ((1, "debug-allowed"), (1 << 29, "migration-allowed")):
        assert code in codes(judged(platform, platform.quote(attributes=attributes), expected=allowed))
    old = platform.quote(attributes=0, svn=TDX_LEVELS["old"].tee_tcb_svn)
    assert "tcb-no-level" in codes(judged(platform, old, expected=allowed))


def test_the_second_implementation_is_not_overruled_for_another_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> Opinion:
        return Opinion("", (), "Verification failed: something else")

    monkeypatch.setattr("fastness.attestation.evidence.tdx.second_opinion", refuses)
    platform, allowed = Platform(), TdxExpectations(allow_sept_ve=True)
    assert codes(judged(platform, platform.quote(attributes=0), expected=allowed)) == ["verifiers-disagree"]


def test_under_a_simulated_root_debugging_is_a_warning_and_reserved_bits_are_not() -> None:
    platform, simulated = Platform(), TdxExpectations(simulated=True)
    appraisal = judged(platform, platform.quote(attributes=1 << 28 | 1), expected=simulated)
    (check,) = [check for check in appraisal.checks if check.name == "debug"]
    assert (check.result, check.code, appraisal.acceptable) == (Result.WARN, "debug-allowed", True)
    for attributes in (1 << 28 | 2, 1 << 28 | 3):
        assert not judged(platform, platform.quote(attributes=attributes), expected=simulated).acceptable


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"bind": bytes(32)}, "attestation-key-unbound"),
        ({"vendor": bytes(16)}, "qe-unknown"),
        ({"qe_debug": True}, "qe-unknown"),
    ],
)
def test_a_quoting_enclave_that_is_not_intels_proves_nothing(changes: dict[str, Any], code: str) -> None:
    platform = Platform()
    appraisal = judged(platform, platform.quote(**changes))
    assert not appraisal.authentic
    assert codes(appraisal)[0] == code


def test_another_platforms_chain_is_refused() -> None:
    platform, other = Platform(), Platform()
    appraisal = judged(platform, platform.quote(chain=pem(other.leaf, other.authority, other.root)))
    assert not appraisal.authentic
    key = new_key()
    twin = issue(LEAF, key, PLATFORM, platform.ca_key, extensions={})
    assert not judged(platform, platform.quote(chain=pem(twin, platform.authority, platform.root))).authentic


def test_a_certificate_that_did_not_sign_the_enclaves_report_is_refused() -> None:
    platform = Platform()
    twin = issue(LEAF, new_key(), PLATFORM, platform.ca_key, extensions={SGX: platform.extension()})
    appraisal = judged(platform, platform.quote(chain=pem(twin, platform.authority, platform.root)))
    assert not appraisal.authentic
    assert codes(appraisal) == ["qe-signature-invalid"]


def test_a_module_that_intel_did_not_sign_is_refused_with_and_without_collateral() -> None:
    platform = Platform()
    quote = platform.quote(seam_signer=b"\x01" * 48)
    appraisal = judged(platform, quote)
    assert [check.name for check in appraisal.checks if check.refuses] == ["seam-module", "seam-identity"]
    alone = appraise_tdx(parse_quote(quote), [], TdxExpectations(root=platform.pin), NOW)
    assert "seam-module-unknown" in codes(alone)


def test_each_document_has_dates_of_its_own() -> None:
    platform = Platform()
    late, early = {"nextUpdate": "2025-12-31T00:00:00Z"}, {"issueDate": "2026-01-02T00:00:00Z"}
    for change, code in ((late, "collateral-expired"), (early, "collateral-from-the-future")):
        for collateral in (
            platform.collateral(platform.tcb_info(**change)),
            platform.collateral(identity=platform.qe_identity(**change)),
        ):
            assert codes(judged(platform, platform.quote(), collateral)) == [code]


def test_a_chain_without_its_root_is_not_assessed() -> None:
    platform = Platform()
    appraisal = judged(platform, platform.quote(chain=pem(platform.leaf, platform.authority)))
    assert codes(appraisal)[0] == "missing-issuer"
    assert "platform-unknown" in codes(appraisal), "what could not be compared is no reason to accept"


def test_only_a_provisioning_certificate_may_sign_for_a_quoting_enclave() -> None:
    platform = Platform(leaf_name="somebody")
    assert not judged(platform, platform.quote()).authentic


def test_a_platform_cannot_publish_its_own_levels() -> None:
    platform = Platform()
    forged = platform.collateral(signer=(pem(platform.leaf, platform.authority, platform.root), platform.pck_key))
    appraisal = judged(platform, platform.quote(), forged)
    assert codes(appraisal)[:2] == ["tcb-info-unsigned", "qe-identity-unsigned"]


def test_revoked_certificates_are_refused_by_both() -> None:
    platform = Platform()
    for collateral in (platform.collateral(revoked_by_ca=(3,)), platform.collateral(revoked_by_root=(2,))):
        appraisal = judged(platform, platform.quote(), collateral)
        assert codes(appraisal) == ["certificate-revoked"]
        assert "Revoked" in opinion(appraisal)


def test_an_old_revocation_list_is_none() -> None:
    platform = Platform()
    appraisal = judged(platform, platform.quote(), platform.collateral(crl_end=NOW - timedelta(seconds=1)))
    assert codes(appraisal) == ["crl-expired", "crl-expired"]


@pytest.mark.parametrize(
    ("days", "code"), [(31, "collateral-expired"), (-2, "collateral-from-the-future"), (4000, "certificate-dates")]
)
def test_time_refuses_and_leaves_the_quote_authentic(days: int, code: str) -> None:
    platform = Platform()
    appraisal = judged(platform, platform.quote(), at=NOW + timedelta(days=days))
    assert appraisal.authentic
    assert code in codes(appraisal)


def test_a_platform_that_is_behind_is_told_which_component_and_which_advisory() -> None:
    platform = Platform()
    newest = platform.tcb_info()["tcbLevels"][0]
    parts = [{**part, "svn": 6} if n == 7 else part for n, part in enumerate(newest["tcb"]["sgxtcbcomponents"])]
    higher = {**newest, "tcb": {**newest["tcb"], "sgxtcbcomponents": parts}}
    lower = {**newest, "tcbStatus": "OutOfDate", "advisoryIDs": ["INTEL-SA-00001"]}
    appraisal = judged(platform, platform.quote(), platform.collateral(platform.tcb_info(tcbLevels=[lower, higher])))
    assert codes(appraisal) == ["tcb-behind"]
    status_text = next(check.seen for check in appraisal.checks if check.name == "tcb-status")
    assert status_text == "OutOfDate; SGX component 8 (OS/VMM, SEAMLDR ACM): 5, needs 6; INTEL-SA-00001"
    assert opinion(appraisal) == "OutOfDate; INTEL-SA-00001"
    expected = TdxExpectations(statuses=frozenset({"UpToDate", "OutOfDate"}))
    again = judged(
        platform, platform.quote(), platform.collateral(platform.tcb_info(tcbLevels=[lower])), expected=expected
    )
    assert again.acceptable


def test_the_worst_of_platform_module_and_enclave_counts() -> None:
    platform = Platform()
    info = platform.tcb_info()
    info["tdxModuleIdentities"][0]["tcbLevels"][0]["tcbStatus"] = "OutOfDate"
    appraisal = judged(platform, platform.quote(), platform.collateral(info))
    assert (codes(appraisal), opinion(appraisal)) == (["tcb-behind"], "OutOfDate")
    identity = platform.qe_identity()
    identity["tcbLevels"][0]["tcbStatus"] = "Revoked"
    assert codes(judged(platform, platform.quote(), platform.collateral(identity=identity)))[0] == "tcb-behind"


@pytest.mark.parametrize("change", [{"fmspc": "00" * 6}, {"pceId": "0001"}, {"id": "SGX"}, {"version": 2}])
def test_documents_about_others_are_refused(change: dict[str, Any]) -> None:
    platform = Platform()
    appraisal = judged(platform, platform.quote(), platform.collateral(platform.tcb_info(**change)))
    assert "collateral-of-another-platform" in codes(appraisal)


@pytest.mark.parametrize(
    "change",
    [
        {"mrsigner": "ff" * 32},
        {"isvprodid": 1},
        {"miscselect": "00000001"},
        {"attributes": "ff" + "00" * 15},
        {"attributes": "00"},
        {"attributesMask": "ff"},
        {"id": "QE"},
    ],
)
def test_a_quoting_enclave_unlike_its_identity_is_refused_by_both(change: dict[str, Any]) -> None:
    platform = Platform()
    appraisal = judged(platform, platform.quote(), platform.collateral(identity=platform.qe_identity(**change)))
    assert "qe-identity-differs" in codes(appraisal)
    assert "UpToDate" not in opinion(appraisal)


def test_a_module_that_intel_does_not_name_is_refused() -> None:
    platform = Platform()
    assert "seam-module-unknown" in codes(judged(platform, platform.quote(svn=bytes([5, 9, 3]) + bytes(13))))


@pytest.mark.parametrize("change", [{"attributesMask": "ff"}, {"attributes": "00"}, {"attributes": "01" + "00" * 7}])
def test_an_identity_of_a_module_with_other_attributes_or_lengths_matches_no_module(change: dict[str, Any]) -> None:
    platform = Platform()
    info = platform.tcb_info()
    info["tdxModuleIdentities"] = [{**identity, **change} for identity in info["tdxModuleIdentities"]]
    assert "seam-module-unknown" in codes(judged(platform, platform.quote(), platform.collateral(info)))


def test_the_module_that_runs_now_counts_as_much_as_the_one_at_launch() -> None:
    platform = Platform()
    appraisal = judged(platform, platform.quote(5, svn2=bytes([4, 1, 3]) + bytes(13)))
    assert codes(appraisal) == ["tcb-no-level"]
    assert "TEE_TCB_SVN2" in opinion(appraisal)


def test_a_log_explains_the_runtime_registers() -> None:
    platform = Platform()
    value = hashlib.sha384(bytes(48) + hashlib.sha384(b"kernel").digest()).digest()
    log = event_log([(2, 13, b"kernel"), (0, 13, b"aside"), (9, 13, b"stray")], ("sha384",))
    quote = platform.quote(rtmrs=[bytes(48), value])
    appraisal = judged(platform, quote, expected=TdxExpectations(event_log=log))
    assert appraisal.acceptable, codes(appraisal)
    events = appraisal.claims["tdx"]["uefi_event_logs"]
    assert [(event["register_name"], event["verified"]) for event in events][:2] == [
        ("RTMR 1", True),
        ("register 0", False),
    ]
    other = event_log([(2, 13, b"evil")], ("sha384",))
    assert codes(judged(platform, quote, expected=TdxExpectations(event_log=other))) == ["event-log-differs"]


def test_a_log_that_cannot_be_read_explains_nothing_and_is_refused() -> None:
    platform = Platform()
    appraisal = judged(platform, platform.quote(), expected=TdxExpectations(event_log=b"no log"))
    assert codes(appraisal) == ["event-log-unreadable"]


def test_a_quote_that_was_changed_after_signing_is_not_authentic_for_our_own_verifier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fastness.attestation.evidence.tdx.second_opinion", lambda *_: Opinion("UpToDate", ()))
    platform = Platform()
    quote = platform.quote(nonce=b"honest")
    forged = quote.replace(b"honest", b"forged", 1)
    assert forged != quote
    appraisal = judged(platform, forged)
    assert not appraisal.authentic
    assert codes(appraisal) == ["signature-invalid"]


def test_a_revocation_list_that_is_none_stops_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastness.attestation.evidence.tdx.second_opinion", lambda *_: Opinion("UpToDate", ()))
    platform = Platform()
    for member in ("root_ca_crl", "pck_crl"):
        broken = json.dumps({**json.loads(platform.collateral()), member: b"no list".hex()}).encode()
        assert codes(judged(platform, platform.quote(), broken)) == ["crl-unusable"]


def test_a_disagreement_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    from fastness.attestation.evidence import tdx
    from fastness.crypto.silicon.dcap import Opinion

    platform = Platform()
    monkeypatch.setattr(tdx, "second_opinion", lambda *_: Opinion("", (), "no"))
    assert codes(judged(platform, platform.quote())) == ["verifiers-disagree"]
