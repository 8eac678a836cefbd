"""Keys that sign images: ECDSA on P-256 with SHA-256, as `cosign generate-key-pair` makes them."""

from __future__ import annotations

import hashlib

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from fastness.crypto.errors import BadKey


class ImageKey:
    """A public key."""

    __slots__ = ("_handle", "id")

    def __init__(self, pem: bytes) -> None:
        """Read PEM; raises BadKey."""
        try:
            handle = serialization.load_pem_public_key(pem)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise BadKey("the key of a signer is not a public key in PEM") from error
        if not isinstance(handle, ec.EllipticCurvePublicKey) or not isinstance(handle.curve, ec.SECP256R1):
            raise BadKey("the key of a signer is not an ECDSA key on P-256")
        self._handle = handle
        der = handle.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        # Of the key and not of its text: the same key with another line break is the same signer.
        self.id = hashlib.sha256(der).hexdigest()

    def signed(self, signature: bytes, message: bytes) -> bool:
        """Whether the key signed the message; the signature is in DER."""
        try:
            self._handle.verify(signature, message, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True
