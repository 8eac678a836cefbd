"""Requests for certificates (PKCS #10): read strictly, made, and answered.

    request = read_request(pem)                    # who is asked for, for which names, with which key
    pem = make_request(key, Subject("system:node:n", ("system:nodes",)))
    certificate = certify(authority, request, client=True, lifetime=hour, now=now)

Whoever decides about a request needs to know *everything* that it asks for. So reading refuses what it would have to ignore:
attributes of the subject beside CN and O, any extension but subjectAltName, names that are neither DNS names nor addresses, more
than one PEM block. The signature must prove possession of the key, and the key must be one that is good enough.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fastness.crypto.digests import Digest, sha256
from fastness.crypto.errors import BadSigningRequest
from fastness.crypto.keys import PrivateKey
from fastness.crypto.x509 import Certificate, CertificateAuthority, Subject

# A request of a kubelet has under a kilobyte; the bound stands before ASN.1 is read.
MAX_BYTES: Final = 16 * 1024
MIN_RSA_BITS: Final = 2048
_BLOCK: Final = re.compile(
    rb"\s*-----BEGIN CERTIFICATE REQUEST-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE REQUEST-----\s*\Z"
)
_CURVES: Final = (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)
_UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    InvalidSignature,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)


@dataclass(frozen=True, slots=True)
class SigningRequest:
    """All that a request asks for. `key` is the SHA-256 of its public key, as SubjectPublicKeyInfo."""

    subject: Subject
    dns: tuple[str, ...]
    addresses: tuple[str, ...]
    key: Digest
    public: CertificatePublicKeyTypes = field(compare=False, repr=False)


def read_request(pem: bytes) -> SigningRequest:
    """The request that a PEM text holds; raises BadSigningRequest."""
    # Exactly one block: with two, whoever approves could look at the first and whoever signs at the second.
    if len(pem) > MAX_BYTES or not _BLOCK.match(pem):
        raise BadSigningRequest("it is not one PEM block of a certificate request")
    try:
        handle = x509.load_pem_x509_csr(pem)
        # Proof of possession (RFC 2986 §3): without it anybody could have a certificate issued for somebody else's public key.
        proved = handle.is_signature_valid
        public = handle.public_key()
        subject = _subject(handle)
        # All is read before anything is decided: a request that is half understood is refused as a whole.
        dns, addresses = _names(handle)
    except _UNREADABLE as error:
        raise BadSigningRequest("the request cannot be read") from error
    if not proved:
        raise BadSigningRequest("its signature does not prove possession of the key")
    if not _strong(public):
        raise BadSigningRequest("its key is neither ECDSA on a NIST curve nor RSA of 2048 bits or more")
    der = public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return SigningRequest(subject, dns, addresses, sha256(der), public)


def make_request(key: PrivateKey, subject: Subject, hosts: Sequence[str] = ()) -> bytes:
    """A request in PEM, as a kubelet makes it: organizations before the name, hosts as subjectAltName."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(subject))
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName([_general(host) for host in hosts]), critical=False)
    return builder.sign(key.handle, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def certify(
    authority: CertificateAuthority, request: SigningRequest, *, client: bool, lifetime: timedelta, now: datetime
) -> Certificate:
    """A certificate for exactly what a request asks for, which somebody approved; raises CertificateExpired."""
    hosts = [_general(host) for host in (*request.dns, *request.addresses)]
    # Never both: a serving certificate of a node must not log in as that node.
    usage = ExtendedKeyUsageOID.CLIENT_AUTH if client else ExtendedKeyUsageOID.SERVER_AUTH
    names = x509.SubjectAlternativeName(hosts) if hosts else None
    return authority.certify(request.public, _name(request.subject), usage, lifetime, now, names)


def _name(subject: Subject) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in subject.organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, subject.common_name)])


def _subject(handle: x509.CertificateSigningRequest) -> Subject:
    groups, names = [], []
    for relative in handle.subject.rdns:
        for entry in relative:
            if entry.oid == NameOID.ORGANIZATION_NAME:
                groups.append(str(entry.value))
            elif entry.oid == NameOID.COMMON_NAME:
                names.append(str(entry.value))
            else:
                raise BadSigningRequest("its subject names more than organizations and a common name")
    # Kubernetes takes the user name from the common name: with two, approver and API server might take different ones.
    if len(names) != 1:
        raise BadSigningRequest("its subject has not exactly one common name")
    return Subject(names[0], tuple(groups))


def _names(handle: x509.CertificateSigningRequest) -> tuple[tuple[str, ...], tuple[str, ...]]:
    dns: list[str] = []
    addresses: list[str] = []
    for extension in handle.extensions:
        # An extension that we ignored here would still be in the request that people read, and might be believed to be granted.
        if not isinstance(extension.value, x509.SubjectAlternativeName):
            raise BadSigningRequest(f"it asks for the extension {extension.oid.dotted_string}")
        for name in extension.value:
            if isinstance(name, x509.DNSName):
                dns.append(name.value)
            # A network is a name constraint's form and no address; a signer might copy it, and a client match more with it than
            # one host.
            elif isinstance(name, x509.IPAddress) and not isinstance(
                name.value, ipaddress.IPv4Network | ipaddress.IPv6Network
            ):
                addresses.append(str(name.value))
            else:
                raise BadSigningRequest("it asks for names that are neither DNS names nor addresses")
    return tuple(dns), tuple(addresses)


def _strong(public: object) -> bool:
    if isinstance(public, ec.EllipticCurvePublicKey):
        return isinstance(public.curve, _CURVES)
    return isinstance(public, rsa.RSAPublicKey) and public.key_size >= MIN_RSA_BITS


def _general(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
