"""Pods are put out of nodes without proof only after somebody saw which."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kinds.fastness_dev.cluster import CONFIRM_EVICT
from fastness.kube.admission import AdmissionRequest, Allowed, Denied, Operation
from fastness.kube.confirmation import confirmation
from fastness.machineconfig.admission.evictions import evicting_is_confirmed, would_leave
from tests.unit.admission.writes import ADMIN, World

Object = dict[str, Any]
TAINT = {"key": "fastness.dev/not-attested", "effect": "NoSchedule"}
ROLE = "node-role.kubernetes.io/worker"
POOLS = [{"metadata": {"name": "worker"}, "spec": {"nodeSelector": {"matchLabels": {ROLE: ""}}}}]


def cluster(evict: bool, mode: str = "Enforce", **annotations: str) -> Object:
    pools = [{"name": "worker", "trustModel": "ConfidentialCluster", "evict": evict}]
    meta = {"name": "cluster", "uid": "u", "generation": 3, "annotations": annotations}
    return {"metadata": meta, "spec": {"mode": mode, "pools": pools}}


def node(name: str, *taints: Object, role: str = ROLE) -> Object:
    return {"metadata": {"name": name, "labels": {role: ""}}, "spec": {"taints": list(taints)}}


def pod(name: str, on: str, phase: str = "Running", *tolerations: Object) -> Object:
    meta, spec = {"name": name, "namespace": "d"}, {"nodeName": on, "tolerations": list(tolerations)}
    return {"metadata": meta, "spec": spec, "status": {"phase": phase}}


NODES = [node("proved"), node("unproved", TAINT), node("elsewhere", TAINT, role="node-role.kubernetes.io/infra")]


@pytest.mark.parametrize(
    ("pod", "leaves"),
    [
        (pod("a", "unproved"), True),
        (pod("a", "proved"), False),
        (pod("a", "elsewhere"), False),
        (pod("a", "unproved", "Succeeded"), False),
        (pod("a", "unproved", "Running", {"operator": "Exists"}), False),
        (pod("a", "unproved", "Running", {"key": TAINT["key"], "operator": "Exists"}), False),
        (pod("a", "unproved", "Running", {"key": TAINT["key"], "effect": "NoSchedule"}), True),
        (pod("a", "unproved", "Running", {"key": TAINT["key"], "operator": "Exists", "tolerationSeconds": 60}), True),
        (pod("a", "unproved", "Running", {"key": "other", "operator": "Exists"}), True),
    ],
)
def test_pods_leave_nodes_without_proof_unless_they_tolerate_that(pod: Object, leaves: bool) -> None:
    listed = would_leave(cluster(False), cluster(True), NODES, [pod], POOLS)
    assert listed == (["d/a on unproved"] if leaves else [])


def test_where_enforcement_comes_in_the_same_write_every_node_of_the_pool_counts() -> None:
    listed = would_leave(cluster(False, "Audit"), cluster(True), NODES, [pod("a", "proved")], POOLS)
    assert listed == ["d/a on proved"]


def test_a_label_takes_no_pod_off_the_list_whose_node_has_a_machine() -> None:
    away = node("moved", TAINT, role="node-role.kubernetes.io/infra")
    machine = {"status": {"nodeName": "moved", "pool": "worker"}}
    pods = [pod("a", "moved")]
    assert would_leave(cluster(False), cluster(True), [away], pods, POOLS) == []
    assert would_leave(cluster(False), cluster(True), [away], pods, POOLS, [machine]) == ["d/a on moved"]


def decision_on(new: Object, old: Object | None, *pods: Object) -> Denied | Allowed | None:
    world = World(all_pools=POOLS, all_nodes=NODES, all_pods={("d", pod["metadata"]["name"]): pod for pod in pods})
    operation = Operation.UPDATE if old is not None else Operation.CREATE
    request = AdmissionRequest(
        operation=operation, user=ADMIN, group="fastness.dev", version="v1alpha1", kind="ConfidentialCluster",
        resource="confidentialclusters", name="cluster", object=new, old=old,
    )  # fmt: skip
    return evicting_is_confirmed(request, world)


def test_the_pods_are_shown_before_they_leave_and_one_confirmation_is_good_for_one_change() -> None:
    victim = pod("a", "unproved")
    refused = decision_on(cluster(True), cluster(False), victim)
    assert isinstance(refused, Denied)
    assert "d/a on unproved" in refused.message
    word = confirmation(cluster(False), cluster(True))
    assert word in refused.message
    allowed = decision_on(cluster(True, **{CONFIRM_EVICT: word}), cluster(False), victim)
    assert isinstance(allowed, Allowed)
    assert "d/a on unproved" in allowed.warnings[0]
    later = cluster(False)
    later["metadata"]["generation"] = 4
    assert isinstance(decision_on(cluster(True, **{CONFIRM_EVICT: word}), later, victim), Denied)


def test_nobody_is_asked_where_no_pod_leaves_or_nothing_is_turned_on() -> None:
    assert decision_on(cluster(True), cluster(False)) is None
    assert decision_on(cluster(True), cluster(True), pod("a", "unproved")) is None
    assert decision_on(cluster(False), cluster(True), pod("a", "unproved")) is None


def test_a_new_cluster_cannot_put_pods_out_at_once() -> None:
    new = cluster(True)
    del new["metadata"]["uid"]
    refused = decision_on(new, None, pod("a", "unproved"))
    assert isinstance(refused, Denied)
    assert "turn it on afterwards" in refused.message
