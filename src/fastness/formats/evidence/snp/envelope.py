"""An SNP report as it travels: raw, or in JSON with its certificates.

    {"attestation_report": <base64 of 1184 bytes>, "cert_chain": [{"cert_type": "VCEK", "data": <base64 DER>}, …]}

The form of other tools that spells the report field by field is refused: putting it together again would invent the bytes
that the signature covers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.envelope import base64_field, is_json, read_object, refuse_unknown, undressed
from fastness.formats.evidence.snp.report import SIZE, Report, parse_report

MAX_CERTIFICATES: Final = 16
_MEMBERS: Final = frozenset({"attestation_report", "cert_chain"})


class SnpEvidence(NamedTuple):
    """A report and the certificates that came with it, undecoded."""

    report: Report
    certificates: tuple[bytes, ...] = ()


def parse_evidence(data: bytes) -> SnpEvidence:
    """Read a report in any of its wrappings; raises EvidenceError."""
    if len(data) == SIZE:
        return SnpEvidence(parse_report(data))
    if not is_json(data):
        return SnpEvidence(parse_report(undressed(data)))
    return read_envelope(read_object(data))


def read_envelope(value: Mapping[str, Any]) -> SnpEvidence:
    """The JSON envelope, decoded already; raises EvidenceError."""
    refuse_unknown(value, _MEMBERS, "the envelope")
    if isinstance(value.get("attestation_report"), dict):
        raise EvidenceError(
            "decoded-report",
            "the envelope spells the report field by field",
            "attestation_report",
            "Send the 1184 bytes of the report in base64.",
        )
    chain = value.get("cert_chain") or []
    if (
        not isinstance(chain, list)
        or len(chain) > MAX_CERTIFICATES
        or not all(isinstance(item, dict) for item in chain)
    ):
        raise EvidenceError("bad-envelope", f"cert_chain is a list of at most {MAX_CERTIFICATES} objects", "cert_chain")
    return SnpEvidence(
        parse_report(base64_field(value, "attestation_report")), tuple(base64_field(item, "data") for item in chain)
    )
