"""Writing TPM 2.0 structures: public areas, names, quotes, signatures (TPM 2.0 Library, part 2). Big-endian throughout.

Templates are those of the TCG: endorsement keys as in the EK Credential Profile (restricted, decrypting, bound to the endorsement
hierarchy by policy), attestation keys restricted and signing. `fastness.formats.evidence.tpm` reads what is written here.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from typing import Final

from fastness.formats.evidence.tpm.attest import MAGIC, TYPE_QUOTE
from fastness.sim.tee.writers.eventlog import NUMBERS
from fastness.sim.tee.writers.keys import EcKey
from fastness.sim.tee.writers.rsa import RsaKey

TpmKey = EcKey | RsaKey
SHA256: Final = 0x000B
ENDORSEMENT_HIERARCHY: Final = 0x4000000B
EK_ATTRIBUTES: Final = 0x000300B2  # fixedTPM fixedParent sensitiveDataOrigin adminWithPolicy restricted decrypt
AK_ATTRIBUTES: Final = 0x00050072  # fixedTPM fixedParent sensitiveDataOrigin userWithAuth restricted sign
# PolicySecret(TPM_RH_ENDORSEMENT): the policy of every endorsement key made by the TCG's template.
EK_POLICY: Final = bytes.fromhex("837197674484b3f81a90cc8d46a5d724fd52d76e06520b64f2a1da1b331469aa")
_NULL: Final = 0x0010
_AES_128_CFB: Final = struct.pack(">HHH", 0x0006, 128, 0x0043)
_RSASSA, _ECDSA = 0x0014, 0x0018
_P256: Final = 0x0003


def sized(data: bytes) -> bytes:
    """TPM2B: a 16-bit length and the bytes."""
    return struct.pack(">H", len(data)) + data


def endorsement_area(key: TpmKey) -> bytes:
    """TPMT_PUBLIC of an endorsement key."""
    return _area(key, EK_ATTRIBUTES, EK_POLICY, _AES_128_CFB, struct.pack(">H", _NULL))


def attestation_area(key: TpmKey, attributes: int = AK_ATTRIBUTES) -> bytes:
    """TPMT_PUBLIC of an attestation key; other attributes make one that must not be believed."""
    scheme = _ECDSA if isinstance(key, EcKey) else _RSASSA
    return _area(key, attributes, b"", struct.pack(">H", _NULL), struct.pack(">HH", scheme, SHA256))


def _area(key: TpmKey, attributes: int, policy: bytes, symmetric: bytes, scheme: bytes) -> bytes:
    kind = 0x0023 if isinstance(key, EcKey) else 0x0001
    head = struct.pack(">HHI", kind, SHA256, attributes) + sized(policy) + symmetric + scheme
    if isinstance(key, EcKey):
        x, y = key.point
        return head + struct.pack(">HH", _P256, _NULL) + sized(x) + sized(y)
    modulus = key.modulus.to_bytes(key.size, "big")
    return head + struct.pack(">HI", key.size * 8, 0) + sized(modulus)


def name_of(area: bytes) -> bytes:
    """The name of a key."""
    return struct.pack(">H", SHA256) + hashlib.sha256(area).digest()


def qualified_name(*areas: bytes) -> bytes:
    """The name of a key together with all keys above it, up to the endorsement hierarchy."""
    name = struct.pack(">I", ENDORSEMENT_HIERARCHY)
    for area in areas:
        name = struct.pack(">H", SHA256) + hashlib.sha256(name + name_of(area)).digest()
    return name


def selection(bank: str, registers: Iterable[int], size: int = 3) -> bytes:
    """TPMS_PCR_SELECTION."""
    bits = sum(1 << index for index in set(registers))
    return struct.pack(">HB", NUMBERS[bank], size) + bits.to_bytes(size, "little")


def attest(
    signer: bytes,
    nonce: bytes,
    clock: bytes,
    selections: Sequence[bytes],
    digest: bytes,
    *,
    firmware: int,
    magic: int = MAGIC,
    kind: int = TYPE_QUOTE,
) -> bytes:
    """TPMS_ATTEST of a quote; `clock` is what `clock_info` gave."""
    head = struct.pack(">IH", magic, kind) + sized(signer) + sized(nonce) + clock + struct.pack(">Q", firmware)
    return head + struct.pack(">I", len(selections)) + b"".join(selections) + sized(digest)


def clock_info(milliseconds: int, resets: int, restarts: int, *, safe: bool = True) -> bytes:
    """TPMS_CLOCK_INFO."""
    return struct.pack(">QIIB", milliseconds, resets, restarts, safe)


def signature(key: TpmKey, message: bytes) -> bytes:
    """TPMT_SIGNATURE with the scheme of the attestation key's template."""
    if isinstance(key, EcKey):
        r, s = key.numbers(message)
        numbers = sized(r.to_bytes(32, "big")) + sized(s.to_bytes(32, "big"))
        return struct.pack(">HH", _ECDSA, SHA256) + numbers
    return struct.pack(">HH", _RSASSA, SHA256) + sized(key.sign_pkcs1(message))
