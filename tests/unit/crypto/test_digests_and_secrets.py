"""Digests say how they were made; secrets do not print themselves."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.crypto.digests import Algorithm, Digest, digest, fingerprint, parse_digest, same, sha256
from fastness.crypto.errors import BadDigest
from fastness.crypto.secret import REDACTED, Secret, SecretBytes, SecretText

CANARY = "canary-5f2b"


@given(st.binary(max_size=100), st.sampled_from(Algorithm))
def test_digest_survives_its_text_form(data: bytes, algorithm: Algorithm) -> None:
    value = digest(data, algorithm)
    assert parse_digest(str(value)) == value
    assert value.matches(data)
    assert not value.matches(data + b"x")
    assert value.hex == hashlib.new(algorithm.value, data).hexdigest()


@pytest.mark.parametrize(
    "text",
    ["", "sha256", "sha256:", "sha256:ab", "md5:" + "0" * 32, "sha256:" + "AB" * 32, "sha256:" + "zz" * 32,
     "sha256: " + "ab" * 32, "sha384:" + "ab" * 32],
)  # fmt: skip
def test_text_that_is_no_digest_is_refused(text: str) -> None:
    with pytest.raises(BadDigest):
        parse_digest(text)


def test_digest_of_the_wrong_length_cannot_be_built() -> None:
    with pytest.raises(BadDigest):
        Digest(Algorithm.SHA256, b"short")


def test_fingerprint_is_the_bare_sha256() -> None:
    assert fingerprint(b"x") == sha256(b"x").value


@given(st.text(max_size=20), st.text(max_size=20))
def test_same_agrees_with_equality(left: str, right: str) -> None:
    assert same(left, right) is (left == right)
    assert same(left, left.encode())


@pytest.mark.parametrize("secret", [SecretText(CANARY), SecretBytes(CANARY.encode())])
def test_secret_shows_in_no_representation(
    secret: Secret[str] | Secret[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        logging.getLogger("test").info("got %s and %r in %s", secret, secret, {"key": secret})
    texts = [repr(secret), str(secret), f"{secret}", f"{secret:>40}", "%s" % secret, repr([secret]), caplog.text]  # noqa: UP031
    assert not any(CANARY in text for text in texts)
    assert str(secret) == REDACTED


def test_secret_is_not_serialised_by_accident() -> None:
    secret = SecretText(CANARY)
    with pytest.raises(TypeError, match="reveal"):
        pickle.dumps(secret)
    with pytest.raises(TypeError):
        json.dumps(secret)
    with pytest.raises(TypeError):
        copy.deepcopy(secret)


def test_secret_gives_its_value_only_when_asked() -> None:
    assert SecretText(CANARY).reveal() == CANARY
    assert SecretText("a") == SecretText("a") != SecretText("b")
    assert SecretText("a") != "a"
    assert SecretText("a") != SecretBytes(b"a")
    assert len({SecretText("a"), SecretText("a")}) == 1
    assert not SecretText("")
