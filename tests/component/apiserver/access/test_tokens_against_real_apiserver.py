"""Tokens of service accounts beside those of a real kube-apiserver: their shape, and which requests are refused."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import pytest

from fastness.apiserver.auth import ServiceAccountTokens, issue_token
from fastness.crypto.jws import SigningKey, TokenKeys
from fastness.kube.errors import ApiError
from tests.realkube.cluster import RealKube
from tests.unit.apiserver.auth.accounts import ISSUER
from tests.unit.crypto.seeded import NOW, Seeded

Object = dict[str, Any]
NAMESPACE = "access-tokens"
ACCOUNTS = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"


@pytest.fixture(scope="module")
def admin(real_kube: RealKube) -> Iterator[httpx.Client]:
    """The real server, with a namespace for the accounts."""
    with real_kube.client() as client:
        client.post("/api/v1/namespaces", json={"metadata": {"name": NAMESPACE}}).raise_for_status()
        yield client


class OneAccount:
    """The live objects that our issuer asks for."""

    def live_uid(self, resource: str, namespace: str, name: str) -> str | None:
        return None

    def find(self, resource: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        return None


def test_tokens_and_their_answers_have_the_shape_of_the_real_ones(admin: httpx.Client) -> None:
    account = admin.post(ACCOUNTS, json={"metadata": {"name": "shape"}}).raise_for_status().json()
    tokens = ServiceAccountTokens(
        TokenKeys([SigningKey.generate(Seeded())]),
        ISSUER,
        [ISSUER],
        OneAccount(),
    )
    for spec in ({}, {"expirationSeconds": 1200, "audiences": ["vault"]}):
        real = admin.post(f"{ACCOUNTS}/shape/token", json={"spec": spec}).raise_for_status().json()
        ours = issue_token({"spec": spec}, account, NOW, tokens, Seeded())
        assert ours.keys() == real.keys()
        assert ours["status"].keys() == real["status"].keys()
        assert {key: ours["spec"][key] for key in ("audiences", "expirationSeconds")} == {
            key: real["spec"][key] for key in ("audiences", "expirationSeconds")
        }
        mine, theirs = claims_of(ours["status"]["token"]), claims_of(real["status"]["token"])
        assert mine.keys() == theirs.keys()
        assert mine["kubernetes.io"] == theirs["kubernetes.io"]
        assert (mine["sub"], mine["aud"], mine["iss"]) == (theirs["sub"], theirs["aud"], theirs["iss"])
        assert mine["exp"] - mine["iat"] == theirs["exp"] - theirs["iat"]


def claims_of(token: str) -> Object:
    body = token.split(".")[1]
    claims: Object = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return claims


@pytest.mark.parametrize(
    "spec",
    [
        {"expirationSeconds": 5},
        {"expirationSeconds": 1 << 33},
        {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}},
        {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "gone"}},
        {"boundObjectRef": {"kind": "Node", "apiVersion": "v1", "name": "gone"}},
    ],
)
def test_tokens_are_refused_alike(admin: httpx.Client, spec: Object) -> None:
    admin.post(ACCOUNTS, json={"metadata": {"name": "refused"}})
    account = {"metadata": {"name": "refused", "namespace": NAMESPACE, "uid": "u"}}
    tokens = ServiceAccountTokens(TokenKeys([SigningKey.generate(Seeded())]), ISSUER, [ISSUER], OneAccount())
    with pytest.raises(ApiError) as caught:
        issue_token({"spec": spec}, account, NOW, tokens, Seeded())
    assert caught.value.status() == admin.post(f"{ACCOUNTS}/refused/token", json={"spec": spec}).json()
