"""Simulated AMD: roots per generation, chips with versioned keys, and reports of versions 2, 3 and 5.

    foundry = SnpFoundry(seed, validity)
    chip = foundry.chip(Generation.TURIN)                    # or endorsement="VLEK": the cloud's key instead of the chip's
    chip.boot(image, debug=True).quote(binding)

The certificate of a chip's key says the firmware versions that the key was derived for, so a chip with other firmware has
another key and another certificate, as real ones do. Certificates of endorsement keys have the serial number zero: AMD's do.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Literal

from fastness.formats.evidence.snp.report import SIGNED, SIZE
from fastness.formats.evidence.snp.tcb import Generation, Tcb
from fastness.sim.tee.firmware import CPUS, CURRENT_TCB
from fastness.sim.tee.images import BootImage, default_image
from fastness.sim.tee.machine import Guest
from fastness.sim.tee.writers import asn1
from fastness.sim.tee.writers.authority import Authority, Extension, Period, name
from fastness.sim.tee.writers.keys import EcKey, RsaAuthority, Seed

Endorsement = Literal["VCEK", "VLEK"]
PROVIDER: Final = "CN=cloud.example"
POLICY: Final = 0x30000  # SMT allowed, and the bit that must be one
DEBUG: Final = 1 << 19
PLATFORM_INFO: Final = 0x21  # SMT on, alias check complete
_P384: Final = 48
_OID: Final = "1.3.6.1.4.1.3704.1"
_SPL: Final = {"bootloader": "3.1", "tee": "3.2", "snp": "3.3", "microcode": "3.8", "fmc": "3.9"}


def tcb_bytes(tcb: Tcb) -> bytes:
    """A TCB version as reports carry it; the layout with a first-stage component is that of Turin."""
    if tcb.fmc is None:
        return bytes((tcb.bootloader, tcb.tee, 0, 0, 0, 0, tcb.snp, tcb.microcode))
    return bytes((tcb.fmc, tcb.bootloader, tcb.tee, tcb.snp, 0, 0, 0, tcb.microcode))


class SnpFoundry:
    """The vendor's works for SNP: authorities, and the chips below them. Authorities are made when first asked for."""

    def __init__(self, seed: Seed, validity: Period) -> None:
        self._seed = seed
        self._validity = validity
        self._roots: dict[Generation, Authority] = {}
        self._signers: dict[tuple[Generation, Endorsement], Authority] = {}

    @property
    def roots(self) -> dict[str, str]:
        """Generation to the fingerprint of its root."""
        return {str(generation): self.root(generation).fingerprint for generation in Generation}

    def root(self, generation: Generation) -> Authority:
        """The ARK of a generation."""
        if generation not in self._roots:
            key = self._key("ARK", generation)
            self._roots[generation] = Authority.root(f"ARK-{generation}", key, serial=0x10000, validity=self._validity)
        return self._roots[generation]

    def signer(self, generation: Generation, endorsement: Endorsement = "VCEK") -> Authority:
        """The ASK of a generation, or the ASVK for keys of clouds."""
        place = generation, endorsement
        if place not in self._signers:
            common, serial = (
                (f"SEV-{generation}", 0x10001) if endorsement == "VCEK" else (f"SEV-VLEK-{generation}", 0x10002)
            )
            key = self._key(endorsement, generation)
            self._signers[place] = self.root(generation).subordinate(common, key, serial=serial)
        return self._signers[place]

    def revocations(self, generation: Generation, at: datetime, serials: Iterable[int] = (), number: int = 1) -> bytes:
        """The revocation list of a generation's root: authorities below it that no longer count."""
        return self.root(generation).revocations(at, serials, number=number)

    def chip(
        self,
        generation: Generation = Generation.GENOA,
        *,
        serial: int = 0,
        tcb: Tcb | None = None,
        endorsement: Endorsement = "VCEK",
        validity: Period | None = None,
    ) -> SnpChip:
        """The chip with that serial number, running that firmware."""
        chosen = tcb or CURRENT_TCB[generation]
        if (chosen.fmc is None) == (generation is Generation.TURIN):
            raise ValueError(
                f"{chosen} is no firmware of {generation}: the component fmc exists on Turin, and only there"
            )
        return SnpChip(self, self._seed.branch(generation, "chip", serial), generation, chosen, endorsement, validity)

    def endorsement_key(self, chip: SnpChip) -> EcKey:
        """The key that a chip signs with: of the chip and its firmware, or of the cloud and the firmware."""
        owner = chip.seed if chip.endorsement == "VCEK" else self._seed.branch(chip.generation, PROVIDER)
        return EcKey(owner.branch("endorsement", tcb_bytes(chip.tcb).hex()), _P384)

    def _key(self, name: str, generation: Generation) -> RsaAuthority:
        return RsaAuthority(self._seed.branch(name, generation).rsa(4096))


class SnpChip:
    """A processor with SNP. Many guests run on it, each with an identity of its own."""

    tee: Final = "snp"

    def __init__(
        self,
        foundry: SnpFoundry,
        seed: Seed,
        generation: Generation,
        tcb: Tcb,
        endorsement: Endorsement,
        validity: Period | None,
    ) -> None:
        self.foundry = foundry
        self.seed = seed
        self.generation = generation
        self.tcb = tcb
        self.endorsement: Endorsement = endorsement
        self._validity = validity
        self._guests = 0
        self.boots = 0

    @cached_property
    def chip_id(self) -> bytes:
        """The identity in hardware: 8 bytes on Turin, 64 before."""
        return self.seed.branch("hardware id").token(self.generation.chip_id_size)

    @cached_property
    def key(self) -> EcKey:
        """The endorsement key."""
        return self.foundry.endorsement_key(self)

    @cached_property
    def certificate(self) -> bytes:
        """The certificate of the endorsement key."""
        versions = self.tcb.components()
        extensions = [
            Extension(f"{_OID}.1", asn1.integer(0)),
            Extension(f"{_OID}.2", asn1.ia5(str(self.generation))),
            *(Extension(f"{_OID}.{_SPL[part]}", asn1.integer(version)) for part, version in versions.items()),
        ]
        if self.endorsement == "VCEK":
            extensions.append(Extension(f"{_OID}.4", self.chip_id))
        else:
            extensions.append(Extension(f"{_OID}.5", asn1.ia5(PROVIDER)))
        return self.foundry.signer(self.generation, self.endorsement).issue(
            name(f"SEV-{self.endorsement}"),
            self.key.public_der(),
            serial=0,
            extensions=extensions,
            validity=self._validity,
        )

    @property
    def certificates(self) -> tuple[bytes, bytes, bytes]:
        """Endorsement key, intermediate and root, in DER."""
        signer = self.foundry.signer(self.generation, self.endorsement)
        return self.certificate, signer.certificate, self.foundry.root(self.generation).certificate

    def with_firmware(self, tcb: Tcb) -> SnpChip:
        """The same chip after its host installed other firmware."""
        chip = SnpChip(self.foundry, self.seed, self.generation, tcb, self.endorsement, self._validity)
        chip.boots = self.boots
        return chip

    def boot(
        self,
        image: BootImage | None = None,
        *,
        version: int = 3,
        debug: bool = False,
        policy: int = POLICY,
        vmpl: int = 0,
        host_data: bytes = b"",
        guest: int | None = None,
    ) -> SnpMachine:
        """A guest that booted the image; the same guest number has the same identity key on every boot."""
        number = self._guests if guest is None else guest
        self._guests = max(self._guests, number) + 1
        self.boots += 1
        chosen = policy | (DEBUG if debug else 0)
        return SnpMachine(self, image or default_image(), number, version, chosen, vmpl, host_data)


class SnpMachine(Guest):
    """A guest that runs under SNP."""

    tee: Final = "snp"
    event_log: Final = b""

    def __init__(
        self, chip: SnpChip, image: BootImage, guest: int, version: int, policy: int, vmpl: int, host_data: bytes
    ) -> None:
        super().__init__(chip.seed, image, guest)
        self.chip = chip
        self.report_id = chip.seed.branch("report id", guest, chip.boots).token(32)
        """Of this launch: the next one of the same guest has another."""
        self.version = version
        self.policy = policy
        self.vmpl = vmpl
        self.host_data = host_data

    def report(self, report_data: bytes, patches: Mapping[int, bytes] | None = None) -> bytes:
        """A signed report; `patches` replace bytes by offset before signing, as a forger with the chip's key would."""
        body = self._body(report_data)
        for offset, value in (patches or {}).items():
            body[offset : offset + len(value)] = value
        r, s = self.chip.key.numbers(bytes(body))
        return (bytes(body) + r.to_bytes(72, "little") + s.to_bytes(72, "little")).ljust(SIZE, b"\0")

    def quote(self, report_data: bytes) -> dict[str, Any]:
        """Evidence with the whole chain."""
        kinds = (self.chip.endorsement, "ASK", "ARK")
        chain = zip(kinds, self.chip.certificates, strict=True)
        return {
            "attestation_report": base64.b64encode(self.report(report_data)).decode(),
            "cert_chain": [{"cert_type": kind, "data": base64.b64encode(der).decode()} for kind, der in chain],
        }

    def _body(self, report_data: bytes) -> bytearray:
        chip, tcb = self.chip, tcb_bytes(self.chip.tcb)
        if len(report_data) > 64 or len(self.host_data) > 32:
            raise ValueError("report data has at most 64 bytes and host data at most 32")
        body = bytearray(SIGNED)
        struct.pack_into("<IIQ", body, 0x000, self.version, 1, self.policy)
        struct.pack_into("<II", body, 0x030, self.vmpl, 1)
        struct.pack_into("<QI", body, 0x040, PLATFORM_INFO, 0 if chip.endorsement == "VCEK" else 1 << 2)
        body[0x050 : 0x050 + len(report_data)] = report_data
        body[0x090:0x0C0] = self.image.launch_digest
        body[0x0C0 : 0x0C0 + len(self.host_data)] = self.host_data
        body[0x140:0x160] = self.report_id
        body[0x160:0x180] = b"\xff" * 32  # no migration agent
        for offset in (0x038, 0x180, 0x1E0, 0x1F0):  # current, reported, committed, launch
            body[offset : offset + 8] = tcb
        if self.version >= 3:
            body[0x188:0x18B] = bytes(CPUS[chip.generation])
        if chip.endorsement == "VCEK":
            body[0x1A0 : 0x1A0 + len(chip.chip_id)] = chip.chip_id
        for offset in (0x1E8, 0x1EC):  # current and committed version of the firmware: build, minor, major
            body[offset : offset + 3] = bytes((tcb[-1], 55, 1))
        if self.version >= 5:
            struct.pack_into("<QQ", body, 0x1F8, 0b11, 0b11)  # mitigations at launch and now
        return body
