"""Judging Intel's documents before anything is read out of them.

Each must be signed by "Intel SGX TCB Signing" under the pinned root, be about this platform, and be current. A platform's own
certificate also chains to that root, so the signer is asked for by name: otherwise every platform could publish its own levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from fastness.attestation.evidence.checks import Findings
from fastness.crypto.errors import CryptoError
from fastness.crypto.silicon.chains import chain_to_pin, load_certificates, outside_validity, subject_name
from fastness.crypto.silicon.revocation import RevocationList
from fastness.crypto.silicon.verify import p256_certified
from fastness.crypto.x509 import Certificate
from fastness.formats.evidence.tdx.collateral import Collateral, QeIdentity, SignedText, TcbInfo
from fastness.formats.evidence.tdx.pck import Pck

SIGNER: Final = "Intel SGX TCB Signing"
_INTEL: Final = "Intel"
_RENEW: Final = "Fetch the collateral again from Intel's provisioning service or its cache."


def judge_collateral(
    findings: Findings, collateral: Collateral, pck_chain: Sequence[Certificate], pck: Pck, root: str, at: datetime
) -> None:
    """Check signatures, scope, dates and revocation."""
    # All that follows is read out of these two. dcap-qvl once fetched the identity of the quoting enclave and did not check its
    # signature: any enclave could be named as Intel's (CVE-2026-22696).
    signers = [
        _signed(findings, "tcb-info", collateral.tcb_text, root, at),
        _signed(findings, "qe-identity", collateral.qe_text, root, at),
    ]
    _dates(findings, "tcb-info", collateral.tcb_info, at)
    _dates(findings, "qe-identity", collateral.qe_identity, at)
    _scope(findings, collateral.tcb_info, pck)
    _revocation(findings, collateral, pck_chain, [entry for entry in signers if entry], at)


def judge_documents(findings: Findings, collateral: Collateral, root: str, at: datetime) -> None:
    """The same without a platform: whether documents are worth keeping, and their numbers worth remembering."""
    _signed(findings, "tcb-info", collateral.tcb_text, root, at)
    _signed(findings, "qe-identity", collateral.qe_text, root, at)
    _dates(findings, "tcb-info", collateral.tcb_info, at)
    _dates(findings, "qe-identity", collateral.qe_identity, at)
    try:
        certificates = load_certificates(collateral.pck_crl_chain)
        authority, *_, top = chain_to_pin(certificates[0], certificates, [root])
    except (CryptoError, ValueError) as error:
        findings.fail("pck-crl", "crl-unusable", str(error), source=_INTEL, hint=_RENEW)
        return
    # By issuer: a list that is signed by another authority than the one it is used for says nothing about its certificates.
    for name, data, issuer in (("root-crl", collateral.root_crl, top), ("pck-crl", collateral.pck_crl, authority)):
        _list(findings, name, data, issuer, at)


def _list(findings: Findings, name: str, data: bytes, issuer: Certificate, at: datetime) -> RevocationList | None:
    try:
        listed = RevocationList(data)
    except CryptoError as error:
        findings.fail(name, "crl-unusable", error.message, source=_INTEL, hint=_RENEW)
        return None
    genuine = listed.signed_by(issuer)
    good = findings.expect(
        name,
        genuine and listed.current(at),
        "crl-expired" if genuine else "crl-unusable",
        seen=listed.dates,
        expected=f"issued by {subject_name(issuer)}, current at {at:%Y-%m-%dT%H:%M:%SZ}",
        source=_INTEL,
        hint=_RENEW,
    )
    return listed if good else None


def _signed(findings: Findings, name: str, document: SignedText, root: str, at: datetime) -> Certificate | None:
    check = f"{name}-signature"
    try:
        certificates = load_certificates(document.chain)
        chain = chain_to_pin(certificates[0], certificates, [root])
    except CryptoError as error:
        findings.fail(check, error.code, error.message, source=_INTEL, hint=_RENEW)
        return None
    signer = chain[0]
    wrong = outside_validity(chain, at)
    good = (
        # Directly below the root, as Intel issues this one signer.
        len(chain) == 2
        and subject_name(signer) == SIGNER
        and p256_certified(signer, document.signature, document.text)
        and not wrong
    )
    findings.expect(
        check,
        good,
        f"{name}-unsigned",
        seen="; ".join([subject_name(signer), *wrong]),
        expected=f"signed by {SIGNER} under the pinned root",
        source=_INTEL,
        hint=_RENEW,
    )
    return signer


def _dates(findings: Findings, name: str, document: TcbInfo | QeIdentity, at: datetime) -> None:
    early = at < document.issued
    findings.expect(
        # An old document calls a platform up to date that has holes by now; whoever keeps the files could keep it so for ever
        # (pitfall 19).
        f"{name}-dates",
        not early and at <= document.next_update,
        "collateral-from-the-future" if early else "collateral-expired",
        seen=f"{document.issued:%Y-%m-%dT%H:%M:%SZ} to {document.next_update:%Y-%m-%dT%H:%M:%SZ}",
        expected=f"current at {at:%Y-%m-%dT%H:%M:%SZ}",
        source=_INTEL,
        hint="Check the clock." if early else _RENEW,
    )


def _scope(findings: Findings, info: TcbInfo, pck: Pck) -> None:
    about = f"{info.id} version {info.version} for FMSPC {info.fmspc.lower()} PCE {info.pce_id.lower()}"
    findings.expect(
        "tcb-info-scope",
        info.id == "TDX"
        # Version 3 brought the components of TDX; an older document has no opinion about them.
        and info.version >= 3
        and bytes.fromhex(info.fmspc) == pck.fmspc
        # Signed and current, but of another kind of platform: its levels would be compared with versions of other components.
        and bytes.fromhex(info.pce_id) == pck.pce_id,
        "collateral-of-another-platform",
        seen=about,
        expected=f"TDX version 3 for FMSPC {pck.fmspc.hex()} PCE {pck.pce_id.hex()}",
        source="the platform's certificate",
        hint="Fetch the TCB information of this platform's FMSPC.",
    )


def _revocation(
    findings: Findings,
    collateral: Collateral,
    pck_chain: Sequence[Certificate],
    signers: Sequence[Certificate],
    at: datetime,
) -> None:
    # Both lists: the root's names authorities and signers that Intel took back, the authority's names single platforms.
    leaf, authority, root = pck_chain
    for name, data, issuer, subjects in (
        ("root-crl", collateral.root_crl, root, [authority, *signers]),
        ("pck-crl", collateral.pck_crl, authority, [leaf]),
    ):
        listed = _list(findings, name, data, issuer, at)
        if listed is None:
            continue
        revoked = [subject_name(entry) for entry in subjects if listed.revokes(entry)]
        findings.expect(
            f"{name}-entries",
            not revoked,
            "certificate-revoked",
            seen=", ".join(revoked) or "none of this chain",
            expected="none of this chain",
            source=_INTEL,
            hint="The vendor no longer vouches for this platform.",
        )
