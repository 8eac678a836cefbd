"""Nodes: taints, cordon, and drains that respect disruption budgets."""

from __future__ import annotations

import pytest

from tests.e2e.kubectl.conftest import Kubectl
from tests.e2e.kubectl.objects import SERVING, node, pod


@pytest.fixture
def machine(kubectl: Kubectl, unique: str) -> str:
    """A node of this test's own."""
    kubectl.ok("create", "-f", "-", stdin=node(unique))
    return unique


def guarded(kubectl: Kubectl, machine: str) -> None:
    """A pod that serves on the machine, and a budget that needs it."""
    kubectl.ok("create", "-f", "-", stdin=pod("guarded", machine, labels={"app": "x"}))
    kubectl.ok("patch", "pod", "guarded", "--subresource", "status", "--type", "merge", "-p", SERVING)
    kubectl.ok("create", "pdb", "budget", "--selector", "app=x", "--min-available", "1")
    kubectl.ok("wait", "--for=jsonpath={.status.currentHealthy}=1", "pdb/budget", "--timeout=10s")


def test_taints_are_added_and_removed(kubectl: Kubectl, machine: str) -> None:
    assert kubectl.ok("taint", "node", machine, "a=b:NoSchedule").out == f"node/{machine} tainted\n"
    assert "already has a taint(s)" in kubectl.refused("taint", "node", machine, "a=c:NoSchedule")
    assert kubectl.ok("get", "node", machine, "-o", "jsonpath={.spec.taints[*].key}").out == "a"
    assert kubectl.ok("taint", "node", machine, "a-").out == f"node/{machine} untainted\n"


def test_cordon_shows_in_the_table_and_uncordon_undoes_it(kubectl: Kubectl, machine: str) -> None:
    assert kubectl.ok("cordon", machine).out == f"node/{machine} cordoned\n"
    assert kubectl.ok("get", "node", machine, "--no-headers").rows[0][1] == "Ready,SchedulingDisabled"
    assert kubectl.ok("cordon", machine).out == f"node/{machine} already cordoned\n"
    assert kubectl.ok("uncordon", machine).out == f"node/{machine} uncordoned\n"
    assert kubectl.ok("get", "node", machine, "--no-headers").rows[0][1] == "Ready"


def test_the_budget_table_says_what_may_be_disrupted(kubectl: Kubectl, machine: str) -> None:
    guarded(kubectl, machine)
    heading, row = kubectl.ok("get", "pdb").lines
    assert heading.split("   ")[0] == "NAME"
    assert row.split()[:4] == ["budget", "1", "N/A", "0"]


def test_a_drain_is_blocked_by_a_budget_and_says_which(kubectl: Kubectl, machine: str) -> None:
    guarded(kubectl, machine)
    refusal = kubectl.refused("drain", machine, "--force", "--timeout", "1s")
    assert "Cannot evict pod as it would violate the pod's disruption budget." in refusal
    assert kubectl.ok("get", "pod", "guarded", "-o", "name").out == "pod/guarded\n"


def test_a_drain_goes_on_when_the_budget_allows_it(kubectl: Kubectl, machine: str) -> None:
    guarded(kubectl, machine)
    kubectl.ok("create", "-f", "-", stdin=pod("second", labels={"app": "x"}))
    kubectl.ok("patch", "pod", "second", "--subresource", "status", "--type", "merge", "-p", SERVING)
    kubectl.ok("wait", "--for=jsonpath={.status.disruptionsAllowed}=1", "pdb/budget", "--timeout=10s")
    drained = kubectl.ok("drain", machine, "--force", "--timeout", "10s")
    assert "pod/guarded evicted" in drained.out
    assert drained.lines[-1] == f"node/{machine} drained"
    assert kubectl.ok("get", "pods", "-o", "name").lines == ["pod/second"]


def test_a_drain_refuses_pods_that_nobody_would_bring_back(kubectl: Kubectl, machine: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=pod("lonely", machine))
    assert "cannot delete Pods that declare no controller" in kubectl.refused("drain", machine)


def test_a_dry_run_of_a_drain_evicts_nobody(kubectl: Kubectl, machine: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=pod("p", machine))
    kubectl.ok("drain", machine, "--force", "--dry-run=server")
    assert kubectl.ok("get", "pods", "-o", "name").lines == ["pod/p"]


def test_describe_of_a_node_lists_its_pods(kubectl: Kubectl, machine: str) -> None:
    kubectl.ok("create", "-f", "-", stdin=pod("p", machine))
    description = kubectl.ok("describe", "node", machine).out
    assert "Non-terminated Pods:          (1 in total)" in description
