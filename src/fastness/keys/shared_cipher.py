"""A cipher whose key another process may turn: how to open what a newer key sealed, and how never to leave a write behind.

    await opened(cipher, sealed, context)     a key that is not known yet is asked for once
    await ready(cipher)                       asked before a write: the key of now is there, and would be after a restart
    await lasts(cipher, sealed)               asked after a write: whether it was sealed with the key of now

A key is retired when nothing is sealed with it any more. Somebody who has not heard of its successor may write at that very
moment. So whoever writes asks again *afterwards*: if the key of now is another one, the value is sealed and written once more.
What was answered with success was then sealed with a key that was still the first one after it was stored, and whoever turns the
key later finds it. No clock is part of the argument.

A cipher that nobody else turns, a file beside one process, is never asked.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from fastness.crypto.errors import UnknownSealKey


class Cipher(Protocol):
    """Seals and opens; `keys.vault.Vault` is one."""

    def seal(self, plaintext: bytes, context: bytes) -> bytes:
        """An envelope that opens only with the same context."""

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """What was sealed; raises BrokenSeal, UnknownSealKey."""


@runtime_checkable
class SharedCipher(Protocol):
    """One that several processes share."""

    async def refresh(self) -> None:
        """Read the keys anew; raises ApiError, TrustError."""

    def is_current(self, sealed: bytes) -> bool:
        """Whether an envelope was sealed with the present key."""


async def opened(cipher: Cipher, sealed: bytes, context: bytes) -> bytes:
    """What was sealed, also with a key that came a moment ago; raises BrokenSeal, UnknownSealKey, ApiError, TrustError."""
    try:
        return cipher.open(sealed, context)
    except UnknownSealKey:
        if not isinstance(cipher, SharedCipher):
            raise
        await cipher.refresh()
        return cipher.open(sealed, context)


async def ready(cipher: Cipher) -> None:
    """Read the key of now before something is sealed with it; raises ApiError where there is none, TrustError."""
    if isinstance(cipher, SharedCipher):
        await cipher.refresh()


async def lasts(cipher: Cipher, sealed: bytes) -> bool:
    """Whether what was stored just now is sealed with the key of now; raises ApiError, TrustError."""
    if not isinstance(cipher, SharedCipher):
        return True
    await cipher.refresh()
    return cipher.is_current(sealed)
