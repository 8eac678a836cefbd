"""Authorities of other installers: which are taken, and what they issue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from fastness.crypto.errors import BadCertificate, BadKey
from fastness.crypto.imported_authority import ImportedAuthority
from fastness.crypto.secret import SecretBytes
from fastness.keys.legacy_stubs import LIFETIME, due
from tests.virtual import SeededEntropy

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ENTROPY = SeededEntropy(1)
RSA, CURVE = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1())


def root(key: Any, *, ca: bool | None = True, days: int = 365) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "root-ca")])
    builder = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
        .not_valid_before(NOW - timedelta(days=1)).not_valid_after(NOW + timedelta(days=days))
    )  # fmt: skip
    if ca is not None:
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    algorithm = None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return builder.sign(key, algorithm).public_bytes(serialization.Encoding.PEM)


def pem(key: Any) -> SecretBytes:
    return SecretBytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


@pytest.mark.parametrize("key", [RSA, CURVE], ids=["rsa", "curve"])
def test_a_leaf_verifies_under_the_imported_authority_and_names_one_host(key: Any) -> None:
    authority = ImportedAuthority.load(root(key), pem(key))
    leaf = authority.issue_server("api-int.example.com", LIFETIME, NOW, ENTROPY).certificate
    leaf.handle.verify_directly_issued_by(authority.certificate.handle)
    names = leaf.handle.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["api-int.example.com"]
    assert not leaf.handle.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert leaf.not_after == NOW + LIFETIME


def test_a_leaf_does_not_outlive_its_authority_and_an_expired_one_issues_nothing() -> None:
    authority = ImportedAuthority.load(root(RSA, days=3), pem(RSA))
    assert authority.issue_server("a.example", LIFETIME, NOW, ENTROPY).certificate.not_after == NOW + timedelta(days=3)
    with pytest.raises(BadCertificate, match="expired"):
        authority.issue_server("a.example", LIFETIME, NOW + timedelta(days=4), ENTROPY)


@pytest.mark.parametrize(
    ("certificate", "key", "error"),
    [
        (root(RSA, ca=False), pem(RSA), BadCertificate),
        (root(RSA, ca=None), pem(RSA), BadCertificate),
        (root(RSA), pem(CURVE), BadCertificate),
        (root(RSA), SecretBytes(b"nothing"), BadKey),
        (b"nothing", pem(RSA), BadCertificate),
    ],
    ids=["a leaf", "no constraints", "another key", "no key", "no certificate"],
)
def test_what_is_no_authority_is_refused(certificate: bytes, key: SecretBytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        ImportedAuthority.load(certificate, key)


def test_weak_and_strange_keys_are_refused() -> None:
    for key in (rsa.generate_private_key(65537, 1024), ed25519.Ed25519PrivateKey.generate()):
        with pytest.raises(BadKey):
            ImportedAuthority.load(root(key), pem(key))


def test_certificates_are_kept_while_they_are_good_and_renewed_in_time_or_under_another_authority() -> None:
    authority, other = ImportedAuthority.load(root(RSA), pem(RSA)), ImportedAuthority.load(root(CURVE), pem(CURVE))
    first = due(["a.example", "b.example"], {}, authority, NOW, ENTROPY)
    assert due(["a.example"], first, authority, NOW + LIFETIME / 2, ENTROPY) == {"a.example": first["a.example"]}
    assert due(["a.example"], first, authority, NOW + LIFETIME * 0.7, ENTROPY)["a.example"] != first["a.example"]
    assert due(["a.example"], first, other, NOW, ENTROPY)["a.example"] != first["a.example"], "same name, other key"
