"""Claims of tokens: every one that must be there, missing or wrong once; and types that keep tokens apart."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.crypto.errors import BadSignature
from fastness.crypto.jws import SigningKey, TokenKeys
from fastness.keys.errors import BadToken
from fastness.release.live.tokens import MAX_AGE, SKEW, check_claims
from tests.virtual import SeededEntropy

NOW = datetime(2026, 11, 1, tzinfo=UTC)
AT = int(NOW.timestamp())
GOOD: dict[str, Any] = {"iss": "i", "aud": ["broker"], "sub": "s", "jti": "j", "iat": AT, "exp": AT + 600}


def test_good_claims_count() -> None:
    check_claims(GOOD, "i", "broker", NOW)
    check_claims({**GOOD, "iat": AT + int(SKEW.total_seconds())}, "i", "broker", NOW)


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "other"}, {"iss": None}, {"aud": "broker"}, {"aud": ["gate"]}, {"aud": None}, {"sub": ""}, {"jti": None},
        {"iat": None}, {"iat": str(AT)}, {"iat": True}, {"exp": None}, {"exp": AT}, {"exp": AT - 1}, {"exp": AT + 600.5},
        {"iat": AT + int(SKEW.total_seconds()) + 1}, {"exp": AT + int(MAX_AGE.total_seconds()) + 1},
    ],
    ids=repr,
)  # fmt: skip
def test_claims_that_lack_something_do_not_count(changes: dict[str, Any]) -> None:
    with pytest.raises(BadToken):
        check_claims({**GOOD, **changes}, "i", "broker", NOW)


def test_a_shorter_bound_holds_for_those_who_ask_for_it() -> None:
    with pytest.raises(BadToken):
        check_claims(GOOD, "i", "broker", NOW, timedelta(minutes=5))


def test_a_token_of_another_type_is_not_read_although_the_key_is_right() -> None:
    key = SigningKey.generate(SeededEntropy(1))
    keys = TokenKeys([key])
    assert keys.verify(key.sign(GOOD, "JWT").reveal(), "JWT") == GOOD
    for other in (key.sign(GOOD), key.sign(GOOD, "at+jwt")):
        with pytest.raises(BadSignature):
            keys.verify(other.reveal(), "JWT")
