"""What the certificate of an endorsement key says: which TPM, made by whom, and for what the key may be used.

TCG EK Credential Profile. Makers put their name, the model and the version of the TPM into a directory name among the alternative
names; the key usage is to decipher keys (RSA) or to agree on them (ECC); the extended key usage names endorsement keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa

from fastness.crypto.errors import BadCertificate
from fastness.crypto.x509 import Certificate

PURPOSE: Final = "2.23.133.8.1"
_MANUFACTURER: Final = x509.ObjectIdentifier("2.23.133.2.1")
_MODEL: Final = x509.ObjectIdentifier("2.23.133.2.2")
_VERSION: Final = x509.ObjectIdentifier("2.23.133.2.3")
_UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
T = TypeVar("T", bound=x509.ExtensionType)
# A critical extension that is not understood must refuse the certificate (RFC 5280 §4.2).
_UNDERSTOOD: Final = (x509.BasicConstraints, x509.KeyUsage, x509.SubjectAlternativeName, x509.ExtendedKeyUsage)


@dataclass(frozen=True, slots=True)
class EkFacts:
    """The certificate of an endorsement key as its maker wrote it; `purposes` is None where it names none."""

    manufacturer: str
    model: str
    version: str
    purposes: tuple[str, ...] | None
    unlocks: bool
    authority: bool
    strange: tuple[str, ...]

    @property
    def speaks_of_a_tpm(self) -> bool:
        """Whether it was issued for an endorsement key, by purpose or, where there is none, by naming a TPM."""
        # Whatever else a maker signed under the same root endorses no TPM.
        return PURPOSE in self.purposes if self.purposes is not None else bool(self.manufacturer)


def read_facts(certificate: Certificate) -> EkFacts:
    """Read a certificate as one of an endorsement key; raises BadCertificate."""
    try:
        extensions = certificate.handle.extensions
        names = _directory_names(extensions)
        key = certificate.handle.public_key()
    except _UNREADABLE as error:
        raise BadCertificate("the endorsement certificate cannot be read") from error
    usage = _value(extensions, x509.KeyUsage)
    constraints = _value(extensions, x509.BasicConstraints)
    purposes = _value(extensions, x509.ExtendedKeyUsage)
    # A credential is encrypted to an RSA key and agreed on with an ECC key: a key that may do neither opens none.
    unlocking = "key_encipherment" if isinstance(key, rsa.RSAPublicKey) else "key_agreement"
    return EkFacts(
        manufacturer=names.get(_MANUFACTURER, ""),
        model=names.get(_MODEL, ""),
        version=names.get(_VERSION, ""),
        purposes=None if purposes is None else tuple(entry.dotted_string for entry in purposes),
        unlocks=usage is not None and bool(getattr(usage, unlocking)),
        authority=constraints is not None and constraints.ca,
        strange=tuple(
            entry.oid.dotted_string
            for entry in extensions
            if entry.critical and not isinstance(entry.value, _UNDERSTOOD)
        ),
    )


def _directory_names(extensions: x509.Extensions) -> dict[x509.ObjectIdentifier, str]:
    alternative = _value(extensions, x509.SubjectAlternativeName)
    if alternative is None:
        return {}
    return {
        attribute.oid: attribute.value
        for name in alternative.get_values_for_type(x509.DirectoryName)
        for attribute in name
        if isinstance(attribute.value, str)
    }


def _value(extensions: x509.Extensions, kind: type[T]) -> T | None:
    try:
        return extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
