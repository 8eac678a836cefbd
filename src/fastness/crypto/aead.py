"""Sealing: AES-256-GCM under a ring of keys.

An envelope names the key that sealed it, so that keys can be replaced while old envelopes still open:

    magic "FS1\\0" | key id (8 bytes) | nonce (12 bytes) | ciphertext and tag

* The context (what the data is: kind, namespace, name) and the header are authenticated with the data. An envelope that is
  moved to another place, or whose key id is changed, does not open.
* Nonces are random. One key may seal 2^32 envelopes before the chance of a repeat reaches 2^-32 (NIST SP 800-38D §8.3), so
  a ring counts and refuses beyond that.
* A key id is the start of a hash of the key: the same key has the same id everywhere, and the id tells nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, NewType

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fastness.crypto.entropy import RandomBytes
from fastness.crypto.errors import BadKey, BrokenSeal, SealKeyExhausted, UnknownSealKey
from fastness.crypto.secret import SecretBytes

KeyId = NewType("KeyId", bytes)

MAGIC: Final = b"FS1\0"
KEY_BYTES: Final = 32
# Names a key among the few of a ring; an envelope under a key of another ring with the same id fails at its tag.
KEY_ID_BYTES: Final = 8
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
HEADER_BYTES: Final = len(MAGIC) + KEY_ID_BYTES
OVERHEAD: Final = HEADER_BYTES + NONCE_BYTES + TAG_BYTES
MAX_SEALS_PER_KEY: Final = 1 << 32


class SealKey:
    """One AES-256 key with its id."""

    __slots__ = ("_cipher", "id", "material")

    def __init__(self, material: SecretBytes) -> None:
        raw = material.reveal()
        if len(raw) != KEY_BYTES:
            raise BadKey(f"a vault key has {KEY_BYTES} bytes, not {len(raw)}")
        self.material = material
        # The label keeps the id from being the hash of the key in any other use of it.
        self.id = KeyId(hashlib.sha256(b"fastness seal key id\0" + raw).digest()[:KEY_ID_BYTES])
        self._cipher = AESGCM(raw)

    @classmethod
    def generate(cls, entropy: RandomBytes) -> SealKey:
        """A fresh key."""
        return cls(SecretBytes(entropy.token(KEY_BYTES)))

    def encrypt(self, nonce: bytes, plaintext: bytes, associated: bytes) -> bytes:
        """Ciphertext and tag."""
        return self._cipher.encrypt(nonce, plaintext, associated)

    def decrypt(self, nonce: bytes, ciphertext: bytes, associated: bytes) -> bytes:
        """The plaintext; raises BrokenSeal."""
        try:
            return self._cipher.decrypt(nonce, ciphertext, associated)
        except InvalidTag as error:
            raise BrokenSeal("an envelope does not open: it was changed, or belongs to another context") from error


class KeyRing:
    """The keys that open, the first of which also seals."""

    def __init__(self, keys: Sequence[SealKey], entropy: RandomBytes) -> None:
        if not keys:
            raise BadKey("a key ring needs at least one key")
        self._keys = {key.id: key for key in keys}
        self._primary = keys[0]
        self._entropy = entropy
        self._sealed = 0

    @property
    def primary(self) -> KeyId:
        """The id of the key that seals."""
        return self._primary.id

    @property
    def keys(self) -> tuple[SealKey, ...]:
        """All keys, the primary first."""
        return tuple(self._keys.values())

    def seal(self, plaintext: bytes, context: bytes) -> bytes:
        """An envelope that opens only with the same context."""
        if self._sealed >= MAX_SEALS_PER_KEY:
            raise SealKeyExhausted("the vault key has sealed too many envelopes")
        # Before the nonce is drawn, so that a seal that fails counts as well: too many is the safe mistake.
        self._sealed += 1
        header = MAGIC + self._primary.id
        nonce = self._entropy.token(NONCE_BYTES)
        # Header and context are authenticated: an envelope that a thief of the disk moves to another object does not open there.
        return header + nonce + self._primary.encrypt(nonce, plaintext, header + context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """What was sealed; raises BrokenSeal, UnknownSealKey."""
        key = self._keys.get(key_id_of(sealed))
        if key is None:
            raise UnknownSealKey(f"no key with id {key_id_of(sealed).hex()} in the ring")
        nonce = sealed[HEADER_BYTES : HEADER_BYTES + NONCE_BYTES]
        return key.decrypt(nonce, sealed[HEADER_BYTES + NONCE_BYTES :], sealed[:HEADER_BYTES] + context)

    def with_primary(self, key: SealKey) -> KeyRing:
        """The same ring with a new key that seals from now on."""
        return KeyRing([key, *(old for old in self.keys if old.id != key.id)], self._entropy)


def key_id_of(sealed: bytes) -> KeyId:
    """The id of the key that sealed an envelope; raises BrokenSeal when it is none."""
    # Before anything is sliced: a cut envelope would give a short nonce, and an error of the library that callers do not expect.
    if len(sealed) < OVERHEAD or not sealed.startswith(MAGIC):
        raise BrokenSeal("not a sealed envelope")
    return KeyId(bytes(sealed[len(MAGIC) : HEADER_BYTES]))
