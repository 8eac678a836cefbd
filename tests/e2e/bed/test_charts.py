"""Names and charts on a bed: pods find Services by name, and helm installs, tests, changes, goes back and removes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bed import Bed
from tests.bed.helm import Helm
from tests.bed.kubectl import Kubectl, pod

CHART = str(Path(__file__).with_name("chart"))


@pytest.fixture
def helm(bed: Bed, kubectl: Kubectl, helm_program: Path, tmp_path: Path) -> Helm:
    return Helm(helm_program, bed.kube.kubeconfig, kubectl.namespace, tmp_path)


def served(kubectl: Kubectl) -> str:
    """What the page's container was told to serve."""
    place = "jsonpath={.spec.template.spec.containers[0].command[2]}"
    return kubectl.ok("get", "deployment", "page", "-o", place).split()[3]


def test_helm_installs_tests_upgrades_goes_back_and_removes(helm: Helm, kubectl: Kubectl) -> None:
    """Its test pod asks the Service by name on every round, so it fails without names and without the release's own text."""
    helm.ok("install", "page", CHART, "--wait")
    helm.ok("test", "page")
    helm.ok("upgrade", "page", CHART, "--set", "text=second", "--wait")
    helm.ok("test", "page")
    assert served(kubectl) == "second"
    helm.ok("rollback", "page", "1", "--wait")
    helm.ok("test", "page")
    assert served(kubectl) == "first"
    helm.ok("uninstall", "page", "--wait")
    assert kubectl.ok("get", "deployments,services", "-o", "name") == ""


def test_helm_says_what_a_chart_that_cannot_be_rendered_lacks(helm: Helm, tmp_path: Path) -> None:
    refused = helm.run("install", "page", str(tmp_path))
    assert refused.returncode != 0
    assert "Chart.yaml" in refused.stderr


def test_a_name_that_no_service_has_is_refused(kubectl: Kubectl) -> None:
    ask = [
        "sh",
        "-c",
        "until nslookup kubernetes.default.svc.cluster.local; do sleep 0.2; done; ! nslookup absent.default",
    ]
    kubectl.apply(pod("asks", "bed-0", ask))
    kubectl.wait("pod/asks", "jsonpath={.status.phase}=Succeeded")
