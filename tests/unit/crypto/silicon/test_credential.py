"""Credentials in software: sealed and opened by the same rules; that real TPMs agree is tested with swtpm."""

from __future__ import annotations

import os

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from fastness.crypto.errors import BadKey, BrokenSeal
from fastness.crypto.secret import SecretBytes
from fastness.crypto.silicon.credential import (
    CredentialBlob,
    EndorsementKey,
    EndorsementPrivateKey,
    kdfa,
    kdfe,
    make_credential,
    open_credential,
)
from fastness.crypto.silicon.verify import AttestationKey, attestation_key
from tests.virtual import SeededEntropy

NAME = b"\x00\x0b" + bytes(range(32))
SECRET = SecretBytes(b"canary-secret-of-thirty-two-byte")
KEYS: dict[str, EndorsementPrivateKey] = {
    "RSA-2048": rsa.generate_private_key(65537, 2048),
    "RSA-3072": rsa.generate_private_key(65537, 3072),
    "EC secp256r1": ec.generate_private_key(ec.SECP256R1()),
    "EC secp384r1": ec.generate_private_key(ec.SECP384R1()),
}
COMPLETE = bool(os.environ.get("FASTNESS_SOAK"))


def public(key: EndorsementPrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def sealed(key: EndorsementPrivateKey, name: bytes = NAME, secret: SecretBytes = SECRET) -> CredentialBlob:
    return make_credential(EndorsementKey(public(key)), name, secret, SeededEntropy(1))


@pytest.mark.parametrize("kind", KEYS)
def test_a_credential_opens_for_its_key_and_name(kind: str) -> None:
    assert EndorsementKey(public(KEYS[kind])).kind == kind
    assert open_credential(KEYS[kind], NAME, sealed(KEYS[kind])) == SECRET


@pytest.mark.parametrize("kind", KEYS)
def test_a_credential_for_another_name_does_not_open(kind: str) -> None:
    with pytest.raises(BrokenSeal):
        open_credential(KEYS[kind], NAME[:-1] + b"\xff", sealed(KEYS[kind]))


@pytest.mark.parametrize(("mine", "other"), [("RSA-2048", 65537), ("EC secp256r1", 0)])
def test_a_credential_for_another_tpm_does_not_open(mine: str, other: int) -> None:
    stranger: EndorsementPrivateKey = (
        rsa.generate_private_key(65537, 2048) if other else ec.generate_private_key(ec.SECP256R1())
    )
    with pytest.raises(BrokenSeal):
        open_credential(stranger, NAME, sealed(KEYS[mine]))


@pytest.mark.parametrize("part", ["credential", "secret"])
@pytest.mark.parametrize("kind", ["RSA-2048", "EC secp256r1"])
def test_no_bit_of_a_credential_can_change(kind: str, part: str) -> None:
    blob = sealed(KEYS[kind])
    data = getattr(blob, part)
    for bit in range(0, len(data) * 8, 1 if COMPLETE else 13):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        parts = {"credential": blob.credential, "secret": blob.secret, part: bytes(changed)}
        with pytest.raises(BrokenSeal):
            open_credential(KEYS[kind], NAME, CredentialBlob(**parts))


@pytest.mark.parametrize("part", ["credential", "secret"])
@pytest.mark.parametrize("kind", ["RSA-2048", "EC secp256r1"])
def test_cut_and_prolonged_credentials_do_not_open(kind: str, part: str) -> None:
    blob = sealed(KEYS[kind])
    whole = {"credential": blob.credential, "secret": blob.secret}
    for data in (b"", b"\0", whole[part][:-1], whole[part] + b"\0", whole[part][:40]):
        with pytest.raises(BrokenSeal):
            open_credential(KEYS[kind], NAME, CredentialBlob(**{**whole, part: data}))


def test_the_secret_is_not_in_what_leaves() -> None:
    blob = sealed(KEYS["RSA-2048"])
    assert SECRET.reveal() not in blob.credential + blob.secret
    assert "canary" not in repr(blob)


@pytest.mark.parametrize("size", [0, 33])
def test_a_secret_that_does_not_fit_is_refused(size: int) -> None:
    with pytest.raises(BadKey, match="1 to 32 bytes"):
        sealed(KEYS["RSA-2048"], secret=SecretBytes(bytes(size)))


def test_elliptic_credentials_follow_from_the_entropy() -> None:
    assert sealed(KEYS["EC secp256r1"]) == sealed(KEYS["EC secp256r1"])


@pytest.mark.parametrize(
    "key",
    [
        rsa.generate_private_key(65537, 1024),
        ec.generate_private_key(ec.SECP521R1()),
        ed25519.Ed25519PrivateKey.generate(),
    ],
)
def test_keys_without_a_template_are_refused(key: EndorsementPrivateKey) -> None:
    with pytest.raises(BadKey):
        EndorsementKey(public(key))


@pytest.mark.parametrize("key", [rsa.generate_private_key(65537, 1024), ec.generate_private_key(ec.SECP521R1())])
def test_a_software_tpm_opens_nothing_with_such_a_key_either(key: EndorsementPrivateKey) -> None:
    blob = make_credential(EndorsementKey(public(KEYS["EC secp256r1"])), NAME, SECRET, SeededEntropy(1))
    with pytest.raises(BadKey, match="no template"):
        open_credential(key, NAME, blob)


@pytest.mark.parametrize("data", [b"", b"nonsense", b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"])
def test_what_is_no_key_is_refused(data: bytes) -> None:
    with pytest.raises(BadKey):
        EndorsementKey(data)


def test_broken_entropy_gives_no_credential() -> None:
    class Zeros:
        def token(self, length: int) -> bytes:
            return bytes(length)

    with pytest.raises(BadKey, match="entropy"):
        make_credential(EndorsementKey(public(KEYS["EC secp256r1"])), NAME, SECRET, Zeros())


def test_derived_keys_have_the_length_that_was_asked_for_and_depend_on_everything() -> None:
    assert len(kdfa("sha256", b"k", b"L", b"c", 640)) == 80
    assert len(kdfe("sha384", b"z", b"L", b"u", b"v", 1024)) == 128
    base = kdfa("sha256", b"k", b"L", b"c", 256)
    changed = [("sha384", b"k", b"L", b"c"), ("sha256", b"x", b"L", b"c"), ("sha256", b"k", b"M", b"c")]
    assert len({base, *(kdfa(*words, 256) for words in changed), kdfa("sha256", b"k", b"L", b"d", 256)}) == 5
    # The length is part of what is hashed: a short key is no prefix of a long one.
    assert kdfa("sha256", b"k", b"L", b"c", 128) != base[:16]


def test_an_attestation_key_is_read_once_for_the_same_bytes() -> None:
    data = public(KEYS["EC secp256r1"])
    assert attestation_key(data) is attestation_key(bytes(bytearray(data)))
    assert attestation_key(data).name == str(AttestationKey(data).thumbprint)
    for _ in range(2):
        with pytest.raises(BadKey):
            attestation_key(b"no key")
