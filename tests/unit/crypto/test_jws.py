"""Only tokens that one of our keys signed with ES256 are believed."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws
from joserfc.jwk import ECKey, RSAKey

from fastness.crypto.errors import BadKey, BadSignature
from fastness.crypto.jws import MAX_TOKEN_CHARS, SigningKey, TokenKeys, VerifyingKeys
from tests.unit.crypto.seeded import Seeded

KEY = SigningKey.generate(Seeded(1))
KEYS = TokenKeys([KEY])
CLAIMS = {"sub": "system:serviceaccount:default:a", "aud": ["api"]}


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def compact(header: dict[str, Any], payload: bytes, signature: bytes) -> str:
    return f"{b64(orjson.dumps(header))}.{b64(payload)}.{b64(signature)}"


def test_token_gives_its_claims_back() -> None:
    assert KEYS.verify(KEY.sign(CLAIMS).reveal()) == CLAIMS


def test_token_does_not_print_itself() -> None:
    assert str(KEY.sign(CLAIMS)) == "<redacted>"


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", "HS256", "ES384", "RS256", "es256"])
def test_every_other_algorithm_is_refused(algorithm: str) -> None:
    forged = compact({"alg": algorithm, "kid": KEY.id}, orjson.dumps(CLAIMS), b"")
    with pytest.raises(BadSignature, match="ES256"):
        KEYS.verify(forged)


def test_public_key_as_an_hmac_secret_is_refused() -> None:
    public = KEY.private.handle.public_key()
    for encoding in (serialization.Encoding.PEM, serialization.Encoding.DER):
        secret = public.public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
        head = f"{b64(orjson.dumps({'alg': 'HS256', 'kid': KEY.id}))}.{b64(orjson.dumps(CLAIMS))}"
        signature = hmac.new(secret, head.encode(), hashlib.sha256).digest()
        with pytest.raises(BadSignature):
            KEYS.verify(f"{head}.{b64(signature)}")


def test_key_in_the_header_is_not_used() -> None:
    attacker = SigningKey.generate(Seeded(66))
    genuine = attacker.sign(CLAIMS).reveal().split(".")
    for extra in (
        {"jwk": attacker.public_jwk()},
        {"jku": "https://evil.example/jwks"},
        {"x5u": "https://evil.example"},
    ):
        header = {"alg": "ES256", "kid": KEY.id, **extra}
        with pytest.raises(BadSignature):
            KEYS.verify(f"{b64(orjson.dumps(header))}.{genuine[1]}.{genuine[2]}")


def test_critical_header_extensions_are_refused() -> None:
    payload, signature = KEY.sign(CLAIMS).reveal().split(".")[1:]
    header = {"alg": "ES256", "kid": KEY.id, "crit": ["b64"], "b64": False}
    with pytest.raises(BadSignature):
        KEYS.verify(f"{b64(orjson.dumps(header))}.{payload}.{signature}")


def test_token_of_an_unknown_key_is_refused() -> None:
    with pytest.raises(BadSignature, match="not known"):
        KEYS.verify(SigningKey.generate(Seeded(2)).sign(CLAIMS).reveal())


def test_unknown_key_with_a_known_id_is_refused() -> None:
    payload, signature = SigningKey.generate(Seeded(2)).sign(CLAIMS).reveal().split(".")[1:]
    with pytest.raises(BadSignature, match="does not verify"):
        KEYS.verify(f"{b64(orjson.dumps({'alg': 'ES256', 'kid': KEY.id}))}.{payload}.{signature}")


def test_signature_of_zeros_is_refused() -> None:
    # CVE-2022-21449: some verifiers accept r = s = 0 for every message.
    with pytest.raises(BadSignature):
        KEYS.verify(compact({"alg": "ES256", "kid": KEY.id}, orjson.dumps(CLAIMS), bytes(64)))


def test_changed_claims_are_refused() -> None:
    header, _, signature = KEY.sign(CLAIMS).reveal().split(".")
    with pytest.raises(BadSignature):
        KEYS.verify(f"{header}.{b64(orjson.dumps({**CLAIMS, 'sub': 'system:admin'}))}.{signature}")


@given(st.integers(min_value=0), st.characters(codec="ascii"))
def test_one_changed_character_is_refused(position: int, char: str) -> None:
    token = KEY.sign(CLAIMS).reveal()
    index = position % (len(token) - 1)  # the last character of base64url has bits that do not count
    changed = token[:index] + char + token[index + 1 :]
    if changed == token:
        return
    with pytest.raises(BadSignature):
        KEYS.verify(changed)


@given(st.text(max_size=60))
def test_rubbish_is_refused_and_never_crashes(text: str) -> None:
    with pytest.raises(BadSignature):
        KEYS.verify(text)


@given(st.lists(st.binary(max_size=40), min_size=3, max_size=3))
def test_rubbish_in_the_shape_of_a_token_is_refused(parts: list[bytes]) -> None:
    with pytest.raises(BadSignature):
        KEYS.verify(".".join(map(b64, parts)))


def test_huge_token_is_refused_before_it_is_decoded() -> None:
    with pytest.raises(BadSignature):
        KEYS.verify("a" * MAX_TOKEN_CHARS + "..")


def test_payload_that_is_no_object_is_refused() -> None:
    key = ECKey.import_key(KEY.private.handle)
    for payload in (b"[]", b"1", b"not json"):
        with pytest.raises(BadSignature):
            KEYS.verify(jws.serialize_compact({"alg": "ES256", "kid": KEY.id}, payload, key, ["ES256"]))


def test_old_keys_verify_after_a_rotation() -> None:
    fresh = SigningKey.generate(Seeded(3))
    keys = TokenKeys([fresh, KEY])
    assert keys.verify(KEY.sign(CLAIMS).reveal()) == CLAIMS
    assert keys.signer is fresh
    assert {entry["kid"] for entry in keys.jwks()["keys"]} == {fresh.id, KEY.id}


def test_jwks_holds_public_halves_only() -> None:
    assert all("d" not in entry for entry in KEYS.jwks()["keys"])


def test_key_survives_saving_and_loading() -> None:
    again = SigningKey.from_pem(KEY.private.to_pem())
    assert again.id == KEY.id
    assert KEYS.verify(again.sign(CLAIMS).reveal()) == CLAIMS


def test_no_keys_is_an_error() -> None:
    with pytest.raises(BadKey):
        TokenKeys([])


def test_a_door_reads_the_keys_of_the_issuer_and_believes_what_they_signed() -> None:
    read = VerifyingKeys.from_jwks(orjson.loads(orjson.dumps(KEYS.jwks())))
    assert read.verify(KEY.sign(CLAIMS).reveal()) == CLAIMS


@pytest.mark.parametrize(
    "document",
    [None, [], "keys", {}, {"keys": None}, {"keys": {}}, {"keys": "abc"}, {"keys": ["abc"]}, {"keys": [None]}],
)
def test_what_is_no_set_of_keys_is_refused_as_a_bad_key(document: Any) -> None:
    with pytest.raises(BadKey):
        VerifyingKeys.from_jwks(document)


@pytest.mark.parametrize("kind", ["P-384", "P-521", "RSA"])
def test_a_key_of_another_kind_among_the_issuers_keys_is_refused(kind: str) -> None:
    key = RSAKey.generate_key(2048) if kind == "RSA" else ECKey.generate_key(kind)
    with pytest.raises(BadKey):
        VerifyingKeys.from_jwks({"keys": [*KEYS.jwks()["keys"], key.as_dict(private=False)]})
