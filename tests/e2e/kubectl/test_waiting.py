"""`kubectl wait`: for creation, conditions, values and the end of an object."""

from __future__ import annotations

import subprocess

from tests.e2e.kubectl.conftest import Kubectl
from tests.e2e.kubectl.objects import SERVING, config_map, pod
from tests.e2e.live import KUBECTL, environment
from tests.patience import PATIENCE


def waiting(kubectl: Kubectl, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(KUBECTL), "-n", kubectl.namespace, "wait", "--timeout=20s", *words], text=True, stdout=subprocess.PIPE,
        env=environment(kubectl.live.home, KUBECONFIG=str(kubectl.live.kubeconfig)),
    )  # fmt: skip


def test_wait_returns_when_a_condition_becomes_true(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=pod("p"))
    patient = waiting(kubectl, "--for=condition=Ready", "pod/p")
    kubectl.ok("patch", "pod", "p", "--subresource", "status", "--type", "merge", "-p", SERVING)
    assert patient.communicate(timeout=PATIENCE)[0] == "pod/p condition met\n"


def test_wait_returns_when_a_value_is_reached(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=config_map("c", {"k": "old"}))
    patient = waiting(kubectl, "--for=jsonpath={.data.k}=new", "cm/c")
    kubectl.ok("patch", "cm", "c", "-p", '{"data":{"k":"new"}}')
    assert patient.communicate(timeout=PATIENCE)[0] == "configmap/c condition met\n"


def test_wait_returns_when_an_object_is_gone(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=config_map("c"))
    patient = waiting(kubectl, "--for=delete", "cm/c")
    kubectl.ok("delete", "cm", "c")
    assert patient.wait(timeout=PATIENCE) == 0
    patient.communicate()


def test_wait_returns_when_an_object_comes(kubectl: Kubectl) -> None:
    patient = waiting(kubectl, "--for=create", "cm/c")
    kubectl.ok("create", "-f", "-", stdin=config_map("c"))
    assert patient.communicate(timeout=PATIENCE)[0] == "configmap/c condition met\n"


def test_wait_gives_up_after_its_time(kubectl: Kubectl) -> None:
    kubectl.ok("create", "-f", "-", stdin=pod("p"))
    refusal = kubectl.refused("wait", "--for=condition=Ready", "pod/p", "--timeout=100ms")
    assert "timed out waiting for the condition on pods/p" in refusal
