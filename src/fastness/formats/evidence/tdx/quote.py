"""A TDX quote, version 4 or 5, with its signature section (Intel DCAP quoting library, "quote format").

    header 48 │ v5: body type, body size │ TD report │ length │ signature, key, QE report, QE signature, auth data, PCK chain

* All lengths must add up: each nested section ends exactly where its container says.
* Zero bytes may follow (real quotes carry them); anything else is refused. Never hash or compare the whole blob.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastness.formats.cursor import Cursor, EvidenceError
from fastness.formats.evidence.envelope import base64_field, is_json, read_object, refuse_unknown, undressed
from fastness.formats.evidence.tdx.body import (
    ENCLAVE_SIZE,
    TD10_SIZE,
    TD15_SIZE,
    EnclaveReport,
    TdReport,
    read_enclave_report,
    read_td_report,
)

# A quote with its chain has some five kilobytes.
MAX_QUOTE: Final = 16 * 1024
TEE_TDX: Final = 0x81
KEY_ECDSA_P256: Final = 2
# The vendor id of Intel's quoting enclave; verifiers that left it out took quotes of any enclave.
INTEL_QE: Final = bytes.fromhex("939a7233f79c4ca9940a0db3957f0607")
_BODY_SIZES: Final = {2: TD10_SIZE, 3: TD15_SIZE}
_CERTIFIED_QE: Final = 6
_PEM_CHAIN: Final = 5


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a quote."""

    version: int
    key_type: int
    tee_type: int
    qe_vendor: bytes
    user_data: bytes
    body_type: int | None


@dataclass(frozen=True, slots=True)
class TdxQuote:
    """A parsed quote; `signed` is what the attestation key signed."""

    raw: bytes
    header: Header
    report: TdReport
    signed: bytes
    signature: bytes
    attestation_key: bytes
    qe_report: EnclaveReport
    qe_signature: bytes
    qe_auth_data: bytes
    pck_chain: bytes


@dataclass(frozen=True, slots=True)
class TdxEvidence:
    """A quote and the event log that came with it, if any."""

    quote: TdxQuote
    event_log: bytes = b""


def parse_evidence(data: bytes) -> TdxEvidence:
    """Read a quote in any of its wrappings; raises EvidenceError."""
    if not is_json(data):
        return TdxEvidence(parse_quote(undressed(data)))
    value = read_object(data)
    refuse_unknown(value, {"quote", "cc_eventlog"}, "the envelope")
    log = base64_field(value, "cc_eventlog") if value.get("cc_eventlog") else b""
    return TdxEvidence(parse_quote(base64_field(value, "quote")), log)


def parse_quote(data: bytes) -> TdxQuote:
    """Read a raw quote; raises EvidenceError."""
    if len(data) > MAX_QUOTE:
        raise EvidenceError("too-long", f"a TDX quote has at most {MAX_QUOTE} bytes, not {len(data)}")
    cursor = Cursor(data, "the TDX quote", "little")
    header = _header(cursor)
    size = TD10_SIZE if header.body_type is None else _BODY_SIZES[header.body_type]
    report = read_td_report(cursor.take(size, "the TD report"))
    signed = data[: cursor.offset]
    # Within its own bounds: a nested length cannot reach into what its container does not hold.
    section = Cursor(cursor.take(cursor.u32("signature length"), "the signature section"), "the signature", "little")
    # Only zeros behind the signature: other bytes are covered by nothing and could make one quote into many.
    cursor.finish(zeros=True)
    signature, key = section.take(64, "quote signature"), section.take(64, "attestation key")
    qe = _certification(section, _CERTIFIED_QE)
    qe_report = read_enclave_report(qe.take(ENCLAVE_SIZE, "the QE report"))
    qe_signature = qe.take(64, "the QE report signature")
    auth_data = qe.sized("the QE authentication data", 1024)
    chain = _certification(qe, _PEM_CHAIN)
    # Intel's library ends the text with a zero, as C does.
    pem = chain.take(chain.left, "the PCK chain").rstrip(b"\0")
    return TdxQuote(data, header, report, signed, signature, key, qe_report, qe_signature, auth_data, pem)


def _header(cursor: Cursor) -> Header:
    version = cursor.u16("version")
    if version not in (4, 5):
        hint = "Quotes of SGX (version 3) are another kind of evidence." if version == 3 else ""
        raise EvidenceError("unknown-version", f"TDX quotes have version 4 or 5, not {version}", hint=hint)
    key_type, tee_type = cursor.u16("key type"), cursor.u32("TEE type")
    cursor.take(4, "reserved bytes")
    vendor, user_data = cursor.take(16, "QE vendor"), cursor.take(20, "user data")
    # SGX shares header and chain: an enclave that any user may start would pass for a trust domain.
    if tee_type != TEE_TDX:
        raise EvidenceError("not-tdx", f"the quote is of TEE type {tee_type:#x}, TDX is {TEE_TDX:#x}")
    if key_type != KEY_ECDSA_P256:
        raise EvidenceError("unknown-key", f"the attestation key is of type {key_type}, only {KEY_ECDSA_P256} exists")
    if version == 4:
        return Header(version, key_type, tee_type, vendor, user_data, None)
    body_type, size = cursor.u16("body type"), cursor.u32("body size")
    # Type and size must agree: a body of 1.5 read as one of 1.0 would leave service domains unlooked at.
    if _BODY_SIZES.get(body_type) != size:
        raise EvidenceError("bad-body", f"a body of type {body_type} with {size} bytes is not known")
    return Header(version, key_type, tee_type, vendor, user_data, body_type)


def _certification(cursor: Cursor, expected: int) -> Cursor:
    kind, size = cursor.u16("certification type"), cursor.u32("certification size")
    # Other types leave the certificates out or name them by reference, and a verifier would have to fetch what the sender says.
    if kind != expected:
        raise EvidenceError("unknown-certification", f"certification data has type {kind}, {expected} is needed")
    inner = Cursor(cursor.take(size, "certification data"), "the certification data", "little")
    cursor.finish()
    return inner
