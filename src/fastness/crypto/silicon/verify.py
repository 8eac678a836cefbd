"""Signatures on evidence: each with the algorithm that its format fixes.

Nothing here raises for a bad signature or an odd key: the answer is no. `AttestationKey` is the public half of a TPM's key; it
refuses SHA-1, RSA below 2048 bits and a scheme of the other key type, whatever the signature claims about itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, encode_dss_signature

from fastness.crypto.digests import Digest, sha256
from fastness.crypto.errors import BadKey
from fastness.crypto.silicon.registers import hash_of
from fastness.crypto.x509 import Certificate

_HASHES: Final[dict[str, hashes.HashAlgorithm]] = {
    "sha256": hashes.SHA256(),
    "sha384": hashes.SHA384(),
    "sha512": hashes.SHA512(),
}
_ECDSA: Final = {name: ec.ECDSA(algorithm) for name, algorithm in _HASHES.items()}
# hashlib hashes a message as short as a quote faster than the signing library, which copies its state first.
_ECDSA_HASHED: Final = {name: ec.ECDSA(Prehashed(algorithm)) for name, algorithm in _HASHES.items()}
_PKCS1: Final = padding.PKCS1v15()
_CURVES: Final = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
_REFUSED: Final = (InvalidSignature, ValueError, UnsupportedAlgorithm)


def p256_raw(key: bytes, signature: bytes, message: bytes) -> bool:
    """ECDSA P-256 with SHA-256: key as x‖y, signature as r‖s, both big-endian."""
    if len(key) != 64:
        return False
    try:
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), b"\x04" + key)
    except _REFUSED:
        return False
    return p256(public, signature, message)


def p256_certified(certificate: Certificate, signature: bytes, message: bytes) -> bool:
    """ECDSA P-256 with SHA-256 by the key of a certificate, signature as r‖s."""
    public = certificate.public_key
    if not isinstance(public, ec.EllipticCurvePublicKey) or not isinstance(public.curve, ec.SECP256R1):
        return False
    return p256(public, signature, message)


def p384_certified(certificate: Certificate, r: int, s: int, message: bytes) -> bool:
    """ECDSA P-384 with SHA-384 by the key of a certificate."""
    public = certificate.public_key
    if not isinstance(public, ec.EllipticCurvePublicKey) or not isinstance(public.curve, ec.SECP384R1):
        return False
    try:
        public.verify(encode_dss_signature(r, s), message, _ECDSA["sha384"])
    except _REFUSED:
        return False
    return True


def p256(public: ec.EllipticCurvePublicKey, signature: bytes, message: bytes) -> bool:
    """ECDSA P-256 with SHA-256 by a key that was read before, signature as r‖s."""
    # r and s with their full length: integers of any length would give one signature many spellings.
    if len(signature) != 64:
        return False
    r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    try:
        public.verify(encode_dss_signature(r, s), message, _ECDSA["sha256"])
    except _REFUSED:
        return False
    return True


@lru_cache(maxsize=4096)
def attestation_key(spki: bytes) -> AttestationKey:
    """The same key object for the same bytes: to read one costs a quarter of what a signature does; raises BadKey."""
    return AttestationKey(spki)


class AttestationKey:
    """The public half of a key that a TPM signs quotes with."""

    __slots__ = ("_elliptic", "_rsa", "der", "kind", "name", "thumbprint")

    def __init__(self, data: bytes) -> None:
        """Read SubjectPublicKeyInfo as DER or PEM; raises BadKey."""
        pem = data.lstrip().startswith(b"-----BEGIN")
        load = serialization.load_pem_public_key if pem else serialization.load_der_public_key
        try:
            key = load(data)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise BadKey(
                "the attestation key cannot be read", "Give the public key as PEM, or as DER of SubjectPublicKeyInfo."
            ) from error
        self._rsa: rsa.RSAPublicKey | None = None
        self._elliptic: ec.EllipticCurvePublicKey | None = None
        # A key on its own word chose its size: one of 512 bits enrols as well, and is factored in an afternoon.
        if isinstance(key, rsa.RSAPublicKey) and key.key_size >= 2048:
            self.kind, self._rsa = f"RSA-{key.key_size}", key
        elif isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, _CURVES):
            self.kind, self._elliptic = f"EC {key.curve.name}", key
        else:
            raise BadKey("the attestation key is neither RSA of 2048 bits or more nor a NIST curve")
        self.der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        # SHA-256 of the key in its canonical form, and the same as text: what identities, tokens and the record call it.
        self.thumbprint: Digest = sha256(self.der)
        self.name = str(self.thumbprint)

    def signed(self, scheme: str, hash_name: str, numbers: Sequence[bytes], message: bytes) -> bool:
        """Whether the key signed `message`: RSASSA, RSAPSS (one number) or ECDSA (two)."""
        algorithm = _HASHES.get(hash_name)
        # SHA-1 ends here: a quote whose digest collides with one of another boot could be swapped for it.
        if algorithm is None:
            return False
        try:
            if self._elliptic is not None:
                # The scheme is the sender's word, the type of the key is ours: where they differ the key decides.
                if scheme != "ECDSA" or len(numbers) != 2:
                    return False
                r, s = int.from_bytes(numbers[0], "big"), int.from_bytes(numbers[1], "big")
                digest = hash_of(hash_name)(message).digest()
                self._elliptic.verify(encode_dss_signature(r, s), digest, _ECDSA_HASHED[hash_name])
            elif self._rsa is None or len(numbers) != 1:
                return False
            elif scheme == "RSASSA":
                self._rsa.verify(numbers[0], message, _PKCS1, algorithm)
            elif scheme == "RSAPSS":
                # A TPM salts as long as the key allows, or as long as the hash in FIPS mode.
                self._rsa.verify(numbers[0], message, padding.PSS(padding.MGF1(algorithm), padding.PSS.AUTO), algorithm)
            else:
                return False
        except _REFUSED:
            return False
        return True
