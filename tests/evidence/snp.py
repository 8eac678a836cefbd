"""An AMD of our own: roots, endorsement keys and reports of every generation and version, in the real formats."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from hashlib import sha256
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from fastness.crypto.chains import load_certificates
from fastness.crypto.x509 import Certificate
from tests.evidence.authority import END, START, der, integer, issue, tlv

CPUS = {"Milan": (0x19, 0x01), "Genoa": (0x19, 0x11), "Turin": (0x1A, 0x02)}
_BASE = "1.3.6.1.4.1.3704.1"


@cache
def _rsa(number: int) -> rsa.RSAPrivateKey:
    # Kept in a file: to find the primes takes seconds, and the secret protects nothing.
    data = (Path(__file__).parent / "data" / f"made-up-amd-{number}.pem").read_bytes()
    key = serialization.load_pem_private_key(data, None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key


@dataclass(frozen=True)
class Chip:
    """A chip of a generation, with its key for some firmware versions and the chain above it."""

    generation: str = "Milan"
    shared: bool = False
    hardware_id: bytes = b""
    versions: dict[str, int] = field(default_factory=lambda: {"bootloader": 3, "tee": 0, "snp": 8, "microcode": 200})
    start: datetime = START
    end: datetime = END
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP384R1()))

    @property
    def chip_id(self) -> bytes:
        """The identity in hardware: 8 bytes on Turin, 64 before."""
        size = 8 if self.generation == "Turin" else 64
        return self.hardware_id or (sha256(b"chip").digest() * 2)[:size]

    def tcb(self, **changes: int) -> bytes:
        """A TCB version in the generation's layout."""
        one = {"fmc": 1, **self.versions, **changes}
        if self.generation == "Turin":
            return bytes([one["fmc"], one["bootloader"], one["tee"], one["snp"], 0, 0, 0, one["microcode"]])
        return bytes([one["bootloader"], one["tee"], 0, 0, 0, 0, one["snp"], one["microcode"]])

    def certificates(self) -> list[Certificate]:
        """Endorsement key, intermediate, root."""
        signer = f"SEV-VLEK-{self.generation}" if self.shared else f"SEV-{self.generation}"
        numbers = {"bootloader": "3.1", "tee": "3.2", "snp": "3.3", "microcode": "3.8"}
        extensions = {f"{_BASE}.{number}": integer(self.versions[part]) for part, number in numbers.items()}
        extensions[f"{_BASE}.2"] = tlv(0x16, self.generation.encode())
        if self.generation == "Turin":
            extensions[f"{_BASE}.3.9"] = integer(1)
        if self.shared:
            extensions[f"{_BASE}.5"] = tlv(0x16, b"CN=cloud.example")
        else:
            extensions[f"{_BASE}.4"] = self.chip_id
        name = "SEV-VLEK" if self.shared else "SEV-VCEK"
        leaf = issue(name, self.key, signer, _rsa(1), extensions=extensions, start=self.start, end=self.end)
        return [*load_certificates(der(leaf)), *_upper(str(self.generation), signer)]

    @property
    def roots(self) -> dict[str, str]:
        """The pin of this vendor's root."""
        return {self.generation: _root(str(self.generation)).fingerprint.hex}

    def report(
        self,
        version: int = 3,
        *,
        nonce: bytes = b"",
        policy: int = 0x30000,
        vmpl: int = 0,
        fields: Mapping[str, bytes] | None = None,
        **raw: bytes,
    ) -> bytes:
        """A signed report; `raw` and `fields` override bytes by hexadecimal offset: `x1F0=…`."""
        body = bytearray(0x2A0)
        struct.pack_into("<IIQ", body, 0, version, 1, policy)
        struct.pack_into("<II", body, 0x30, vmpl, 1)
        struct.pack_into("<QI", body, 0x40, 0x21, 4 if self.shared else 0)
        body[0x50:0x90] = nonce.ljust(64, b"\0")
        body[0x90:0xC0] = bytes(range(48))
        for offset in (0x38, 0x180, 0x1E0, 0x1F0):
            body[offset : offset + 8] = self.tcb()
        if version >= 3:
            body[0x188:0x18A] = bytes(CPUS[self.generation])
        if not self.shared:
            body[0x1A0 : 0x1A0 + len(self.chip_id)] = self.chip_id
        for place, value in {**raw, **(fields or {})}.items():
            offset = int(place[1:], 16)
            body[offset : offset + len(value)] = value
        r, s = decode_dss_signature(self.key.sign(bytes(body), ec.ECDSA(hashes.SHA384())))
        return bytes(body) + r.to_bytes(72, "little") + s.to_bytes(72, "little") + bytes(512 - 144)


@cache
def _upper(generation: str, signer: str) -> list[Certificate]:
    middle = issue(signer, _rsa(1), f"ARK-{generation}", _rsa(0), ca=True)
    return [*load_certificates(der(middle)), _root(generation)]


@cache
def _root(generation: str) -> Certificate:
    name = f"ARK-{generation}"
    return load_certificates(der(issue(name, _rsa(0), name, _rsa(0), ca=True)))[0]
