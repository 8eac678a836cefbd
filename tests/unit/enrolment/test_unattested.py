"""Who may become a node without a proof: each rule by itself, and that nothing else decides."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.crypto.csr import read_request
from fastness.enrolment.kubelet_certificates import BOOTSTRAP_GROUP, NotOurs, Wait
from fastness.enrolment.unattested import POOL_GROUP, Admit, Circumstances, JoinedNode, PoolToken, decide
from fastness.kube.access.kubelet_requests import Deny, KubeletRequest
from fastness.protocol.node_certificates import CLIENT_SIGNER, SERVING_SIGNER
from tests.joining import client_request, new_key, serving_request


def pem_of(body: dict[str, Any]) -> bytes:
    return base64.b64decode(body["spec"]["request"])


NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
NODE = "plain-1"
CLIENT = read_request(pem_of(client_request(new_key(), NODE)))
SERVING = read_request(pem_of(serving_request(new_key(), NODE, [NODE, "10.0.0.1"])))
BY_TOKEN = KubeletRequest(
    CLIENT_SIGNER, "system:bootstrap:abcdef", frozenset({"system:bootstrappers", POOL_GROUP}),
    ("digital signature", "client auth"), None, CLIENT,
)  # fmt: skip
BY_NODE = replace(BY_TOKEN, username=f"system:node:{NODE}", groups=frozenset({"system:nodes"}))
SERVES = replace(BY_NODE, signer=SERVING_SIGNER, usages=("digital signature", "server auth"), request=SERVING)
TOKEN = PoolToken("abcdef", "plain", LATER, "ticket")
JOINED = JoinedNode(NODE, "plain", "abcdef", BY_TOKEN.key, LATER, "ticket", "uid-1")
FRESH = Circumstances(TOKEN)
HERE = Circumstances(joined=JOINED, asker=JOINED, node_uid="uid-1", addresses=frozenset({"10.0.0.1"}))


def reason(decision: Any) -> str:
    return decision.reason if isinstance(decision, Deny | Wait) else type(decision).__name__


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "Admit"),
        ({"token": None}, "TokenEnded"),
        ({"token": replace(TOKEN, expires=NOW)}, "TokenEnded"),
        ({"token": replace(TOKEN, node=NODE, key=BY_TOKEN.key)}, "Admit"),
        ({"token": replace(TOKEN, node="plain-2", key=BY_TOKEN.key)}, "TokenSpent"),
        ({"token": replace(TOKEN, node=NODE, key="sha256:other")}, "TokenSpent"),
        ({"pool_exists": False}, "NoPool"),
        ({"attesting": ("plain",)}, "PoolAttests"),
        ({"machine": "machine-1"}, "NameOfMachine"),
        ({"joined": replace(JOINED, token="other1")}, "NameHeld"),  # the id of one
        ({"joined": replace(JOINED, token="other1", uid="")}, "NameTaken"),
        ({"joined": replace(JOINED, token="other1"), "node_uid": "uid-1"}, "NameTaken"),
        ({"joined": replace(JOINED, uid="")}, "Admit"),
        ({"node_uid": "uid-9"}, "NameTaken"),
    ],
)  # fmt: skip
def test_a_request_by_a_token(changes: dict[str, Any], expected: str) -> None:
    decision = decide(BY_TOKEN, replace(FRESH, **changes), NOW)
    assert reason(decision) == expected
    if expected == "Admit":
        assert decision == Admit("plain")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "Admit"),
        ({"attesting": ("plain",)}, "PoolAttests"),
        ({"node_uid": ""}, "NoNode"),
        ({"node_uid": "uid-2"}, "NodeReplaced"),
        ({"joined": replace(JOINED, uid="")}, "Admit"),
        ({"joined": None}, "NotTheNode"),
        ({"joined": None, "asker": None}, "NotOurs"),
    ],
)
def test_a_renewal(changes: dict[str, Any], expected: str) -> None:
    assert reason(decide(BY_NODE, replace(HERE, **changes), NOW)) == expected


@pytest.mark.parametrize(
    ("request_changes", "expected"),
    [
        ({"username": "system:node:plain-2"}, "NotTheNode"),
        ({"groups": frozenset({"system:authenticated"})}, "NotTheNode"),
        ({"username": "kubernetes-admin", "groups": frozenset({"system:masters"})}, "NotTheNode"),
        ({"username": "system:bootstrap:fedcba", "groups": frozenset({BOOTSTRAP_GROUP})}, "NotTheNode"),
    ],
)
def test_nobody_else_asks_for_a_node_that_came_by_a_token(request_changes: dict[str, Any], expected: str) -> None:
    assert reason(decide(replace(BY_NODE, **request_changes), HERE, NOW)) == expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "Admit"),
        ({"addresses": frozenset()}, "UnknownAddresses"),
        ({"shared": frozenset({"10.0.0.1"})}, "SharedAddresses"),
    ],
)
def test_a_serving_certificate(changes: dict[str, Any], expected: str) -> None:
    assert reason(decide(SERVES, replace(HERE, **changes), NOW)) == expected


def test_a_token_gets_no_serving_certificate() -> None:
    by_token = replace(SERVES, username=BY_TOKEN.username, groups=BY_TOKEN.groups)
    assert reason(decide(by_token, FRESH, NOW)) == "NotTheNode"


@pytest.mark.parametrize("node", ["plain-" + "a1" * 10, "x-g" + "0f" * 10, "UPPER", "a..b", "-a"])
def test_names_that_machines_could_have_or_nobody_has_are_refused(node: str) -> None:
    named = replace(BY_TOKEN, request=read_request(pem_of(client_request(new_key(), node))))
    assert reason(decide(named, FRESH, NOW)) in ("NameOfMachine", "BadSubject", "BadRequest")


def test_requests_of_others_for_others_are_left_to_them() -> None:
    kubeadm = replace(BY_TOKEN, groups=frozenset({"system:bootstrappers:kubeadm:default-node-token"}))
    assert decide(kubeadm, Circumstances(), NOW) == NotOurs()
