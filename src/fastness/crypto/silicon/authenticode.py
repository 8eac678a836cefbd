"""Verifying the signature of a boot image the way firmware does.

A signature leads to an anchor when its content is the signed one, the signer's key made it, and issuer by issuer a chain goes
from the signer to the anchor. The anchor may be the signer itself, an authority between, or a root: firmware trusts whatever
its db holds. Dates and key usages do not count, as in EDK2.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from fastness.crypto.digests import same
from fastness.crypto.errors import BadCertificate
from fastness.crypto.silicon.chains import load_certificates, subject_name

# Certificates come with the image and may name each other in a circle.
MAX_LINKS: Final = 8
_HASHES: Final = {"sha256": hashes.SHA256(), "sha384": hashes.SHA384(), "sha512": hashes.SHA512()}


def leads_to(
    anchor: bytes,
    certificates: Sequence[bytes],
    *,
    issuer: bytes,
    serial: int,
    algorithm: str,
    signature: bytes,
    message: bytes,
    content: bytes,
    content_digest: bytes,
) -> bool:
    """Whether the signature is good and its signer is the anchor, or was issued by it through `certificates`."""
    # The signature covers attributes, and those the digest of the content: without this comparison a good signature of one image
    # would be good for every other.
    if algorithm not in _HASHES or not same(hashlib.new(algorithm, content).digest(), content_digest):
        return False
    trusted = _readable(anchor)
    pool = [entry for entry in map(_readable, certificates) if entry is not None]
    if trusted is None:
        return False
    signer = next((entry for entry in [*pool, trusted] if _is(entry, issuer, serial)), None)
    if signer is None or not _signed(signer, algorithm, signature, message):
        return False
    # Each link by its signature: names alone would let whoever ships an image write the name of a trusted authority into it.
    link = signer
    for _ in range(MAX_LINKS):
        if link == trusted or _issued(link, trusted):
            return True
        above = next((entry for entry in pool if entry != link and _issued(link, entry)), None)
        if above is None:
            return False
        link = above
    return False


def subject_of(certificate: bytes) -> str:
    """Whom a certificate names: the common name, else the whole name; empty when it cannot be read."""
    try:
        parsed = load_certificates(certificate)[0]
    except BadCertificate:
        return ""
    name = subject_name(parsed) or parsed.handle.subject.rfc4514_string()
    return "".join(sign if sign.isprintable() else "?" for sign in name)


def tbs_digest(certificate: bytes) -> bytes:
    """The SHA-256 of what is signed in a certificate, by which dbx names it; empty when it cannot be read."""
    handle = _readable(certificate)
    return hashlib.sha256(handle.tbs_certificate_bytes).digest() if handle else b""


def _readable(data: bytes) -> x509.Certificate | None:
    try:
        return load_certificates(data)[0].handle
    except BadCertificate:
        return None


def _is(certificate: x509.Certificate, issuer: bytes, serial: int) -> bool:
    # Issuer and serial together name a signer in PKCS #7 (RFC 2315 §6.7); a serial alone is chosen by each authority for itself.
    return certificate.serial_number == serial and certificate.issuer.public_bytes() == issuer


def _issued(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, TypeError):
        return False
    return True


def _signed(certificate: x509.Certificate, algorithm: str, signature: bytes, message: bytes) -> bool:
    try:
        key = certificate.public_key()
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, message, padding.PKCS1v15(), _HASHES[algorithm])
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signature, message, ec.ECDSA(_HASHES[algorithm]))
        else:
            return False
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        return False
    return True
