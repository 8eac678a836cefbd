"""Simulated Intel: a root, platforms with provisioning certificates and a quoting enclave, and the collateral about them.

    foundry = TdxFoundry(seed, validity)
    foundry.chip(level="old").boot(image).quote(binding)
    foundry.collateral(at)                                   # signed by the same root: what the provisioning service would say

A trust domain takes MRTD and RTMRs from the image; the event log in the evidence replays to them. Common names are Intel's,
because verifiers ask for signers by name; the organization in each certificate says that it is made up.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from fastness.crypto.silicon.registers import extend, hashed
from fastness.formats.evidence.tdx.collateral import Collateral, parse_collateral
from fastness.formats.evidence.tdx.pck import EXTENSION
from fastness.protocol.user_data_event import RTMR, USER_DATA_RTMR, logged
from fastness.sim.tee.firmware import FMSPC, QE_SIGNER, TDX_LEVELS, XFAM, TdxFirmware
from fastness.sim.tee.images import BootImage, default_image
from fastness.sim.tee.machine import Guest
from fastness.sim.tee.writers import asn1
from fastness.sim.tee.writers import tdx_documents as tdxdocuments
from fastness.sim.tee.writers.authority import Authority, Extension, Period, key_usage, name
from fastness.sim.tee.writers.keys import EcKey, Seed
from fastness.sim.tee.writers.tdx_quote import (
    DEBUG,
    SEPT_VE_DISABLE,
    TrustDomain,
    certified,
    enclave_report,
    write_quote,
)

ROOT: Final = "Intel SGX Root CA"
PLATFORM: Final = "Intel SGX PCK Platform CA"
LEAF: Final = "Intel SGX PCK Certificate"
SIGNER: Final = "Intel SGX TCB Signing"
_PEM: Final = "-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----\n"


def pem(*certificates: bytes) -> str:
    """A PEM bundle of DER certificates."""
    return "".join(_PEM.format(base64.encodebytes(der).decode()) for der in certificates)


def sgx_extension(level: TdxFirmware, ppid: bytes, instance: bytes, fmspc: bytes) -> bytes:
    """What a provisioning certificate says about its platform."""
    tcb = {str(number): asn1.integer(svn) for number, svn in enumerate(level.components, start=1)}
    tcb |= {"17": asn1.integer(level.pce_svn), "18": asn1.octets(bytes(level.components))}
    flags = {"1": asn1.boolean(True), "2": asn1.boolean(False), "3": asn1.boolean(True)}
    return _named(
        EXTENSION,
        {
            "1": asn1.octets(ppid),
            "2": _named(f"{EXTENSION}.2", tcb),
            "3": asn1.octets(bytes(2)),
            "4": asn1.octets(fmspc),
            "5": asn1.integer(1, tag=0x0A),
            "6": asn1.octets(instance),
            "7": _named(f"{EXTENSION}.7", flags),
        },
    )


def _named(base: str, members: Mapping[str, bytes]) -> bytes:
    return asn1.sequence(*(asn1.sequence(asn1.oid(f"{base}.{last}"), value) for last, value in members.items()))


class TdxFoundry:
    """The vendor's works for TDX."""

    def __init__(self, seed: Seed, validity: Period) -> None:
        self._seed = seed
        self.root = Authority.root(ROOT, EcKey(seed.branch("root")), serial=1, validity=validity)
        self.authority = self.root.subordinate(PLATFORM, EcKey(seed.branch("platform CA")), serial=2)
        self.signer_key = EcKey(seed.branch("TCB signing"))
        self.signer = self.root.issue(
            name(SIGNER), self.signer_key.public_der(), serial=3, extensions=[key_usage(0, 1)]
        )

    def chip(
        self,
        *,
        serial: int = 0,
        level: str | TdxFirmware = "current",
        fmspc: bytes = FMSPC,
        qe_svn: int = tdxdocuments.QE_SVN,
    ) -> TdxChip:
        """The platform with that serial number, at a level of `firmware.TDX_LEVELS` or one of the caller's."""
        chosen = TDX_LEVELS[level] if isinstance(level, str) else level
        return TdxChip(self, self._seed.branch("chip", serial), chosen, fmspc, qe_svn)

    def issue_pck(self, chip: TdxChip) -> bytes:
        """The provisioning certificate of a platform."""
        extension = Extension(EXTENSION, sgx_extension(chip.level, chip.ppid, chip.instance_id, chip.fmspc))
        return self.authority.issue(
            name(LEAF), chip.pck_key.public_der(), serial=chip.pck_serial, extensions=[key_usage(0, 1), extension]
        )

    def collateral(
        self,
        at: datetime,
        *,
        fmspc: bytes = FMSPC,
        info: Mapping[str, Any] | None = None,
        identity: Mapping[str, Any] | None = None,
        revoked_by_root: Iterable[int] = (),
        revoked_platforms: Iterable[int] = (),
        number: int = 1,
    ) -> Collateral:
        """All that a verifier needs to know of a kind of platform; `info` and `identity` replace the documents."""
        chain = pem(self.signer, self.root.certificate)
        tcb = json.dumps(info or tdxdocuments.tcb_info(at, fmspc=fmspc.hex().upper()), separators=(",", ":"))
        qe = json.dumps(identity or tdxdocuments.qe_identity(at), separators=(",", ":"))
        document = {
            "pck_crl_issuer_chain": pem(self.authority.certificate, self.root.certificate),
            "root_ca_crl": self.root.revocations(at, revoked_by_root, number=number).hex(),
            "pck_crl": self.authority.revocations(at, revoked_platforms, number=number).hex(),
            "tcb_info_issuer_chain": chain,
            "tcb_info": tcb,
            "tcb_info_signature": self.signer_key.raw(tcb.encode()).hex(),
            "qe_identity_issuer_chain": chain,
            "qe_identity": qe,
            "qe_identity_signature": self.signer_key.raw(qe.encode()).hex(),
        }
        return parse_collateral(json.dumps(document).encode())


class TdxChip:
    """A platform with TDX: its provisioning key, and a quoting enclave with an attestation key."""

    tee: Final = "tdx"

    def __init__(self, foundry: TdxFoundry, seed: Seed, level: TdxFirmware, fmspc: bytes, qe_svn: int) -> None:
        self.foundry = foundry
        self.seed = seed
        self.level = level
        self.fmspc = fmspc
        self.qe_svn = qe_svn
        own = seed.branch("platform")
        self.ppid = own.token(16)
        self.instance_id = own.token(16)
        self.pck_serial = int.from_bytes(own.token(16), "big") >> 1 or 1
        self.pck_key = EcKey(seed.branch("provisioning"))
        self.attestation_key = EcKey(seed.branch("quoting enclave"))
        self._guests = 0
        self.boots = 0

    @cached_property
    def certificate(self) -> bytes:
        """The provisioning certificate."""
        return self.foundry.issue_pck(self)

    @property
    def certificates(self) -> tuple[bytes, bytes, bytes]:
        """Provisioning certificate, platform authority and root, in DER."""
        return self.certificate, self.foundry.authority.certificate, self.foundry.root.certificate

    @cached_property
    def vouched(self) -> bytes:
        """The quoting enclave's report, signed by the platform; the same for every quote."""
        auth = bytes(range(32))
        report = enclave_report(self.attestation_key, auth, QE_SIGNER, self.qe_svn)
        return certified(report, self.pck_key, auth, pem(*self.certificates).encode() + b"\0")

    def with_firmware(self, level: str | TdxFirmware) -> TdxChip:
        """The same platform after its host installed other firmware."""
        chosen = TDX_LEVELS[level] if isinstance(level, str) else level
        chip = TdxChip(self.foundry, self.seed, chosen, self.fmspc, self.qe_svn)
        chip.boots = self.boots
        return chip

    def boot(
        self,
        image: BootImage | None = None,
        *,
        version: int = 4,
        debug: bool = False,
        attributes: int = SEPT_VE_DISABLE,
        mr_config_id: bytes = b"",
        guest: int | None = None,
    ) -> TdxMachine:
        """A domain that booted the image; the same guest number has the same identity key on every boot."""
        number = self._guests if guest is None else guest
        self._guests = max(self._guests, number) + 1
        self.boots += 1
        chosen, booted = image or default_image(), self.level
        domain = TrustDomain(
            tee_tcb_svn=booted.tee_tcb_svn,
            attributes=attributes | (DEBUG if debug else 0),
            mr_seam=hashlib.sha384(b"simulated TDX module" + booted.tee_tcb_svn).digest(),
            xfam=XFAM,
            mr_td=chosen.mr_td,
            mr_config_id=mr_config_id,
            rtmrs=chosen.rtmrs,
            tee_tcb_svn2=booted.tee_tcb_svn if version >= 5 else None,
        )
        return TdxMachine(self, chosen, number, version, domain)


class TdxMachine(Guest):
    """A trust domain."""

    tee: Final = "tdx"

    def __init__(self, chip: TdxChip, image: BootImage, guest: int, version: int, domain: TrustDomain) -> None:
        super().__init__(chip.seed, image, guest)
        self.chip = chip
        self.version = version
        self.domain = domain
        self.event_log = image.cc_event_log
        """The log that replays to the run-time registers."""
        self._boot = chip.boots

    @cached_property
    def boot_key(self) -> EcKey:
        """What its agent makes when it boots, and keeps in memory: no quote tells this boot from another."""
        return EcKey(self._seed.branch("boot key", self.guest, self._boot))

    def measure(self, event: bytes) -> None:
        """Extend RTMR 3, and say so in the log."""
        self.extend(event)
        self.event_log = logged(self.event_log, RTMR.runtime, [event])

    def extend(self, event: bytes) -> None:
        """Extend RTMR 3 with something that no log tells."""
        digest = hashed("sha384", event)
        rtmrs = [
            extend("sha384", value, digest) if number == USER_DATA_RTMR else value
            for number, value in enumerate(self.domain.rtmrs)
        ]
        self.domain = replace(self.domain, rtmrs=tuple(rtmrs))

    def raw_quote(self, report_data: bytes) -> bytes:
        """A quote as the quoting enclave gives it."""
        body = replace(self.domain, report_data=report_data).body()
        return write_quote(self.version, body, self.chip.attestation_key, self.chip.vouched)

    def quote(self, report_data: bytes) -> dict[str, Any]:
        """Evidence with the event log."""
        return {
            "quote": base64.b64encode(self.raw_quote(report_data)).decode(),
            "cc_eventlog": base64.b64encode(self.event_log).decode(),
        }
