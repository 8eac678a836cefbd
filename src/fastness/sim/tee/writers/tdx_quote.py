"""Writing TDX quotes: trust domain report, quoting enclave report and signature section, versions 4 and 5.

Pure functions over bytes, so that a test can put something wrong into any place and still sign it.
`fastness.formats.evidence.tdx` reads what is written here.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fastness.formats.evidence.tdx.body import ENCLAVE_SIZE, TD10_SIZE, TD15_SIZE
from fastness.formats.evidence.tdx.quote import INTEL_QE, KEY_ECDSA_P256, TEE_TDX, TdxQuote
from fastness.sim.tee.writers.keys import EcKey

SEPT_VE_DISABLE: Final = 1 << 28
DEBUG: Final = 1
QE_PRODUCT: Final = 2
_QE_DEBUG: Final = 2
_BODY_TYPES: Final = {TD10_SIZE: 2, TD15_SIZE: 3}
_CERTIFIED_QE, _PEM_CHAIN = 6, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustDomain:
    """What the TDX module reports about a domain."""

    tee_tcb_svn: bytes
    attributes: int = SEPT_VE_DISABLE
    mr_seam: bytes = bytes(48)
    mrsigner_seam: bytes = bytes(48)
    xfam: bytes = bytes(8)
    mr_td: bytes = bytes(48)
    mr_config_id: bytes = b""
    rtmrs: Sequence[bytes] = ()
    report_data: bytes = b""
    tee_tcb_svn2: bytes | None = None
    mr_servicetd: bytes = bytes(48)

    def body(self) -> bytes:
        """The report: 584 bytes, or 648 where the versions of the running module are given too (TDX 1.5)."""
        extended = self.tee_tcb_svn2 is not None
        raw = bytearray(TD15_SIZE if extended else TD10_SIZE)
        raw[0:16] = self.tee_tcb_svn
        raw[16:64] = self.mr_seam
        raw[64:112] = self.mrsigner_seam
        struct.pack_into("<Q", raw, 120, self.attributes)
        raw[128:136] = self.xfam
        raw[136:184] = self.mr_td
        raw[184:232] = self.mr_config_id.ljust(48, b"\0")
        for index, value in enumerate(self.rtmrs):
            raw[328 + 48 * index : 376 + 48 * index] = value
        raw[520:584] = self.report_data.ljust(64, b"\0")
        if self.tee_tcb_svn2 is not None:
            raw[584:600] = self.tee_tcb_svn2
            raw[600:648] = self.mr_servicetd
        return bytes(raw)


def key_bytes(key: EcKey) -> bytes:
    """A public key as quotes carry it: x‖y."""
    return b"".join(key.point)


def enclave_report(
    key: EcKey, auth: bytes, signer: bytes, svn: int, *, debug: bool = False, bound: bytes = b""
) -> bytes:
    """The quoting enclave's report, which vouches for its attestation key."""
    raw = bytearray(ENCLAVE_SIZE)
    raw[48] = 0x11 | (_QE_DEBUG if debug else 0)
    raw[128:160] = signer
    struct.pack_into("<HH", raw, 256, QE_PRODUCT, svn)
    raw[320:352] = bound or hashlib.sha256(key_bytes(key) + auth).digest()
    return bytes(raw)


def certified(report: bytes, pck_key: EcKey, auth: bytes, chain: bytes) -> bytes:
    """The enclave's report signed by the platform, with the platform's certificates."""
    inner = report + pck_key.raw(report) + struct.pack("<H", len(auth)) + auth
    return inner + struct.pack("<HI", _PEM_CHAIN, len(chain)) + chain


def write_quote(
    version: int, body: bytes, key: EcKey, vouched: bytes, *, vendor: bytes = INTEL_QE, body_type: int | None = None
) -> bytes:
    """A quote over a trust domain's report, signed with the attestation key; `vouched` is what `certified` gave."""
    head = struct.pack("<HHI4s16s20s", version, KEY_ECDSA_P256, TEE_TDX, bytes(4), vendor, bytes(20))
    if version >= 5:
        head += struct.pack("<HI", body_type or _BODY_TYPES[len(body)], len(body))
    signed = head + body
    return signed + _section(key.raw(signed) + key_bytes(key), vouched)


def with_chain(quote: TdxQuote, chain: bytes) -> bytes:
    """The same quote with other certificates around it; nothing is signed anew."""
    auth = struct.pack("<H", len(quote.qe_auth_data)) + quote.qe_auth_data
    inner = quote.qe_report.raw + quote.qe_signature + auth + struct.pack("<HI", _PEM_CHAIN, len(chain)) + chain
    return quote.signed + _section(quote.signature + quote.attestation_key, inner)


def _section(head: bytes, vouched: bytes) -> bytes:
    section = head + struct.pack("<HI", _CERTIFIED_QE, len(vouched)) + vouched
    return struct.pack("<I", len(section)) + section
