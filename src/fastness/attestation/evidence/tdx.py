"""Judging a TDX quote.

Four signatures lead from the guest to Intel: the attestation key signed the quote, the quoting enclave vouches for that
key, the platform's certificate (PCK) signed the enclave's report, and the pinned root is above it. That is authenticity.
Whether the platform is new enough takes Intel's documents; without them the question is open and nothing is granted.

Debug, migration and service domains are refused here, whatever the second implementation does: each lets somebody else reach
the memory of the guest. Exceptions for pages that the host took away (SEPT_VE) are refused unless the cluster allows them:
some clouds start all domains so.

Where there is collateral, a second implementation judges the same bytes at the same time, and the two must agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fastness.attestation.evidence import tdx_tcb
from fastness.attestation.evidence.checks import DEBUG, Appraisal, Findings, Identity
from fastness.attestation.evidence.intel_documents import judge_collateral
from fastness.attestation.evidence.replay import judge_log, logged_phase
from fastness.attestation.evidence.roots import NO_MINIMUM, TdxMinimum
from fastness.attestation.evidence.tdx_claims import quote_claims, standing_claims
from fastness.crypto.digests import same, sha256
from fastness.crypto.errors import CryptoError
from fastness.crypto.silicon.chains import (
    MissingIssuer,
    chain_to_pin,
    extension_values,
    load_certificates,
    outside_validity,
    subject_name,
)
from fastness.crypto.silicon.dcap import SEPT_VE_REFUSED, second_opinion
from fastness.crypto.silicon.pins import INTEL_ROOT
from fastness.crypto.silicon.verify import p256_certified, p256_raw
from fastness.crypto.x509 import Certificate
from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.tdx.collateral import Collateral
from fastness.formats.evidence.tdx.pck import EXTENSION, Pck, read_pck
from fastness.formats.evidence.tdx.quote import INTEL_QE, TdxQuote
from fastness.protocol.user_data_event import PHASE_RTMR, RTMR

_INTEL: Final = "Intel"
SEPT_VE: Final = "sept-ve-enabled"
_LEAF: Final = "Intel SGX PCK Certificate"
# Either kind, as Intel issues them: for platforms of several packages and for single ones.
_AUTHORITIES: Final = ("Intel SGX PCK Platform CA", "Intel SGX PCK Processor CA")


@dataclass(frozen=True, slots=True)
class TdxExpectations:
    """What the caller knows: challenge, Intel's documents, statuses and minimums that still count, an event log, the root.

    `allow_sept_ve` accepts domains whose pages the host can make fault. `simulated` says that the root is of a simulated
    vendor, in a simulated cluster.
    """

    nonce: bytes | None = None
    collateral: Collateral | None = None
    statuses: frozenset[str] = frozenset({tdx_tcb.UP_TO_DATE})
    minimum: TdxMinimum = NO_MINIMUM
    event_log: bytes = b""
    root: str = INTEL_ROOT
    allow_sept_ve: bool = False
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class _Platform:
    chain: tuple[Certificate, ...]
    pck: Pck


def appraise_tdx(
    quote: TdxQuote, certificates: Sequence[Certificate], expected: TdxExpectations, at: datetime
) -> Appraisal:
    """Judge a quote; `certificates` help where the quote's own chain is incomplete."""
    findings = Findings()
    platform = _platform(findings, quote, certificates, expected.root)
    _signatures(findings, quote, platform)
    _attributes(findings, quote, expected)
    if platform is not None:
        _dates(findings, platform, at)
    claims = quote_claims(quote, platform.pck if platform else None)
    standing = _collateral(findings, quote, platform, expected, at)
    if standing is not None and expected.collateral is not None:
        claims["tdx"] |= standing_claims(standing, expected.collateral)
    findings.nonce(quote.report.report_data, expected.nonce, 64)
    signed = {index + 1: value for index, value in enumerate(quote.report.rtmrs)}
    if (logged := logged_phase(expected.event_log, "sha384", signed, RTMR)) is not None:
        claims["tdx"]["phase"] = logged.phase
        # Policies compare what was measured beside the phases: an image has one value, whenever it is asked.
        claims["tdx"]["quote"]["body"][f"rtmr_{PHASE_RTMR}"] = logged.before.hex()
    if expected.event_log:
        events = judge_log(findings, expected.event_log, "sha384", signed, RTMR)
        claims["tdx"]["uefi_event_logs"] = events or []
    return findings.appraisal("tdx", claims, _identity(platform))


def _platform(findings: Findings, quote: TdxQuote, extra: Sequence[Certificate], root: str) -> _Platform | None:
    try:
        # The certificates that came with the quote are unsigned hints; only a way from the first of them to the pinned root
        # counts.
        carried = load_certificates(quote.pck_chain)
        chain = chain_to_pin(carried[0], [*carried, *extra], [root])
        pck = read_pck(extension_values(chain[0]).get(EXTENSION, b""))
    except MissingIssuer as error:
        findings.skip("certificate-chain", error.code, error.message, hint=error.hint, proof=True)
        return None
    except (CryptoError, EvidenceError) as error:
        findings.fail("certificate-chain", error.code, str(error), source=_INTEL, hint=error.hint, proof=True)
        return None
    names = [subject_name(entry) for entry in chain]
    # By name, too: Intel's root also stands over certificates of other services, which vouch for no platform.
    good = findings.expect(
        "certificate-chain",
        len(chain) == 3 and names[0] == _LEAF and names[1] in _AUTHORITIES,
        "untrusted-certificate",
        seen=" ← ".join(names),
        expected=f"a PCK certificate under sha256:{root}",
        source="the pinned root",
        proof=True,
    )
    return _Platform(chain, pck) if good else None


def _signatures(findings: Findings, quote: TdxQuote, platform: _Platform | None) -> None:
    findings.expect(
        "signature",
        # With a key that the quote itself brings: alone this proves nothing. The next three checks tie the key to Intel.
        p256_raw(quote.attestation_key, quote.signature, quote.signed),
        "signature-invalid",
        seen=f"quote version {quote.header.version}",
        expected="ECDSA P-256 by the attestation key",
        source=_INTEL,
        hint="The quote was changed after signing.",
        proof=True,
    )
    # The attestation key has no certificate: the quoting enclave's own report vouches for it, and the platform's key signed that.
    # All 64 bytes are compared: the hash has 32, and what is behind it is zero or it is another structure.
    bound = sha256(quote.attestation_key + quote.qe_auth_data).value.ljust(64, b"\0")
    findings.expect(
        "attestation-key",
        same(bound, quote.qe_report.report_data),
        "attestation-key-unbound",
        seen=quote.qe_report.report_data.hex(),
        expected=bound.hex(),
        source="the quoting enclave's report",
        hint="The attestation key is not the one that the quoting enclave made.",
        proof=True,
    )
    good = platform is not None and p256_certified(platform.chain[0], quote.qe_signature, quote.qe_report.raw)
    findings.expect(
        "qe-signature",
        good,
        "qe-signature-invalid",
        expected="ECDSA P-256 by the platform's certificate",
        source=_INTEL,
        hint="The quoting enclave's report was changed, or another platform's certificate is attached.",
        proof=True,
    )
    findings.expect(
        "qe-vendor",
        # A debug enclave has its memory open to the host, with the attestation key in it.
        quote.header.qe_vendor == INTEL_QE and not quote.qe_report.debug,
        "qe-unknown",
        seen=quote.header.qe_vendor.hex() + (" (debug)" if quote.qe_report.debug else ""),
        expected=INTEL_QE.hex(),
        source=_INTEL,
        hint="Only Intel's quoting enclave counts, and not in debug mode.",
        proof=True,
    )


def _attributes(findings: Findings, quote: TdxQuote, expected: TdxExpectations) -> None:
    report = quote.report
    attributes, bits = report.td_attributes, f"attributes {report.td_attributes.raw:#x}"
    findings.production(
        # The whole byte: a bit of this group that is set makes the domain untrusted by definition, also one that has no name yet
        # (pitfall 10).
        not attributes.debug and not attributes.reserved_tud,
        DEBUG if attributes.debug else "attributes-reserved",
        seen=bits,
        expected="bits 0 to 7 clear",
        source=_INTEL,
        hint="The host can look inside this trust domain. Start it without debugging.",
        simulated=expected.simulated and not attributes.reserved_tud,
    )
    _sept_ve(findings, attributes.sept_ve_disable, bits, expected.allow_sept_ve)
    findings.expect(
        "migration",
        not attributes.migratable,
        "migration-allowed",
        seen=bits,
        expected="bit 29 clear",
        source=_INTEL,
        hint="A migration domain could take the memory of the guest elsewhere. Start it without one.",
    )
    findings.expect(
        "service-domain",
        # A service domain, as that which migrates, can read and write metadata of the domain that it is bound to.
        # Only TDX 1.5 reports it; before, no domain could be bound to another.
        not any(report.mr_servicetd or b""),
        "service-domain-bound",
        seen=report.mr_servicetd.hex() if report.mr_servicetd else "none",
        expected="MRSERVICETD zero",
        source=_INTEL,
        hint="Another domain is bound to this one and may reach into it. Start it without service domains.",
    )
    findings.expect(
        "seam-module",
        # Zero stands for Intel's own module. This holds without collateral, which is compared with in `seam-identity`.
        not any(report.mrsigner_seam) and not any(report.seam_attributes),
        "seam-module-unknown",
        seen=f"signer {report.mrsigner_seam.hex()}, attributes {report.seam_attributes.hex()}",
        expected="zero: Intel's module in production mode",
        source=_INTEL,
    )


def _sept_ve(findings: Findings, disabled: bool, bits: str, allowed: bool) -> None:
    name, hint = "sept-ve-disable", "The host can make the guest fault on its own pages. Start it with SEPT_VE_DISABLE."
    # With the exception enabled the host picks an instruction of the guest, takes the page away under it, and the kernel's
    # handler runs there. Linux refuses to boot so, in domains without debugging (arch/x86/coco/tdx).
    if allowed and not disabled:
        findings.warn(name, SEPT_VE, bits, expected="bit 28 set", source="attestation.tdx.allowSeptVe", hint=hint)
    else:
        findings.expect(name, disabled, SEPT_VE, seen=bits, expected="bit 28 set", source=_INTEL, hint=hint)


def _dates(findings: Findings, platform: _Platform, at: datetime) -> None:
    wrong = outside_validity(platform.chain, at)
    findings.expect(
        "certificate-dates",
        not wrong,
        "certificate-dates",
        seen="; ".join(wrong) or f"until {min(entry.not_after for entry in platform.chain):%Y-%m-%dT%H:%M:%SZ}",
        expected=f"valid at {at:%Y-%m-%dT%H:%M:%SZ}",
        source=_INTEL,
        hint="Renew the platform's certificate; check the clock.",
    )


def _collateral(
    findings: Findings, quote: TdxQuote, platform: _Platform | None, expected: TdxExpectations, at: datetime
) -> tdx_tcb.TcbStatus | None:
    collateral = expected.collateral
    if collateral is None:
        findings.skip(
            "tcb-status",
            "collateral-missing",
            "no collateral was given: nobody knows whether this platform is still good",
            hint="Give Intel's collateral for this platform"
            + (f" (FMSPC {platform.pck.fmspc.hex()})." if platform else "."),
        )
        return None
    if platform is None:
        findings.skip("tcb-status", "platform-unknown", "without a platform certificate there is nothing to compare")
        return None
    # Under the root of the quote: documents of a simulated vendor must not excuse a real platform, nor the other way round.
    judge_collateral(findings, collateral, platform.chain, platform.pck, expected.root, at)
    standing = _standing(findings, quote, platform.pck, collateral, expected.statuses)
    _agreement(findings, quote, platform, collateral, standing, at)
    _minimum(findings, collateral, standing, expected.minimum)
    return standing


def _minimum(findings: Findings, collateral: Collateral, standing: tdx_tcb.TcbStatus, least: TdxMinimum) -> None:
    """Floors that the cluster sets beside Intel's own statuses."""
    hint = "Update the host's firmware and TDX module, and fetch newer documents."
    if least.evaluation:
        # The lower of the two documents: whoever mixes a new one with an old one gains nothing.
        reached = min(collateral.tcb_info.evaluation, collateral.qe_identity.evaluation)
        findings.expect(
            "tcb-evaluation",
            reached >= least.evaluation,
            "tcb-behind",
            seen=str(reached),
            expected=f"at least {least.evaluation}",
            source="the minimum of this cluster",
            hint=hint,
        )
    if least.date is not None:
        findings.expect(
            "tcb-date",
            # No level has no date, and what is not known is not new enough.
            standing.date is not None and standing.date >= least.date,
            "tcb-behind",
            seen=f"{standing.date:%Y-%m-%d}" if standing.date else "no level",
            expected=f"at least {least.date:%Y-%m-%d}",
            source="the minimum of this cluster",
            hint=hint,
        )


def _standing(
    findings: Findings, quote: TdxQuote, pck: Pck, collateral: Collateral, accepted: frozenset[str]
) -> tdx_tcb.TcbStatus:
    info, report = collateral.tcb_info, quote.report
    differences = tdx_tcb.qe_differences(collateral.qe_identity, quote.qe_report)
    findings.expect(
        "qe-identity",
        not differences,
        "qe-identity-differs",
        seen=", ".join(differences) or f"TD_QE version {quote.qe_report.isv_svn}",
        expected="the published identity",
        source=_INTEL,
    )
    # The module stands between host and guest. One that Intel never published may hold both ends.
    module = tdx_tcb.module_of(info, report.tee_tcb_svn)
    findings.expect(
        "seam-identity",
        module is not None and tdx_tcb.module_matches(module, report),
        "seam-module-unknown",
        seen=f"TDX module {report.tee_tcb_svn[1]}.{report.tee_tcb_svn[0]}, MRSEAM {report.mr_seam.hex()}",
        expected="a published identity",
        source=_INTEL,
        hint="Update the host's TDX module.",
    )
    parts = [tdx_tcb.qe_standing(collateral.qe_identity, quote.qe_report)]
    lacks: dict[str, None] = {}
    for svn in tdx_tcb.versions(report):
        of_module = tdx_tcb.module_standing(info, svn)
        parts += [tdx_tcb.platform_standing(info, pck, svn), *([of_module] if of_module else [])]
        lacks |= dict.fromkeys(tdx_tcb.behind(info, pck, svn))
    # Of processor, module and enclave the worst: the guest is as safe as the weakest of what it trusts.
    standing = tdx_tcb.worst(parts)
    facts = [standing.status or "no level matches", *lacks, *standing.advisories]
    findings.expect(
        "tcb-status",
        # An allow-list: a status that Intel adds later is refused until somebody has read what it means (pitfall 9).
        standing.status in accepted,
        "tcb-no-level" if not standing.status else "tcb-behind",
        seen="; ".join(facts),
        expected=", ".join(sorted(accepted)),
        source=f"TCB information, evaluation {info.evaluation}",
        hint="Update the host's firmware, microcode and TDX module; then provision the platform again.",
    )
    return standing


def _agreement(
    findings: Findings,
    quote: TdxQuote,
    platform: _Platform,
    collateral: Collateral,
    standing: tdx_tcb.TcbStatus,
    at: datetime,
) -> None:
    opinion = second_opinion(quote.raw, collateral.raw, platform.chain[-1], at)
    answer = "; ".join([opinion.status, *opinion.advisories]) if opinion.refusal is None else opinion.refusal
    source = "dcap-qvl"
    if any(check.code == DEBUG for check in findings.checks):
        # The other implementation never looks further at a domain that can be debugged. Ours warns where all is simulated.
        findings.warn("second-opinion", DEBUG, answer, expected=standing.status, source=source)
        return
    if opinion.refusal == SEPT_VE_REFUSED and any(
        check.code == SEPT_VE and not check.refuses for check in findings.checks
    ):
        # It refuses every such domain, and says nothing more about one that this cluster allows.
        findings.warn("second-opinion", SEPT_VE, answer, expected=standing.status, source=source)
        return
    if findings.refused:
        # Refused either way; ours asks more, so their consent is worth a look and changes nothing.
        agree = opinion.refusal is not None or opinion.status == standing.status
        if agree:
            findings.expect("second-opinion", True, "", seen=answer, source=source)
        else:
            findings.warn("second-opinion", "verifiers-differ", answer, expected=standing.status, source=source)
        return
    findings.expect(
        "second-opinion",
        # Verifiers of quotes have had defects (pitfall 20), the other one among them (CVE-2026-22696): a forged quote must meet
        # one in both.
        opinion.refusal is None and opinion.status == standing.status,
        "verifiers-disagree",
        seen=answer,
        expected=standing.status,
        source=source,
        hint="Two implementations judge the same bytes differently: report this with the evidence.",
    )


def _identity(platform: _Platform | None) -> Identity | None:
    if platform is None:
        return None
    instance = platform.pck.instance_id
    # Platforms of several packages have an id for the whole; others are known by the id of their processor (PPID).
    return Identity("platform-instance", instance.hex()) if instance else Identity("platform", platform.pck.ppid.hex())
