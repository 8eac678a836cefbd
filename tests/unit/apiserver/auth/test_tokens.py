"""Service-account tokens: issued as Kubernetes does, believed only while everything they name exists."""

from __future__ import annotations

import base64
from datetime import timedelta
from typing import Any

import orjson
import pytest

from fastness.apiserver.auth import issue_token
from fastness.apiserver.auth import tokens as module
from fastness.apiserver.auth.errors import (
    CredentialRefused,
    MalformedCredential,
    TokenExpired,
    TokenRevoked,
    WrongAudience,
)
from fastness.crypto.errors import BadSignature
from fastness.crypto.jws import SigningKey, TokenKeys
from fastness.kube.access.user import NODES, User
from fastness.kube.errors import ApiError, BadRequest, Conflict, Forbidden, Invalid, NotFound
from tests.unit.apiserver.auth.accounts import ACCOUNT, ISSUER, Server
from tests.unit.crypto.seeded import NOW, Seeded


@pytest.fixture
def server() -> Server:
    return Server()


def claims_of(token: str) -> dict[str, Any]:
    body = token.split(".")[1]
    claims: dict[str, Any] = orjson.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return claims


def test_issued_token_names_the_service_account(server: Server) -> None:
    user = server.tokens.authenticate(server.token(), NOW)
    assert user.name == "system:serviceaccount:ci:bot"
    assert user.uid == "sa-1"
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated")
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("JTI=")


def test_answer_is_the_request_with_defaults_and_status(server: Server) -> None:
    answer = server.issue()
    assert answer["kind"] == "TokenRequest"
    assert answer["apiVersion"] == "authentication.k8s.io/v1"
    assert answer["metadata"]["name"] == "bot"
    assert answer["spec"] == {"audiences": [ISSUER, "fastness"], "expirationSeconds": 3600}
    assert answer["status"]["expirationTimestamp"] == "2026-11-15T13:00:00Z"


def test_claims_have_the_shape_that_kubernetes_gives_them(server: Server) -> None:
    claims = claims_of(server.token(boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "pod-1"}))
    assert claims["kubernetes.io"] == {
        "namespace": "ci",
        "serviceaccount": {"name": "bot", "uid": "sa-1"},
        "pod": {"name": "p", "uid": "pod-1"},
        "node": {"name": "n1", "uid": "node-1"},
    }
    assert claims["sub"] == "system:serviceaccount:ci:bot"
    assert claims["exp"] - claims["iat"] == 3600
    assert claims["iat"] == claims["nbf"] == int(NOW.timestamp())


def test_token_lives_until_its_second_of_expiry_and_not_longer(server: Server) -> None:
    token = server.token(expirationSeconds=600)
    server.tokens.authenticate(token, NOW + timedelta(seconds=599))
    with pytest.raises(TokenExpired):
        server.tokens.authenticate(token, NOW + timedelta(seconds=600))


def test_cache_does_not_prolong_a_token(server: Server) -> None:
    token = server.token(expirationSeconds=600)
    server.tokens.authenticate(token, NOW)
    with pytest.raises(TokenExpired):
        server.tokens.authenticate(token, NOW + timedelta(seconds=601))


def test_token_from_the_future_is_refused(server: Server) -> None:
    with pytest.raises(TokenExpired):
        server.tokens.authenticate(server.token(), NOW - timedelta(seconds=1))


@pytest.mark.parametrize("seconds", [599, 0, -1, (1 << 32) + 1, "600", True, 1.5])
def test_lifetime_out_of_bounds_is_invalid(server: Server, seconds: Any) -> None:
    with pytest.raises(Invalid) as caught:
        server.issue(expirationSeconds=seconds)
    assert caught.value.causes[0].field == "spec.expirationSeconds"


@pytest.mark.parametrize("audiences", ["x", [1], ["a"] * 65])
def test_audiences_must_be_strings(server: Server, audiences: Any) -> None:
    with pytest.raises(Invalid):
        server.issue(audiences=audiences)


def test_token_for_another_audience_does_not_open_this_api(server: Server) -> None:
    token = server.token(audiences=["vault"])
    with pytest.raises(WrongAudience):
        server.tokens.authenticate(token, NOW)
    assert server.tokens.verify(token, NOW).audiences == ("vault",)


@pytest.mark.parametrize(
    ("spec", "key"),
    [
        ({}, ("serviceaccounts", "ci", "bot")),
        ({"boundObjectRef": {"kind": "Pod", "name": "p"}}, ("pods", "ci", "p")),
        ({"boundObjectRef": {"kind": "Secret", "name": "s"}}, ("secrets", "ci", "s")),
        ({"boundObjectRef": {"kind": "Node", "name": "n1"}}, ("nodes", "", "n1")),
    ],
)
def test_token_ends_with_what_it_is_bound_to(server: Server, spec: dict[str, Any], key: tuple[str, str, str]) -> None:
    token = server.token(**spec)
    server.tokens.authenticate(token, NOW)
    stored = server.objects.known[key]

    server.objects.known[key] = {**stored, "metadata": {**stored["metadata"], "uid": "another"}}
    with pytest.raises(TokenRevoked):
        server.tokens.authenticate(token, NOW)

    server.objects.known[key] = {
        **stored,
        "metadata": {**stored["metadata"], "deletionTimestamp": "2026-11-15T12:00:00Z"},
    }
    with pytest.raises(TokenRevoked):
        server.tokens.authenticate(token, NOW)

    del server.objects.known[key]
    with pytest.raises(TokenRevoked):
        server.tokens.authenticate(token, NOW)

    server.objects.known[key] = stored
    server.tokens.authenticate(token, NOW)


def test_token_of_a_pod_tells_pod_and_node_and_outlives_the_node_object(server: Server) -> None:
    token = server.token(boundObjectRef={"kind": "Pod", "name": "p", "uid": "pod-1"})
    del server.objects.known["nodes", "", "n1"]
    extra = server.tokens.authenticate(token, NOW).extra
    assert extra["authentication.kubernetes.io/pod-name"] == ("p",)
    assert extra["authentication.kubernetes.io/node-uid"] == ("node-1",)


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        ({"kind": "Pod", "name": "gone"}, NotFound),
        ({"kind": "Pod", "name": "p", "uid": "wrong"}, Conflict),
        ({"kind": "Pod", "name": "q"}, BadRequest),
        ({"kind": "ConfigMap", "name": "c"}, BadRequest),
        ({"kind": "Pod", "apiVersion": "apps/v1", "name": "p"}, BadRequest),
        ({"kind": "Pod"}, Invalid),
        ("p", Invalid),
    ],
)
def test_token_is_bound_only_to_what_fits(server: Server, reference: Any, error: type[ApiError]) -> None:
    with pytest.raises(error):
        server.issue(boundObjectRef=reference)


def test_spec_that_is_no_object_is_invalid(server: Server) -> None:
    with pytest.raises(Invalid):
        issue_token({"spec": []}, ACCOUNT, NOW, server.tokens, Seeded())


@pytest.mark.parametrize(
    ("node", "reference", "allowed"),
    [
        ("n1", {"kind": "Pod", "name": "p", "uid": "pod-1"}, True),
        ("n2", {"kind": "Pod", "name": "p", "uid": "pod-1"}, False),
        ("n1", {"kind": "Pod", "name": "p"}, False),
        ("n1", {"kind": "Secret", "name": "s", "uid": "secret-1"}, False),
        ("n1", None, False),
    ],
)
def test_node_gets_tokens_of_pods_that_run_on_it(server: Server, node: str, reference: Any, allowed: bool) -> None:
    requester = User(f"system:node:{node}", (NODES,))
    request = {"spec": {"boundObjectRef": reference} if reference else {}}
    if allowed:
        assert issue_token(request, ACCOUNT, NOW, server.tokens, Seeded(), requester)["status"]["token"]
        return
    with pytest.raises(Forbidden, match=f"node '{node}' may ask only"):
        issue_token(request, ACCOUNT, NOW, server.tokens, Seeded(), requester)


GOOD: dict[str, Any] = {
    "iss": ISSUER, "aud": [ISSUER], "sub": "system:serviceaccount:ci:bot", "jti": "j",
    "iat": int(NOW.timestamp()), "nbf": int(NOW.timestamp()), "exp": int(NOW.timestamp()) + 60,
    "kubernetes.io": {"namespace": "ci", "serviceaccount": {"name": "bot", "uid": "sa-1"}},
}  # fmt: skip


def test_hand_made_claims_are_good_to_begin_with(server: Server) -> None:
    server.tokens.authenticate(server.key.sign(GOOD).reveal(), NOW)


@pytest.mark.parametrize(
    "change",
    [
        {"iss": "https://elsewhere"}, {"iss": None}, {"sub": "system:admin"}, {"sub": None}, {"aud": []}, {"aud": None},
        {"aud": [1]}, {"exp": None}, {"exp": "9999999999"}, {"exp": 1e300}, {"exp": True}, {"exp": 10**18}, {"nbf": None},
        {"iat": -1}, {"kubernetes.io": None}, {"kubernetes.io": []}, {"kubernetes.io": {"namespace": "ci"}},
        {"kubernetes.io": {"namespace": "", "serviceaccount": {"name": "bot", "uid": "sa-1"}}},
        {"kubernetes.io": {"namespace": "ci", "serviceaccount": {"name": "bot"}}},
        {"kubernetes.io": {**GOOD["kubernetes.io"], "pod": {}}},
        {"kubernetes.io": {**GOOD["kubernetes.io"], "pod": None}},
        {"kubernetes.io": {**GOOD["kubernetes.io"], "node": {"name": "n1"}}},
    ],
)  # fmt: skip
def test_well_signed_nonsense_is_refused(server: Server, change: dict[str, Any]) -> None:
    token = server.key.sign({**GOOD, **change}).reveal()
    with pytest.raises(CredentialRefused) as caught:
        server.tokens.authenticate(token, NOW)
    assert isinstance(caught.value, MalformedCredential)


def test_one_audience_as_a_plain_string_is_read(server: Server) -> None:
    server.tokens.authenticate(server.key.sign({**GOOD, "aud": "fastness"}).reveal(), NOW)


def test_second_use_is_not_verified_again_but_revocation_is_asked(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = server.token()
    first = server.tokens.authenticate(token, NOW)
    monkeypatch.setattr(server.tokens, "keys", None)
    lookups = server.objects.asked
    assert server.tokens.authenticate(token, NOW) is first
    assert server.objects.asked == lookups + 1


def test_cache_is_bounded_and_holds_no_tokens(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CACHE_CAPACITY", 3)
    tokens = module.ServiceAccountTokens(server.tokens.keys, ISSUER, [ISSUER], server.objects)
    made = [server.key.sign({**GOOD, "jti": str(index)}).reveal() for index in range(10)]
    for token in made:
        tokens.authenticate(token, NOW)
    assert len(tokens._verified) == 3
    assert not any(token.encode() in repr(tokens._verified._entries).encode() for token in made)


def test_replaced_keys_end_old_tokens_at_once(server: Server) -> None:
    token = server.token()
    server.tokens.authenticate(token, NOW)
    server.tokens.replace(TokenKeys([SigningKey.generate(Seeded(50))]))
    with pytest.raises(BadSignature):
        server.tokens.authenticate(token, NOW)
