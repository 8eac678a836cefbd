"""Bootstrap tokens of joining machines: what the Secret says counts, and every doubt is a refusal."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.apiserver.auth.errors import CredentialRefused, TokenExpired
from fastness.apiserver.auth.joining import TYPE, BootstrapTokenAuthenticator, is_join_token
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TOKEN = "abc123.0123456789abcdef"
GOOD = {
    "token-id": "abc123", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
    "expiration": rfc3339(NOW + timedelta(minutes=1)), "auth-extra-groups": "system:bootstrappers:fastness",
}  # fmt: skip


class Store:
    """One Secret."""

    def __init__(self, secret: JsonObject | None) -> None:
        self.found = secret

    def find(self, resource: str, namespace: str, name: str) -> JsonObject | None:
        return (
            self.found if (resource, namespace, name) == ("secrets", "kube-system", "bootstrap-token-abc123") else None
        )

    def live_uid(self, resource: str, namespace: str, name: str) -> str | None:
        raise AssertionError("not asked")


def secret(_kind: str = TYPE, **changes: Any) -> JsonObject:
    data = {name: value for name, value in {**GOOD, **changes}.items() if value is not None}
    return {"type": _kind, "data": {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}}


def test_a_good_token_names_its_holder_and_groups() -> None:
    user = BootstrapTokenAuthenticator(Store(secret())).authenticate(TOKEN, NOW)
    assert user.name == "system:bootstrap:abc123"
    assert user.groups == ("system:bootstrappers", "system:bootstrappers:fastness", "system:authenticated")
    changes: JsonObject = {"expiration": None, "auth-extra-groups": None}
    forever = secret(**changes)
    assert BootstrapTokenAuthenticator(Store(forever)).authenticate(TOKEN, NOW).groups == (
        "system:bootstrappers",
        "system:authenticated",
    )


@pytest.mark.parametrize(
    "secret",
    [
        None,
        secret("Opaque"),
        secret(**{"token-id": "abc124"}),
        secret(**{"token-secret": "0123456789abcdee"}),
        secret(TYPE, **{"token-secret": None}),
        secret(TYPE, **{"usage-bootstrap-authentication": None}),
        secret(**{"usage-bootstrap-authentication": "false"}),
        secret(**{"auth-extra-groups": "system:masters"}),
        secret(**{"auth-extra-groups": "system:bootstrappers:a,system:masters"}),
        secret(**{"auth-extra-groups": "system:bootstrappers:a\n"}),
        {**secret(), "metadata": {"deletionTimestamp": rfc3339(NOW)}},
        {"type": TYPE, "data": {"token-id": "*"}},
        {"type": TYPE},
    ],
)
def test_every_doubt_is_a_refusal(secret: JsonObject | None) -> None:
    with pytest.raises(CredentialRefused):
        BootstrapTokenAuthenticator(Store(secret)).authenticate(TOKEN, NOW)


@pytest.mark.parametrize("end", [rfc3339(NOW), rfc3339(NOW - timedelta(days=1)), "soon", "2026"])
def test_a_token_ends_to_the_second(end: str) -> None:
    with pytest.raises(TokenExpired):
        BootstrapTokenAuthenticator(Store(secret(expiration=end))).authenticate(TOKEN, NOW)


@pytest.mark.parametrize(
    "token", ["abc123.0123456789abcde", "ABC123.0123456789abcdef", f"{TOKEN}\n", "a.b.c", "", f"{TOKEN}0"]
)
def test_only_the_form_of_such_tokens_is_taken_for_one(token: str) -> None:
    assert is_join_token(TOKEN)
    assert not is_join_token(token)
    with pytest.raises(CredentialRefused):
        BootstrapTokenAuthenticator(Store(secret())).authenticate(token, NOW)
