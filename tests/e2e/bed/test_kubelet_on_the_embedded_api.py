"""A real kubelet and the embedded API: the node is Ready, and a pod that names it runs to its end."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bed import BUSYBOX, Bed, Node, settings
from tests.bed.bed import ADDRESS
from tests.bed.kubectl import PROGRAM
from tests.e2e.live import FASTNESS, Outcome, environment, run
from tests.joining import client_request, new_key
from tests.patience import PATIENCE

NAME = "real-0"


@pytest.fixture
def embedded(bed: Bed, tmp_path: Path) -> Iterator[Path]:
    """`fastness up` in the bed's network; its state directory."""
    child = subprocess.Popen(
        [*bed.enter, str(FASTNESS), "up", "--host", ADDRESS, "--port", "0"],
        cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        assert child.stdout is not None
        assert any("Ctrl-C ends it" in line for line in child.stdout), "it ended before it was up"
        yield tmp_path / "state"
    finally:
        child.terminate()
        child.communicate(timeout=PATIENCE)


@pytest.fixture
def spare(bed: Bed) -> Iterator[Node]:
    """A machine with containerd, whose kubelet has not started yet."""
    node = bed.spare_node()
    yield node
    bed.remove_node(node)


def test_its_node_is_ready_and_a_pod_that_names_it_runs(bed: Bed, embedded: Path, spare: Node) -> None:
    def kubectl(*words: str, body: Any = None) -> Outcome:
        env = environment(embedded, KUBECONFIG=str(embedded / "kubeconfig"))
        return run([*bed.enter, PROGRAM, *words], env, stdin=None if body is None else json.dumps(body))

    key = new_key()
    request = client_request(key, NAME) | {"metadata": {"name": NAME}}
    assert kubectl("create", "-f", "-", body=request).code == 0
    assert kubectl("certificate", "approve", NAME).code == 0
    issued = kubectl("wait", f"csr/{NAME}", "--for=jsonpath={.status.certificate}", "--timeout=60s")
    assert issued.code == 0, issued.err
    certificate = kubectl("get", "csr", NAME, "-o", "jsonpath={.status.certificate}").out
    join(bed, spare, embedded, base64.b64decode(certificate) + key.to_pem().reveal())
    assert kubectl("wait", "--for=create", f"node/{NAME}", "--timeout=60s").code == 0
    ready = kubectl("wait", f"node/{NAME}", "--for=condition=Ready", "--timeout=60s")
    assert ready.code == 0, kubectl("get", "node", NAME, "-o", "yaml").out
    # There is no scheduler: whoever makes the pod says where it runs.
    placed = json.dumps({"spec": {"nodeName": NAME}})
    kubectl("run", "hello", f"--image={BUSYBOX}", "--restart=Never", f"--overrides={placed}", "--", "true")
    done = kubectl("wait", "pod/hello", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s")
    assert done.code == 0, kubectl("get", "pod", "hello", "-o", "yaml").out
    assert "CSINode" in kubectl("get", "csinode", NAME, "-o", "yaml").out
    assert kubectl("wait", "--for=create", f"lease/{NAME}", "-n", "kube-node-lease", "--timeout=60s").code == 0


def join(bed: Bed, node: Node, state: Path, credential: bytes) -> None:
    """Start the kubelet with a certificate of the embedded API."""
    etc = node.directory / "etc"
    (etc / "client.pem").write_bytes(credential)
    kubeconfig = yaml.safe_load((state / "kubeconfig").read_text())
    for user in kubeconfig["users"]:
        user["user"] = {"client-certificate": str(etc / "client.pem"), "client-key": str(etc / "client.pem")}
    authority = base64.b64decode(kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"])
    (etc / "ca.crt").write_bytes(authority)
    (etc / "kubelet.kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    by_name = {"configMapAndSecretChangeDetectionStrategy": "Get"}  # a list would tell names
    (etc / "kubelet.json").write_text(settings.kubelet_settings(str(etc / "ca.crt"), **by_name))
    node.start_kubelet(bed.binaries, NAME)
