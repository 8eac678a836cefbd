"""A certificate that names an authority and was not signed by it opens nothing, whatever kind of key the authority has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

from fastness.crypto.errors import BadCertificate
from fastness.crypto.silicon.chains import Links, load_certificates, signed_by, verified
from fastness.crypto.silicon.revocation import RevocationList
from fastness.crypto.silicon.verify import p256_certified
from fastness.crypto.x509 import Certificate

START, END = datetime(2024, 1, 1, tzinfo=UTC), datetime(2034, 1, 1, tzinfo=UTC)
PSS = padding.PSS(padding.MGF1(hashes.SHA384()), 48)
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


@cache
def rsa_key(bits: int, number: int = 0) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


def named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def certificate(subject: str, key: Key, signer: Key, *, pss: bool = False) -> Certificate:
    """A certificate that says it is from "Authority", signed by whoever is given."""
    ca = subject == "Authority"
    made = (
        x509.CertificateBuilder()
        .subject_name(named(subject))
        .issuer_name(named("Authority"))
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(START)
        .not_valid_after(END)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
    signed = made.sign(signer, hashes.SHA384(), rsa_padding=PSS) if pss else made.sign(signer, hashes.SHA384())
    return load_certificates(signed.public_bytes(serialization.Encoding.DER))[0]


def test_a_processors_authority_vouches_for_what_it_signed_and_for_nothing_else() -> None:
    authority, stranger = rsa_key(4096), rsa_key(4096, 1)
    root = certificate("Authority", authority, authority, pss=True)
    assert signed_by(certificate("chip", ec.generate_private_key(ec.SECP384R1()), authority, pss=True), root)
    assert not signed_by(certificate("chip", ec.generate_private_key(ec.SECP384R1()), stranger, pss=True), root)
    assert not verified(root, b"\0" * 512, b"a message")


@pytest.mark.parametrize("pss", [True, False])
def test_a_tpms_authority_vouches_for_what_it_signed_and_for_nothing_else(pss: bool) -> None:
    authority, stranger = rsa_key(2048), rsa_key(2048, 1)
    root = certificate("Authority", authority, authority)
    assert signed_by(certificate("tpm", rsa_key(2048, 2), authority, pss=pss), root, Links.TPM)
    assert not signed_by(certificate("tpm", rsa_key(2048, 2), stranger, pss=pss), root, Links.TPM)


def test_a_signature_of_another_kind_than_the_authoritys_key_counts_for_nothing() -> None:
    authority, curve = rsa_key(2048), ec.generate_private_key(ec.SECP256R1())
    root = certificate("Authority", authority, authority)
    assert not signed_by(certificate("tpm", rsa_key(2048, 2), curve), root, Links.TPM)
    other = certificate("Authority", curve, curve)
    assert not signed_by(certificate("tpm", rsa_key(2048, 2), authority), other, Links.TPM)


def test_a_certificate_that_ends_before_it_begins_cannot_be_read() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    sound = certificate("Authority", key, key).handle.public_bytes(serialization.Encoding.DER)
    assert load_certificates(sound)
    early, late = ((START - timedelta(days=400)).strftime("%y%m%d"), END.strftime("%y%m%d"))
    swapped = sound.replace(late.encode(), early.encode())
    assert swapped != sound
    with pytest.raises(BadCertificate):
        load_certificates(swapped)


def test_a_certificate_with_another_kind_of_key_signs_nothing_for_p256() -> None:
    curve, other = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())
    r, s = utils.decode_dss_signature(curve.sign(b"message", ec.ECDSA(hashes.SHA256())))
    signature = r.to_bytes(32, "big") + s.to_bytes(32, "big")
    assert p256_certified(certificate("Authority", curve, curve), signature, b"message")
    for key in (rsa_key(2048), other):
        assert not p256_certified(certificate("Authority", key, key), signature, b"message")


def test_a_list_of_revocations_without_an_end_is_never_current() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    made = (
        x509.CertificateRevocationListBuilder().issuer_name(named("Authority")).last_update(START).next_update(END)
    ).sign(key, hashes.SHA384())  # fmt: skip
    whole = made.public_bytes(serialization.Encoding.DER)
    assert RevocationList(whole).current(START)
    assert not RevocationList(_endless(whole)).current(START)


def _endless(der: bytes) -> bytes:
    """The same list without its `nextUpdate`, which RFC 5280 demands and old issuers leave out."""
    end = b"\x17\x0d" + END.strftime("%y%m%d%H%M%SZ").encode()
    outer, inner, body = der[2], der[4], der[5:]
    assert der[:2] == b"\x30\x81"
    assert (der[3], inner < 0x80, body.count(end)) == (0x30, True, 1)
    return bytes([0x30, 0x81, outer - len(end), 0x30, inner - len(end)]) + body.replace(end, b"")
