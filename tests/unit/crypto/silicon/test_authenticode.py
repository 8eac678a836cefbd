"""Who signed a boot program: the anchor itself or somebody whom it vouched for, by RSA or on a curve."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from fastness.crypto.silicon.authenticode import leads_to

START, END = datetime(2024, 1, 1, tzinfo=UTC), datetime(2034, 1, 1, tzinfo=UTC)
CONTENT, MESSAGE = b"the digest of a program", b"signed attributes"
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
RSA, CURVE = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())


def anchor(key: Key, issuer: str = "Vendor") -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    return made.serial_number(7).not_valid_before(START).not_valid_after(END).sign(key, hashes.SHA256())


def signature(key: Key) -> bytes:
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(MESSAGE, padding.PKCS1v15(), hashes.SHA256())
    return key.sign(MESSAGE, ec.ECDSA(hashes.SHA256()))


def led(key: Key, **change: Any) -> bool:
    certificate = anchor(key)
    words: dict[str, Any] = {
        "anchor": certificate.public_bytes(serialization.Encoding.DER), "certificates": [],
        "issuer": certificate.issuer.public_bytes(), "serial": 7, "algorithm": "sha256", "signature": signature(key),
        "message": MESSAGE, "content": CONTENT, "content_digest": hashlib.sha256(CONTENT).digest(),
    }  # fmt: skip
    words.update(change)
    return leads_to(words.pop("anchor"), words.pop("certificates"), **words)


@pytest.mark.parametrize("key", [RSA, CURVE], ids=["rsa", "curve"])
def test_a_signature_of_the_anchor_counts_and_no_other(key: Key) -> None:
    assert led(key)
    assert not led(key, message=b"other attributes")
    assert not led(key, signature=signature(CURVE if key is RSA else RSA))
    assert not led(key, content=b"another program")
    assert not led(key, algorithm="md5")


def test_the_signer_is_named_by_issuer_and_number() -> None:
    other = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Somebody")]).public_bytes()
    assert not led(RSA, issuer=other)
    assert not led(RSA, serial=8)


def test_an_anchor_that_cannot_be_read_vouches_for_nobody() -> None:
    assert not led(RSA, anchor=b"no certificate")
    own = anchor(RSA).public_bytes(serialization.Encoding.DER)
    assert not led(RSA, anchor=b"no certificate", certificates=[own])
