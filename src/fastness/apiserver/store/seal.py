"""Sealing: what reaches the disk of kinds that are secret.

Memory holds plaintext; the bodies of `sealed_kinds` go through a `Cipher` before they reach SQLite, in every row that holds
them, so that neither the file, its write-ahead log, its free pages nor a backup shows a secret. The context binds a sealed
body to its key: a row that is copied over another one does not open. The vault (`keys.vault`) implements the cipher.
"""

from __future__ import annotations

from typing import Protocol

import orjson

from fastness.apiserver.store.errors import SealBroken
from fastness.apiserver.store.records import Key


class Cipher(Protocol):
    """Authenticated encryption with a key that the store never sees."""

    def seal(self, plaintext: bytes, context: bytes) -> bytes:
        """Encrypt; `context` must be given again to open."""

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """Decrypt; raises ValueError when the key, the context or the bytes are not the right ones."""


def context_of(key: Key) -> bytes:
    """The key as unambiguous bytes."""
    # As a JSON list: joined by a separator, ("a", "b/c") and ("a/b", "c") would be one context and their bodies exchangeable.
    return orjson.dumps(list(key))


def unseal(cipher: Cipher | None, sealed: bytes, key: Key) -> bytes:
    """The plaintext of a stored body; raises SealBroken."""
    if cipher is None:
        raise SealBroken(f"{'/'.join(key)} is sealed and no key was given")
    try:
        return cipher.open(sealed, context_of(key))
    except ValueError as error:
        raise SealBroken(f"{'/'.join(key)} does not open: {error}") from error
