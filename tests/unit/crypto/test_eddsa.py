"""Ed25519 keys in JWK form: read back as they were written, and nothing else is taken for one."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.crypto.eddsa import Ed25519Signer, Ed25519Verifier
from fastness.crypto.errors import BadKey
from fastness.crypto.secret import SecretBytes

SIGNER = Ed25519Signer(SecretBytes(bytes(range(32))))
JWK = SIGNER.verifier.jwk()


def test_a_key_in_jwk_form_verifies_what_was_signed_and_nothing_else() -> None:
    verifier = Ed25519Verifier.from_jwk(JWK)
    assert verifier.raw == SIGNER.verifier.raw
    signature = SIGNER.sign(b"message")
    assert verifier.signed(signature, b"message")
    assert not verifier.signed(signature, b"another")
    assert not verifier.signed(bytes(64), b"message")


@pytest.mark.parametrize(
    "change",
    [
        {"kty": "EC"}, {"kty": None}, {"crv": "X25519"}, {"crv": None}, {"x": None}, {"x": 7}, {"x": ["a"]}, {"x": ""},
        {"x": "AAAA"},
    ],
    ids=str,
)  # fmt: skip
def test_a_key_of_another_kind_is_none(change: dict[str, Any]) -> None:
    with pytest.raises(BadKey):
        Ed25519Verifier.from_jwk({**JWK, **change})
