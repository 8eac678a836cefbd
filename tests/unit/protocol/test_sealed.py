"""Sealed secrets: made, checked by another implementation, and refused when anything is odd."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws
from joserfc.jwk import ECKey

from fastness.crypto.errors import BadKey, BadSignature, BrokenSeal
from fastness.crypto.jwk import encoded, private_key, public_jwk, public_key
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.protocol.kbs_path import KbsUri, UriError, parse_uri
from fastness.protocol.sealed import MAX_SEALED, EnvelopeSecret, SealedError, VaultSecret, parse_sealed
from fastness.workloads import sealed_secrets as sealed
from tests.virtual import SeededEntropy

KEY, OTHER = PrivateKey.generate(SeededEntropy(1)), PrivateKey.generate(SeededEntropy(2))
PUBLIC = public_key(public_jwk(KEY))
KID = "kbs:///default/sealing/pub"
VAULT = VaultSecret("kbs", "kbs:///default/db/password")
WRAPPING = SecretBytes(b"w" * 32)


def made(header: Any = None, payload: Any = None) -> str:
    parts = [
        json.dumps(header or {"alg": "ES256", "kid": KID}),
        json.dumps(VAULT.payload() if payload is None else payload),
    ]
    return ".".join(["sealed", *(encoded(part.encode()) for part in parts), encoded(b"s" * 64)])


def test_a_vault_secret_names_its_resource_and_is_signed() -> None:
    text = sealed.seal(VAULT, KID, KEY)
    assert text.startswith("sealed.")
    assert text.count(".") == 3
    assert sealed.checked(text, PUBLIC) == VAULT


def test_another_implementation_checks_the_signature() -> None:
    text = sealed.seal(VAULT, KID, KEY).removeprefix("sealed.")
    public_key = ECKey.import_key({name: value for name, value in public_jwk(KEY).items() if name != "alg"})
    token = jws.deserialize_compact(text, public_key, ["ES256"])
    assert json.loads(token.payload)["name"] == "kbs:///default/db/password"
    assert token.headers()["kid"] == KID


@given(st.binary(max_size=200))
def test_an_envelope_opens_with_its_wrapping_key_and_no_other(data: bytes) -> None:
    secret = sealed.envelope(SecretBytes(data), "kbs:///default/wrap/1", WRAPPING, SeededEntropy(5))
    envelope = sealed.checked(sealed.seal(secret, KID, KEY), PUBLIC)
    assert isinstance(envelope, EnvelopeSecret)
    assert sealed.opened(envelope, WRAPPING).reveal() == data
    with pytest.raises(BrokenSeal):
        sealed.opened(envelope, SecretBytes(b"x" * 32))
    with pytest.raises(BadKey):
        sealed.opened(envelope, SecretBytes(b"short"))


def test_another_signer_is_refused() -> None:
    with pytest.raises(BadSignature):
        sealed.checked(sealed.seal(VAULT, KID, OTHER), PUBLIC)


def test_a_changed_payload_is_refused() -> None:
    prefix, head, body, tail = sealed.seal(VAULT, KID, KEY).split(".")
    changed = encoded(base64.urlsafe_b64decode(body + "==").replace(b"password", b"passw0rd"))
    with pytest.raises(BadSignature):
        sealed.checked(".".join([prefix, head, changed, tail]), PUBLIC)


def test_a_secret_that_nobody_signed_is_recognised_and_not_accepted() -> None:
    text = f"sealed.fakejwsheader.{encoded(json.dumps(VAULT.payload()).encode())}.fakesignature"
    assert parse_sealed(text).kid == ""
    with pytest.raises(BadSignature):
        sealed.checked(text, PUBLIC)


@pytest.mark.parametrize(
    "kid", ["../key", "/etc/key", "kbs:///a/b", "https://x/y", "", "a/b", ".hidden", "kbs:///a/../c"]
)
def test_a_kid_that_is_a_path_or_leads_elsewhere_is_refused(kid: str) -> None:
    with pytest.raises(SealedError):
        sealed.seal(VAULT, kid, KEY)
    with pytest.raises(SealedError):
        parse_sealed(made({"alg": "ES256", "kid": kid}))


@pytest.mark.parametrize(
    "header",
    [{"alg": "none", "kid": KID}, {"alg": "HS256", "kid": KID}, {"alg": "ES256"}, {"alg": "ES256", "kid": KID, "jwk": {}},
     {"alg": "ES256", "kid": 1}, ["x"]],
    ids=repr,
)  # fmt: skip
def test_headers_that_say_anything_else_are_refused(header: Any) -> None:
    with pytest.raises(SealedError):
        parse_sealed(made(header))


ENVELOPE = sealed.envelope(SecretBytes(b"x"), "kbs:///a/b/c", WRAPPING, SeededEntropy()).payload()


@pytest.mark.parametrize(
    "payload",
    [
        [], {}, {**VAULT.payload(), "version": "9"}, {**VAULT.payload(), "type": "box"}, {**VAULT.payload(), "provider": "me"},
        {**VAULT.payload(), "name": "kbs:///a/b"}, {**VAULT.payload(), "name": 3}, {**VAULT.payload(), "more": 1},
        {**VAULT.payload(), "annotations": []}, {**ENVELOPE, "wrap_type": "A128GCM"}, {**ENVELOPE, "iv": "AAAA"},
        {**ENVELOPE, "encrypted_data": "!"}, {**ENVELOPE, "key_id": "x"}, {**ENVELOPE, "encrypted_key": None},
    ],
    ids=lambda value: repr(value)[:50],
)  # fmt: skip
def test_payloads_of_another_shape_are_refused(payload: Any) -> None:
    with pytest.raises(SealedError):
        parse_sealed(made(None, payload))


@pytest.mark.parametrize(
    "text", ["", "sealed.", "sealed.a.b", "sealed.a.b.c.d", "sealed.!.!.!", "other.a.b.c", "sealed.e30.e30.AA"]
)
def test_texts_that_are_no_sealed_secrets(text: str) -> None:
    with pytest.raises(SealedError):
        parse_sealed(text)


def test_a_secret_has_its_prefix_its_bound_and_a_whole_signature() -> None:
    good = made()
    parse_sealed(good)
    large = made(None, {**VAULT.payload(), "annotations": {"note": "x" * MAX_SEALED}})
    for text in (good.removeprefix("sealed."), good + encoded(b"s"), good[: good.rindex(".") + 1] + "cw", large):
        with pytest.raises(SealedError):
            parse_sealed(text)


def test_an_envelope_without_the_nonce_of_its_key_does_not_open() -> None:
    for notes in ({}, {"iv": "!"}, {"iv": "AAAA"}, {"iv": 3}):
        envelope = parse_sealed(made(None, {**ENVELOPE, "annotations": notes})).secret
        assert isinstance(envelope, EnvelopeSecret)
        with pytest.raises(SealedError):
            sealed.opened(envelope, WRAPPING)


def test_addresses_are_read_and_written_alike() -> None:
    for text in ("kbs:///a/b/c", "kbs://broker:8080/a/b/c", "kbs+pkcs11:///a/b/c"):
        assert str(parse_uri(text)) == text
    assert parse_uri("kbs:///A/b_c/d.e") == KbsUri("A", "b_c", "d.e")
    tricks = ("kbs:///a/./c", "kbs:///a/../c", "http:///a/b/c", "kbs:///a/b/c?x", "x" * 2000)
    for text in ("kbs:/a/b/c", "kbs:///a/b", "kbs:///a/b/c/d", *tricks):
        with pytest.raises(UriError):
            parse_uri(text)


def test_private_keys_are_read_and_must_belong_to_their_public_half() -> None:
    scalar = encoded(KEY.handle.private_numbers().private_value.to_bytes(32, "big"))
    assert private_key({**public_jwk(KEY), "d": scalar}).public_der() == KEY.public_der()
    for bad in ({}, {"d": "AA"}, {"d": encoded(b"\0" * 32)}, {"d": encoded(b"\xff" * 32)}, {"d": 1}):
        with pytest.raises(BadKey):
            private_key({**public_jwk(KEY), **bad})
    with pytest.raises(BadKey):
        private_key({**public_jwk(OTHER), "d": scalar})
