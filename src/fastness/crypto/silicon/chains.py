"""Chains of silicon vendors: from the key that signed evidence to a root that is pinned.

    chain = chain_to_pin(vcek, pool, {AMD_ROOTS["Milan"]})
    outside_validity(chain, at)

The path rules of the web do not fit: AMD's certificates have serial number zero and no key usage. What counts here is explicit.

* A link holds when names match, the issuer may issue, and the signature verifies. For processors there is one algorithm per key
  type: RSA-PSS with SHA-384 (AMD), ECDSA P-256 with SHA-256 (Intel). What the certificate itself names is not asked.
* Makers of TPMs are many (`Links.TPM`): there the certificate names the algorithm, and only sound ones count.
* A chain ends only in a pin. A root that a machine brings along is a certificate like any other.
* Dates and revocation are separate questions, because their answers mean something else to an operator.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import NameOID

from fastness.crypto.errors import BadCertificate, UntrustedCertificate
from fastness.crypto.x509 import Certificate

# Chains of vendors have two or three links; the bound ends those that lead in a circle.
MAX_LINKS: Final = 4
# Larger texts are read each time: the cache is bounded in entries, and a stranger chooses their size.
_REMEMBERED: Final = 8192
_PEM: Final = b"-----BEGIN CERTIFICATE-----"
_UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
# Not SHA-1, though makers of TPMs have signed with it: a collision gives somebody else's endorsement key a good certificate.
_SOUND: Final = (hashes.SHA256, hashes.SHA384, hashes.SHA512)
_CURVES: Final = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)


class Links(Enum):
    """Whose rules the links of a chain follow."""

    PROCESSOR = "processor"
    TPM = "tpm"


class MissingIssuer(UntrustedCertificate):
    """A chain breaks off because a certificate is not at hand."""

    code = "missing-issuer"
    hint = "Give the vendor's certificates: a directory of them, or each in a file."


def load_certificates(data: bytes) -> list[Certificate]:
    """All certificates of a PEM text, or the one of DER bytes; raises BadCertificate.

    Remembered: machines bring the same certificates each time, and reading one costs as much as a signature.
    """
    return list(_loaded(data) if len(data) <= _REMEMBERED else _load(data))


@lru_cache(maxsize=1024)
def _loaded(data: bytes) -> tuple[Certificate, ...]:
    return _load(data)


def _load(data: bytes) -> tuple[Certificate, ...]:
    with warnings.catch_warnings():
        # The library only warns of names that break the rules of X.520; no vendor's certificate has one.
        warnings.simplefilter("error", UserWarning)
        # AMD numbers every VCEK 0. The number plays no part in any decision about them.
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        try:
            if _PEM in data:
                return tuple(_sound(handle) for handle in x509.load_pem_x509_certificates(data))
            return (_sound(x509.load_der_x509_certificate(data)),)
        except (UserWarning, *_UNREADABLE) as error:
            raise BadCertificate("the certificate cannot be read, neither as PEM nor as DER") from error


def issuer_name(certificate: Certificate) -> str:
    """The common name of the issuer; empty when there is none."""
    return _common_name(certificate.handle.issuer)


def subject_name(certificate: Certificate) -> str:
    """The common name of the subject; empty when there is none."""
    return _common_name(certificate.handle.subject)


def extension_values(certificate: Certificate) -> dict[str, bytes]:
    """The raw values of extensions that the library does not know, by dotted number; raises BadCertificate."""
    try:
        extensions = certificate.handle.extensions
    except _UNREADABLE as error:
        raise BadCertificate("the extensions of the certificate cannot be read") from error
    return {
        entry.oid.dotted_string: entry.value.value
        for entry in extensions
        if isinstance(entry.value, x509.UnrecognizedExtension)
    }


def signed_by(certificate: Certificate, issuer: Certificate, links: Links = Links.PROCESSOR) -> bool:
    """Whether the link holds: names, permission to issue, and the signature. Remembered: it cannot change."""
    return _holds(certificate.der, issuer.der, links)


@lru_cache(maxsize=1024)
def _holds(certificate_der: bytes, issuer_der: bytes, links: Links) -> bool:
    (certificate,), (issuer,) = load_certificates(certificate_der), load_certificates(issuer_der)
    # RFC 5280 §4.2.1.9: without the look at `cA`, every endorsement key would be an authority below its maker.
    if certificate.handle.issuer != issuer.handle.subject or not _may_issue(issuer):
        return False
    if links is Links.TPM:
        return _signs_certificates(issuer) and _verified_as_named(certificate, issuer)
    return verified(issuer, certificate.handle.signature, certificate.handle.tbs_certificate_bytes)


def _verified_as_named(certificate: Certificate, issuer: Certificate) -> bool:
    """Whether the signature verifies with the algorithm that the certificate names, if that is a sound one."""
    handle = certificate.handle
    try:
        key, algorithm = issuer.handle.public_key(), handle.signature_hash_algorithm
        if not isinstance(algorithm, _SOUND):
            return False
        named = handle.signature_algorithm_parameters
        if isinstance(key, rsa.RSAPublicKey) and key.key_size >= 2048:
            # The parameters that the certificate names are used as they stand, so they must be a padding of signatures.
            if not isinstance(named, padding.PKCS1v15 | padding.PSS):
                return False
            key.verify(handle.signature, handle.tbs_certificate_bytes, named, algorithm)
        elif isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, _CURVES):
            if not isinstance(named, ec.ECDSA):
                return False
            key.verify(handle.signature, handle.tbs_certificate_bytes, named)
        else:
            return False
    except (InvalidSignature, *_UNREADABLE):
        return False
    return True


def _signs_certificates(issuer: Certificate) -> bool:
    try:
        # Where an authority limits its key, signing certificates must be among the uses (RFC 5280 §4.2.1.3).
        return issuer.handle.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound:
        return True


def verified(issuer: Certificate, signature: bytes, message: bytes) -> bool:
    """Whether a vendor's authority signed `message`, with the one algorithm that its kind of key has here."""
    try:
        key = issuer.handle.public_key()
        # What AMD has, and nothing else: RSA-4096 with PSS, SHA-384 and a salt of 48 bytes.
        if isinstance(key, rsa.RSAPublicKey) and key.key_size == 4096:
            key.verify(signature, message, padding.PSS(padding.MGF1(hashes.SHA384()), 48), hashes.SHA384())
        elif isinstance(key, ec.EllipticCurvePublicKey) and isinstance(key.curve, ec.SECP256R1):
            key.verify(signature, message, ec.ECDSA(hashes.SHA256()))
        else:
            return False
    except (InvalidSignature, *_UNREADABLE):
        return False
    return True


def chain_to_pin(
    leaf: Certificate, pool: Iterable[Certificate], pins: Iterable[str], links: Links = Links.PROCESSOR
) -> tuple[Certificate, ...]:
    """The chain from `leaf` to a certificate with a pinned fingerprint; raises MissingIssuer, UntrustedCertificate.

    Remembered for the same certificates and pins; what is refused is looked at each time.
    """
    return _chain(leaf, tuple(pool), frozenset(pins), links)


@lru_cache(maxsize=512)
def _chain(
    leaf: Certificate, intermediates: tuple[Certificate, ...], trusted: frozenset[str], links: Links
) -> tuple[Certificate, ...]:
    chain = [leaf]
    while len(chain) <= MAX_LINKS:
        last = chain[-1]
        # By the hash of the whole certificate: a root with the same name, or even the same key, is another certificate.
        if last.fingerprint.hex in trusted:
            return tuple(chain)
        if last.handle.issuer == last.handle.subject:
            raise UntrustedCertificate(
                f"the chain ends in {subject_name(last)!r}, a root that is not pinned ({last.fingerprint})",
                "Only pinned roots and those in extraRoots count; a copy with the same name is not one.",
            )
        chain.append(_issuer(last, intermediates, links))
    raise UntrustedCertificate(f"the chain has more than {MAX_LINKS} links")


@lru_cache(maxsize=512)
def valid_between(chain: tuple[Certificate, ...]) -> tuple[datetime, datetime]:
    """From when to when all of a chain is valid."""
    return max(entry.not_before for entry in chain), min(entry.not_after for entry in chain)


def outside_validity(chain: Sequence[Certificate], at: datetime) -> list[str]:
    """What is wrong with the dates of a chain at that time, one sentence per certificate."""
    problems = []
    for certificate in chain:
        if at > certificate.not_after:
            problems.append(f"{subject_name(certificate)} expired at {certificate.not_after:%Y-%m-%dT%H:%M:%SZ}")
        elif at < certificate.not_before:
            problems.append(f"{subject_name(certificate)} is valid from {certificate.not_before:%Y-%m-%dT%H:%M:%SZ}")
    return problems


def _sound(handle: x509.Certificate) -> Certificate:
    """The library reads lazily: ask for every part that is used later, so that damage shows here and nowhere else."""
    _common_name(handle.subject)
    _common_name(handle.issuer)
    if handle.not_valid_before_utc > handle.not_valid_after_utc:
        raise ValueError("the certificate ends before it begins")
    len(handle.extensions)
    certificate, signed = Certificate(handle), handle.tbs_certificate_bytes
    # The algorithm stands inside and outside the signed part; one that differs outside would give a second spelling.
    outside = certificate.der[certificate.der.index(signed) + len(signed) :]
    if outside[1] >= 0x80 or outside[: 2 + outside[1]] not in signed:
        raise ValueError("the certificate names two signature algorithms")
    # A BIT STRING says how many bits of its last byte are unused; with any but none, one certificate would have several digests.
    if not certificate.der.endswith(b"\x00" + handle.signature):
        raise ValueError("the signature of the certificate has loose bits")
    return certificate


def _issuer(certificate: Certificate, pool: Sequence[Certificate], links: Links) -> Certificate:
    candidates = [entry for entry in pool if entry.handle.subject == certificate.handle.issuer]
    if not candidates:
        raise MissingIssuer(f"the certificate of {issuer_name(certificate)!r} is not at hand")
    # Several may have the name: whoever sends the pool can add a namesake, which must not hide the real issuer.
    for candidate in candidates:
        if signed_by(certificate, candidate, links):
            return candidate
    raise UntrustedCertificate(
        f"{subject_name(certificate)!r} names {issuer_name(certificate)!r} as its issuer, whose key did not sign it",
        "The certificate is damaged, forged, or from another chain.",
    )


def _may_issue(certificate: Certificate) -> bool:
    try:
        # Absent is no: AMD and Intel mark their authorities, and a leaf without the extension is still a leaf.
        return certificate.handle.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except (x509.ExtensionNotFound, *_UNREADABLE):
        return False


def _common_name(name: x509.Name) -> str:
    entries = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(entries[0].value) if entries else ""
