"""Seed 000, topology: a cluster says which it has, and confidential pools are refused where nobody could judge them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.acceptance.cluster import Acceptance
from tests.e2e.live import Live

CONFIDENTIAL = {
    "apiVersion": "fastness.dev/v1alpha1", "kind": "ConfidentialCluster", "metadata": {"name": "cluster"},
    "spec": {"mode": "Enforce", "simulated": True},
}  # fmt: skip
MICROSHIFT = ("kube-public", "microshift-version")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Acceptance]:
    """A cluster that is not confidential yet."""
    with Live.start(tmp_path_factory.mktemp("topology")) as live:
        yield Acceptance(live, 0)


def refusal(plain: Acceptance) -> str:
    """What a user is told who asks for confidential mode; empty when they may have it."""
    outcome = plain.live.kubectl("create", "--dry-run=server", "-f", "-", stdin=CONFIDENTIAL)
    return outcome.err if outcome.code != 0 else ""


@contextmanager
def topology(plain: Acceptance, name: str) -> Iterator[None]:
    def say(value: str) -> None:
        status = json.dumps({"status": {"controlPlaneTopology": value}})
        plain.kubectl("patch", "infrastructure", "cluster", "--subresource", "status", "--type", "merge", "-p", status)

    say(name)
    try:
        yield
    finally:
        say("HighlyAvailable")


def finding(plain: Acceptance, name: str = "topology") -> tuple[str, str, str]:
    """What `fastness doctor` says about a thing: its state, what was found, what to do."""
    doctor = plain.fastness("doctor", "--kubeconfig", str(plain.live.kubeconfig), "-o", "json")
    [finding] = [entry for entry in doctor.json["findings"] if entry["name"] == name]
    return finding["state"], finding["found"], finding["fix"]


@pytest.mark.row("000-86")
def test_a_cluster_says_that_its_control_plane_is_highly_available(plain: Acceptance) -> None:
    assert (
        "controlPlaneTopology: HighlyAvailable" in plain.kubectl("get", "infrastructure", "cluster", "-o", "yaml").out
    )
    assert refusal(plain) == ""
    assert "confidential pools can stand here" in finding(plain)[1]


@pytest.mark.row("000-83")
def test_a_hosted_control_plane_is_no_ground_for_confidential_pools(plain: Acceptance) -> None:
    with topology(plain, "External"):
        reason = refusal(plain)
        assert "pool master and worker cannot be ConfidentialCluster on a cluster of topology External" in reason
        assert "the control plane is hosted in another cluster, whose operators read every Secret of this one" in reason
        assert "no pool can be confidential on a cluster of topology External" in finding(plain)[1]
    assert refusal(plain) == ""


@pytest.mark.row("000-84")
def test_a_single_node_is_no_ground_for_confidential_pools(plain: Acceptance) -> None:
    with topology(plain, "SingleReplica"):
        reason = refusal(plain)
        assert "pool master and worker cannot be ConfidentialCluster on a cluster of topology SingleReplica" in reason
        assert "the control plane is a single node, and a machine cannot attest itself" in reason
    assert refusal(plain) == ""


@pytest.mark.row("000-85")
def test_micro_shift_is_no_ground_for_confidential_pools(plain: Acceptance) -> None:
    namespace, name = MICROSHIFT
    plain.kubectl("create", "configmap", name, "-n", namespace, "--from-literal=version=4.20.0")
    try:
        assert "pool master and worker cannot be ConfidentialCluster on MicroShift: it is one machine" in refusal(plain)
        assert "no pool can be confidential on MicroShift" in finding(plain)[1]
    finally:
        plain.kubectl("delete", "configmap", name, "-n", namespace)
    assert refusal(plain) == ""


def test_whoever_approves_nodes_past_attestation_is_named_with_the_way_out(plain: Acceptance) -> None:
    """kubeadm makes these two bindings in every cluster."""
    role, group = (
        "system:certificates.k8s.io:certificatesigningrequests",
        "--group=system:bootstrappers:kubeadm:default-node-token",
    )
    first, later = "kubeadm:node-autoapprove-bootstrap", "kubeadm:node-autoapprove-certificate-rotation"
    assert finding(plain, "node approval")[:2] == ("ok", "nobody else approves nodes")
    plain.kubectl("create", "clusterrolebinding", first, f"--clusterrole={role}:nodeclient", group)
    plain.kubectl("create", "clusterrolebinding", later, f"--clusterrole={role}:selfnodeclient", "--group=system:nodes")
    try:
        assert finding(plain, "node approval") == (
            "optional",
            f"Kubernetes approves nodes by {first}, {later}",
            f"kubectl delete clusterrolebinding {first} {later}",
        )
    finally:
        plain.kubectl("delete", "clusterrolebinding", first, later)
