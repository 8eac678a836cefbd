"""The keys that authenticate a store at rest, derived from a vault key.

    mac = StoreMac.derive(vault_key)
    tag = mac.row(header, body)        # stored beside the row
    number = mac.element(tag)          # never stored: what the row adds to the sum over all rows
    tag = mac.head(content)

Three keys with a label each (HKDF, RFC 5869), so that a tag of one purpose is none of another, and none of them tells anything of
the key that encrypts. The primitive is keyed BLAKE2b (RFC 7693 §3.3), a pseudorandom function in one pass: a third of the cost of
HMAC-SHA-256 for the short inputs that every write has.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fastness.crypto.aead import KeyId, SealKey

TAG_BYTES: Final = 32
MODULUS: Final = 1 << (8 * TAG_BYTES)


class StoreMac:
    """Authenticates rows, sets of rows and heads under one vault key, whose id it has."""

    __slots__ = ("_head", "_row", "_set", "id")

    def __init__(self, key_id: KeyId, row: bytes, members: bytes, head: bytes) -> None:
        self.id = key_id
        self._row, self._set, self._head = row, members, head

    @classmethod
    def derive(cls, key: SealKey) -> StoreMac:
        """The keys of a vault key; the same each time."""
        material = key.material.reveal()
        return cls(key.id, *(_expand(material, label) for label in (b"row", b"set", b"head")))

    def row(self, header: bytes, body: bytes) -> bytes:
        """The tag of a row; the caller's header must end where nothing of the body can be taken for it."""
        # Keyed BLAKE2 needs no HMAC: the key fills the first block, and there is no length extension.
        state = blake2b(header, digest_size=TAG_BYTES, key=self._row)
        state.update(body)
        return state.digest()

    def element(self, tag: bytes) -> int:
        """What a row adds to the sum over the set of rows.

        It is another function of the tag, and secret: whoever knew the elements could search for another set of rows with the
        same sum (Wagner's generalised birthday needs about 2^32 steps for sums modulo 2^256 over many rows).
        """
        return int.from_bytes(blake2b(tag, digest_size=TAG_BYTES, key=self._set).digest())

    def head(self, content: bytes) -> bytes:
        """The tag of a statement about the whole store."""
        return blake2b(content, digest_size=TAG_BYTES, key=self._head).digest()


@dataclass(frozen=True, slots=True)
class Macs:
    """The keys of a ring, the present one first, and whether the vault says that a store without tags is a forged one."""

    keys: tuple[StoreMac, ...]
    required: bool = True

    @property
    def present(self) -> StoreMac:
        """The key that tags what is written now."""
        return self.keys[0]

    def named(self, key_id: bytes) -> StoreMac | None:
        """The key with an id, if it was given."""
        return next((key for key in self.keys if key.id == key_id), None)


def _expand(material: bytes, label: bytes) -> bytes:
    # No salt: the vault key is uniformly random already, and a salt would have to lie beside the store that it protects.
    return HKDF(SHA256(), TAG_BYTES, salt=None, info=b"fastness store mac v1 " + label).derive(material)
