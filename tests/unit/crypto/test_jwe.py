"""Sealing to machines: opened by another implementation, and by nobody else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwe as peer
from joserfc.jwk import ECKey, RSAKey

from fastness.crypto import jwe
from fastness.crypto.errors import BadKey, BrokenSeal
from fastness.crypto.jwk import decoded, encoded, public_jwk, public_key
from fastness.crypto.keys import PrivateKey
from fastness.crypto.secret import SecretBytes
from fastness.runtime.clock import SystemEntropy
from tests.virtual import SeededEntropy

ENTROPY = SystemEntropy()
KEY = PrivateKey.generate(SeededEntropy(1))
ALGORITHMS = ["ECDH-ES+A256KW", "RSA-OAEP-256", "A256GCM"]
RFC_7638 = {
    "kty": "RSA",
    "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMst"
    "n64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOp"
    "bISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
    "e": "AQAB",
}


def _peer_opens(data: bytes, key: Any) -> bytes:
    return bytes(peer.decrypt_json(json.loads(data), key, algorithms=ALGORITHMS).plaintext or b"")


@given(st.binary(max_size=2000))
def test_a_p256_key_opens_what_was_sealed_to_it(secret: bytes) -> None:
    data = jwe.sealed(SecretBytes(secret), public_key(public_jwk(KEY)), ENTROPY)
    assert jwe.opened(data, KEY).reveal() == secret


@pytest.mark.parametrize("curve", ["P-256", "P-521"])
def test_another_implementation_opens_what_was_sealed_to_a_curve(curve: str) -> None:
    private = ECKey.generate_key(curve)
    jwk = private.as_dict(private=False)
    data = jwe.sealed(SecretBytes(b"secret"), public_key({**jwk, "alg": jwe.ECDH}), ENTROPY)
    assert _peer_opens(data, private) == b"secret"
    header = json.loads(decoded(json.loads(data)["protected"]))
    assert (header["alg"], header["enc"], header["epk"]["crv"]) == ("ECDH-ES+A256KW", "A256GCM", curve)


def test_another_implementation_opens_what_was_sealed_to_rsa() -> None:
    private = RSAKey.generate_key(2048)
    data = jwe.sealed(SecretBytes(b"secret"), public_key(private.as_dict(private=False)), ENTROPY)
    assert _peer_opens(data, private) == b"secret"


def test_what_another_implementation_sealed_is_opened() -> None:
    public_key = ECKey.import_key({name: value for name, value in public_jwk(KEY).items() if name != "alg"})
    compact = peer.encrypt_compact({"alg": jwe.ECDH, "enc": jwe.CONTENT}, b"secret", public_key, algorithms=ALGORITHMS)
    names = ("protected", "encrypted_key", "iv", "ciphertext", "tag")
    data = json.dumps(dict(zip(names, compact.split("."), strict=True))).encode()
    assert jwe.opened(data, KEY).reveal() == b"secret"


def test_the_other_information_of_the_key_derivation_is_that_of_the_specification() -> None:
    assert jwe.OTHER_INFO.hex() == "0000000e454344482d45532b413235364b57000000000000000000000100"


def test_every_answer_has_its_own_keys() -> None:
    to = public_key(public_jwk(KEY))
    first, second = (json.loads(jwe.sealed(SecretBytes(b"x"), to, ENTROPY)) for _ in range(2))
    assert all(first[part] != second[part] for part in first)


def test_another_key_opens_nothing() -> None:
    data = jwe.sealed(SecretBytes(b"secret"), public_key(public_jwk(KEY)), ENTROPY)
    with pytest.raises(BrokenSeal):
        jwe.opened(data, PrivateKey.generate(SeededEntropy(2)))


@pytest.mark.parametrize("part", ["protected", "encrypted_key", "iv", "ciphertext", "tag"])
def test_a_changed_part_does_not_open(part: str) -> None:
    value = json.loads(jwe.sealed(SecretBytes(b"secret"), public_key(public_jwk(KEY)), ENTROPY))
    raw = bytearray(decoded(value[part]))
    raw[len(raw) // 2] ^= 1
    with pytest.raises(BrokenSeal):
        jwe.opened(json.dumps({**value, part: encoded(bytes(raw))}).encode(), KEY)


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "dir", "enc": "A256GCM", "epk": {}},
        {"alg": "ECDH-ES+A256KW", "enc": "A128GCM", "epk": {}},
        {"alg": "ECDH-ES+A256KW", "enc": "A256GCM"},
        {"alg": "ECDH-ES+A256KW", "enc": "A256GCM", "epk": {}, "zip": "DEF"},
        {"alg": "ECDH-ES+A256KW", "enc": "A256GCM", "epk": {"kty": "EC", "crv": "P-521", "x": "AA", "y": "AA"}},
        {"alg": "ECDH-ES+A256KW", "enc": "A256GCM", "epk": RFC_7638},
        [],
    ],
    ids=lambda header: repr(header)[:60],
)
def test_other_algorithms_are_not_followed(header: Any) -> None:
    value = json.loads(jwe.sealed(SecretBytes(b"secret"), public_key(public_jwk(KEY)), ENTROPY))
    with pytest.raises(BrokenSeal):
        jwe.opened(json.dumps({**value, "protected": encoded(json.dumps(header).encode())}).encode(), KEY)


@given(
    st.one_of(
        st.binary(max_size=100),
        st.dictionaries(st.text(max_size=5), st.text(max_size=5)).map(lambda v: json.dumps(v).encode()),
    )
)
def test_arbitrary_bytes_do_not_open(data: bytes) -> None:
    with pytest.raises(BrokenSeal):
        jwe.opened(data, KEY)


@pytest.mark.parametrize("name", ["ECDH", "CONTENT"])
def test_an_answer_that_was_sealed_well_under_another_name_is_not_opened(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipient = public_key(public_jwk(KEY))
    with monkeypatch.context() as patched:
        patched.setattr(jwe, name, "dir")
        data = jwe.sealed(SecretBytes(b"secret"), recipient, ENTROPY)
    with pytest.raises(BrokenSeal, match="is not made with"):
        jwe.opened(data, KEY)


def test_an_answer_that_is_larger_than_any_secret_is_not_even_read() -> None:
    data = jwe.sealed(SecretBytes(b"secret"), public_key(public_jwk(KEY)), ENTROPY)
    assert jwe.opened(data.ljust(jwe.MAX_SEALED), KEY).reveal() == b"secret"
    with pytest.raises(BrokenSeal, match="too long"):
        jwe.opened(data.ljust(jwe.MAX_SEALED + 1), KEY)


def test_the_thumbprint_is_that_of_rfc_7638() -> None:
    assert public_key(RFC_7638).thumbprint == "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"


def _jwk(**changes: Any) -> dict[str, Any]:
    return {**public_jwk(KEY), **changes}


@pytest.mark.parametrize(
    "key",
    [
        {},
        _jwk(kty="oct"),
        _jwk(crv="P-384"),
        _jwk(x=_jwk()["y"]),
        _jwk(x="AA"),
        _jwk(x=encoded(b"\0" * 32), y=encoded(b"\0" * 32)),
        _jwk(x=encoded(b"\0" + decoded(_jwk()["x"]))),
        _jwk(crv="P-521"),
        {**RFC_7638, "e": "Aw"},
        {**RFC_7638, "n": encoded(b"\0" + decoded(RFC_7638["n"]))},
        {**RFC_7638, "n": encoded(b"\xff" * 128)},
        {**RFC_7638, "n": encoded(b"\xff" * 1025)},
        {**RFC_7638, "n": 5},
    ],
    ids=lambda value: repr(value)[:60],
)
def test_keys_that_are_none_are_refused(key: dict[str, Any]) -> None:
    with pytest.raises(BadKey):
        public_key(key)


def test_base64url_has_one_spelling() -> None:
    assert decoded("AA") == b"\0"
    for text in ("AB", "AA==", "A", "A+", "é"):
        with pytest.raises(BadKey):
            decoded(text)


def test_a_curve_point_of_a_peer_is_read() -> None:
    handle = ec.generate_private_key(ec.SECP521R1()).public_key().public_numbers()
    x, y = (encoded(value.to_bytes(66, "big")) for value in (handle.x, handle.y))
    assert public_key({"kty": "EC", "crv": "P-521", "x": x, "y": y}).curve == "P-521"


def test_a_weak_exponent_is_refused_although_the_key_is_large() -> None:
    numbers = rsa.generate_private_key(3, 2048).public_key().public_numbers()
    with pytest.raises(BadKey):
        public_key({"kty": "RSA", "n": encoded(numbers.n.to_bytes(256, "big")), "e": encoded(b"\x03")})


def test_coordinates_that_share_their_bytes_out_otherwise_are_refused() -> None:
    x, y = decoded(_jwk()["x"]), decoded(_jwk()["y"])
    both = x + y
    with pytest.raises(BadKey):
        public_key(_jwk(x=encoded(both[:31]), y=encoded(both[31:])))
