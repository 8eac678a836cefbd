"""The credential of a pool's images: what leaves an administrator's Secret, which pools have one, who can read the document."""

from __future__ import annotations

import base64
import json

import pytest

from fastness.formats import oci
from fastness.machineconfig.trust.files import IMAGE_PULL_SECRET, first_files, trust_files
from fastness.machineconfig.trust.image_pull import credential_of, narrowed, with_credential
from fastness.protocol.node_trust import NodeTrust, NodeTrustError, parse_node_trust

TARGET = oci.reference("r.example/os/worker:latest")
ENFORCING = {"spec": {"mode": "Enforce"}}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def test_one_login_leaves_a_secret_of_many_and_under_the_name_of_its_registry() -> None:
    logins = {"r.example/os": {"auth": encoded("nodes:a:b")}, "r.example": {"auth": encoded("x:y")}, "q.example": {}}
    text = narrowed(json.dumps({"auths": logins}).encode(), TARGET)
    assert json.loads(text) == {"auths": {"r.example": {"auth": encoded("nodes:a:b")}}}
    assert narrowed(b'{"auths": {"q.example": {"auth": "eDp5"}}}', TARGET) == ""


@pytest.mark.parametrize(
    ("cluster", "pool", "value"),
    [
        (ENFORCING, "worker", "{}"), (ENFORCING, "other", ""), ({"spec": {"mode": "Audit"}}, "worker", ""), (None, "worker", ""),
        ({"spec": {"mode": "Enforce", "pools": [{"name": "worker", "trustModel": "None"}]}}, "worker", ""),
    ],
)  # fmt: skip
def test_only_pools_that_enforce_have_one(cluster: dict[str, object] | None, pool: str, value: str) -> None:
    assert credential_of({"data": {"worker": encoded("{}")}}, cluster, pool) == value
    assert credential_of({"data": {"worker": "%"}}, ENFORCING, "worker") == ""


def test_a_document_without_one_is_what_older_agents_know_and_one_with_it_they_refuse_aloud() -> None:
    plain = NodeTrust(kubelet_ca="x")
    assert set(json.loads(plain.body)) == {"kubeletCA", "cloudCA", "apiServerCA", "registries", "internalPullSecret"}
    assert with_credential(plain, "") is plain
    own = with_credential(plain, '{"auths":{}}')
    assert parse_node_trust(own.body) == own
    assert own.name != plain.name
    assert "auths" not in repr(own)
    newer = json.dumps({**json.loads(own.body), "memberOfTomorrow": ""}).encode()
    with pytest.raises(NodeTrustError, match="is an object of") as refusal:
        parse_node_trust(newer)
    assert "same release" in refusal.value.hint


def test_it_is_a_private_file_that_is_emptied_and_comes_with_a_first_boot() -> None:
    own = NodeTrust(kubelet_ca="x", image_pull_secret='{"auths":{}}')
    assert trust_files(own)[IMAGE_PULL_SECRET] == (b'{"auths":{}}\n', 0o600)
    assert IMAGE_PULL_SECRET in first_files(own)
    assert IMAGE_PULL_SECRET not in first_files(NodeTrust(kubelet_ca="x"))
    assert trust_files(NodeTrust())[IMAGE_PULL_SECRET].content == b"\n"
