"""No single bit of a signed part can be changed: strided here, every bit in the long run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from fastness.attestation.evidence.checks import Appraisal
from fastness.attestation.evidence.snp import SnpExpectations, appraise_snp
from fastness.attestation.evidence.tdx import TdxExpectations, appraise_tdx
from fastness.attestation.evidence.tpm import TpmExpectations, appraise_tpm
from fastness.crypto.errors import CryptoError
from fastness.crypto.silicon.chains import load_certificates
from fastness.crypto.x509 import Certificate
from fastness.formats.cursor import EvidenceError
from fastness.formats.evidence.snp.report import parse_report
from fastness.formats.evidence.tdx.collateral import parse_collateral
from fastness.formats.evidence.tdx.quote import parse_quote
from fastness.formats.evidence.tpm import attest, envelope, signature
from tests.evidence.vectors import vectors

AT = datetime(2025, 6, 25, tzinfo=UTC)
COMPLETE = bool(os.environ.get("FASTNESS_SOAK"))


def flips(data: bytes, end: int, stride: int) -> Iterator[tuple[int, bytes]]:
    """Copies with one bit changed; the stride is prime to eight, so that all bit positions come up."""
    assert stride % 2 == 1
    for bit in range(0, end * 8, 1 if COMPLETE else stride):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        yield bit, bytes(changed)


def amd(cert: str) -> list[Certificate]:
    files = [vectors() / "snp" / cert, vectors() / "roots" / "amd-milan-ask-ark-asvk.pem"]
    return [entry for path in files for entry in load_certificates(path.read_bytes())]


@pytest.mark.parametrize(
    ("name", "cert"),
    [("v2-milan.report", "v2-milan.vcek.der"), ("v3-milan-vlek-vmpl1.report", "v3-milan.vlek.der")],
)
def test_no_bit_of_an_snp_report_can_change(name: str, cert: str) -> None:
    data, pool = (vectors() / "snp" / name).read_bytes(), amd(cert)

    def judged(raw: bytes) -> Appraisal:
        return appraise_snp(parse_report(raw), pool, SnpExpectations(), AT)

    assert judged(data).authentic
    for bit, changed in flips(data, len(data), 79):
        try:
            assert not judged(changed).authentic, f"bit {bit}"
        except EvidenceError:
            continue


def test_no_bit_of_an_endorsement_certificate_can_change() -> None:
    report = parse_report((vectors() / "snp" / "v2-milan.report").read_bytes())
    chain = amd("v2-milan.vcek.der")[1:]
    data = (vectors() / "snp" / "v2-milan.vcek.der").read_bytes()
    for bit, changed in flips(data, len(data), 101):
        try:
            leaf = load_certificates(changed)
            assert not appraise_snp(report, [*leaf, *chain], SnpExpectations(), AT).authentic, f"bit {bit}"
        except CryptoError:
            continue


def test_no_bit_of_a_tdx_quote_can_change() -> None:
    folder = vectors() / "tdx"
    data = (folder / "v4-uptodate.quote").read_bytes()
    collateral = parse_collateral((folder / "v4-uptodate.collateral.json").read_bytes())
    quote = parse_quote(data)
    certificates = [entry.der for entry in load_certificates(quote.pck_chain)]
    end = len(data.rstrip(b"\0"))
    for bit, changed in flips(data, end, 83):
        try:
            parsed = parse_quote(changed)
            judged = appraise_tdx(parsed, [], TdxExpectations(collateral=collateral), AT)
        except EvidenceError:
            continue
        # White space and text around the certificates is not signed; the certificates themselves are.
        if judged.authentic:
            assert [entry.der for entry in load_certificates(parsed.pck_chain)][:2] == certificates[:2], f"bit {bit}"
            assert parsed.signed == quote.signed, f"bit {bit}"
            assert parsed.qe_report == quote.qe_report, f"bit {bit}"


@pytest.mark.parametrize("part", ["message", "signature", "key", "values"])
def test_no_bit_of_a_tpm_quote_can_change(part: str) -> None:
    real = envelope.parse_envelope((vectors() / "tpm" / "raw-tpm-evidence.json").read_bytes())
    sign = (
        real.signature.scheme.to_bytes(2, "big")
        + real.signature.hash.number.to_bytes(2, "big")
        + len(real.signature.numbers[0]).to_bytes(2, "big")
        + real.signature.numbers[0]
    )
    values = b"".join(real.pcrs.values())
    whole = {"message": real.quote.message, "signature": sign, "key": real.ak_public, "values": values}
    for bit, changed in flips(whole[part], len(whole[part]), 7):
        parts = {**whole, part: changed}
        try:
            evidence = envelope.TpmEvidence(
                attest.parse_quote(parts["message"]),
                signature.parse_signature(parts["signature"]),
                "sha256",
                envelope.Registers(tuple(range(24)), parts["values"]),
                parts["key"],
            )
            assert not appraise_tpm(evidence, TpmExpectations()).authentic, f"bit {bit} of {part}"
        except EvidenceError:
            continue


@pytest.mark.parametrize("document", ["tcb_text", "qe_text"])
def test_no_byte_of_a_signed_document_can_change(document: str) -> None:
    folder = vectors() / "tdx"
    text = (folder / "v4-uptodate.collateral.json").read_bytes()
    quote = parse_quote((folder / "v4-uptodate.quote").read_bytes())
    inner = getattr(parse_collateral(text), document).text
    whole = json.loads(text)
    member = next(name for name in ("tcb_info", "qe_identity") if whole[name].encode() == inner)
    for bit, changed in flips(inner, len(inner), 1009):
        if not changed.isascii():
            continue
        try:
            collateral = parse_collateral(json.dumps({**whole, member: changed.decode()}).encode())
        except EvidenceError:
            continue
        judged = appraise_tdx(quote, [], TdxExpectations(collateral=collateral), AT)
        assert not judged.acceptable, f"bit {bit}"
