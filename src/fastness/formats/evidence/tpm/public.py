"""TPMT_PUBLIC: what a TPM says about one of its keys, and the name that follows from it.

TPM 2.0 Library, part 2, §12.2. Big-endian, nothing may follow. The attributes decide whether a key can be made to lie: a
restricted signing key signs only what the TPM itself wrote, so a quote cannot be imitated by signing chosen bytes.

* The name is the hash over the whole area, attributes included: a credential sealed to it opens only for exactly this key.
* Only asymmetric keys are read. The exponent zero means 65537, as the library says.
* `spki` is the key as the rest of the world writes it (SubjectPublicKeyInfo); whether a point lies on its curve is checked where
  the key is loaded, in `fastness.crypto.silicon.verify`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import IntFlag
from typing import Final, NamedTuple

from fastness.formats import der
from fastness.formats.cursor import Cursor, EvidenceError
from fastness.formats.evidence.tpm.algorithms import HASHES, Hash

# An RSA-4096 key with its policy has under 700 bytes.
MAX_PUBLIC: Final = 1024
TYPE_RSA: Final = 0x0001
TYPE_ECC: Final = 0x0023
_NULL: Final = 0x0010
_RSAES: Final = 0x0015
_ECDAA: Final = 0x001A
_CIPHERS: Final = {0x0006: "aes", 0x0013: "sm4", 0x0026: "camellia"}
_SCHEMES: Final = {
    0x0014: "RSASSA",
    _RSAES: "RSAES",
    0x0016: "RSAPSS",
    0x0017: "OAEP",
    0x0018: "ECDSA",
    0x0019: "ECDH",
    _ECDAA: "ECDAA",
    0x001B: "SM2",
    0x001C: "ECSCHNORR",
    0x001D: "ECMQV",
}
# The name binds a credential to a key. Under SHA-1, two areas with other attributes could share one name.
_NAMEABLE: Final = frozenset({"sha256", "sha384", "sha512"})
_DEFAULT_EXPONENT: Final = 65537
_OID_RSA: Final = bytes.fromhex("2a864886f70d010101")
_OID_EC: Final = bytes.fromhex("2a8648ce3d0201")


class Attributes(IntFlag):
    """TPMA_OBJECT, by the names of the TPM library."""

    FIXED_TPM = 1 << 1
    ST_CLEAR = 1 << 2
    FIXED_PARENT = 1 << 4
    SENSITIVE_DATA_ORIGIN = 1 << 5
    USER_WITH_AUTH = 1 << 6
    ADMIN_WITH_POLICY = 1 << 7
    FIRMWARE_LIMITED = 1 << 8
    SVN_LIMITED = 1 << 9
    NO_DA = 1 << 10
    ENCRYPTED_DUPLICATION = 1 << 11
    RESTRICTED = 1 << 16
    DECRYPT = 1 << 17
    SIGN = 1 << 18
    X509_SIGN = 1 << 19


_KNOWN: Final = sum(Attributes)
# What an attestation key must have: made inside this TPM, unable to leave it, and unable to sign foreign bytes as a quote.
ATTESTATION: Final = (
    Attributes.RESTRICTED
    | Attributes.SIGN
    | Attributes.FIXED_TPM
    | Attributes.FIXED_PARENT
    | Attributes.SENSITIVE_DATA_ORIGIN
)


class Curve(NamedTuple):
    """An elliptic curve: its name, the length of a coordinate, and its object identifier in DER."""

    name: str
    size: int
    oid: bytes


CURVES: Final = {
    0x0003: Curve("P-256", 32, bytes.fromhex("2a8648ce3d030107")),
    0x0004: Curve("P-384", 48, bytes.fromhex("2b81040022")),
    0x0005: Curve("P-521", 66, bytes.fromhex("2b81040023")),
}


@dataclass(frozen=True, slots=True)
class Parameters:
    """How the key may be used: cipher for what it protects, scheme with its hash; empty where the area leaves it open."""

    cipher: str
    cipher_bits: int
    scheme: str
    hash: Hash | None


@dataclass(frozen=True, slots=True)
class RsaPublic:
    """Modulus and exponent."""

    modulus: bytes
    exponent: int

    @property
    def bits(self) -> int:
        """Length of the modulus."""
        return int.from_bytes(self.modulus, "big").bit_length()


@dataclass(frozen=True, slots=True)
class EccPublic:
    """A point on a curve; both coordinates have the full length."""

    curve: Curve
    x: bytes
    y: bytes


@dataclass(frozen=True, slots=True)
class TpmPublic:
    """A parsed public area; `area` is TPMT_PUBLIC, which the name covers."""

    area: bytes
    name_hash: Hash
    attributes: Attributes
    auth_policy: bytes
    parameters: Parameters
    key: RsaPublic | EccPublic

    @property
    def name(self) -> bytes:
        """The TPM's name of the key: the algorithm's number and the hash over the area."""
        return self.name_hash.number.to_bytes(2, "big") + hashlib.new(self.name_hash.name, self.area).digest()

    @property
    def sized(self) -> bytes:
        """The same as TPM2B_PUBLIC."""
        return len(self.area).to_bytes(2, "big") + self.area

    @property
    def spki(self) -> bytes:
        """DER of SubjectPublicKeyInfo."""
        key = self.key
        if isinstance(key, RsaPublic):
            algorithm = der.encoded(der.OID, _OID_RSA) + der.encoded(der.NULL, b"")
            bits = der.encoded(der.SEQUENCE, der.unsigned(key.modulus) + der.unsigned(_big(key.exponent)))
        else:
            algorithm = der.encoded(der.OID, _OID_EC) + der.encoded(der.OID, key.curve.oid)
            bits = b"\x04" + key.x + key.y
        return der.encoded(
            der.SEQUENCE, der.encoded(der.SEQUENCE, algorithm) + der.encoded(der.BIT_STRING, b"\0" + bits)
        )

    @property
    def is_attestation_key(self) -> bool:
        """Whether the TPM can be believed about what this key signs."""
        # A restricted key that decrypts is a storage key: what it signs is not what a TPM quotes with.
        return not self.lacks and not self.attributes & Attributes.DECRYPT

    @property
    def lacks(self) -> tuple[str, ...]:
        """The attributes of an attestation key that this one does not have."""
        return tuple(_said(flag) for flag in ATTESTATION & ~self.attributes)


def parse_public(data: bytes) -> TpmPublic:
    """Read TPM2B_PUBLIC or TPMT_PUBLIC; raises EvidenceError."""
    if len(data) > MAX_PUBLIC:
        raise EvidenceError("too-long", f"a public area has at most {MAX_PUBLIC} bytes, not {len(data)}")
    # A size that counts the rest exactly cannot be a type: areas of 1 or 35 bytes do not hold a key.
    area = data[2:] if len(data) > 2 and int.from_bytes(data[:2], "big") == len(data) - 2 else data
    cursor = Cursor(area, "the public area", "big")
    kind = cursor.u16("type")
    if kind not in (TYPE_RSA, TYPE_ECC):
        raise EvidenceError("not-a-key", f"the public area is of type {kind:#06x}; only RSA and ECC keys are read")
    name_hash = HASHES.get(cursor.u16("nameAlg"))
    if name_hash is None or name_hash.name not in _NAMEABLE:
        raise EvidenceError("unknown-hash", "the public area is named by an algorithm that is unknown or too weak")
    attributes = cursor.u32("objectAttributes")
    # A bit that a later TPM gives a meaning to may take back what the known ones promise.
    if attributes & ~_KNOWN:
        raise EvidenceError("bad-attributes", f"the public area has reserved attributes set: {attributes:#010x}")
    policy = cursor.sized("authPolicy", 64)
    parameters, key = _rsa(cursor) if kind == TYPE_RSA else _ecc(cursor)
    cursor.finish()
    return TpmPublic(area, name_hash, Attributes(attributes), policy, parameters, key)


def _rsa(cursor: Cursor) -> tuple[Parameters, RsaPublic]:
    parameters = _parameters(cursor)
    bits, exponent = cursor.u16("keyBits"), cursor.u32("exponent")
    modulus = cursor.sized("modulus", 512)
    key = RsaPublic(modulus, exponent or _DEFAULT_EXPONENT)
    # One key, one area, one name: leading zeros would give a modulus a second area.
    if not modulus or key.bits != bits or len(modulus) * 8 != bits:
        raise EvidenceError("bad-key", f"the public area announces {bits} bits; its modulus has {key.bits}")
    if not key.exponent & 1 or key.exponent < 3:
        raise EvidenceError("bad-key", f"the public area has the exponent {key.exponent}")
    return parameters, key


def _ecc(cursor: Cursor) -> tuple[Parameters, EccPublic]:
    parameters = _parameters(cursor)
    number = cursor.u16("curveID")
    curve = CURVES.get(number)
    if curve is None:
        raise EvidenceError("unknown-curve", f"the public area names the unknown curve {number:#06x}")
    if cursor.u16("kdf") != _NULL:
        _hash(cursor, "kdf")
    # TPMs leave out leading zeros of coordinates; filled up below, the same point has one encoding.
    x, y = cursor.sized("x", curve.size), cursor.sized("y", curve.size)
    if not x or not y:
        raise EvidenceError("bad-key", "the public area holds no point")
    return parameters, EccPublic(curve, x.rjust(curve.size, b"\0"), y.rjust(curve.size, b"\0"))


def _parameters(cursor: Cursor) -> Parameters:
    cipher, bits = "", 0
    number = cursor.u16("symmetric")
    if number != _NULL:
        if number not in _CIPHERS:
            raise EvidenceError("unknown-cipher", f"the public area names the unknown cipher {number:#06x}")
        cipher, bits = _CIPHERS[number], cursor.u16("symmetric.keyBits")
        cursor.u16("symmetric.mode")
    number = cursor.u16("scheme")
    if number == _NULL:
        return Parameters(cipher, bits, "", None)
    if number not in _SCHEMES:
        raise EvidenceError("unknown-scheme", f"the public area names the unknown scheme {number:#06x}")
    algorithm = None if number == _RSAES else _hash(cursor, "scheme")
    if number == _ECDAA:
        cursor.u16("scheme.count")
    return Parameters(cipher, bits, _SCHEMES[number], algorithm)


def _hash(cursor: Cursor, field: str) -> Hash:
    number = cursor.u16(f"{field}.hashAlg")
    algorithm = HASHES.get(number)
    if algorithm is None:
        raise EvidenceError("unknown-hash", f"{field} of the public area names the unknown hash {number:#06x}")
    return algorithm


def _said(flag: Attributes) -> str:
    first, *rest = str(flag.name).lower().split("_")
    return first + "".join("TPM" if word == "tpm" else word.capitalize() for word in rest)


def _big(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
