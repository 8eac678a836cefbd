"""Intel's documents under a root that is not Intel's: they are no reason to accept a platform, and are not kept either."""

from __future__ import annotations

import json

import pytest

from fastness.attestation.evidence.checks import Findings
from fastness.attestation.evidence.intel_documents import judge_documents
from fastness.attestation.evidence.tdx import TdxExpectations, appraise_tdx
from fastness.crypto.silicon.dcap import Opinion
from fastness.formats.evidence.tdx.collateral import parse_collateral
from fastness.formats.evidence.tdx.quote import parse_quote
from tests.evidence.authority import pem
from tests.evidence.tdx import NOW, Platform


def document_refusals(platform: Platform, collateral: bytes) -> list[tuple[str, str]]:
    """What speaks against keeping documents: the check, and its code."""
    findings = Findings()
    judge_documents(findings, parse_collateral(collateral), platform.pin, NOW)
    return [(check.name, check.code) for check in findings.checks if check.refuses]


def changed(collateral: bytes, **members: str) -> bytes:
    return json.dumps({**json.loads(collateral), **members}).encode()


def test_levels_that_another_root_signed_make_no_platform_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastness.attestation.evidence.tdx.second_opinion", lambda *_: Opinion("UpToDate", ()))
    platform, other = Platform(), Platform()
    forged = platform.collateral(signer=(pem(other.signer, other.root), other.signer_key))
    expected = TdxExpectations(collateral=parse_collateral(forged), root=platform.pin)
    appraisal = appraise_tdx(parse_quote(platform.quote()), [], expected, NOW)
    refusing = [(check.name, check.code) for check in appraisal.checks if check.refuses]
    assert refusing == [
        ("tcb-info-signature", "untrusted-certificate"),
        ("qe-identity-signature", "untrusted-certificate"),
    ]
    assert document_refusals(platform, forged) == refusing


def test_each_document_has_its_own_signer() -> None:
    platform, other = Platform(), Platform()
    good = platform.collateral()
    foreign = pem(other.signer, other.root).decode()
    assert document_refusals(platform, good) == []
    for member, check in (("tcb_info", "tcb-info-signature"), ("qe_identity", "qe-identity-signature")):
        assert document_refusals(platform, changed(good, **{f"{member}_issuer_chain": foreign})) == [
            (check, "untrusted-certificate")
        ]


@pytest.mark.parametrize("chain", ["foreign", "none"])
def test_revocation_lists_whose_issuer_is_not_the_vendors_are_not_kept(chain: str) -> None:
    platform, other = Platform(), Platform()
    text = pem(other.authority, other.root).decode() if chain == "foreign" else "no certificate"
    assert document_refusals(platform, changed(platform.collateral(), pck_crl_issuer_chain=text)) == [
        ("pck-crl", "crl-unusable")
    ]
