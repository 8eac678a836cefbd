"""TDX quotes and collateral that are wrong on purpose: every part can be replaced before it is signed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fastness.crypto.digests import sha256
from fastness.formats.evidence.tdx.pck import EXTENSION as SGX
from fastness.formats.evidence.tdx.quote import INTEL_QE
from fastness.sim.tee.firmware import FMSPC, QE_SIGNER, TdxFirmware
from fastness.sim.tee.tdx import LEAF, PLATFORM, ROOT, SIGNER, sgx_extension
from fastness.sim.tee.writers import tdx_documents as tdxdocuments
from fastness.sim.tee.writers.keys import EcKey
from fastness.sim.tee.writers.tdx_quote import SEPT_VE_DISABLE, TrustDomain, certified, enclave_report, write_quote
from tests.evidence.authority import issue, new_key, pem, revocations

__all__ = ["FMSPC", "LEAF", "NOW", "PLATFORM", "ROOT", "SGX", "Platform", "new_key"]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
INSTANCE = b"\x11" * 16


@dataclass
class Platform:
    """A platform with a vendor of its own: authorities, provisioning certificate and quoting enclave."""

    components: tuple[int, ...] = (3, 3, 2, 2, 4, 1, 0, 5) + (0,) * 8
    pce_svn: int = 13
    leaf_name: str = LEAF
    root_key: EcKey = field(default_factory=new_key)
    ca_key: EcKey = field(default_factory=new_key)
    pck_key: EcKey = field(default_factory=new_key)
    signer_key: EcKey = field(default_factory=new_key)
    attestation_key: EcKey = field(default_factory=new_key)

    def __post_init__(self) -> None:
        self.level = TdxFirmware(self.components, self.pce_svn, 5, 3, "UpToDate", "2025-06-01T00:00:00Z")
        self.root = issue(ROOT, self.root_key, ROOT, self.root_key, ca=True, serial=1)
        self.authority = issue(PLATFORM, self.ca_key, ROOT, self.root_key, ca=True, serial=2)
        self.leaf = issue(
            self.leaf_name, self.pck_key, PLATFORM, self.ca_key, serial=3, extensions={SGX: self.extension()}
        )
        self.signer = issue(SIGNER, self.signer_key, ROOT, self.root_key, serial=4)

    @property
    def pin(self) -> str:
        """The fingerprint of this vendor's root."""
        return sha256(self.root).hex

    def extension(self) -> bytes:
        """What the certificate says about the platform."""
        return sgx_extension(self.level, bytes(16), INSTANCE, FMSPC)

    def quote(
        self, version: int = 4, *, nonce: bytes = b"", attributes: int = SEPT_VE_DISABLE, **changed: Any
    ) -> bytes:
        """A signed quote; `changed` gives svn, svn2, servicetd, seam_signer, rtmrs, chain, vendor, qe_debug, auth, bind,
        body_type, tail.
        """
        svn: bytes = changed.get("svn", self.level.tee_tcb_svn)
        domain = TrustDomain(
            tee_tcb_svn=svn,
            attributes=attributes,
            mrsigner_seam=changed.get("seam_signer", bytes(48)),
            rtmrs=changed.get("rtmrs", ()),
            report_data=nonce,
            tee_tcb_svn2=changed.get("svn2", svn) if version == 5 else None,
            mr_servicetd=changed.get("servicetd", bytes(48)),
        )
        auth: bytes = changed.get("auth", bytes(range(32)))
        report = enclave_report(
            self.attestation_key,
            auth,
            QE_SIGNER,
            tdxdocuments.QE_SVN,
            debug=bool(changed.get("qe_debug")),
            bound=changed.get("bind", b""),
        )
        chain: bytes = changed.get("chain", pem(self.leaf, self.authority, self.root))
        quote = write_quote(
            version,
            domain.body(),
            self.attestation_key,
            certified(report, self.pck_key, auth, chain),
            vendor=changed.get("vendor", INTEL_QE),
            body_type=changed.get("body_type"),
        )
        tail: bytes = changed.get("tail", b"")
        return quote + tail

    def tcb_info(self, **changes: Any) -> dict[str, Any]:
        """TCB information with one level, up to date for this platform."""
        return tdxdocuments.tcb_info(NOW, levels=[self.level], **changes)

    def qe_identity(self, **changes: Any) -> dict[str, Any]:
        """The identity of the quoting enclave."""
        return tdxdocuments.qe_identity(NOW, **changes)

    def collateral(
        self,
        info: dict[str, Any] | None = None,
        identity: dict[str, Any] | None = None,
        *,
        revoked_by_root: tuple[int, ...] = (),
        revoked_by_ca: tuple[int, ...] = (),
        signer: tuple[bytes, EcKey] | None = None,
        crl_end: datetime = NOW + timedelta(days=30),
    ) -> bytes:
        """A collateral file; `signer` is a PEM chain and a key that signs the documents instead of Intel's."""
        chain, key = signer or (pem(self.signer, self.root), self.signer_key)
        tcb = json.dumps(info or self.tcb_info(), separators=(",", ":"))
        qe = json.dumps(identity or self.qe_identity(), separators=(",", ":"))
        dates = {"start": NOW - timedelta(days=1), "end": crl_end}
        return json.dumps(
            {
                "pck_crl_issuer_chain": pem(self.authority, self.root).decode(),
                "root_ca_crl": revocations(ROOT, self.root_key, revoked_by_root, **dates).hex(),
                "pck_crl": revocations(PLATFORM, self.ca_key, revoked_by_ca, **dates).hex(),
                "tcb_info_issuer_chain": chain.decode(),
                "tcb_info": tcb,
                "tcb_info_signature": key.raw(tcb.encode()).hex(),
                "qe_identity_issuer_chain": chain.decode(),
                "qe_identity": qe,
                "qe_identity_signature": key.raw(qe.encode()).hex(),
            }
        ).encode()
