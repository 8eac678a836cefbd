"""Proofs of possession: each rule of RFC 9449 that is asked for, broken once."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.crypto.jwk import decoded, encoded, public_jwk
from fastness.crypto.jws import signed_by
from fastness.crypto.keys import PrivateKey
from fastness.crypto.mac import MacKey, MacRing
from fastness.crypto.secret import SecretBytes
from fastness.protocol import dpop
from tests.virtual import SeededEntropy

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
KEY, OTHER = PrivateKey.generate(SeededEntropy(1)), PrivateKey.generate(SeededEntropy(2))
JWK = public_jwk(KEY)
MACS = MacRing([MacKey(SecretBytes(b"k" * 32))])
DEMAND = dpop.Demand("GET", "https://broker:8080/kbs/v0/resource/a/b/c", "token")


def nonce(now: datetime = NOW) -> str:
    return dpop.new_nonce(MACS, now, SeededEntropy())


def proof(now: datetime = NOW, **changes: Any) -> str:
    header = {"typ": "dpop+jwt", "alg": "ES256", "jwk": {name: JWK[name] for name in ("crv", "kty", "x", "y")}}
    claims = {
        "jti": "1", "htm": "GET", "htu": DEMAND.url, "iat": int(now.timestamp()), "nonce": nonce(now),
        "ath": dpop.token_hash("token"),
    }  # fmt: skip
    for name, value in changes.items():
        part = header if name in ("typ", "alg", "jwk", "kid") else claims
        part.pop(name, None)
        if value is not None:
            part[name] = value
    return signed_by(
        changes.get("signer", KEY), header, json.dumps({k: v for k, v in claims.items() if k != "signer"}).encode()
    )


def refused(text: str, now: datetime = NOW, demand: dpop.Demand = DEMAND) -> dpop.BadProof:
    with pytest.raises(dpop.BadProof) as raised:
        dpop.check_proof(text, demand, JWK, MACS, now)
    return raised.value


def test_a_proof_that_is_made_is_accepted() -> None:
    dpop.check_proof(dpop.make_proof(KEY, JWK, DEMAND, nonce(), NOW, "1"), DEMAND, JWK, MACS, NOW)
    dpop.check_proof(proof(), DEMAND, JWK, MACS, NOW)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"typ": "JWT"}, "bad-proof"),
        ({"typ": None}, "bad-proof"),
        ({"alg": "none"}, "bad-proof"),
        ({"alg": "HS256"}, "bad-proof"),
        ({"kid": "x"}, "bad-proof"),
        ({"jwk": None}, "proof-key"),
        ({"jwk": {name: public_jwk(OTHER)[name] for name in ("crv", "kty", "x", "y")}}, "proof-key"),
        ({"jwk": {**{name: JWK[name] for name in ("crv", "kty", "x", "y")}, "d": "AA"}}, "proof-key"),
        ({"htm": "POST"}, "proof-request"),
        ({"htu": "https://broker:8080/kbs/v0/resource/a/b/d"}, "proof-request"),
        ({"htu": "http://broker:8080/kbs/v0/resource/a/b/c"}, "proof-request"),
        ({"htu": "https://other:8080/kbs/v0/resource/a/b/c"}, "proof-request"),
        ({"htu": None}, "proof-request"),
        ({"htu": "https://[broken"}, "proof-request"),
        ({"ath": dpop.token_hash("other")}, "proof-token"),
        ({"ath": None}, "proof-token"),
        ({"jti": None}, "bad-proof"),
        ({"iat": None}, "proof-time"),
        ({"iat": "now"}, "proof-time"),
        ({"iat": True}, "proof-time"),
        ({"nonce": None}, "use-dpop-nonce"),
        ({"nonce": "made up"}, "use-dpop-nonce"),
        ({"nonce": MACS.write("kbs-challenge", b"x" * 16)}, "use-dpop-nonce"),
    ],
    ids=repr,
)
def test_a_proof_that_breaks_a_rule_does_not_count(changes: dict[str, Any], code: str) -> None:
    assert refused(proof(**changes)).code == code


def test_a_proof_signed_by_another_key_does_not_count() -> None:
    assert refused(proof(signer=OTHER)).code == "proof-signature"


def test_a_key_that_only_its_own_proof_shows_does_not_count() -> None:
    jwk = {name: public_jwk(OTHER)[name] for name in ("crv", "kty", "x", "y")}
    assert refused(proof(signer=OTHER, jwk=jwk)).code == "proof-key"


def test_a_nonce_lives_a_minute_and_a_proof_without_one_is_told_to_use_it() -> None:
    text = proof()
    dpop.check_proof(text, DEMAND, JWK, MACS, NOW + timedelta(seconds=59))
    late = refused(text, NOW + timedelta(seconds=60))
    assert (late.code, late.needs_nonce) == ("use-dpop-nonce", True)
    assert refused("").needs_nonce


def test_only_requests_that_change_nothing_take_proofs() -> None:
    demand = dpop.Demand("POST", DEMAND.url, "token")
    assert refused(proof(htm="POST"), demand=demand).code == "proof-method"


def test_the_query_and_the_default_port_do_not_count() -> None:
    demand = dpop.Demand("GET", "https://Broker:443/a", "token")
    dpop.check_proof(proof(htu="https://broker/a?x=1#y"), demand, JWK, MACS, NOW)


def test_keys_that_cannot_sign_cannot_prove() -> None:
    rsa = {"kty": "RSA", "e": "AQAB", "n": encoded(b"\xff" * 255 + b"\x01")}
    with pytest.raises(dpop.BadProof):
        dpop.check_proof(proof(), DEMAND, rsa, MACS, NOW)


@pytest.mark.parametrize(
    "change", [lambda t: t + "A", lambda t: t[:-4], lambda t: t.replace(".", ",", 1), lambda t: t * 9]
)
def test_damaged_proofs_do_not_count(change: Callable[[str], str]) -> None:
    refused(change(proof()))


@given(st.text("abcABC019._-=+ \n", max_size=80))
def test_arbitrary_text_is_no_proof(text: str) -> None:
    refused(text)


@given(st.one_of(st.none(), st.integers(), st.text(max_size=5), st.lists(st.integers(), max_size=2)))
def test_parts_of_another_shape_are_no_proof(value: Any) -> None:
    part = encoded(json.dumps(value).encode())
    head, body, tail = proof().split(".")
    refused(f"{part}.{body}.{tail}")
    refused(f"{head}.{part}.{tail}")
    assert decoded(part)
