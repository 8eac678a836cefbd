"""Certificates: an authority that issues, and the check of what a peer shows.

    authority = CertificateAuthority.create("fastness api", now, entropy)
    server = authority.issue_server(["127.0.0.1", "localhost"], timedelta(days=90), now)
    admin = authority.issue_client("fastness-admin", ["system:masters"], timedelta(days=365), now)
    verify_client(certificate, [authority.certificate], at=now)

* P-256 with SHA-256 throughout; serial numbers are 127 random bits; notBefore lies `BACKDATE` before `now`, because the clocks
  of fresh machines run late.
* A client's name is CN and its groups are O, as Kubernetes reads them.
* `verify_client` and `verify_server` build a path to one of the given authorities at the given time; nothing is taken from the
  system's trust store, and a certificate without the extended key usage asked for is refused even when it has none at all.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import Criticality, ExtensionPolicy, Policy, PolicyBuilder, Store, VerificationError

from fastness.crypto.digests import Digest, sha256
from fastness.crypto.entropy import RandomBytes
from fastness.crypto.errors import (
    BadCertificate,
    CertificateExpired,
    CertificateNotYetValid,
    UntrustedCertificate,
    WrongPurpose,
)
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes

# Authorities are rotated long before (`keys.authorities`); a machine that was off for years must still believe the old one.
CA_LIFETIME: Final = timedelta(days=3650)
BACKDATE: Final = timedelta(minutes=5)
_DIGEST: Final = hashes.SHA256()
# What the library raises for bytes that it cannot read; they share no base.
_UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
# digitalSignature alone: with ECDHE nothing is ever encrypted to a leaf's key (RFC 5280 §4.2.1.3).
_LEAF_USAGE: Final = x509.KeyUsage(True, False, False, False, False, False, False, False, False)
_CA_USAGE: Final = x509.KeyUsage(False, False, False, False, False, True, True, False, False)


@dataclass(frozen=True, slots=True)
class Subject:
    """Who a certificate names: common name and organizations, in their order."""

    common_name: str
    organizations: tuple[str, ...] = ()


class Certificate:
    """One X.509 certificate."""

    __slots__ = ("_key", "der", "fingerprint", "handle")

    def __init__(self, handle: x509.Certificate) -> None:
        self.handle = handle
        self.der = handle.public_bytes(serialization.Encoding.DER)
        self.fingerprint: Digest = sha256(self.der)
        self._key: object = None

    @property
    def public_key(self) -> object:
        """The key as the library has it, read once; None when it cannot be read."""
        if self._key is None:
            try:
                self._key = self.handle.public_key()
            except _UNREADABLE:
                return None
        return self._key

    @classmethod
    def from_pem(cls, pem: bytes) -> Certificate:
        """The first certificate of a PEM text; raises BadCertificate."""
        try:
            return cls(x509.load_pem_x509_certificate(pem))
        except _UNREADABLE as error:
            raise BadCertificate("the certificate cannot be read as PEM") from error

    @classmethod
    def from_der(cls, der: bytes) -> Certificate:
        """A certificate as TLS hands it over; raises BadCertificate."""
        try:
            return cls(x509.load_der_x509_certificate(der))
        except _UNREADABLE as error:
            raise BadCertificate("the certificate cannot be read as DER") from error

    @property
    def pem(self) -> bytes:
        """The PEM text."""
        return self.handle.public_bytes(serialization.Encoding.PEM)

    @property
    def not_before(self) -> datetime:
        """When it becomes valid."""
        return self.handle.not_valid_before_utc

    @property
    def not_after(self) -> datetime:
        """The last second at which it is valid."""
        return self.handle.not_valid_after_utc

    @property
    def subject(self) -> Subject:
        """Common name and organizations; raises BadCertificate when a value is not text."""
        try:
            names = [str(entry.value) for entry in self.handle.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
            groups = self.handle.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        except _UNREADABLE as error:
            raise BadCertificate("the subject of the certificate cannot be read") from error
        return Subject(names[0] if names else "", tuple(str(entry.value) for entry in groups))

    @property
    def subject_text(self) -> str:
        """The whole subject as people write it (RFC 4514); raises BadCertificate."""
        return _named(self.handle, "subject")

    @property
    def issuer_text(self) -> str:
        """The same of the issuer; raises BadCertificate."""
        return _named(self.handle, "issuer")

    @property
    def hosts(self) -> tuple[str, ...]:
        """DNS names and addresses that the certificate speaks for; raises BadCertificate."""
        names = self._alternative_names()
        if names is None:
            return ()
        addresses = (str(address) for address in names.get_values_for_type(x509.IPAddress))
        return (*names.get_values_for_type(x509.DNSName), *addresses)

    @property
    def uris(self) -> tuple[str, ...]:
        """URIs among the alternative names of the subject, in their order; raises BadCertificate."""
        names = self._alternative_names()
        return tuple(names.get_values_for_type(x509.UniformResourceIdentifier)) if names is not None else ()

    def _alternative_names(self) -> x509.SubjectAlternativeName | None:
        try:
            return self.handle.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return None
        except _UNREADABLE as error:
            raise BadCertificate("the extensions of the certificate cannot be read") from error

    def is_signed_by(self, authority: Certificate) -> bool:
        """Whether this very authority issued it; dates and purposes are not looked at."""
        try:
            self.handle.verify_directly_issued_by(authority.handle)
        except (InvalidSignature, *_UNREADABLE):
            return False
        return True

    def belongs_to(self, key: PrivateKey) -> bool:
        """Whether `key` is the private half of this certificate."""
        public = self.handle.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return public == key.public_der()

    def __repr__(self) -> str:
        return f"Certificate({self.handle.subject.rfc4514_string()!r}, {self.fingerprint})"


@dataclass(frozen=True, slots=True)
class Credential:
    """A certificate with its private key, and what lies between it and its authority."""

    certificate: Certificate
    key: PrivateKey
    chain: tuple[Certificate, ...] = ()

    @property
    def key_pem(self) -> SecretBytes:
        """The private key as PEM."""
        return self.key.to_pem()


class CertificateAuthority:
    """An authority: a certificate, its key, and what it needs to issue."""

    def __init__(self, certificate: Certificate, key: PrivateKey, entropy: RandomBytes) -> None:
        # With another authority's key the leaves would verify nowhere, and everybody would search for the fault in the leaves.
        if not certificate.belongs_to(key):
            raise BadCertificate("the authority's key does not belong to its certificate")
        self.certificate = certificate
        self.key = key
        self._entropy = entropy

    @classmethod
    def create(
        cls, name: str, now: datetime, entropy: RandomBytes, lifetime: timedelta = CA_LIFETIME
    ) -> CertificateAuthority:
        """A new self-signed authority that issues leaves only."""
        key = PrivateKey.generate(entropy)
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = (
            _builder(subject, subject, key.handle.public_key(), entropy, now, lifetime)
            # Leaves only (RFC 5280 §4.2.1.9): whoever steals a leaf's key cannot issue below it.
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_CA_USAGE, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.handle.public_key()), critical=False)
        )
        return cls(_signed(builder, key), key, entropy)

    @classmethod
    def load(cls, certificate_pem: bytes, key_pem: SecretBytes, entropy: RandomBytes) -> CertificateAuthority:
        """An authority that was saved; raises BadCertificate, BadKey."""
        return cls(Certificate.from_pem(certificate_pem), PrivateKey.from_pem(key_pem), entropy)

    @property
    def key_pem(self) -> SecretBytes:
        """The authority's key as PEM."""
        return self.key.to_pem()

    def issue_server(
        self, hosts: Sequence[str], lifetime: timedelta, now: datetime, uris: Sequence[str] = ()
    ) -> Credential:
        """A serving certificate for these names and addresses; the first is also the common name."""
        if not hosts:
            raise BadCertificate("a serving certificate needs at least one host", "Name the hosts that clients dial.")
        names = x509.SubjectAlternativeName([*map(_general_name, hosts), *map(x509.UniformResourceIdentifier, uris)])
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
        return self._issue(subject, ExtendedKeyUsageOID.SERVER_AUTH, lifetime, now, names)

    def issue_client(
        self,
        common_name: str,
        organizations: Sequence[str],
        lifetime: timedelta,
        now: datetime,
        uris: Sequence[str] = (),
    ) -> Credential:
        """A client certificate: user name in CN, groups in O."""
        try:
            groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
            subject = x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        except ValueError as error:
            raise BadCertificate(
                f"{common_name!r} cannot be named in a certificate", "Names have 1 to 64 characters (X.520)."
            ) from error
        names = x509.SubjectAlternativeName([*map(x509.UniformResourceIdentifier, uris)]) if uris else None
        return self._issue(subject, ExtendedKeyUsageOID.CLIENT_AUTH, lifetime, now, names)

    def _issue(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        lifetime: timedelta,
        now: datetime,
        names: x509.SubjectAlternativeName | None = None,
    ) -> Credential:
        key = PrivateKey.generate(self._entropy)
        return Credential(self.certify(key.handle.public_key(), subject, usage, lifetime, now, names), key)

    def certify(
        self,
        public: CertificatePublicKeyTypes,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        lifetime: timedelta,
        now: datetime,
        names: x509.SubjectAlternativeName | None = None,
    ) -> Certificate:
        """A certificate for a key that somebody else holds; raises CertificateExpired."""
        if now > self.certificate.not_after:
            raise CertificateExpired("the authority has expired", "Create a new authority and hand it to all clients.")
        # A leaf never outlives its authority: a path to it could not be built anyway.
        lifetime = min(lifetime, self.certificate.not_after - now)
        issuer = self.certificate.handle
        builder = (
            _builder(subject, issuer.subject, public, self._entropy, now, lifetime)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_LEAF_USAGE, critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.handle.public_key()), critical=False
            )
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return _signed(builder, self.key)


def verify_client(
    certificate: Certificate, authorities: Sequence[Certificate], at: datetime, via: Sequence[Certificate] = ()
) -> Subject:
    """The subject of a client certificate that verifies at that time; raises UntrustedCertificate or a kind of it."""
    _verify(certificate, authorities, at, via, ExtendedKeyUsageOID.CLIENT_AUTH)
    return certificate.subject


def verify_server(
    certificate: Certificate,
    authorities: Sequence[Certificate],
    host: str,
    at: datetime,
    via: Sequence[Certificate] = (),
) -> None:
    """Check that a serving certificate verifies at that time and speaks for `host`; raises UntrustedCertificate."""
    _verify(certificate, authorities, at, via, ExtendedKeyUsageOID.SERVER_AUTH)
    # Exactly, and out of subjectAltName alone: no wildcards, and no common name, which RFC 9525 no longer has either.
    if host not in certificate.hosts:
        raise UntrustedCertificate(
            f"the certificate does not speak for {host}", "Issue it for the name that is dialled."
        )


def _named(handle: x509.Certificate, party: str) -> str:
    try:
        name: x509.Name = getattr(handle, party)
        return name.rfc4514_string()
    except _UNREADABLE as error:
        raise BadCertificate(f"the {party} of the certificate cannot be read") from error


def split_pem(bundle: bytes) -> list[Certificate]:
    """All certificates of a PEM bundle; raises BadCertificate when one of them, or none, can be read."""
    try:
        return [Certificate(handle) for handle in x509.load_pem_x509_certificates(bundle)]
    except _UNREADABLE as error:
        raise BadCertificate("the bundle holds no readable certificate") from error


def _verify(
    certificate: Certificate,
    authorities: Sequence[Certificate],
    at: datetime,
    via: Sequence[Certificate],
    usage: x509.ObjectIdentifier,
) -> None:
    # Dates and purpose before the path, with errors of their own: a verifier of paths says only that there is none.
    _check_dates(certificate, at)
    _check_purpose(certificate, usage)
    if not authorities:
        raise UntrustedCertificate("no authority is trusted here")
    # The library's own path rules, but without a mandatory subjectAltName: clients of Kubernetes have CN and O only.
    leaf = ExtensionPolicy.webpki_defaults_ee().may_be_present(
        x509.SubjectAlternativeName, Criticality.AGNOSTIC, _accept_names
    ).may_be_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _accept_usage)  # fmt: skip
    builder = (
        PolicyBuilder()
        .store(Store([authority.handle for authority in authorities]))
        .time(at.astimezone(UTC).replace(tzinfo=None))
        # Certificates between are the caller's to bring: a bound on the search among them.
        .max_chain_depth(2)
        .extension_policies(ca_policy=ExtensionPolicy.webpki_defaults_ca(), ee_policy=leaf)
    )
    try:
        builder.build_client_verifier().verify(certificate.handle, [entry.handle for entry in via])
    except (VerificationError, *_UNREADABLE) as error:
        raise UntrustedCertificate("the certificate does not lead to an authority that is trusted here") from error


def _check_dates(certificate: Certificate, at: datetime) -> None:
    if at > certificate.not_after:
        raise CertificateExpired(f"the certificate expired at {certificate.not_after:%Y-%m-%dT%H:%M:%SZ}")
    if at < certificate.not_before:
        raise CertificateNotYetValid(f"the certificate is valid from {certificate.not_before:%Y-%m-%dT%H:%M:%SZ}")


def _check_purpose(certificate: Certificate, usage: x509.ObjectIdentifier) -> None:
    try:
        purposes = list(certificate.handle.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        purposes = []
    except _UNREADABLE as error:
        raise BadCertificate("the extensions of the certificate cannot be read") from error
    # A door's serving certificate that was stolen must not be shown as that of a client (RFC 5280 §4.2.1.12).
    if usage not in purposes and ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE not in purposes:
        raise WrongPurpose("the certificate was not issued for this use")


def _accept_names(policy: Policy, certificate: x509.Certificate, extension: x509.SubjectAlternativeName | None) -> None:
    """Names are checked by the caller, against the host that it dialled."""


def _accept_usage(policy: Policy, certificate: x509.Certificate, extension: x509.ExtendedKeyUsage | None) -> None:
    """The purpose was checked before the path, with an error of its own."""


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public: CertificatePublicKeyTypes,
    entropy: RandomBytes,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    # Positive and of at most 20 bytes (RFC 5280 §4.1.2.2), so the top bit must be clear, and zero is not allowed. Random, because
    # a serial that can be guessed helps whoever looks for a collision of the signed part.
    serial = int.from_bytes(entropy.token(16), "big") >> 1 or 1
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(serial)
        # Clocks of machines that boot run behind; a certificate of this second would not count there yet.
        .not_valid_before(now - BACKDATE)
        .not_valid_after(now + lifetime)
    )


def _signed(builder: x509.CertificateBuilder, key: PrivateKey) -> Certificate:
    # Deterministic (RFC 6979): a nonce that repeats under a weak generator gives away the authority's key.
    return Certificate(builder.sign(key.handle, _DIGEST, ecdsa_deterministic=True))


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError as error:
        raise BadCertificate(f"{host!r} is neither an address nor a DNS name") from error
