"""Signatures of attestation keys: each scheme of a TPM is verified, and a signature has one spelling."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

from fastness.crypto.silicon.verify import AttestationKey, p256, p256_raw

RSA, CURVE = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())
PSS = padding.PSS(padding.MGF1(hashes.SHA256()), padding.PSS.MAX_LENGTH)
MESSAGE = b"what the TPM attests"


def attestation_key(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> AttestationKey:
    public = key.public_key()
    return AttestationKey(
        public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def numbers(message: bytes = MESSAGE) -> tuple[bytes, bytes]:
    r, s = utils.decode_dss_signature(CURVE.sign(message, ec.ECDSA(hashes.SHA256())))
    return r.to_bytes(32, "big"), s.to_bytes(32, "big")


@pytest.mark.parametrize(("scheme", "style"), [("RSASSA", padding.PKCS1v15()), ("RSAPSS", PSS)])
def test_an_rsa_key_signed_exactly_this(scheme: str, style: padding.AsymmetricPadding) -> None:
    key, signature = attestation_key(RSA), RSA.sign(MESSAGE, style, hashes.SHA256())
    assert key.signed(scheme, "sha256", [signature], MESSAGE)
    assert not key.signed(scheme, "sha256", [signature], b"something else")
    assert not key.signed(scheme, "sha256", [bytes(256)], MESSAGE)
    assert not key.signed(scheme, "sha256", [signature, signature], MESSAGE)
    assert not key.signed(scheme, "sha256", [], MESSAGE)
    for other in {"RSASSA", "RSAPSS", "ECDSA", ""} - {scheme}:
        assert not key.signed(other, "sha256", [signature], MESSAGE)


def test_a_key_on_a_curve_signed_exactly_this() -> None:
    key = attestation_key(CURVE)
    assert key.signed("ECDSA", "sha256", numbers(), MESSAGE)
    assert not key.signed("ECDSA", "sha256", numbers(b"something else"), MESSAGE)
    assert not key.signed("ECDSA", "sha256", numbers()[:1], MESSAGE)
    assert not key.signed("RSAPSS", "sha256", numbers(), MESSAGE)


def test_a_signature_on_p256_has_one_spelling() -> None:
    r, s = numbers()
    point = CURVE.public_key().public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
    assert p256(CURVE.public_key(), r + s, MESSAGE)
    assert p256_raw(point[1:], r + s, MESSAGE)
    for other in (r + b"\0" + s, r + s[:-1], r + s + b"\0", r, b""):
        assert not p256(CURVE.public_key(), other, MESSAGE)
    for key in (point, point[2:], b""):
        assert not p256_raw(key, r + s, MESSAGE)
