"""Tokens as claims: what they say, what they leave out, and how they are read back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.crypto.jwk import public_jwk, public_key
from fastness.crypto.keys import PrivateKey
from fastness.kinds.trusted_execution.subject import Subject
from fastness.release.ear import EVIDENCE, Proved, ear_claims, proven_caller
from tests.virtual import SeededEntropy

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
WHO = Subject(
    "aaaaaaaa-0000-4000-8000-000000000000",
    "machine-a",
    "sha256:" + "a" * 64,
    "worker",
    "red",
    True,
    tee="tdx",
    endorsement="evidence",
)
JWK = public_jwk(PrivateKey.generate(SeededEntropy(1)))
PROVED = Proved(
    WHO, "verdict-7", JWK, "nonce", "policy@1", {"hardware": 2, "executables": 3, "configuration": 2},
    {"tdx": {"quote": {"body": {}}, "uefi_event_logs": [1] * 1000}, "report_data": "ab", "appraisal": {"checks": []}},
)  # fmt: skip


def claims(**changes: Any) -> dict[str, Any]:
    made = ear_claims(
        PROVED, issuer="i", audiences=["broker"], jti="j", issued=NOW, expires=NOW + timedelta(minutes=10)
    )
    return {**made, **changes}


def test_a_token_says_who_for_whom_until_when_and_with_which_key() -> None:
    made = claims()
    assert (made["sub"], made["iss"], made["aud"], made["jti"]) == (WHO.thumbprint, "i", ["broker"], "j")
    assert (made["exp"] - made["iat"], made["eat_nonce"]) == (600, "nonce")
    assert made["cnf"] == {"jwk": JWK, "jkt": public_key(JWK).thumbprint}


def test_the_submodule_has_the_shape_that_policies_of_the_field_read() -> None:
    part = claims()["submods"]["cpu0"]
    assert part["ear.status"] == "affirming"
    assert part["ear.trustworthiness-vector"] == {"configuration": 2, "executables": 3, "hardware": 2}
    assert part["ear.appraisal-policy-id"] == "policy@1"
    assert part[EVIDENCE]["runtime_data_claims"]["tee-pubkey"] == JWK


def test_event_logs_and_checks_stay_out() -> None:
    evidence = claims()["submods"]["cpu0"][EVIDENCE]
    assert "uefi_event_logs" not in evidence["tdx"]
    assert "appraisal" not in evidence
    assert evidence["report_data"] == "ab"


def test_a_bad_vector_is_not_called_affirming() -> None:
    bad = Proved(WHO, "v", JWK, "n", vector={"hardware": 97, "executables": 3})
    made = ear_claims(bad, issuer="i", audiences=[], jti="j", issued=NOW, expires=NOW)
    assert made["submods"]["cpu0"]["ear.status"] == "contraindicated"


def test_a_caller_is_whom_the_token_names() -> None:
    caller = proven_caller(claims())
    assert caller is not None
    assert (caller.subject, caller.verdict, caller.recipient) == (WHO, "verdict-7", JWK)
    assert (caller.issued, caller.expires) == (NOW, NOW + timedelta(minutes=10))


@pytest.mark.parametrize(
    "changes",
    [
        {"fastness": None}, {"cnf": None}, {"cnf": {}}, {"cnf": {"jwk": {"kty": "EC"}}}, {"sub": None}, {"exp": "later"},
        {"exp": True}, {"iat": None}, {"fastness": {}}, {"fastness": {**claims()["fastness"], "simulated": "no"}},
        {"fastness": {**claims()["fastness"], "machine": 1}}, {"fastness": {**claims()["fastness"], "tee": "tpm"}},
        {"fastness": {**claims()["fastness"], "tee": None}}, {"fastness": {**claims()["fastness"], "endorsement": ""}},
        {"fastness": {**claims()["fastness"], "endorsement": "ek-certificate"}},
    ],
    ids=repr,
)  # fmt: skip
def test_claims_of_another_shape_name_no_caller(changes: dict[str, Any]) -> None:
    assert proven_caller(claims(**changes)) is None
