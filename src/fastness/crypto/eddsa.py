"""Ed25519: keys that sign for years, such as those of the record and of served configurations."""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from fastness.crypto.errors import BadKey
from fastness.crypto.secret import SecretBytes

SEED_BYTES: Final = 32


class Ed25519Verifier:
    """A public key."""

    __slots__ = ("_handle", "id", "raw")

    def __init__(self, raw: bytes) -> None:
        """Read 32 bytes; raises BadKey."""
        try:
            self._handle = Ed25519PublicKey.from_public_bytes(raw)
        except ValueError as error:
            raise BadKey("an Ed25519 key has 32 bytes") from error
        self.raw = raw
        # The start of the hash of the key, by which a signature names it.
        self.id = hashlib.sha256(raw).hexdigest()[:16]

    @classmethod
    def from_jwk(cls, jwk: dict[str, Any]) -> Ed25519Verifier:
        """Read a JWK of type OKP; raises BadKey."""
        text = jwk.get("x")
        if jwk.get("kty") != "OKP" or jwk.get("crv") != "Ed25519" or not isinstance(text, str):
            raise BadKey("the key is no Ed25519 key in JWK form")
        try:
            # Loose base64 is harmless here: the constructor demands exactly 32 bytes, and the id follows from those.
            return cls(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except ValueError as error:
            raise BadKey("the key is no Ed25519 key in JWK form") from error

    def jwk(self) -> dict[str, str]:
        """The key for those who verify."""
        return {
            "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "kid": self.id,
            "x": base64.urlsafe_b64encode(self.raw).decode().rstrip("="),
        }  # fmt: skip

    def signed(self, signature: bytes, message: bytes) -> bool:
        """Whether the key signed the message."""
        try:
            # Over the message itself and not over its hash: so a collision of the hash is no second message (RFC 8032,
            # PureEdDSA).
            self._handle.verify(signature, message)
        except InvalidSignature:
            return False
        return True


class Ed25519Signer:
    """A private key out of its seed."""

    __slots__ = ("_handle", "verifier")

    def __init__(self, seed: SecretBytes) -> None:
        self._handle = Ed25519PrivateKey.from_private_bytes(seed.reveal())
        public = self._handle.public_key()
        self.verifier = Ed25519Verifier(public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw))

    def sign(self, message: bytes) -> bytes:
        """The signature of a message."""
        return self._handle.sign(message)
