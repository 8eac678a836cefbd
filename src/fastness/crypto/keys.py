"""P-256 private keys.

A key is drawn from the entropy that is handed in, by rejection (FIPS 186-5 A.2.2), so that a seeded run gives the same keys;
with the kernel's generator it is as good as any. PEM is unencrypted PKCS #8: the file mode protects it, and `keys.key_files`
checks that mode.
"""

from __future__ import annotations

from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from fastness.crypto.entropy import RandomBytes
from fastness.crypto.errors import BadKey
from fastness.crypto.secret import SecretBytes

_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_DRAWS: Final = 128  # a draw is rejected with probability 2^-32: running out means that the entropy is broken


class PrivateKey:
    """A P-256 key for certificates and tokens."""

    __slots__ = ("handle",)

    def __init__(self, handle: ec.EllipticCurvePrivateKey) -> None:
        # One curve for all of our own keys: whoever verifies need not ask which algorithm a key is for.
        if not isinstance(handle.curve, ec.SECP256R1):
            raise BadKey(f"a key on curve {handle.curve.name}; only P-256 is used here")
        self.handle = handle

    @classmethod
    def generate(cls, entropy: RandomBytes) -> PrivateKey:
        """A fresh key."""
        for _ in range(_DRAWS):
            scalar = int.from_bytes(entropy.token(32), "big")
            # Rejected, not reduced: reducing a draw modulo the order makes small scalars likelier (FIPS 186-5 A.2.2).
            if 0 < scalar < _ORDER:
                return cls(ec.derive_private_key(scalar, ec.SECP256R1()))
        raise BadKey("the entropy source gives no usable key", "Check the random generator of this machine.")

    @classmethod
    def from_pem(cls, pem: SecretBytes) -> PrivateKey:
        """Read an unencrypted PEM key; raises BadKey."""
        try:
            handle = serialization.load_pem_private_key(pem.reveal(), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise BadKey("the private key cannot be read as PEM") from error
        if not isinstance(handle, ec.EllipticCurvePrivateKey):
            raise BadKey("the private key is not an elliptic-curve key")
        return cls(handle)

    def to_pem(self) -> SecretBytes:
        """PKCS #8 PEM, unencrypted."""
        return SecretBytes(
            self.handle.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )

    def public_der(self) -> bytes:
        """The public half as SubjectPublicKeyInfo."""
        return self.handle.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def sign(self, message: bytes) -> bytes:
        """ECDSA with SHA-256 over the message, as r‖s."""
        r, s = decode_dss_signature(self.handle.sign(message, ec.ECDSA(hashes.SHA256())))
        # Both with their full length (RFC 7518 §3.4): a short r or s, one in 128, is not a valid ES256 signature.
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")

    def sign_der(self, message: bytes) -> bytes:
        """The same as DER, as signatures of images and certificates have it."""
        return self.handle.sign(message, ec.ECDSA(hashes.SHA256()))

    def public_pem(self) -> str:
        """The public half as PEM."""
        return (
            self.handle.public_key()
            .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
            .decode()
        )

    def __repr__(self) -> str:
        return "PrivateKey(P-256, <redacted>)"
