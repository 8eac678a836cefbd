"""The messages of enrolment: strict, bounded, and with one meaning."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.formats import json
from fastness.protocol.enrolment import (
    MAX_CERTIFICATE,
    MAX_ENROLMENT,
    SIGNED_PREFIX,
    EnrolmentFormatError,
    GuestRequest,
    TpmRequest,
    jwk_of,
    parse_completion,
    parse_request,
    signed_message,
    text,
)

TPM: dict[str, Any] = {"tee": "tpm", "ek_certificates": ["eA==", "eQ=="], "ak_public": "eg=="}
POINT = bytes(range(64))


def refused(data: dict[str, Any] | bytes, parse: Any = parse_request) -> str:
    with pytest.raises(EnrolmentFormatError) as error:
        parse(data if isinstance(data, bytes) else json.encode(data))
    return error.value.code


def test_a_tpm_says_its_key_and_its_certificates() -> None:
    assert parse_request(json.encode({**TPM, "pool": "worker"})) == TpmRequest("worker", (b"x", b"y"), b"", b"z")
    assert parse_request(json.encode({"tee": "tpm", "ak_public": "eg==", "ek_public": "eA=="})) == TpmRequest(
        "", (), b"x", b"z"
    )


@pytest.mark.parametrize("tee", ["snp", "tdx"])
def test_a_guest_says_its_key_as_a_jwk(tee: str) -> None:
    assert parse_request(json.encode({"tee": tee, "key": jwk_of(POINT)})) == GuestRequest(tee, "", POINT)


@given(st.binary(min_size=64, max_size=64))
def test_every_point_survives_its_jwk(point: bytes) -> None:
    request = parse_request(json.encode({"tee": "snp", "key": jwk_of(point)}))
    assert isinstance(request, GuestRequest)
    assert request.key == point


def test_a_key_has_one_spelling() -> None:
    good = jwk_of(POINT)
    tail = good["x"][:-1] + chr(ord(good["x"][-1]) + 1)
    for change in ({"x": tail}, {"x": good["x"] + "="}, {"x": good["x"][:-1]}, {"x": 7}, {"x": None}):
        assert refused({"tee": "snp", "key": {**good, **change}}) == "bad-key"
    others: tuple[Any, ...] = ({**good, "crv": "P-384"}, {**good, "kty": "OKP"}, [], "key", None)
    assert {refused({"tee": "snp", "key": other}) for other in others} == {"bad-key"}
    assert refused({"tee": "snp", "key": {**good, "alg": "ES256"}}) == "unknown-member"


def test_an_unknown_member_names_the_closest_known_one() -> None:
    with pytest.raises(EnrolmentFormatError, match="did you mean ak_public"):
        parse_request(json.encode({**TPM, "ak_pubic": "eA=="}))
    assert refused({**TPM, "key": jwk_of(POINT)}) == "unknown-member"
    assert refused({"tee": "snp", "key": jwk_of(POINT), "ak_public": "eA=="}) == "unknown-member"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"null", b'{"tee":"tpm","tee":"tpm"}', b"\xff", b"[" * 200])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    refused(body)


def test_what_is_said_twice_is_refused_though_both_say_the_same() -> None:
    """Two parsers need not take the same one of the two."""
    body = json.encode(TPM)
    assert refused(body[:-1] + b',"tee":"tpm"}') == "repeated-member"


@pytest.mark.parametrize("value", ["", "e", "eA", "eA==\n", " eA==", "e-_=", "é", 7, None, ["eA=="], {"a": 1}])
def test_bytes_are_standard_base64_and_nothing_else(value: Any) -> None:
    assert refused({**TPM, "ak_public": value}) in ("bad-base64", "bad-member")


def test_sizes_are_bounded_before_anything_is_decoded() -> None:
    large = text(b"x" * (MAX_CERTIFICATE + 1))
    assert refused({**TPM, "ek_certificates": [large]}) == "bad-member"
    assert refused({**TPM, "ek_certificates": ["eA=="] * 9}) == "bad-member"
    assert refused({**TPM, "ak_public": text(b"x" * 3000)}) == "bad-member"
    assert refused(b" " * 70_000) == "json-too-large"
    assert refused({"enrolment": "x" * (MAX_ENROLMENT + 1), "activated": "eA=="}, parse_completion) == "bad-member"


@pytest.mark.parametrize("pool", ["Worker", "-a", "a/b", "..", "a" * 64, "a\n", 7, None, []])
def test_a_pool_has_the_name_of_a_pool(pool: Any) -> None:
    assert refused({**TPM, "pool": pool}) == "bad-member"


def test_a_completion_has_exactly_one_proof() -> None:
    signature = text(b"s" * 64)
    assert parse_completion(json.encode({"enrolment": "x", "activated": "eA=="})).activated == b"x"
    assert parse_completion(json.encode({"enrolment": "x", "signature": signature})).signature == b"s" * 64
    for body in (
        {"enrolment": "x"},
        {"enrolment": "x", "activated": "eA==", "signature": signature},
        {"activated": "eA=="},
        {"enrolment": "x y", "activated": "eA=="},
        {"enrolment": 7, "activated": "eA=="},
        {"enrolment": "x", "signature": text(b"s" * 63)},
        {"enrolment": "x", "activated": text(b"s" * 65)},
        {"enrolment": "x", "activated": ""},
    ):
        assert refused(body, parse_completion) == "bad-member"


def test_what_a_guest_signs_means_nothing_elsewhere() -> None:
    assert signed_message(b"challenge") == SIGNED_PREFIX + b"challenge"
    assert SIGNED_PREFIX.endswith(b"\0")
    assert base64.b64decode(text(b"challenge")) == b"challenge"
