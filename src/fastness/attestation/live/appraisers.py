"""Evidence of each kind: read it, fetch what is needed to judge it, judge it under every set of roots that may vouch for it.

    judged = await judge(attempt, known_key, anchors, collateral, demands, now)

The domain's `appraise_*` do the judging; this is the part with I/O around them: vendors' documents come from a
`CollateralSource`. Of the sets of roots the first under which the evidence is authentic counts; when none is, the last word
is the one under the pinned roots.

What a cluster demands beside authenticity (`Demands`) holds for every set of roots but one: a simulated vendor need not publish
what it revoked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from fastness.attestation.evidence.checks import Appraisal
from fastness.attestation.evidence.roots import Anchors, Minimums, minimums
from fastness.attestation.evidence.snp import SnpExpectations, appraise_snp, endorsement_of
from fastness.attestation.evidence.tdx import TdxExpectations, appraise_tdx
from fastness.attestation.evidence.tpm import TpmExpectations, appraise_tpm
from fastness.attestation.live.attempt import Attempt
from fastness.attestation.status.collateral import CollateralState
from fastness.crypto.errors import CryptoError
from fastness.crypto.silicon.chains import (
    MissingIssuer,
    chain_to_pin,
    extension_values,
    load_certificates,
    subject_name,
)
from fastness.crypto.silicon.revocation import RevocationList
from fastness.crypto.silicon.verify import AttestationKey
from fastness.crypto.x509 import Certificate
from fastness.formats import json
from fastness.formats.cursor import EvidenceError
from fastness.formats.errors import DurationError
from fastness.formats.evidence.snp.envelope import parse_evidence as parse_snp
from fastness.formats.evidence.snp.report import Report
from fastness.formats.evidence.snp.tcb import Generation
from fastness.formats.evidence.tdx.collateral import Collateral
from fastness.formats.evidence.tdx.pck import EXTENSION, read_pck
from fastness.formats.evidence.tdx.quote import TdxQuote
from fastness.formats.evidence.tdx.quote import parse_evidence as parse_tdx
from fastness.formats.evidence.tpm.envelope import read_envelope as read_tpm
from fastness.formats.quantity import duration
from fastness.kinds.fastness_dev.cluster import ConfidentialCluster
from fastness.kinds.fastness_dev.trust_model import Mode, mode_of
from fastness.kinds.objects import view
from fastness.protocol import kbs

# What default policies look at; a quote that leaves one out is refused before any policy is asked. PCR 8 holds init data: a
# sender who could leave it out would hide what the host handed in.
QUOTED = frozenset({4, 7, 8, 11, 12, 14})
STALENESS: Final = timedelta(hours=24)
SHORTEST_STALENESS: Final = timedelta(minutes=5)  # vendors' services are asked no more often


class CollateralSource(Protocol):
    """Vendors' documents about platforms; an empty answer means that there is none at hand."""

    async def tdx(self, fmspc: str, ca: str, anchors: Anchors) -> Collateral | None:
        """Intel's documents for a platform (`ca` is platform or processor)."""

    async def snp(self, report: Report, anchors: Anchors) -> Sequence[Certificate]:
        """Certificates that may complete the chain of a report."""

    async def snp_authorities(self, generation: Generation, anchors: Anchors) -> Sequence[Certificate]:
        """AMD's authorities of a generation."""

    async def snp_crl(self, generation: Generation, anchors: Anchors) -> RevocationList | None:
        """What AMD revoked in a generation."""

    def state(self) -> CollateralState:
        """What was asked for lately, and what of it is missing."""

    def look_after(self, staleness: timedelta) -> None:
        """From now on, look for newer documents once those at hand are so old."""


class NoCollateral:
    """Nothing beside what the evidence brings."""

    async def tdx(self, fmspc: str, ca: str, anchors: Anchors) -> Collateral | None:
        """There are no documents of Intel's at hand."""
        return None

    async def snp(self, report: Report, anchors: Anchors) -> Sequence[Certificate]:
        """There are no certificates of AMD's at hand."""
        return ()

    async def snp_authorities(self, generation: Generation, anchors: Anchors) -> Sequence[Certificate]:
        """There are no authorities of AMD's at hand."""
        return ()

    async def snp_crl(self, generation: Generation, anchors: Anchors) -> RevocationList | None:
        """There is no revocation list of AMD's at hand."""
        return None

    def state(self) -> CollateralState:
        """No document was asked for, so none is missing."""
        return CollateralState()

    def look_after(self, staleness: timedelta) -> None:
        """Without documents there is nothing to renew."""


@dataclass(frozen=True, slots=True)
class Judged:
    """An appraisal and the roots that it rests on."""

    appraisal: Appraisal
    anchors: Anchors


@dataclass(frozen=True, slots=True)
class Demands:
    """What a cluster asks of hardware: the least versions, and whether what the vendor revoked must be known.

    `staleness` is the age from which newer documents of vendors are looked for; `allow_sept_ve` accepts TDX domains whose
    pages the host can make fault.
    """

    minimums: Minimums = field(default_factory=Minimums)
    revocations: bool = True
    staleness: timedelta = STALENESS
    allow_sept_ve: bool = False

    @classmethod
    def of(cls, cluster: Mapping[str, Any] | None) -> Demands:
        """The demands of a ConfidentialCluster."""
        spec = view(cluster or {}, ConfidentialCluster).spec
        try:
            staleness = max(duration(spec.attestation.collateral_staleness, "collateralStaleness"), SHORTEST_STALENESS)
        except DurationError:
            staleness = STALENESS
        return cls(
            minimums(spec.attestation.minimum_tcb),
            # Only where something is withheld: in the other modes a missing list would make every machine look bad that is not.
            mode_of(cluster) is Mode.ENFORCE,
            staleness,
            spec.attestation.tdx.allow_sept_ve,
        )


async def judge(
    attempt: Attempt,
    key: AttestationKey | None,
    anchors: Sequence[Anchors],
    collateral: CollateralSource,
    demands: Demands,
    at: datetime,
) -> Judged:
    """Judge evidence that must answer this attempt; raises EvidenceError for what cannot be read."""
    nonce = kbs.binding(attempt.tee, attempt.runtime)
    if attempt.tee == "tpm":
        # A quote rests on the key that was enrolled; whose root vouched for that was settled then.
        # The registers are named by us: a machine that quotes fewer would leave out the one that shows what it booted.
        expected = TpmExpectations(nonce=nonce, known_key=key, registers=QUOTED)
        return Judged(appraise_tpm(read_tpm(attempt.evidence), expected), anchors[-1])
    read = _Snp if attempt.tee == "snp" else _Tdx
    evidence = read(json.encode(attempt.evidence), nonce, collateral, demands, at)
    tried: list[Judged] = []
    for roots in anchors:
        judged = Judged(await evidence.under(roots), roots)
        # One set at a time: mixed, a simulated key could stand below a real root, and no verdict could say what it rests on.
        if judged.appraisal.authentic:
            return judged
        tried.append(judged)
    # Under no set: what the pinned roots say of it is what an operator can act on.
    return next((judged for judged in tried if not judged.anchors.simulated), tried[0])


class _Snp:
    """A report and the certificates that came with it."""

    def __init__(self, data: bytes, nonce: bytes, collateral: CollateralSource, demands: Demands, at: datetime) -> None:
        evidence = parse_snp(data)
        self._report = evidence.report
        self._carried = [certificate for raw in evidence.certificates for certificate in _certificates(raw)]
        self._nonce, self._collateral, self._demands, self._at = nonce, collateral, demands, at

    async def under(self, anchors: Anchors) -> Appraisal:
        """Judge it under these roots."""
        pool = [*self._carried, *await self._missing(anchors)]
        # Of a certificate that nobody checked yet: it only says which list to have ready. The chain decides whether it is used.
        generation = endorsement_of(self._report, pool)[1]
        listed = await self._collateral.snp_crl(generation, anchors) if generation else None
        expected = SnpExpectations(
            nonce=self._nonce,
            minimum=self._demands.minimums.snp,
            revocations={generation: listed} if generation and listed else {},
            revocations_required=self._demands.revocations and not anchors.simulated,
            roots=anchors.amd,
            simulated=anchors.simulated,
        )
        return appraise_snp(self._report, pool, expected, self._at)

    async def _missing(self, anchors: Anchors) -> Sequence[Certificate]:
        """What the evidence lacks: nothing, the authorities, or the endorsement key as well."""
        endorsement, generation = endorsement_of(self._report, self._carried)
        if endorsement is None or generation is None:
            return await self._collateral.snp(self._report, anchors)
        try:
            # Only what is missing is fetched: strangers must not have us ask AMD, who answers one request in ten seconds.
            chain_to_pin(endorsement, self._carried, [anchors.amd[generation]])
        except MissingIssuer:
            return await self._collateral.snp_authorities(generation, anchors)
        except CryptoError:
            pass  # Nothing that could be added would help; the appraisal says why.
        return ()


class _Tdx:
    """A quote with its log."""

    def __init__(self, data: bytes, nonce: bytes, collateral: CollateralSource, demands: Demands, at: datetime) -> None:
        self._quoted = parse_tdx(data)
        self._platform = _platform(self._quoted.quote)
        self._nonce, self._collateral, self._demands, self._at = nonce, collateral, demands, at

    async def under(self, anchors: Anchors) -> Appraisal:
        """Judge it under these roots."""
        fmspc, ca = self._platform
        expected = TdxExpectations(
            nonce=self._nonce,
            collateral=await self._collateral.tdx(fmspc, ca, anchors) if fmspc else None,
            minimum=self._demands.minimums.tdx,
            event_log=self._quoted.event_log,
            root=anchors.intel,
            allow_sept_ve=self._demands.allow_sept_ve,
            simulated=anchors.simulated,
        )
        return appraise_tdx(self._quoted.quote, (), expected, self._at)


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
        # A wrong guess fetches the wrong list and is refused: its issuer is compared with the chain (`intel_documents`).
        ca = "platform" if len(chain) > 1 and "Platform" in subject_name(chain[1]) else "processor"
    except (CryptoError, EvidenceError):
        return "", ""
    return pck.fmspc.hex(), ca
