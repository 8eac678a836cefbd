"""Judging an SNP report: is it AMD's word, about which chip, and what may the host do to the guest.

The endorsement key's certificate must be of the kind that the report names, chain to the pinned root of its generation, and
say the same firmware versions and chip as the report. Chip ids have 8 bytes on Turin and 64 before.

* Debug, a migration agent and a privilege level other than the expected one are hard failures.
* Whether the chip is new enough and still vouched for is asked in `snp_tcb`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, Final

from fastness.attestation.evidence.checks import DEBUG, Appraisal, Claims, Findings, Identity, instant
from fastness.attestation.evidence.snp_tcb import SnpExpectations, judge_revocation, judge_versions
from fastness.crypto.errors import BadCertificate, UntrustedCertificate
from fastness.crypto.silicon.chains import (
    MissingIssuer,
    chain_to_pin,
    extension_values,
    issuer_name,
    load_certificates,
    outside_validity,
    valid_between,
)
from fastness.crypto.silicon.verify import p384_certified
from fastness.crypto.x509 import Certificate
from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.snp.report import SIGNATURE_P384, Report, SigningKey
from fastness.formats.evidence.snp.tcb import Generation, read_tcb
from fastness.formats.evidence.snp.vek import Vek, read_vek

__all__ = ["SnpExpectations", "appraise_snp", "endorsement_of"]

_AMD: Final = "AMD"
# PLATFORM_INFO, ALIAS_CHECK_COMPLETE: no two addresses lead to one cell of memory (BadRAM: CVE-2024-21944, AMD-SB-3015).
_ALIAS_CHECK: Final = 5


@dataclass(frozen=True, slots=True)
class _Endorsement:
    certificate: Certificate
    vek: Vek


def appraise_snp(
    report: Report, certificates: Sequence[Certificate], expected: SnpExpectations, at: datetime
) -> Appraisal:
    """Judge a report with the certificates at hand."""
    findings = Findings()
    endorsement = _endorsement(findings, report, certificates)
    if endorsement is not None:
        # Signature, chain and binding are asked even when one fails: an operator needs to see all that is wrong at once.
        _signature(findings, report, endorsement.certificate)
        chain = _chain(findings, endorsement, certificates, expected, at)
        if chain:
            # Only with a chain: the list must be signed by the root that the chain ends in.
            judge_revocation(findings, chain, endorsement.vek.generation, expected, at)
        _binding(findings, report, endorsement.vek)
    # Judged also without an endorsement: the one verdict then names all that an operator has to repair.
    findings.nonce(report.report_data, expected.nonce, 64)
    _policy(findings, report, expected)
    if endorsement is not None:
        judge_versions(findings, report, endorsement.vek.generation, expected)
    return findings.appraisal("snp", Claims(partial(_claims, report, endorsement)), _identity(report, endorsement))


def endorsement_of(
    report: Report, certificates: Sequence[Certificate]
) -> tuple[Certificate, Generation] | tuple[None, None]:
    """The first certificate of the kind of key that a report names, and its generation; nothing about it is checked."""
    shared = report.signing_key is SigningKey.VLEK
    for certificate in certificates:
        try:
            vek = _vek(certificate.der)
        except (EvidenceError, BadCertificate):
            continue
        if vek is not None and vek.shared == shared:
            return certificate, vek.generation
    return None, None


def _endorsement(findings: Findings, report: Report, pool: Sequence[Certificate]) -> _Endorsement | None:
    name, kind = "endorsement-key", report.signing_key.name
    # With MASK_CHIP_KEY the firmware writes zeros in place of the signature (SNP firmware ABI, attestation report).
    if report.signing_key is SigningKey.NONE or report.chip_key_masked:
        findings.fail(name, "report-unsigned", "the host hid the key: nothing signed the report", proof=True)
        return None
    shared = report.signing_key is SigningKey.VLEK
    candidates: list[_Endorsement] = []
    for certificate in pool:
        try:
            vek = _vek(certificate.der)
        except (EvidenceError, BadCertificate) as error:
            findings.fail(name, "endorsement-unusable", str(error), hint="Fetch the certificate again.", proof=True)
            return None
        # VCEK or VLEK as the report says: they come from different secrets, and one never signs in the other's name (pitfall 8).
        if vek is not None and vek.shared == shared:
            candidates.append(_Endorsement(certificate, vek))
    if not candidates:
        findings.skip(
            name,
            "endorsement-missing",
            f"no {kind} certificate is at hand",
            hint=f"Give the {kind} of this chip and these firmware versions.",
            proof=True,
        )
        return None
    # The sender chooses what it brings: of several the one that signed is judged, so that no stray one refuses a good report.
    signer = candidates[0]
    if len(candidates) > 1:
        signer = next((entry for entry in candidates if _signs(entry.certificate, report)), signer)
    findings.expect(
        name, True, "", seen=f"{kind} of {signer.vek.product}", expected=kind, source="KEY_INFO", proof=True
    )
    return signer


@lru_cache(maxsize=1024)
def _vek(certificate_der: bytes) -> Vek | None:
    """What a certificate says about its key; remembered, because every report of a machine brings the same one."""
    (certificate,) = load_certificates(certificate_der)
    return read_vek(issuer_name(certificate), extension_values(certificate))


def _signs(certificate: Certificate, report: Report) -> bool:
    # Nothing else is tried: a number that the report brings must not choose what the report is checked with.
    if report.signature_algorithm != SIGNATURE_P384:
        return False
    return p384_certified(certificate, report.signature_r, report.signature_s, report.signed)


def _signature(findings: Findings, report: Report, certificate: Certificate) -> None:
    findings.expect(
        "signature",
        _signs(certificate, report),
        "signature-invalid",
        seen=f"algorithm {report.signature_algorithm}",
        expected="ECDSA P-384 with SHA-384 by the endorsement key",
        source=_AMD,
        hint="The report was changed, or the certificate belongs to another chip or other firmware versions.",
        proof=True,
    )


def _chain(
    findings: Findings, endorsement: _Endorsement, pool: Sequence[Certificate], expected: SnpExpectations, at: datetime
) -> tuple[Certificate, ...]:
    generation = endorsement.vek.generation
    try:
        # The one root of this generation: keys of Milan can be extracted (arXiv 2605.12990), and must not vouch for a newer chip.
        chain = chain_to_pin(endorsement.certificate, pool, [expected.roots[generation]])
    except MissingIssuer as error:
        findings.skip("certificate-chain", error.code, error.message, hint=error.hint, proof=True)
        return ()
    except UntrustedCertificate as error:
        findings.fail("certificate-chain", error.code, error.message, hint=error.hint, proof=True)
        return ()
    findings.expect(
        "certificate-chain",
        True,
        "",
        seen=_links(chain),
        expected=f"ARK-{generation} sha256:{expected.roots[generation]}",
        source="the pinned root",
        proof=True,
    )
    begin, end = valid_between(chain)
    findings.expect(
        # No `proof`: an old chain is still the chip's own. It refuses, and the verdict may say which machine has to renew.
        "certificate-dates",
        begin <= at <= end,
        "certificate-dates",
        seen=f"until {instant(end)}" if begin <= at <= end else "; ".join(outside_validity(chain, at)),
        expected=f"valid at {instant(at)}",
        source=_AMD,
        hint="Ask the host for a new certificate; check the clock.",
    )
    return chain


@lru_cache(maxsize=512)
def _links(chain: tuple[Certificate, ...]) -> str:
    return " ← ".join(issuer_name(entry) for entry in chain[:-1])


def _binding(findings: Findings, report: Report, vek: Vek) -> None:
    reported = read_tcb(report.reported_tcb, vek.generation)
    # The key is derived from the chip's secret and the versions. Firmware that was rolled back has another key, so a report that
    # names other versions than its certificate is not signed by the firmware that it names.
    versions, equal = str(reported), reported == vek.tcb
    findings.expect(
        "endorsement-versions",
        equal,
        "endorsement-versions-differ",
        seen=versions,
        expected=versions if equal else str(vek.tcb),
        source="the endorsement key's certificate",
        hint="Fetch the certificate for the reported versions.",
        proof=True,
    )
    if not vek.shared:  # a VLEK is a cloud's and names no chip
        size = vek.generation.chip_id_size
        findings.expect(
            "chip-id",
            # The field has 64 bytes everywhere; where the id is shorter the rest is zero, and two ids must not differ only there
            # (pitfall 8).
            report.chip_id[:size] == vek.hardware_id and not any(report.chip_id[size:]),
            "chip-id-differs",
            seen=report.chip_id.hex(),
            expected=vek.hardware_id.hex(),
            source="the endorsement key's certificate",
            hint="The host masks the chip id, or the certificate is another chip's.",
            proof=True,
        )
    # The report's own CPUID is signed by the chip: a certificate of another generation would read the versions in another layout.
    if report.cpu is not None:
        findings.expect(
            "generation",
            report.generation is vek.generation,
            "generation-differs",
            seen=f"CPUID family {report.cpu[0]:#x} model {report.cpu[1]:#x}: {report.generation or 'unknown'}",
            expected=str(vek.generation),
            source="the endorsement key's certificate",
            hint="Only Milan, Genoa and Turin have a pinned root." if report.generation is None else "",
            proof=True,
        )


def _policy(findings: Findings, report: Report, expected: SnpExpectations) -> None:
    policy = report.policy
    findings.production(
        not policy.debug_allowed,
        DEBUG,
        seen=f"policy {policy.raw:#x}",
        expected="bit 19 clear",
        source=_AMD,
        hint="The host can read this guest's memory. Start it without debugging.",
        simulated=expected.simulated,
    )
    findings.expect(
        "migration",
        not policy.migration_allowed,
        "migration-allowed",
        seen=f"policy {policy.raw:#x}",
        expected="bit 18 clear",
        source=_AMD,
        hint="A migration agent could take the guest's memory elsewhere. Start it without one.",
    )
    findings.expect(
        "policy-reserved",
        # Bit 17 must be one (SNP firmware ABI, guest policy); what is reserved today may allow the host something later.
        policy.bit(17) and policy.raw >> 26 == 0,
        "policy-reserved",
        seen=f"policy {policy.raw:#x}",
        expected="bit 17 set, bits 26 and above clear",
        source=_AMD,
    )
    findings.expect(
        "vmpl",
        # Every privilege level can ask for reports, with the same launch measurement: another level speaks for other software.
        report.vmpl == expected.vmpl,
        "vmpl-differs",
        seen=str(report.vmpl),
        expected=str(expected.vmpl),
        source="the expectations",
        hint="Something more privileged than the reporter runs in this guest, for example the cloud's paravisor.",
    )
    # No refusal: firmware that is older than the bit does not set it, and what is too old falls below the minimum versions.
    if not report.platform_info >> _ALIAS_CHECK & 1:
        findings.warn(
            "alias-check",
            "alias-check-missing",
            f"platform info {report.platform_info:#x}",
            expected="bit 5 set",
            source=_AMD,
            hint="The firmware does not say that it looked for memory modules that lie about their size (BadRAM).",
        )


def _claims(report: Report, endorsement: _Endorsement | None) -> dict[str, Any]:
    generation = endorsement.vek.generation if endorsement else report.generation
    snp: dict[str, Any] = {
        "version": report.version,
        "measurement": report.measurement.hex(),
        "chip_id": report.chip_id.hex(),
        "vmpl": report.vmpl,
        "guest_svn": report.guest_svn,
        "signing_key": report.signing_key.name,
        "generation": str(generation) if generation else "",
        "report_id": report.report_id.hex(),
        "id_key_digest": report.id_key_digest.hex(),
        "author_key_digest": report.author_key_digest.hex() if report.author_key else "",
        **report.policy.claims(),
        "platform_smt_enabled": bool(report.platform_info & 1),
        "platform_tsme_enabled": bool(report.platform_info >> 1 & 1),
        "platform_alias_check_complete": bool(report.platform_info >> _ALIAS_CHECK & 1),
    }
    if generation is not None:
        for name in ("reported", "committed", "launch", "current"):
            tcb = read_tcb(getattr(report, f"{name}_tcb"), generation)
            snp |= {f"{name}_tcb_{part}": version for part, version in tcb.components().items()}
    return {"snp": snp, "report_data": report.report_data.hex(), "init_data": report.host_data.hex()}


def _identity(report: Report, endorsement: _Endorsement | None) -> Identity | None:
    if endorsement is None:
        return None
    if endorsement.vek.shared:
        return Identity("cloud-provider", endorsement.vek.provider)
    return Identity("chip", report.chip_id[: endorsement.vek.generation.chip_id_size].hex())
