"""The vault: what is secret at rest is sealed with a key that is not in the store.

`Vault` implements the store's cipher (`seal`, `open`) over a ring of AES-256-GCM keys. The ring lives in a file that the
command of a key management service may wrap (`ring_files`). `rotate` begins a new key; the old ones stay to open what they
sealed, until everything was written anew and `retire` drops them.

* A ring is never made where sealed data may already exist: `open` with `create=False` refuses a missing file and names it.
* The file is JSON: `{"version": 1, "authenticated": true, "keys": [{"id", "key", "created"}]}`, the sealing key first. An id that
  does not belong to its key is refused, so a damaged file is found at the start and not at the first secret.
* `authenticated` says that every row of the store carries a tag under a key that is derived from these (`macs`). It stands here,
  and not in the store: whoever edits a store could take the tags away and the word that there were any.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import orjson

from fastness.crypto.aead import KeyId, KeyRing, SealKey, key_id_of
from fastness.crypto.entropy import RandomBytes
from fastness.crypto.errors import CryptoError
from fastness.crypto.secret import SecretBytes
from fastness.crypto.store_mac import Macs, StoreMac
from fastness.keys.errors import DamagedKeyFile, MissingVaultKey, TrustError
from fastness.keys.ring_files import RingFile
from fastness.kinds.objects import rfc3339

VERSION: Final = 1


class Vault:
    """Seals and opens; the store's cipher."""

    def __init__(
        self,
        file: RingFile,
        entries: Sequence[tuple[SealKey, str]],
        entropy: RandomBytes,
        *,
        authenticated: bool = True,
    ) -> None:
        self._file = file
        self._authenticated = authenticated
        self._created = {key.id: created for key, created in entries}
        self._ring = KeyRing([key for key, _ in entries], entropy)
        self._entropy = entropy

    @classmethod
    def open_file(cls, file: RingFile, now: datetime, entropy: RandomBytes, *, create: bool) -> Vault:
        """Load the ring, or begin one when `create` says that nothing was sealed yet; raises TrustError."""
        content = file.load()
        if content is not None:
            entries, authenticated = _parse(content, file.path)
            return cls(file, entries, entropy, authenticated=authenticated)
        # A new key beside sealed data would start well, and every secret would be lost with the next write.
        if not create:
            raise MissingVaultKey(
                f"the vault key {file.path} is missing, and this store holds sealed data",
                f"Put {file.path} back from where you keep it apart from the backups; without it the secrets are lost.",
            )
        vault = cls(file, [(SealKey.generate(entropy), rfc3339(now))], entropy)
        vault._save()
        return vault

    @property
    def primary(self) -> str:
        """The id of the key that seals."""
        return self._ring.primary.hex()

    @property
    def key_ids(self) -> tuple[str, ...]:
        """The ids of all keys, the sealing one first."""
        return tuple(key.id.hex() for key in self._ring.keys)

    @property
    def begun(self) -> str:
        """When the key that seals was made, as RFC 3339."""
        return self._created[self._ring.keys[0].id]

    @property
    def macs(self) -> Macs:
        """The keys that authenticate a store, and whether one without tags is refused."""
        return Macs(tuple(StoreMac.derive(key) for key in self._ring.keys), required=self._authenticated)

    def require_macs(self) -> None:
        """Remember that the store of this vault is authenticated from now on; there is no way back."""
        if not self._authenticated:
            self._authenticated = True
            self._save()

    def with_present_key_alone(self, entropy: RandomBytes) -> Vault:
        """The same vault as it will be without its old keys; nothing is written."""
        primary = self._ring.keys[0]
        return Vault(self._file, [(primary, self._created[primary.id])], entropy, authenticated=self._authenticated)

    def save_to(self, file: RingFile) -> None:
        """Write the same keys to another file; raises TrustError."""
        file.save(self._content())

    def seal(self, plaintext: bytes, context: bytes) -> bytes:
        """An envelope that opens only with the same context."""
        return self._ring.seal(plaintext, context)

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """What was sealed; raises BrokenSeal, UnknownSealKey, which are ValueErrors."""
        return self._ring.open(sealed, context)

    def is_current(self, sealed: bytes) -> bool:
        """Whether an envelope was sealed with the present key; the others are to be written anew after a rotation."""
        return key_id_of(sealed) == self._ring.primary

    def rotate(self, now: datetime) -> str:
        """Seal with a new key from now on; its id. The file is written before the key is used."""
        key = SealKey.generate(self._entropy)
        ring, created = self._ring, dict(self._created)
        # On disk before the first seal: what a key sealed that a crash then forgets opens never again.
        self._ring, self._created[key.id] = ring.with_primary(key), rfc3339(now)
        try:
            self._save()
        except (TrustError, OSError):
            self._ring, self._created = ring, created
            raise
        return key.id.hex()

    def retire(self, key_id: str) -> None:
        """Drop a key that seals nothing any more; the sealing key cannot be dropped."""
        target = KeyId(bytes.fromhex(key_id))
        # Retiring is for good; the store was read back with the new key alone before anybody asks for it.
        if target == self._ring.primary or target not in self._created:
            raise MissingVaultKey(
                f"key {key_id} cannot be retired",
                "Name an old key of the vault file; the one that seals now must stay.",
            )
        self._ring = KeyRing([key for key in self._ring.keys if key.id != target], self._entropy)
        del self._created[target]
        self._save()

    def _save(self) -> None:
        self._file.save(self._content())

    def _content(self) -> SecretBytes:
        keys = [
            {
                "id": key.id.hex(),
                "key": base64.b64encode(key.material.reveal()).decode(),
                "created": self._created[key.id],
            }
            for key in self._ring.keys
        ]
        document = {"version": VERSION, "authenticated": self._authenticated, "keys": keys}
        return SecretBytes(orjson.dumps(document) + b"\n")


def _parse(content: SecretBytes, path: Path) -> tuple[list[tuple[SealKey, str]], bool]:
    """The keys, and whether the store is authenticated: files from before that say nothing of it."""
    try:
        document = orjson.loads(content.reveal())
    except orjson.JSONDecodeError:
        # Not `from` the original: it would carry the document, which is the key, into a log.
        raise DamagedKeyFile(
            f"the vault key {path} cannot be used: it is not JSON",
            f"If a KMS command wraps it, name that with --kms; otherwise restore {path} from a backup.",
        ) from None
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list) or not entries or document.get("version") != VERSION:
        raise _damaged(path, f"it is not a key ring of version {VERSION}")
    # `is True`: a file from before has no such member, and only the word itself may demand tags.
    return [_key(entry, path) for entry in entries], document.get("authenticated") is True


def _key(entry: Any, path: Path) -> tuple[SealKey, str]:
    try:
        key = SealKey(SecretBytes(base64.b64decode(entry["key"], validate=True)))
        stated, created = entry["id"], str(entry.get("created", ""))
    except (KeyError, TypeError, AttributeError, binascii.Error, ValueError, CryptoError):
        raise _damaged(path, "one of its keys cannot be read") from None
    if stated != key.id.hex():
        raise _damaged(path, "the id of a key does not belong to it")
    return key, created


def _damaged(path: Path, why: str) -> DamagedKeyFile:
    return DamagedKeyFile(f"the vault key {path} cannot be used: {why}", f"Restore {path} from a backup.")
