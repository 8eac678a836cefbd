"""Guest key and key of the boot show whose attempt it is by signatures over nonce and key of the session, and by nothing else."""

from __future__ import annotations

import hashlib

import pytest

from fastness.crypto.jwk import public_jwk
from fastness.crypto.keys import PrivateKey
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.protocol.enrolment import jwk_of
from fastness.protocol.guest_key import (
    BadIdentity,
    boot_member,
    boot_message,
    claimed_identity,
    identity_member,
    identity_message,
    proved_boot,
    proved_identity,
)
from fastness.sim.tee.writers.keys import EcKey
from tests.attesting import ENTROPY

BOOT = public_jwk(PrivateKey.generate(ENTROPY))
GUEST, OTHER = EcKey(ENTROPY), EcKey(ENTROPY)


def identity_text(key: JsonObject, signature: bytes) -> str:
    return json.canonical(identity_member(key, signature)).decode()


def identity_proof(key: EcKey, signer: EcKey, nonce: str = "n", boot: dict[str, str] | None = None) -> str:
    signature = signer.raw(identity_message(nonce, boot or BOOT))
    return identity_text(jwk_of(key.public_der()[-64:]), signature)


def test_the_key_that_signed_is_the_identity() -> None:
    claimed = claimed_identity(identity_proof(GUEST, GUEST))
    assert claimed.key.der == GUEST.public_der()
    assert proved_identity(claimed, "n", BOOT).der == GUEST.public_der()


@pytest.mark.parametrize(
    ("text", "nonce"),
    [
        (identity_proof(GUEST, OTHER), "n"),
        (identity_proof(GUEST, GUEST), "another nonce"),
        (identity_proof(GUEST, GUEST, boot=public_jwk(PrivateKey.generate(ENTROPY))), "n"),
        (identity_text(jwk_of(GUEST.public_der()[-64:]), bytes(64)), "n"),
        (identity_text(jwk_of(GUEST.public_der()[-64:]), b""), "n"),
    ],
    ids=["another key", "another nonce", "another boot", "zeros", "nothing"],
)
def test_a_key_that_did_not_sign_this_attempt_is_nobodys(text: str, nonce: str) -> None:
    with pytest.raises(BadIdentity) as refused:
        proved_identity(claimed_identity(text), nonce, BOOT)
    assert refused.value.code == "identity-unproved"


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"fastness-identity": {}}', '{"fastness-identity": {"key": {}}}']
)
def test_without_a_key_there_is_no_identity(text: str) -> None:
    with pytest.raises(BadIdentity) as refused:
        claimed_identity(text)
    assert refused.value.code == "identity-missing"


def booted(key: EcKey, signer: EcKey, message: bytes | None = None) -> str:
    signature = signer.raw(boot_message("n", BOOT) if message is None else message)
    return json.canonical(boot_member(jwk_of(key.public_der()[-64:]), signature)).decode()


def test_a_boot_is_known_by_the_key_that_signed_and_only_where_evidence_tells_no_boots_apart() -> None:
    assert proved_boot("tdx", booted(GUEST, GUEST), "n", BOOT) == hashlib.sha256(GUEST.public_der()).hexdigest()
    assert proved_boot("snp", booted(GUEST, GUEST), "n", BOOT) == ""
    assert proved_boot("tpm", "", "n", BOOT) == ""


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (booted(GUEST, OTHER), "boot-unproved"),
        (booted(GUEST, GUEST, boot_message("another nonce", BOOT)), "boot-unproved"),
        (booted(GUEST, GUEST, identity_message("n", BOOT)), "boot-unproved"),  # a guest key signs as the machine, not as a boot
        (identity_proof(GUEST, GUEST), "boot-missing"),
        ("", "boot-missing"),
        ('{"fastness-boot": []}', "boot-missing"),
    ],
)  # fmt: skip
def test_a_boot_without_a_key_or_with_the_key_of_another_is_refused(text: str, code: str) -> None:
    with pytest.raises(BadIdentity) as refused:
        proved_boot("tdx", text, "n", BOOT)
    assert refused.value.code == code
