"""The real kubelet reads what is made for it: every TLS profile, every gate of the table, users' settings.

It is started with the file alone, without a cluster. A kubelet that reads its file gives up a step later, because it has no
cluster to ask about its callers; one that does not says what it cannot read, and that is what happens to a whole pool at once.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from fastness.formats import yaml_text
from fastness.machineconfig.render.base.kubelet import CONFIG_FILE
from fastness.machineconfig.render.generated import Owners, cluster_manifests
from fastness.machineconfig.render.kubelet import kubelet_spec
from fastness.machineconfig.render.settings.cluster import ClusterSettings
from fastness.machineconfig.render.settings.gates import KUBELET_GATES, NEEDED, RELEASE
from tests.unit.machineconfig.build import pool
from tests.unit.machineconfig.render.made_files import BASE, CONTROLLER, files
from tests.unit.machineconfig.render.settings.test_cluster import apiserver, gate, nodes
from tests.unit.machineconfig.render.test_kubelet import kubelet

JsonObject = dict[str, Any]
Start = Callable[[str], str]
READ = "Standalone mode, no API client"
WORKER = pool("worker")
PATIENCE = 60


@pytest.fixture
def start(real_kube_binaries: Path, tmp_path: Path) -> Start:
    """Start the kubelet with a file; what it said until it gave up."""
    authority = tmp_path / "ca.crt"
    trustme.CA().cert_pem.write_to_path(str(authority))
    dropins = tmp_path / "kubelet.conf.d"
    dropins.mkdir()
    # What belongs to the machine and not to what is tested: an authority that is there, and control groups as they are here.
    here = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {"x509": {"clientCAFile": str(authority)}},
        "failCgroupV1": False,
    }
    (dropins / "10-here.conf").write_text(yaml_text.encode(here))

    def run(text: str) -> str:
        config = tmp_path / "kubelet.conf"
        config.write_text(text)
        command = [
            str(real_kube_binaries / "kubelet"), f"--config={config}", f"--config-dir={dropins}",
            f"--root-dir={tmp_path / 'root'}", f"--cert-dir={tmp_path / 'pki'}", "--hostname-override=node",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=tmp_path)
        assert done.returncode != 0, "a kubelet without a cluster does not stay"
        return done.stderr

    return run


def conf(owner: JsonObject | None = None, settings: ClusterSettings | None = None) -> str:
    """The kubelet's file that a KubeletConfig makes."""
    return files(kubelet_spec(owner or kubelet(), WORKER, BASE, settings))[CONFIG_FILE]


CUSTOM = {
    "minTLSVersion": "VersionTLS11",
    "ciphers": ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-DES-CBC3-SHA", "DHE-RSA-AES128-SHA"],
}


@pytest.mark.parametrize(
    "profile",
    [{"type": "Old"}, {"type": "Intermediate"}, {"type": "Modern"}, {"type": "Custom", "custom": CUSTOM}],
    ids=lambda profile: profile["type"],
)
def test_it_reads_every_tls_profile(start: Start, profile: JsonObject) -> None:
    assert READ in start(conf(kubelet(tlsSecurityProfile=profile)))


def test_it_would_not_read_the_names_of_openssl(start: Start) -> None:
    """What translation is for; and proof that these tests can fail."""
    bad = conf().replace("- TLS_AES_128_GCM_SHA256\n", "- ECDHE-RSA-AES128-GCM-SHA256\n")
    output = start(bad)
    assert READ not in output
    assert "Cipher suite ECDHE-RSA-AES128-GCM-SHA256 not supported or doesn't exist" in output


def test_it_reads_groups(start: Start) -> None:
    every = [
        "X25519",
        "secp256r1",
        "secp384r1",
        "secp521r1",
        "X25519MLKEM768",
        "SecP256r1MLKEM768",
        "SecP384r1MLKEM1024",
    ]
    custom = {"type": "Custom", "custom": {**CUSTOM, "groups": every}}
    text = conf(kubelet(tlsSecurityProfile=custom), ClusterSettings(feature_gate=gate(["TLSGroupPreferences"])))
    assert "tlsCurvePreferences:\n- 29\n" in text
    assert READ in start(text)


@pytest.mark.parametrize("on", [True, False])
def test_it_reads_every_gate_of_the_table(start: Start, on: bool) -> None:
    gates = sorted(KUBELET_GATES)
    text = conf(settings=ClusterSettings(feature_gate=gate(gates if on else [], [] if on else gates)))
    assert text.count(f": {str(on).lower()}\n") >= len(KUBELET_GATES - NEEDED)
    assert READ in start(text)


def test_it_would_not_start_without_the_gates_that_are_needed(start: Start) -> None:
    text = conf(settings=ClusterSettings(feature_gate=gate(["EventedPLEG"])))
    for name in sorted(NEEDED):
        output = start(text.replace("EventedPLEG: true\n", f"EventedPLEG: true\n  {name}: false\n"))
        assert "serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate" in output


def test_a_gate_that_it_does_not_know_would_keep_it_from_starting(start: Start) -> None:
    """What the filter is for."""
    filtered = conf(settings=ClusterSettings(feature_gate=gate(["EventedPLEG", "AdditionalStorageConfig"])))
    assert READ in start(filtered)
    output = start(filtered.replace("EventedPLEG: true\n", "EventedPLEG: true\n  AdditionalStorageConfig: true\n"))
    assert "unrecognized feature gate: AdditionalStorageConfig" in output


def test_the_table_of_gates_is_what_it_lists(real_kube_binaries: Path) -> None:
    program = str(real_kube_binaries / "kubelet")
    version = subprocess.run(
        [program, "--version"], capture_output=True, text=True, timeout=PATIENCE, check=True
    ).stdout
    if not version.startswith(f"Kubernetes {RELEASE}."):
        pytest.skip(f"the table is of {RELEASE}, this is {version.strip()}")
    text = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    assert set(re.findall(r"^ +(\w+)=true\|false \(", text, re.MULTILINE)) == KUBELET_GATES


def test_it_reads_what_a_user_and_the_cluster_ask_for_together(start: Start) -> None:
    settings = ClusterSettings(
        nodes(workerLatencyProfile="LowUpdateSlowReaction"),
        gate(["EventedPLEG"]),
        apiserver(type="Modern"),
        "LowUpdateSlowReaction",
    )
    user = {
        "maxPods": 500, "evictionHard": {"memory.available": "1e3", "nodefs.available": "10%"}, "reservedSystemCPUs": "0",
        "podPidsLimit": 4096, "protectKernelDefaults": False, "systemReserved": {"memory": "3Gi", "pid": "100"},
    }  # fmt: skip
    assert READ in start(conf(kubelet(user, logLevel=4), settings))
    owners = Owners.of([], [], CONTROLLER, settings=settings, pools=[WORKER])
    for kind in ("Node", "FeatureGate"):
        [config] = cluster_manifests(kind, owners, "v")
        assert READ in start(files(config["spec"])[CONFIG_FILE])
