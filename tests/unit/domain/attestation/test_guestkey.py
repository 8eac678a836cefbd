"""The guest key shows whose attempt it is by its signature over nonce and key of the boot, and by nothing else."""

from __future__ import annotations

import pytest

from fastness.crypto.jwk import public_jwk
from fastness.crypto.keys import PrivateKey
from fastness.domain.attestation.guestkey import (
    BadIdentity,
    claimed_identity,
    identity_member,
    identity_message,
    proved_identity,
)
from fastness.formats import json
from fastness.formats.enrolment import jwk_of
from fastness.model.kind import JsonObject
from fastness.sim.tee.keys import EcKey
from tests.attesting import ENTROPY

BOOT = public_jwk(PrivateKey.generate(ENTROPY))
GUEST, OTHER = EcKey(ENTROPY), EcKey(ENTROPY)


def identity_text(key: JsonObject, signature: bytes) -> str:
    return json.canonical(identity_member(key, signature)).decode()


def shown(key: EcKey, signer: EcKey, nonce: str = "n", boot: dict[str, str] | None = None) -> str:
    signature = signer.raw(identity_message(nonce, boot or BOOT))
    return identity_text(jwk_of(key.public_der()[-64:]), signature)


def test_the_key_that_signed_is_the_identity() -> None:
    claimed = claimed_identity(shown(GUEST, GUEST))
    assert claimed.key.der == GUEST.public_der()
    assert proved_identity(claimed, "n", BOOT).der == GUEST.public_der()


@pytest.mark.parametrize(
    ("text", "nonce"),
    [
        (shown(GUEST, OTHER), "n"),
        (shown(GUEST, GUEST), "another nonce"),
        (shown(GUEST, GUEST, boot=public_jwk(PrivateKey.generate(ENTROPY))), "n"),
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
