"""Volume keys in the slots of LUKS2: derived from a disk key, encrypted, and spread so that no part of it is left after a wipe.

* The key of a slot comes from a disk key by PBKDF2 with SHA-256. Disk keys are 256 random bits: the iterations buy nothing.
* An area is encrypted with AES-XTS in sectors of 512 bytes, numbered from its start (`aes-xts-plain64`).
* The volume key is spread over stripes (`luks1`): each but the last is random, and all of them are needed to get it back.

Everything works on bytes in memory; where they lie is the business of `agent/disks`.
"""

from __future__ import annotations

import hashlib
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import XTS

from fastness.crypto.entropy import RandomBytes
from fastness.crypto.errors import BadKey
from fastness.crypto.secret import SecretBytes

STRIPES: Final = 4000
SECTOR_BYTES: Final = 512
AREA_KEY_BYTES: Final = 64
_HASH_BYTES: Final = 32


def derived(secret: SecretBytes, salt: bytes, iterations: int, size: int) -> SecretBytes:
    """PBKDF2 with SHA-256: the key of a slot, or the digest by which a volume key is recognised."""
    return SecretBytes(hashlib.pbkdf2_hmac("sha256", secret.reveal(), salt, iterations, size))


def encrypted_area(key: SecretBytes, data: bytes) -> bytes:
    """Whole sectors, encrypted."""
    return _sectors(key, data, encrypt=True)


def decrypted_area(key: SecretBytes, data: bytes) -> bytes:
    """Whole sectors, decrypted."""
    return _sectors(key, data, encrypt=False)


def _sectors(key: SecretBytes, data: bytes, *, encrypt: bool) -> bytes:
    if len(key.reveal()) != AREA_KEY_BYTES or len(data) % SECTOR_BYTES:
        raise BadKey(f"AES-XTS needs a key of {AREA_KEY_BYTES} bytes and whole sectors")
    algorithm, sectors = AES(key.reveal()), []
    for number, start in enumerate(range(0, len(data), SECTOR_BYTES)):
        cipher = Cipher(algorithm, XTS(number.to_bytes(16, "little")))
        context = cipher.encryptor() if encrypt else cipher.decryptor()
        sectors.append(context.update(data[start : start + SECTOR_BYTES]))
    return b"".join(sectors)


def area_bytes(key_size: int) -> int:
    """How many bytes the stripes of a key take, in whole sectors."""
    return -(-key_size * STRIPES // SECTOR_BYTES) * SECTOR_BYTES


def spread(volume_key: SecretBytes, entropy: RandomBytes) -> bytes:
    """A volume key over stripes."""
    material = volume_key.reveal()
    size = len(material)
    if not size or size % _HASH_BYTES:
        raise BadKey(f"a volume key of {size} bytes is not a whole number of hashes")
    noise = entropy.token(size * (STRIPES - 1))
    last = _mixed(noise, size) ^ int.from_bytes(material, "big")
    return noise + last.to_bytes(size, "big")


def gathered(stripes: bytes, size: int) -> SecretBytes:
    """The volume key of `size` bytes out of its stripes; whatever follows them is left alone."""
    end = size * STRIPES
    if len(stripes) < end or size % _HASH_BYTES:
        raise BadKey(f"the stripes of a volume key have {end} bytes, not {len(stripes)}")
    last = int.from_bytes(stripes[end - size : end], "big")
    return SecretBytes((_mixed(stripes[: end - size], size) ^ last).to_bytes(size, "big"))


def _mixed(stripes: bytes, size: int) -> int:
    """All stripes but the last, folded into one: each is added and the whole hashed, piece by piece behind its number."""
    mixed, sha256 = 0, hashlib.sha256
    pieces = [(number.to_bytes(4, "big"), start) for number, start in enumerate(range(0, size, _HASH_BYTES))]
    for offset in range(0, len(stripes), size):
        block = (mixed ^ int.from_bytes(stripes[offset : offset + size], "big")).to_bytes(size, "big")
        hashed = [sha256(number + block[start : start + _HASH_BYTES]).digest() for number, start in pieces]
        # Volume keys are whole hashes long (64 or 96 bytes), so no piece is cut.
        mixed = int.from_bytes(b"".join(hashed)[:size], "big")
    return mixed
