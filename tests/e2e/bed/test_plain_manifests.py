"""Fastness without helm: the lines of the page, one after the other without a pause, on real nodes."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed import Bed
from tests.bed.kubectl import Kubectl
from tests.e2e.bed.test_fastness_chart import PAGE, ROOT
from tests.e2e.bed.walking import forget
from tests.e2e.docs.transcript import blocks
from tests.e2e.live import FASTNESS, environment, run
from tests.soaking import SOAK

INSTALL_SECONDS = 600.0
pytestmark = [
    pytest.mark.processes,
    pytest.mark.soak,
    pytest.mark.skipif(not SOAK, reason="in `make soak`: `make test` installs the same objects by helm"),
    pytest.mark.long("two pods of each role start"),
]


@pytest.fixture
def env(bed: Bed, fastness_image: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    forget(bed)
    try:
        yield environment(tmp_path, KUBECONFIG=str(bed.kube.kubeconfig), IMAGE=fastness_image.partition(":")[0])
    finally:
        Kubectl(bed.kube.kubeconfig, "default").ok(
            "delete", "validatingwebhookconfiguration", "fastness", "--ignore-not-found"
        )
        forget(bed)


def test_applied_in_one_go_it_makes_the_cluster_that_was_asked_for_when_its_webhook_answers(
    bed: Bed, env: dict[str, str]
) -> None:
    (lines,) = (text for tag, text in blocks(PAGE.read_text().split("## Without helm")[1]) if tag == "sh")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines],
        cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS,
    )  # fmt: skip
    kubectl = Kubectl(bed.kube.kubeconfig, "fastness-system")
    assert done.returncode == 0, f"{done.stdout[-500:]}{done.stderr}{kubectl.ok('get', 'pods')}"
    assert json.loads(kubectl.ok("get", "confidentialcluster", "cluster", "-o", "json"))["spec"]["mode"] == "Audit"
    kubectl.ok("wait", "deployments", "--all", "--for=condition=Available", f"--timeout={INSTALL_SECONDS:.0f}s")
    doctor = run([FASTNESS, "doctor"], env)
    assert doctor.code == 0, doctor.out
    # The same again changes nothing, and an asked-for cluster is not a way to lower the one that is there.
    mode = '{"data": {"mode": "Disabled"}}'
    kubectl.ok("patch", "configmap", "first-cluster", "--type=merge", "-p", mode)
    kubectl.ok("rollout", "restart", "deployment/fastness-controllers")
    kubectl.ok("rollout", "status", "deployment/fastness-controllers", f"--timeout={INSTALL_SECONDS:.0f}s")
    assert json.loads(kubectl.ok("get", "confidentialcluster", "cluster", "-o", "json"))["spec"]["mode"] == "Audit"
