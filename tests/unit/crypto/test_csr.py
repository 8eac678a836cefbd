"""Requests for certificates: what is read is everything that is asked for, and nothing is overlooked."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from hypothesis import given
from hypothesis import strategies as st

from fastness.crypto.csr import MAX_BYTES, make_request, read_request
from fastness.crypto.digests import sha256
from fastness.crypto.errors import BadSigningRequest
from fastness.crypto.keys import PrivateKey
from fastness.crypto.x509 import Subject
from tests.virtual import SeededEntropy

KEY = PrivateKey.generate(SeededEntropy(1))
NODE = Subject("system:node:n", ("system:nodes",))
Builder = x509.CertificateSigningRequestBuilder
NAME = x509.Name(
    [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:nodes"),
        x509.NameAttribute(NameOID.COMMON_NAME, "system:node:n"),
    ]
)


def pem(builder: Builder, key: object = KEY.handle, digest: hashes.HashAlgorithm | None = hashes.SHA256()) -> bytes:  # noqa: B008
    return builder.sign(key, digest).public_bytes(serialization.Encoding.PEM)  # type: ignore[arg-type]


def names(*general_names: x509.GeneralName) -> Builder:
    return Builder().subject_name(NAME).add_extension(x509.SubjectAlternativeName(general_names), critical=False)


def test_what_was_asked_for_is_what_is_read() -> None:
    request = read_request(make_request(KEY, NODE, ["n", "n.example", "10.0.0.1", "fd00::1"]))
    assert request.subject == NODE
    assert (request.dns, request.addresses) == (("n", "n.example"), ("10.0.0.1", "fd00::1"))
    assert request.key == sha256(KEY.public_der())


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: pem(Builder().subject_name(x509.Name([*NAME, x509.NameAttribute(NameOID.COUNTRY_NAME, "DE")]))), "subject"),
        (lambda: pem(Builder().subject_name(x509.Name([*NAME, *NAME]))), "common name"),
        (lambda: pem(Builder().subject_name(x509.Name([]))), "common name"),
        (lambda: pem(names(x509.RFC822Name("a@example.com"))), "neither DNS"),
        (lambda: pem(names(x509.UniformResourceIdentifier("spiffe://x"))), "neither DNS"),
        (lambda: pem(names(x509.IPAddress(ipaddress.ip_network("10.0.0.0/8")))), "read|neither"),
        (
            lambda: pem(Builder().subject_name(NAME).add_extension(x509.BasicConstraints(True, None), critical=True)),
            "extension 2.5.29.19",
        ),
        (
            lambda: pem(
                Builder().subject_name(NAME).add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.OCSP_SIGNING]), False)
            ),
            "extension 2.5.29.37",
        ),
        (lambda: pem(Builder().subject_name(NAME), ed25519.Ed25519PrivateKey.generate(), None), "key is neither"),
        (lambda: pem(Builder().subject_name(NAME), ec.generate_private_key(ec.SECP256K1())), "key is neither"),
        (lambda: pem(Builder().subject_name(NAME), rsa.generate_private_key(65537, 1024)), "key is neither"),
        (lambda: make_request(KEY, NODE) * 2, "one PEM block"),
        (lambda: make_request(KEY, NODE) + b"x", "one PEM block"),
        (lambda: b"x" + make_request(KEY, NODE), "one PEM block"),
        (lambda: make_request(KEY, NODE).replace(b"CERTIFICATE REQUEST", b"CERTIFICATE"), "one PEM block"),
        (lambda: b" " * MAX_BYTES + make_request(KEY, NODE), "one PEM block"),
        (lambda: b"", "one PEM block"),
    ],
)  # fmt: skip
def test_what_nobody_may_ask_for_is_refused(build: Callable[[], bytes], says: str) -> None:
    with pytest.raises(BadSigningRequest, match=says):
        read_request(build())


def test_a_signature_of_another_key_proves_nothing() -> None:
    der = bytearray(x509.load_pem_x509_csr(make_request(KEY, NODE)).public_bytes(serialization.Encoding.DER))
    other = PrivateKey.generate(SeededEntropy(2)).handle.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )  # fmt: skip
    own = KEY.public_der()[-65:]
    at = bytes(der).index(own)
    der[at : at + 65] = other
    text = x509.load_der_x509_csr(bytes(der)).public_bytes(serialization.Encoding.PEM)
    with pytest.raises(BadSigningRequest, match="possession"):
        read_request(text)


@pytest.mark.parametrize("curve", [ec.SECP384R1(), ec.SECP521R1()])
def test_other_good_keys_are_read(curve: ec.EllipticCurve) -> None:
    assert read_request(pem(Builder().subject_name(NAME), ec.generate_private_key(curve))).subject == NODE


@given(at=st.integers(0, 399), bit=st.integers(0, 7))
def test_damaged_requests_are_refused_or_read_and_never_break(at: int, bit: int) -> None:
    text = bytearray(make_request(KEY, NODE, ["n"]))
    text[at % len(text)] ^= 1 << bit
    try:
        request = read_request(bytes(text))
    except BadSigningRequest:
        return
    assert request.key == sha256(KEY.public_der())
