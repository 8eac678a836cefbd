"""Evidence of each kind: read it, fetch what is needed to judge it, judge it under every set of roots that may vouch for it.

    judged = await judge(attempt, known_key, circle)

The domain's `appraise_*` do the judging; this is the part with I/O around them: vendors' documents come from a
`CollateralSource`. Of the sets of roots the first under which the evidence is authentic counts; when none is, the last word
is the one under the pinned roots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from fastness.crypto.chains import extension_values, load_certificates, subject_name
from fastness.crypto.errors import CryptoError
from fastness.crypto.verify import AttestationKey
from fastness.crypto.x509 import Certificate
from fastness.domain.attestation.anchors import Anchors
from fastness.domain.attestation.checks import Appraisal
from fastness.domain.attestation.snp import SnpExpectations, appraise_snp
from fastness.domain.attestation.tdx import TdxExpectations, appraise_tdx
from fastness.domain.attestation.tpm import TpmExpectations, appraise_tpm
from fastness.formats import json, kbs
from fastness.formats.cursor import EvidenceError
from fastness.formats.snp.envelope import parse_evidence as parse_snp
from fastness.formats.snp.report import Report
from fastness.formats.tdx.collateral import Collateral
from fastness.formats.tdx.pck import EXTENSION, read_pck
from fastness.formats.tdx.quote import TdxQuote
from fastness.formats.tdx.quote import parse_evidence as parse_tdx
from fastness.formats.tpm.envelope import read_envelope as read_tpm
from fastness.trust.ports import Attempt

# What default policies look at; a quote that leaves one out is refused before any policy is asked.
QUOTED = frozenset({4, 7, 11, 12, 14})


class CollateralSource(Protocol):
    """Vendors' documents about platforms; an empty answer means that there is none at hand."""

    async def tdx(self, fmspc: str, ca: str, anchors: Anchors) -> Collateral | None:
        """Intel's documents for a platform (`ca` is platform or processor)."""

    async def snp(self, report: Report, anchors: Anchors) -> Sequence[Certificate]:
        """Certificates that may complete the chain of a report."""


class NoCollateral:
    """Nothing beside what the evidence brings."""

    async def tdx(self, fmspc: str, ca: str, anchors: Anchors) -> Collateral | None:
        """None."""
        return None

    async def snp(self, report: Report, anchors: Anchors) -> Sequence[Certificate]:
        """None."""
        return ()


@dataclass(frozen=True, slots=True)
class Judged:
    """An appraisal and the roots that it rests on."""

    appraisal: Appraisal
    anchors: Anchors


async def judge(
    attempt: Attempt, key: AttestationKey, anchors: Sequence[Anchors], collateral: CollateralSource, at: datetime
) -> Judged:
    """Judge evidence that must answer this attempt; raises EvidenceError for what cannot be read."""
    nonce = kbs.binding(attempt.tee, attempt.runtime)
    if attempt.tee == "tpm":
        # A quote rests on the key that was enrolled; whose root vouched for that was settled then.
        expected = TpmExpectations(nonce=nonce, known_key=key, registers=QUOTED)
        return Judged(appraise_tpm(read_tpm(attempt.evidence), expected), anchors[-1])
    data = json.encode(attempt.evidence)
    tried: list[Judged] = []
    for one in anchors:
        found = Judged(await _judged(attempt.tee, data, nonce, one, collateral, at), one)
        if found.appraisal.authentic:
            return found
        tried.append(found)
    return next((one for one in tried if not one.anchors.simulated), tried[0])


async def _judged(
    tee: str, data: bytes, nonce: bytes, anchors: Anchors, collateral: CollateralSource, at: datetime
) -> Appraisal:
    if tee == "snp":
        evidence = parse_snp(data)
        carried = [one for raw in evidence.certificates for one in _certificates(raw)]
        more = await collateral.snp(evidence.report, anchors)
        return appraise_snp(evidence.report, [*carried, *more], SnpExpectations(nonce=nonce, roots=anchors.amd), at)
    quoted = parse_tdx(data)
    fmspc, ca = _platform(quoted.quote)
    documents = await collateral.tdx(fmspc, ca, anchors) if fmspc else None
    wanted = TdxExpectations(nonce=nonce, collateral=documents, event_log=quoted.event_log, root=anchors.intel)
    return appraise_tdx(quoted.quote, (), wanted, at)


def _certificates(raw: bytes) -> list[Certificate]:
    """Certificates that came with evidence; one that cannot be read helps nobody, and its absence is then found."""
    try:
        return load_certificates(raw)
    except CryptoError:
        return []


def _platform(quote: TdxQuote) -> tuple[str, str]:
    """Which platform a quote claims to come from: its FMSPC and the kind of its authority; empty when that cannot be read."""
    try:
        chain = load_certificates(quote.pck_chain)
        pck = read_pck(extension_values(chain[0]).get(EXTENSION, b""))
        ca = "platform" if len(chain) > 1 and "Platform" in subject_name(chain[1]) else "processor"
    except (CryptoError, EvidenceError):
        return "", ""
    return pck.fmspc.hex(), ca
