"""Messages of the KBS protocol: the vectors of the specification, and what is refused."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.protocol import kbs

NONCE = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
KEY = {
    "alg": "ECDH-ES+A256KW",
    "crv": "P-256",
    "kty": "EC",
    "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
}
RSA = {"alg": "RSA-OAEP-256", "kty": "RSA", "e": "AQAB", "n": "A" * 342}
PRIMARY_384 = "dfa65d498315212bdaf8857231cf0482172933db271f15856bf30db447227eb5b1dd9e29fcc1fb9076fb00792c3bb7e7"
PRIMARY_512 = (
    "f30620e2296f8fae4f6be275a1d3f775ed4f36d1ecfe898480ec95aac074f3165510bc7f994d4736af1bc835bd756d38"
    "ca6be9d174875e9316c338523c20994b"
)
DEVICE_384 = "cc12bca78af3e46d9ddb68eb97122047abb52703f1cec34bd0adc12c5ac8c860b1ada6c8729e54f2172908b77572364a"


def attestation(**changes: Any) -> bytes:
    body: dict[str, Any] = {
        "runtime-data": {"nonce": NONCE, "tee-pubkey": KEY},
        "tee-evidence": {"primary_evidence": {"quote": "x"}, "additional_evidence": ""},
        **changes,
    }
    return json.dumps({name: value for name, value in body.items() if value is not ...}).encode()


def test_primary_runtime_data_is_the_canonical_text_of_the_specification() -> None:
    text = kbs.runtime_data(NONCE, dict(reversed(KEY.items())), "")
    assert len(text) == 244
    assert text.startswith(b'{"additional-evidence":"","nonce":"AAEC')
    assert hashlib.sha384(text).hexdigest() == PRIMARY_384


def test_device_runtime_data_leaves_the_additional_evidence_out() -> None:
    text = kbs.runtime_data(NONCE, KEY, None)
    assert len(text) == 219
    assert kbs.binding("nvidia", text).hex() == DEVICE_384[:64]


@pytest.mark.parametrize(
    ("tee", "expected"),
    [
        ("tdx", PRIMARY_384 + "00" * 16),
        ("snp", PRIMARY_384 + "00" * 16),
        ("tpm", PRIMARY_384[:64]),
        ("az-snp-vtpm", PRIMARY_384),
        ("az-tdx-vtpm", PRIMARY_384),
        ("se", PRIMARY_512),
    ],
)
def test_the_digest_is_padded_or_cut_to_the_field_of_each_tee(tee: str, expected: str) -> None:
    assert kbs.binding(tee, kbs.runtime_data(NONCE, KEY, "")).hex() == expected


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_additional_evidence_is_hashed_as_rfc_8785_writes_it(text: str) -> None:
    value = {"additional-evidence": text, "nonce": NONCE, "tee-pubkey": KEY}
    short = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert kbs.runtime_data(NONCE, KEY, text) == short.encode()


def test_a_request_of_the_field_is_read() -> None:
    body = {"version": "0.4.0", "tee": "tdx", "extra-params": {"supported-hash-algorithms": ["sha256", "sha384"]}}
    assert kbs.parse_request(json.dumps(body).encode()) == kbs.KbsRequest("0.4.0", "tdx")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "json-syntax"),
        (b"[]", "bad-message"),
        (b'{"version":"0.4.0"}', "bad-message"),
        (b'{"version":4,"tee":"tpm"}', "bad-message"),
        (b'{"version":"0.4.0","tee":"toaster"}', "unknown-tee"),
        (b'{"version":"0.4.0","tee":["tpm"]}', "bad-message"),
        (b'{"version":"0.4.0","tee":"tpm","tee":"snp"}', "repeated-member"),
        (b'{"version":"0.4.0","tee":"tpm","more":1}', "unknown-member"),
        (b'{"version":"0.4.0","tee":"tpm","extra-params":"' + b"x" * 9000 + b'"}', "json-too-large"),
        (b'{"version":"0.4.0","tee":"tpm","extra-params":' + b"[" * 9 + b"]" * 9 + b"}", "json-too-deep"),
    ],
)
def test_requests_that_are_none_are_refused(body: bytes, code: str) -> None:
    with pytest.raises(kbs.KbsError) as refused:
        kbs.parse_request(body)
    assert refused.value.code == code


def test_an_attestation_survives_being_written_and_read() -> None:
    sent = kbs.KbsAttestation(NONCE, KEY, {"quote": "AA"}, '{"nvidia": {}}', ("toml", 'version = "0.1.0"\n'))
    assert kbs.parse_attestation(kbs.attestation_message(sent)) == sent
    assert sent.runtime() == kbs.runtime_data(NONCE, KEY, '{"nvidia": {}}')
    bare = kbs.KbsAttestation(NONCE, KEY, {"quote": "AA"})
    assert kbs.parse_attestation(kbs.attestation_message(bare)) == bare


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"runtime-data": ...}, "bad-message"),
        ({"tee-evidence": ...}, "bad-message"),
        ({"tee-evidence": {"primary_evidence": "text"}}, "bad-message"),
        ({"tee-evidence": {"primary_evidence": {}, "additional_evidence": {}}}, "bad-message"),
        ({"tee-evidence": {"primary_evidence": {}, "other": 1}}, "unknown-member"),
        ({"runtime-data": {"nonce": "", "tee-pubkey": KEY}}, "bad-message"),
        ({"runtime-data": {"nonce": "n" * 129, "tee-pubkey": KEY}}, "bad-message"),
        ({"runtime-data": {"nonce": NONCE, "tee-pubkey": KEY, "more": 1}}, "unknown-member"),
        ({"runtime-data": {"nonce": NONCE}}, "bad-key"),
        ({"init-data": "text"}, "bad-init-data"),
        ({"init-data": {"format": "json", "body": "{}"}}, "bad-init-data"),
        ({"init-data": {"format": "toml", "body": "x" * (kbs.MAX_INIT_DATA + 1)}}, "bad-message"),
        ({"more": 1}, "unknown-member"),
    ],
)
def test_attestations_that_are_none_are_refused(changes: dict[str, Any], code: str) -> None:
    with pytest.raises(kbs.KbsError) as refused:
        kbs.parse_attestation(attestation(**changes))
    assert refused.value.code == code


@pytest.mark.parametrize(
    "key",
    [
        None,
        [],
        {},
        {**KEY, "d": "AA"},
        {**KEY, "kid": "x"},
        {**KEY, "alg": "ECDH-ES"},
        {**KEY, "crv": "P-384"},
        {**KEY, "crv": ["P-256"]},
        {**KEY, "x": 1},
        {**KEY, "x": "a+b/"},
        {**KEY, "y": KEY["y"] + "="},
        {**KEY, "x": ""},
        {**RSA, "alg": "RSA1_5"},
        {**RSA, "n": "A" * 1401},
        {"kty": "AKP", "alg": "ML-KEM-768+A192KW", "pub": "AA"},
        {"kty": "oct", "k": "AA"},
        {"kty": ["EC"]},
        {name: value for name, value in KEY.items() if name != "alg"},
    ],
    ids=repr,
)
def test_keys_that_cannot_be_sealed_to_are_refused(key: Any) -> None:
    with pytest.raises(kbs.KbsError) as refused:
        kbs.tee_pubkey(key)
    assert refused.value.code == "bad-key"


@pytest.mark.parametrize("key", [KEY, {**KEY, "crv": "P-521"}, RSA], ids=["p256", "p521", "rsa"])
def test_keys_of_the_protocol_are_taken(key: dict[str, str]) -> None:
    assert kbs.tee_pubkey(key) == key


def test_sixteen_megabytes_are_refused_before_they_are_read() -> None:
    with pytest.raises(kbs.KbsError) as refused:
        kbs.parse_attestation(b"x" * (16 * 1024 * 1024))
    assert refused.value.code == "json-too-large"
