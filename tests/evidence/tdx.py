"""An Intel of our own: root, platform certificate, quoting enclave, quotes of version 4 and 5, and the documents about them."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from fastness.crypto.chains import load_certificates
from tests.evidence.authority import der, integer, issue, oid, pem, revocations, tlv

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FMSPC = bytes.fromhex("aabbccddeeff")
SGX = "1.2.840.113741.1.13.1"
ROOT, PLATFORM, LEAF, SIGNER = (
    "Intel SGX Root CA", "Intel SGX PCK Platform CA", "Intel SGX PCK Certificate", "Intel SGX TCB Signing",
)  # fmt: skip
MRSIGNER = bytes(range(32))


def new_key() -> ec.EllipticCurvePrivateKey:
    """A fresh P-256 key."""
    return ec.generate_private_key(ec.SECP256R1())


def raw_signature(key: ec.EllipticCurvePrivateKey, data: bytes) -> bytes:
    """r‖s."""
    r, s = decode_dss_signature(key.sign(data, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def _named(base: str, members: dict[str, bytes]) -> bytes:
    return tlv(0x30, b"".join(tlv(0x30, oid(f"{base}.{last}") + value) for last, value in members.items()))


@dataclass
class Platform:
    """A platform with its provisioning certificate and a quoting enclave."""

    components: tuple[int, ...] = (3, 3, 2, 2, 4, 1, 0, 5) + (0,) * 8
    pce_svn: int = 13
    isv_svn: int = 4
    leaf_name: str = LEAF
    root_key: ec.EllipticCurvePrivateKey = field(default_factory=new_key)
    ca_key: ec.EllipticCurvePrivateKey = field(default_factory=new_key)
    pck_key: ec.EllipticCurvePrivateKey = field(default_factory=new_key)
    signer_key: ec.EllipticCurvePrivateKey = field(default_factory=new_key)
    attestation_key: ec.EllipticCurvePrivateKey = field(default_factory=new_key)

    def __post_init__(self) -> None:
        self.root = issue(ROOT, self.root_key, ROOT, self.root_key, ca=True, serial=1)
        self.authority = issue(PLATFORM, self.ca_key, ROOT, self.root_key, ca=True, serial=2)
        self.leaf = issue(
            self.leaf_name, self.pck_key, PLATFORM, self.ca_key, serial=3, extensions={SGX: self.extension()}
        )
        self.signer = issue(SIGNER, self.signer_key, ROOT, self.root_key, serial=4)

    @property
    def pin(self) -> str:
        """The fingerprint of this vendor's root."""
        return load_certificates(der(self.root))[0].fingerprint.hex

    def extension(self) -> bytes:
        """What the certificate says about the platform."""
        tcb = {str(index): integer(svn) for index, svn in enumerate(self.components, start=1)}
        tcb |= {"17": integer(self.pce_svn), "18": tlv(4, bytes(self.components))}
        flags = {"1": tlv(1, b"\xff"), "2": tlv(1, b"\x00"), "3": tlv(1, b"\xff")}
        return _named(
            SGX,
            {
                "1": tlv(4, bytes(16)),
                "2": _named(f"{SGX}.2", tcb),
                "3": tlv(4, bytes(2)),
                "4": tlv(4, FMSPC),
                "5": integer(1, tag=0x0A),
                "6": tlv(4, b"\x11" * 16),
                "7": _named(f"{SGX}.7", flags),
            },
        )

    def quote(self, version: int = 4, *, nonce: bytes = b"", attributes: int = 1 << 28, **changed: Any) -> bytes:
        """A signed quote; `changed` gives svn, svn2, seam_signer, rtmrs, chain, vendor, qe_debug, auth, bind, body_type, tail."""
        td = bytearray(584 if version == 4 else 648)
        td[0:16] = changed.get("svn", bytes([5, 1, 3]) + bytes(13))
        if version == 5:
            td[584:600] = changed.get("svn2", td[0:16])
        td[64:112] = changed.get("seam_signer", bytes(48))
        struct.pack_into("<Q", td, 120, attributes)
        for index, value in enumerate(changed.get("rtmrs", ())):
            td[328 + 48 * index : 376 + 48 * index] = value
        td[520:584] = nonce.ljust(64, b"\0")
        vendor: bytes = changed.get("vendor", bytes.fromhex("939a7233f79c4ca9940a0db3957f0607"))
        head = struct.pack("<HHI4s16s20s", version, 2, 0x81, bytes(4), vendor, bytes(20))
        if version == 5:
            head += struct.pack("<HI", changed.get("body_type", 3), len(td))
        signed = head + bytes(td)
        numbers = self.attestation_key.public_key().public_numbers()
        key = numbers.x.to_bytes(32, "big") + numbers.y.to_bytes(32, "big")
        auth: bytes = changed.get("auth", bytes(range(32)))
        qe = bytearray(384)
        qe[48] = 0x11 | (2 if changed.get("qe_debug") else 0)
        qe[128:160] = MRSIGNER
        struct.pack_into("<HH", qe, 256, 2, self.isv_svn)
        qe[320:352] = changed.get("bind", sha256(key + auth).digest())
        chain: bytes = changed.get("chain", pem(self.leaf, self.authority, self.root))
        inner = bytes(qe) + raw_signature(self.pck_key, bytes(qe)) + struct.pack("<H", len(auth)) + auth
        inner += struct.pack("<HI", 5, len(chain)) + chain
        section = raw_signature(self.attestation_key, signed) + key + struct.pack("<HI", 6, len(inner)) + inner
        tail: bytes = changed.get("tail", b"")
        return signed + struct.pack("<I", len(section)) + section + tail

    def tcb_info(self, **changes: Any) -> dict[str, Any]:
        """TCB information with one level, up to date for this platform."""
        module = {"mrsigner": "00" * 48, "attributes": "00" * 8, "attributesMask": "ff" * 8}
        level = {
            "tcb": {
                "sgxtcbcomponents": [
                    {"svn": svn, "category": "BIOS", "type": f"part {n}"} for n, svn in enumerate(self.components)
                ],
                "pcesvn": self.pce_svn,
                "tdxtcbcomponents": [{"svn": svn} for svn in (5, 0, 3, *[0] * 13)],
            },
            "tcbDate": "2025-06-01T00:00:00Z",
            "tcbStatus": "UpToDate",
        }  # fmt: skip
        enclave = {"tcb": {"isvsvn": 5}, "tcbDate": "2025-06-01T00:00:00Z", "tcbStatus": "UpToDate"}
        info: dict[str, Any] = {
            "id": "TDX", "version": 3, "issueDate": _date(NOW - timedelta(days=1)), "nextUpdate": _date(NOW + timedelta(days=30)),
            "fmspc": FMSPC.hex().upper(), "pceId": "0000", "tcbType": 0, "tcbEvaluationDataNumber": 18, "tdxModule": module,
            "tdxModuleIdentities": [{"id": "TDX_01", **module, "tcbLevels": [enclave]}], "tcbLevels": [level],
        }  # fmt: skip
        return {**info, **changes}

    def qe_identity(self, **changes: Any) -> dict[str, Any]:
        """The identity of the quoting enclave."""
        enclave = {"tcb": {"isvsvn": 4}, "tcbDate": "2025-06-01T00:00:00Z", "tcbStatus": "UpToDate"}
        identity: dict[str, Any] = {
            "id": "TD_QE", "version": 2,
            "issueDate": _date(NOW - timedelta(days=1)), "nextUpdate": _date(NOW + timedelta(days=30)),
            "tcbEvaluationDataNumber": 18, "miscselect": "00000000", "miscselectMask": "FFFFFFFF",
            "attributes": "11" + "00" * 15, "attributesMask": "FBFFFFFFFFFFFFFF0000000000000000",
            "mrsigner": MRSIGNER.hex().upper(), "isvprodid": 2, "tcbLevels": [enclave],
        }  # fmt: skip
        return {**identity, **changes}

    def collateral(
        self,
        info: dict[str, Any] | None = None,
        identity: dict[str, Any] | None = None,
        *,
        revoked_by_root: tuple[int, ...] = (),
        revoked_by_ca: tuple[int, ...] = (),
        signer: tuple[Any, ec.EllipticCurvePrivateKey] | None = None,
        crl_end: datetime = NOW + timedelta(days=30),
    ) -> bytes:
        """A collateral file."""
        certificate, key = signer or (self.signer, self.signer_key)
        tcb = json.dumps(info or self.tcb_info(), separators=(",", ":"))
        qe = json.dumps(identity or self.qe_identity(), separators=(",", ":"))
        chain = (certificate if isinstance(certificate, bytes) else pem(certificate, self.root)).decode()
        start = NOW - timedelta(days=1)
        return json.dumps(
            {
                "pck_crl_issuer_chain": pem(self.authority, self.root).decode(),
                "root_ca_crl": revocations(ROOT, self.root_key, revoked_by_root, start=start, end=crl_end).hex(),
                "pck_crl": revocations(PLATFORM, self.ca_key, revoked_by_ca, start=start, end=crl_end).hex(),
                "tcb_info_issuer_chain": chain,
                "tcb_info": tcb,
                "tcb_info_signature": raw_signature(key, tcb.encode()).hex(),
                "qe_identity_issuer_chain": chain,
                "qe_identity": qe,
                "qe_identity_signature": raw_signature(key, qe.encode()).hex(),
            }
        ).encode()


def _date(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
