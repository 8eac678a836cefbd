"""Texts that only we can have written: a payload with a keyed tag (HMAC-SHA-256), under a ring of keys.

    base64url( key id (4 bytes) | tag (32 bytes) | payload )

Challenge cookies, sessions and the nonces of proofs of possession are such texts: a door keeps nothing, and any replica reads
what another one wrote.

* Every text has a purpose that the tag covers, so that a cookie never passes for a nonce.
* Nothing of the payload is looked at before the tag is right. A wrong tag, an unknown key and damaged text are one answer: None.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

from fastness.crypto.errors import BadKey
from fastness.crypto.secret import SecretBytes

KEY_BYTES: Final = 32
ID_BYTES: Final = 4
TAG_BYTES: Final = 32
HEAD_BYTES: Final = ID_BYTES + TAG_BYTES


class MacKey:
    """One key with its id, which is the start of a hash of the key."""

    __slots__ = ("_keyed", "id")

    def __init__(self, material: SecretBytes) -> None:
        raw = material.reveal()
        if len(raw) != KEY_BYTES:
            raise BadKey(f"a MAC key has {KEY_BYTES} bytes, not {len(raw)}")
        self.id = hashlib.sha256(b"fastness mac key id\0" + raw).digest()[:ID_BYTES]
        # Keyed once and copied for each text: half of the work of a short HMAC is hashing the padded key.
        self._keyed = hmac.new(raw, digestmod=hashlib.sha256)

    def tag(self, purpose: str, payload: bytes) -> bytes:
        """The tag of a payload for a purpose."""
        keyed = self._keyed.copy()
        # The zero ends the purpose: without it, bytes could move from payload to purpose under the same tag.
        keyed.update(purpose.encode() + b"\0" + payload)
        return keyed.digest()


class MacRing:
    """The keys that are accepted; the first signs."""

    __slots__ = ("_keys", "_signer")

    def __init__(self, keys: Sequence[MacKey]) -> None:
        if not keys:
            raise BadKey("a MAC ring needs at least one key")
        self._keys = {key.id: key for key in keys}
        self._signer = keys[0]

    def write(self, purpose: str, payload: bytes) -> str:
        """A text that `read` gives the payload of, for the same purpose."""
        signer = self._signer
        return base64.urlsafe_b64encode(signer.id + signer.tag(purpose, payload) + payload).decode().rstrip("=")

    def read(self, purpose: str, text: str) -> bytes | None:
        """The payload of a text of ours; None for everything else."""
        try:
            raw = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (UnicodeEncodeError, binascii.Error):
            return None
        # The id is in the clear and decides nothing: a wrong one finds no key, a right one still needs the tag.
        key = self._keys.get(raw[:ID_BYTES])
        payload = raw[HEAD_BYTES:]
        # In constant time: a comparison that ends at the first wrong byte tells a stranger the tag, byte by byte.
        if key is None or not hmac.compare_digest(key.tag(purpose, payload), raw[ID_BYTES:HEAD_BYTES]):
            return None
        return payload
