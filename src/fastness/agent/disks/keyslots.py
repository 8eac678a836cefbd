"""The slots of a header: what a disk key opens, and a new one."""

from __future__ import annotations

from typing import Final

from fastness.agent.disks.rules import ALIGNMENT, CIPHER, HASH
from fastness.crypto import volume_keys
from fastness.crypto.digests import same
from fastness.crypto.entropy import RandomBytes
from fastness.crypto.secret import SecretBytes
from fastness.formats.luks2.metadata import AntiForensic, Area, Kdf, KeyDigest, Keyslot

# Disk keys are 256 random bits: a slow derivation would cost every boot and buy nothing. 1,000 is the least that LUKS2 takes.
ITERATIONS: Final = 1000
SALT_BYTES: Final = 32


def opened(slot: Keyslot, material: bytes, key: SecretBytes, digest: KeyDigest) -> SecretBytes | None:
    """The volume key out of a slot's bytes; None where the key is another one or the bytes were changed."""
    slot_key = volume_keys.derived(key, slot.kdf.salt, slot.kdf.iterations, slot.area.key_size)
    stripes = material[: volume_keys.area_bytes(slot.key_size)]
    volume_key = volume_keys.gathered(volume_keys.decrypted_area(slot_key, stripes), slot.key_size)
    return volume_key if recognised(volume_key, digest) else None


def recognised(volume_key: SecretBytes, digest: KeyDigest) -> bool:
    """Whether a volume key is the one that a digest is of."""
    computed = volume_keys.derived(volume_key, digest.salt, digest.iterations, len(digest.digest))
    return same(computed.reveal(), digest.digest)


def slot_bytes(key_size: int) -> int:
    """How much space a slot takes."""
    return -(-volume_keys.area_bytes(key_size) // ALIGNMENT) * ALIGNMENT


def new_slot(volume_key: SecretBytes, key: SecretBytes, offset: int, entropy: RandomBytes) -> tuple[Keyslot, bytes]:
    """A slot at a place, and the bytes that belong there."""
    size = len(volume_key.reveal())
    kdf = Kdf("pbkdf2", entropy.token(SALT_BYTES), ITERATIONS, hash=HASH)
    area = Area("raw", offset, slot_bytes(size), CIPHER, volume_keys.AREA_KEY_BYTES)
    slot_key = volume_keys.derived(key, kdf.salt, kdf.iterations, area.key_size)
    stripes = volume_keys.spread(volume_key, entropy).ljust(volume_keys.area_bytes(size), b"\0")
    material = volume_keys.encrypted_area(slot_key, stripes).ljust(area.size, b"\0")
    return Keyslot("luks2", size, area, kdf, AntiForensic("luks1", volume_keys.STRIPES, HASH)), material


def new_digest(volume_key: SecretBytes, slot: int, entropy: RandomBytes) -> KeyDigest:
    """The digest of a volume key, for segment 0 and one slot."""
    salt = entropy.token(SALT_BYTES)
    digest = volume_keys.derived(volume_key, salt, ITERATIONS, 32).reveal()
    return KeyDigest("pbkdf2", (slot,), (0,), HASH, ITERATIONS, salt, digest)
