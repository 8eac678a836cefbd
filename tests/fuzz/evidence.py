"""The parsers of evidence as fuzz targets; the corpus is minted, so that every run starts from evidence that is accepted."""

from __future__ import annotations

import base64
import json
import struct
from typing import Final

from fastness.crypto.silicon.chains import extension_values, load_certificates
from fastness.formats.evidence.envelope import undressed
from fastness.formats.evidence.eventlog.log import parse_log
from fastness.formats.evidence.snp.envelope import parse_evidence as parse_snp
from fastness.formats.evidence.snp.report import parse_report
from fastness.formats.evidence.snp.vek import read_vek
from fastness.formats.evidence.tdx.collateral import parse_collateral
from fastness.formats.evidence.tdx.pck import read_pck
from fastness.formats.evidence.tdx.quote import parse_evidence as parse_tdx
from fastness.formats.evidence.tpm.attest import parse_quote
from fastness.formats.evidence.tpm.envelope import parse_envelope
from fastness.formats.evidence.tpm.public import parse_public
from fastness.formats.evidence.tpm.signature import parse_signature
from fastness.sim.tee.writers.tpm2 import sized
from tests.evidence import tpm
from tests.evidence.snp import Chip
from tests.evidence.tdx import SGX, Platform
from tests.fuzz.driver import Target
from tests.unit.formats.evidence.test_public import area

_PLATFORM: Final = Platform()
_CHIP: Final = Chip()
_EXTENSIONS: Final = extension_values(_CHIP.certificates()[0])
_MESSAGE: Final = tpm.message(bytes(32), [tpm.selection("sha256", range(24))], b"nonce")
_LENGTHS: Final = (b"\xff\xff\xff\xff", b"\x00\x00", b"\xff\xff", b"\x00\x00\x00\x80", bytes(8), b"\xff" * 8)
_TEXT: Final = (b'"', b"{", b"}", b":", b",", b"null", b"[]", b"==", b"\\u0000", b"00")
_ENVELOPE: Final = json.dumps({"attestation_report": base64.b64encode(_CHIP.report()).decode(), "cert_chain": []})


def _pck() -> bytes:
    (leaf,) = load_certificates(_PLATFORM.leaf)
    return extension_values(leaf)[SGX]


def _vek(data: bytes) -> object:
    """A length-prefixed value takes the place of the hardware id, the rest that of the microcode version."""
    size = data[0] if data else 0
    base = "1.3.6.1.4.1.3704.1"
    return read_vek("SEV-Milan", {**_EXTENSIONS, f"{base}.4": data[1 : 1 + size], f"{base}.3.8": data[1 + size :]})


TARGETS: Final = (
    Target("TPM quote", parse_quote, (_MESSAGE,), (*_LENGTHS, b"\xffTCG\x80\x18")),
    Target(
        "TPM signature",
        parse_signature,
        (tpm.sign(tpm.rsa_key(), b"x"), tpm.sign(tpm.ec_key(), b"x", "ECDSA")),
        (*_LENGTHS, b"\x00\x14", b"\x00\x16", b"\x00\x18"),
    ),
    Target(
        "TPM public area",
        parse_public,
        (area(tpm.ec_key()), sized(area(tpm.rsa_key())), area(tpm.ec_key(), scheme=b"\x00\x1a\x00\x0b\x00\x01")),
        (*_LENGTHS, b"\x00\x01\x00\x0b", b"\x00\x23\x00\x0b", b"\x00\x10", b"\x00\x06\x00\x80\x00\x43"),
    ),
    Target(
        "TPM envelope",
        parse_envelope,
        (tpm.quoted(tpm.values()), tpm.quoted(tpm.values(registers=(0, 7)))),
        (*_TEXT, b'"pcrs"', b'"values"', b'"24"'),
    ),
    Target(
        "event log",
        parse_log,
        (
            tpm.event_log([(0, 8, b"a"), (4, 13, b"bb")], ("sha1", "sha256")),
            tpm.event_log([(1, 4, b"")], ("sha384",), filling=b"\xff" * 32),
            tpm.event_log([(1, 4, b"")], filling=bytes(32)),
        ),
        (*_LENGTHS, b"Spec ID Event03\0", struct.pack("<I", 3)),
    ),
    Target("SNP report", parse_report, tuple(_CHIP.report(version) for version in (2, 3, 5)), _LENGTHS),
    Target("SNP envelope", parse_snp, (_ENVELOPE.encode(), _CHIP.report().hex().encode()), _TEXT),
    Target(
        "SNP endorsement key",
        _vek,
        (b"\x40" + bytes(64) + b"\x02\x01\x07", b"\x42\x04\x40" + bytes(64) + b"\x02\x02\x00\xff"),
        (b"\x02\x01", b"\x04\x40", b"\x80", b"\x84\xff\xff\xff\xff"),
    ),
    Target(
        "TDX quote",
        parse_tdx,
        (_PLATFORM.quote(4, chain=b"-----"), _PLATFORM.quote(5, chain=b"-----", tail=bytes(70))),
        (*_LENGTHS, b"\x06\x00", b"\x05\x00"),
    ),
    Target(
        "TDX platform extension",
        read_pck,
        (_pck(),),
        (b"\x30", b"\x30\x80", b"\x06\x0a", b"\x84\xff\xff\xff\xff", b"\x02"),
    ),
    Target("undressing", undressed, (b"00ff\n", b"AAEC", b"\x00\x01"), (b"=", b"==", b" ", b"\n", b"0", b"\xff")),
)

COLLATERAL: Final = (_PLATFORM.collateral(), parse_collateral)
