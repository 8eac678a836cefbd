"""A silicon vendor's certificate authority, made up: certificates with any key, extension and date."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.x509.oid import NameOID

START, END = datetime(2024, 1, 1, tzinfo=UTC), datetime(2034, 1, 1, tzinfo=UTC)
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def name(common: str) -> x509.Name:
    """A subject."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def issue(
    subject: str,
    key: Key,
    issuer: str,
    issuer_key: Key,
    *,
    ca: bool = False,
    extensions: Mapping[str, bytes] | None = None,
    start: datetime = START,
    end: datetime = END,
    serial: int | None = None,
) -> x509.Certificate:
    """One certificate, signed as the vendor's kind of key does."""
    builder = (
        x509.CertificateBuilder()
        .subject_name(name(subject))
        .issuer_name(name(issuer))
        .public_key(key.public_key())
        .serial_number(serial or x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    for number, value in (extensions or {}).items():
        builder = builder.add_extension(
            x509.UnrecognizedExtension(x509.ObjectIdentifier(number), value), critical=False
        )
    if isinstance(issuer_key, rsa.RSAPrivateKey):
        return builder.sign(issuer_key, hashes.SHA384(), rsa_padding=padding.PSS(padding.MGF1(hashes.SHA384()), 48))
    return builder.sign(issuer_key, hashes.SHA256())


def revocations(
    issuer: str, key: ec.EllipticCurvePrivateKey, revoked: tuple[int, ...] = (), *, start: datetime, end: datetime
) -> bytes:
    """A revocation list as DER."""
    builder = x509.CertificateRevocationListBuilder().issuer_name(name(issuer)).last_update(start).next_update(end)
    for serial in revoked:
        entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(start).build()
        builder = builder.add_revoked_certificate(entry)
    builder = builder.add_extension(x509.CRLNumber(1), critical=False)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


def der(certificate: x509.Certificate) -> bytes:
    """DER of a certificate."""
    return certificate.public_bytes(serialization.Encoding.DER)


def pem(*certificates: x509.Certificate) -> bytes:
    """A PEM bundle."""
    return b"".join(entry.public_bytes(serialization.Encoding.PEM) for entry in certificates)


def tlv(tag: int, content: bytes) -> bytes:
    """One DER element."""
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content


def integer(value: int, tag: int = 2) -> bytes:
    """A DER INTEGER."""
    return tlv(tag, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def oid(dotted: str) -> bytes:
    """A DER OBJECT IDENTIFIER."""
    first, second, *rest = map(int, dotted.split("."))
    out = b""
    for part in [40 * first + second, *rest]:
        piece = [part & 0x7F]
        while part := part >> 7:
            piece.insert(0, part & 0x7F | 0x80)
        out += bytes(piece)
    return tlv(6, out)
