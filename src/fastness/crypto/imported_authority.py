"""An authority that somebody else made, imported with its key to issue one kind of certificate: for a server of a given name.

Installers of other systems sign with RSA or with other curves than ours. The leaf that is issued here has a key of ours.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fastness.crypto.entropy import RandomBytes
from fastness.crypto.errors import BadCertificate, BadKey
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.crypto.x509 import BACKDATE, Certificate, Credential

_SHORTEST_RSA: Final = 2048
_LEAF_USAGE: Final = x509.KeyUsage(True, False, False, False, False, False, False, False, False)


class ImportedAuthority:
    """A certificate of an authority and its key, RSA or elliptic."""

    def __init__(self, certificate: Certificate, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> None:
        self.certificate = certificate
        self._key = key

    @classmethod
    def load(cls, certificate_pem: bytes, key_pem: SecretBytes) -> ImportedAuthority:
        """Read both from PEM; raises BadCertificate, BadKey."""
        certificate = Certificate.from_pem(certificate_pem)
        try:
            key = serialization.load_pem_private_key(key_pem.reveal(), password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise BadKey("the private key of the imported authority cannot be read as PEM") from error
        if isinstance(key, rsa.RSAPrivateKey) and key.key_size < _SHORTEST_RSA:
            raise BadKey(f"the imported authority has an RSA key of {key.key_size} bits; {_SHORTEST_RSA} are the least")
        if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
            raise BadKey("the imported authority has a key that is neither RSA nor elliptic")
        if key.public_key() != certificate.handle.public_key():
            raise BadCertificate("the key does not belong to the certificate of the imported authority")
        if not _is_authority(certificate.handle):
            raise BadCertificate("the imported certificate is not that of an authority", "Import the installer's root.")
        return cls(certificate, key)

    def issued(self, certificate: Certificate) -> bool:
        """Whether a certificate is one of this authority's, by its key and not by its name alone."""
        try:
            certificate.handle.verify_directly_issued_by(self.certificate.handle)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True

    def issue_server(self, host: str, lifetime: timedelta, now: datetime, entropy: RandomBytes) -> Credential:
        """A serving certificate for one name, never beyond the authority's own end; raises BadCertificate."""
        end = min(now + lifetime, self.certificate.not_after)
        if end <= now:
            raise BadCertificate("the imported authority has expired")
        key = PrivateKey.generate(entropy)
        public, issuer = key.handle.public_key(), self.certificate.handle
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])]))
            .issuer_name(issuer.subject)
            .public_key(public)
            .serial_number(int.from_bytes(entropy.token(16), "big") >> 1 or 1)
            .not_valid_before(now - BACKDATE)
            .not_valid_after(end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_LEAF_USAGE, critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        return Credential(Certificate(builder.sign(self._key, hashes.SHA256())), key)


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    except (x509.ExtensionNotFound, ValueError):
        return False
    return constraints.value.ca
