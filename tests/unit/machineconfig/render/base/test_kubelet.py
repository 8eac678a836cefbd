"""The kubelet's settings and unit, for each kind of node."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from fastness.agent.boot import join, node_certificates
from fastness.cli.machine.agent_attest import join as join_verb
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.machineconfig.render.base import kubelet
from fastness.machineconfig.render.base.kubelet import (
    bootstrap_kubeconfig,
    kubelet_settings,
    kubelet_unit,
    settings_text,
    sizing,
)
from tests.unit.machineconfig.build import CERTIFICATE
from tests.unit.machineconfig.nodes import CRIO, KINDS, OPENSHIFT, PLAIN

ATTESTED = replace(PLAIN, trust=TrustModel.CONFIDENTIAL_CLUSTER, attested=True)
DEPRECATED = (
    "--container-runtime-endpoint",
    "--minimum-container",
    "--volume-plugin-dir",
    "--register-with-taints",
    "--address",
)


def test_settings_of_a_worker() -> None:
    settings = kubelet_settings(PLAIN)
    assert settings["clusterDNS"] == ["10.96.0.10"]
    assert settings["authentication"] == {
        "anonymous": {"enabled": False},
        "x509": {"clientCAFile": "/etc/kubernetes/kubelet-ca.crt"},
    }
    assert (settings["failSwapOn"], settings["memorySwap"]) == (False, {"swapBehavior": "NoSwap"})
    assert (settings["systemReservedCgroup"], settings["systemCgroups"]) == ("/system.slice", "/system.slice")
    assert settings["enforceNodeAllocatable"] == ["pods", "system-reserved-compressible"]
    assert (settings["rotateCertificates"], settings["serverTLSBootstrap"]) == (True, True)
    assert "registerWithTaints" not in settings


def test_settings_of_the_control_plane() -> None:
    settings = kubelet_settings(replace(PLAIN, role="master"))
    assert settings["failSwapOn"] is True
    assert not {"systemReservedCgroup", "enforceNodeAllocatable", "memorySwap"} & settings.keys()
    assert settings["registerWithTaints"] == [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    assert "NODE_SIZING_ENABLED=false" in sizing(replace(PLAIN, role="master"))
    assert "NODE_SIZING_ENABLED=true" in sizing(PLAIN)


def test_in_a_pool_that_enforces_the_agent_makes_the_keys_and_a_proof_takes_the_taint_away() -> None:
    settings = kubelet_settings(ATTESTED)
    assert (settings["rotateCertificates"], settings["serverTLSBootstrap"]) == (False, False)
    assert settings["registerWithTaints"] == [{"key": "fastness.dev/not-attested", "effect": "NoSchedule"}]
    assert settings["failSwapOn"] is True, "the host would read what is swapped out"
    assert "tlsCertFile" not in settings, "a kubelet that is told of a file which is not there yet ends"


def test_audit_leaves_certificates_to_the_kubelet() -> None:
    """Machines without the agent would lose theirs within the hour, and audit must break nothing."""
    settings = kubelet_settings(replace(ATTESTED, attested=False))
    assert (settings["rotateCertificates"], settings["failSwapOn"]) == (True, True)
    assert "registerWithTaints" not in settings


def test_the_unit_of_a_pool_that_enforces_waits_for_the_proof_and_has_the_name_of_enrolment() -> None:
    unit = kubelet_unit(ATTESTED)
    assert "fastness-attest.service fastness-join.service" in unit
    assert "EnvironmentFile=/var/lib/fastness/node.env\n" in unit, "without it the kubelet does not start"
    assert "--cert-dir=/var/lib/kubelet/pki" in unit
    assert "fastness-" not in kubelet_unit(PLAIN).replace("/usr/lib/fastness/kubelet.conf.d", "")
    assert "--cert-dir" not in kubelet_unit(PLAIN)


def test_the_agent_writes_where_this_kubelet_reads() -> None:
    names = {node_certificates.CLIENT_FILE, node_certificates.SERVING_FILE, node_certificates.SERVING_KEY_FILE}
    assert names <= set(join.OTHER_KEYS)
    parameters = {option.name: option.default for option in join_verb.params}
    assert str(parameters["key_file"]) == f"{kubelet.PKI}/kubelet-client.key.tmp"
    assert str(parameters["token_file"]) == kubelet.TOKEN_FILE


def test_the_bootstrap_kubeconfig_holds_no_secret() -> None:
    config = yaml.safe_load(bootstrap_kubeconfig(ATTESTED))
    assert config["users"] == [{"name": "kubelet", "user": {"tokenFile": "/run/fastness/bootstrap-token"}}]
    [cluster] = config["clusters"]
    assert cluster["cluster"]["server"] == "https://api.example:6443"


@pytest.mark.parametrize("kind", ["kubernetes-containerd", "kubernetes-crio"])
@pytest.mark.parametrize("role", ["worker", "master"])
def test_plain_kubernetes_gets_no_role_label_and_no_deprecated_flag(kind: str, role: str) -> None:
    unit = kubelet_unit(replace(KINDS[kind], role=role))
    assert "--node-labels" not in unit
    assert not [flag for flag in DEPRECATED if flag in unit]
    settings = kubelet_settings(KINDS[kind])
    assert settings["containerRuntimeEndpoint"].startswith("unix:///")


def test_the_runtime_is_required_and_its_socket_is_the_one_that_runs() -> None:
    assert "Requires=containerd.service kubelet-dependencies.target" in kubelet_unit(PLAIN)
    assert kubelet_settings(PLAIN)["containerRuntimeEndpoint"] == "unix:///run/containerd/containerd.sock"
    assert "Requires=crio.service kubelet-dependencies.target" in kubelet_unit(CRIO)
    assert kubelet_settings(CRIO)["containerRuntimeEndpoint"] == "unix:///var/run/crio/crio.sock"


def test_openshift_has_its_flags() -> None:
    unit = kubelet_unit(OPENSHIFT)
    assert "--node-labels=node-role.kubernetes.io/worker,node.openshift.io/os_id=${ID},${CUSTOM_KUBELET_LABELS}" in unit
    assert "--cloud-provider=external" in unit
    assert "ecr-credential-provider.yaml" in unit
    master = kubelet_unit(replace(OPENSHIFT, role="master", platform="BareMetal"))
    assert "--register-with-taints=node-role.kubernetes.io/master=:NoSchedule" in master
    assert "--address=${KUBELET_NODE_IP}" in master
    assert "containerRuntimeEndpoint" not in kubelet_settings(OPENSHIFT)


@pytest.mark.parametrize(
    ("families", "address", "flag"),
    [
        ("IPv4", "0.0.0.0", "--node-ip=${KUBELET_NODE_IP} "), ("IPv6", "::", "--node-ip=${KUBELET_NODE_IP} "),
        ("DualStack", "0.0.0.0", "--node-ip=${KUBELET_NODE_IPS} "), ("DualStackIPv6Primary", "::", "${KUBELET_NODE_IPS} "),
    ],
)  # fmt: skip
def test_address_families(families: str, address: str, flag: str) -> None:
    unit = kubelet_unit(replace(PLAIN, ip_families=families))
    assert f'"KUBELET_NODE_IP={address}"' in unit
    assert flag in unit


def test_settings_are_one_in_a_line_and_the_same_each_time() -> None:
    text = settings_text(kubelet_settings(PLAIN))
    assert yaml.safe_load(text) == kubelet_settings(PLAIN)
    assert "\nmaxPods: 250\n" in text
    shared = {"a": CERTIFICATE}
    assert "&" not in settings_text({"x": shared, "y": shared}), "no anchors"
