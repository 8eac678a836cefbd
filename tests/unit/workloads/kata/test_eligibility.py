"""Which nodes get the runtime and which classes follow: the matrix of the specification, and every reason against a node."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kinds.kata import names
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration.names import MASTER_LABEL
from fastness.workloads.kata.classes import NO_TEE, SEVERAL_TEES, plan_classes
from fastness.workloads.kata.eligibility import Against, choose, is_converged, require_labels, requirements_of
from fastness.workloads.kata.errors import Refused
from fastness.workloads.kata.mode import FeatureGates, release_can, require_release
from tests.unit.workloads.kata.builders import (
    BASE,
    CONFIDENTIAL,
    GPU_OFF,
    GPU_ON,
    SNP,
    TDX,
    handlers,
    node,
    pool,
    requirements,
)

PLAIN = {"kata": "kata", "kata-nvidia-gpu": "kata-nvidia-gpu"}
TDX_ALL = {**PLAIN, "kata-cc": "kata-tdx", "kata-cc-nvidia-gpu": "kata-tdx-nvidia-gpu"}
SNP_ALL = {**PLAIN, "kata-cc": "kata-snp", "kata-cc-nvidia-gpu": "kata-snp-nvidia-gpu"}
BLOCKED = "blocked"

# Nodes, classes and problem with the check, classes and problem without it.
MATRIX = {
    "no labels": ([node("n1")], BLOCKED, None, PLAIN, NO_TEE),
    "able": ([node("n1", BASE)], {"kata": "kata"}, NO_TEE, PLAIN, NO_TEE),
    "able, TDX": ([node("n1", BASE, TDX)], {"kata": "kata", "kata-cc": "kata-tdx"}, None, TDX_ALL, None),
    "TDX only": ([node("n1", TDX)], BLOCKED, None, TDX_ALL, None),
    "SNP with a confidential GPU": (
        [node("n1", BASE, SNP, GPU_ON)],
        {"kata": "kata", "kata-cc": "kata-snp", "kata-cc-nvidia-gpu": "kata-snp-nvidia-gpu"}, None, SNP_ALL, None,
    ),
    "GPU, not confidential": ([node("n1", BASE, GPU_OFF)], PLAIN, NO_TEE, PLAIN, NO_TEE),
    "both kinds": (
        [node("n1", BASE, TDX), node("n2", BASE, SNP)],
        {"kata": "kata", "kata-cc-tdx": "kata-tdx", "kata-cc-snp": "kata-snp"}, SEVERAL_TEES,
        {**PLAIN, "kata-cc-tdx": "kata-tdx", "kata-cc-tdx-nvidia-gpu": "kata-tdx-nvidia-gpu", "kata-cc-snp": "kata-snp",
         "kata-cc-snp-nvidia-gpu": "kata-snp-nvidia-gpu"}, SEVERAL_TEES,
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", MATRIX)
def test_classes_follow_the_matrix_with_the_check(row: str) -> None:
    nodes, classes, problem, _, _ = MATRIX[row]
    needs = requirements(check=True)
    if classes == BLOCKED:
        with pytest.raises(Refused) as caught:
            require_labels(needs, nodes, peer_pods=False)
        assert caught.value.message == "no nodes with required labels found, is NFD running?"
        assert caught.value.again == 20.0
        require_labels(needs, nodes, peer_pods=True)
        return
    require_labels(needs, nodes, peer_pods=False)
    assert handlers(nodes, needs) == classes
    assert plan_classes(CONFIDENTIAL, needs, nodes).problem == problem


@pytest.mark.parametrize("row", MATRIX)
def test_classes_follow_the_matrix_without_the_check(row: str) -> None:
    nodes, _, _, classes, problem = MATRIX[row]
    needs = requirements()
    require_labels(needs, nodes, peer_pods=False)
    assert handlers(nodes, needs) == classes
    assert plan_classes(CONFIDENTIAL, needs, nodes).problem == problem


@pytest.mark.parametrize("check", [True, False])
def test_only_nodes_that_the_selector_takes_say_which_tee_there_is(check: bool) -> None:
    nodes = [node("n1", BASE, {"mine": "yes"}), node("n2", BASE, TDX)]
    plan = plan_classes(CONFIDENTIAL, requirements(check=check, mine="yes"), nodes)
    assert plan.problem == NO_TEE
    assert [spec.name for spec in plan.classes] == (["kata"] if check else ["kata", "kata-nvidia-gpu"])


def test_without_the_gate_there_are_no_confidential_classes_and_no_complaint() -> None:
    plan = plan_classes(FeatureGates(), requirements(), [node("n1", BASE, TDX)])
    assert ([spec.name for spec in plan.classes], plan.problem) == (["kata", "kata-nvidia-gpu"], None)


def test_peer_pods_need_no_tee_and_bring_their_own_class() -> None:
    plan = plan_classes(CONFIDENTIAL, requirements(), [node("n1")], peer_pods=True)
    assert plan.problem is None
    assert plan.classes[-1].overhead == {"cpu": "250m", "memory": "120Mi"}
    assert plan.classes[-1].selector(requirements()) == {names.ROLE_LABEL: ""}


@pytest.mark.parametrize(
    ("name", "labels", "overhead", "more"),
    [
        ("kata", (BASE,), {"cpu": "250m", "memory": "350Mi"}, BASE),
        ("kata-nvidia-gpu", (BASE, GPU_OFF), {"cpu": "1", "memory": "4096Mi"}, GPU_OFF),
        ("kata-cc", (BASE, TDX), {"cpu": "250m", "memory": "350Mi", "tdx.intel.com/keys": "1"}, TDX),
        ("kata-cc", (BASE, SNP), {"cpu": "250m", "memory": "350Mi", "sev-snp.amd.com/esids": "1"}, SNP),
        ("kata-cc-nvidia-gpu", (BASE, TDX, GPU_ON), {"cpu": "250m", "memory": "350Mi", "tdx.intel.com/keys": "1"},
         {**GPU_ON, **BASE, **TDX}),
        ("kata-cc", (BASE, {names.SE_LABEL: "true"}), {"cpu": "250m", "memory": "350Mi"}, {names.SE_LABEL: "true"}),
    ],
)  # fmt: skip
def test_a_class_says_what_it_costs_and_where_it_runs(
    name: str, labels: tuple[dict[str, str], ...], overhead: dict[str, str], more: dict[str, str]
) -> None:
    for converged, role in ((False, names.ROLE_LABEL), (True, MASTER_LABEL)):
        needs = requirements(check=True, converged=converged)
        member = node("n1", *labels, role=MASTER_LABEL if converged else "node-role.kubernetes.io/worker")
        spec = {each.name: each for each in plan_classes(CONFIDENTIAL, needs, [member]).classes}[name]
        assert spec.overhead == overhead
        assert spec.selector(needs) == {role: "", **more}


def test_a_confidential_class_never_selects_a_node_without_the_tee_even_without_the_check() -> None:
    specs = {spec.name: spec for spec in plan_classes(CONFIDENTIAL, requirements(), [node("n1", TDX)]).classes}
    assert specs["kata-cc"].selector(requirements()) == {names.ROLE_LABEL: "", **TDX}
    assert specs["kata"].selector(requirements()) == {names.ROLE_LABEL: ""}


def test_a_class_that_is_left_out_says_what_the_closest_node_lacks() -> None:
    nodes = [node("n1", BASE, TDX), node("n2", BASE, TDX, {"nvidia.com/gpu.present": "true"})]
    left = plan_classes(CONFIDENTIAL, requirements(check=True), nodes).left_out
    assert left["kata-nvidia-gpu"].startswith(
        "no node has all of its labels; the closest lacks nvidia.com/cc.mode.state=off"
    )
    assert "nvidia.com/gpu.present" not in left["kata-nvidia-gpu"]


RHEL: dict[str, Any] = {"nodeInfo": {"osImage": "Red Hat Enterprise Linux 9.4 (Plow)"}}
RHCOS: dict[str, Any] = {"nodeInfo": {"osImage": "Red Hat Enterprise Linux CoreOS 9.6.20260101-0"}}
UBUNTU: dict[str, Any] = {"nodeInfo": {"osImage": "Ubuntu 24.04.1 LTS"}}
ENFORCE = {"spec": {"mode": "Enforce"}}
HOSTS = {"spec": {"mode": "Enforce", "pools": [
    {"name": "worker", "trustModel": "ContainersHost"}, {"name": "kata-oc", "trustModel": "ContainersHost"},
]}}  # fmt: skip
MIXED = {"spec": {"mode": "Enforce", "pools": [{"name": "kata-oc", "trustModel": "ContainersHost"}]}}


@pytest.mark.parametrize(
    ("worker", "cluster", "against", "word"),
    [
        (node("n", BASE, **RHCOS), None, None, ""),
        (node("n", BASE), None, None, ""),
        (node("n", BASE, notes={"fastness.dev/simulated": "true"}, nodeInfo={"osImage": "Virtual"}), None, None, ""),
        (node("n", BASE, **RHEL), None, Against.OPERATING_SYSTEM, "Red Hat Enterprise Linux 9.4"),
        (node("n", BASE, **UBUNTU), None, Against.OPERATING_SYSTEM, "Ubuntu 24.04"),
        (node("n", BASE, {"kubernetes.io/os": "windows"}), None, Against.OPERATING_SYSTEM, "Windows"),
        (node("n", BASE), ENFORCE, Against.TRUST_MODEL, "pool worker has the trust model ConfidentialCluster"),
        (node("n", BASE), MIXED, Against.TRUST_MODEL, "pool worker"),
        (node("n", BASE), HOSTS, None, ""),
        (node("n", BASE, {"node-role.kubernetes.io/infra": ""}), None, Against.OTHER_POOL, "pool infra"),
        (node("n"), None, Against.NOT_ELIGIBLE, names.BASE_LABEL),
        (node("n", {names.BASE_LABEL: "false"}), None, Against.NOT_ELIGIBLE, names.BASE_LABEL),
    ],
)  # fmt: skip
def test_every_node_is_decided_with_a_reason(
    worker: JsonObject, cluster: JsonObject | None, against: Against | None, word: str
) -> None:
    pools = [pool("worker"), pool("master"), pool("infra"), pool("kata-oc")]
    (choice,) = choose(requirements(check=True), [worker], pools, cluster)
    assert choice.against == against
    assert word in choice.message
    assert choice.chosen is (against is None)


def test_masters_and_strangers_are_not_meant_and_the_selector_narrows() -> None:
    nodes = [node("b", {"zone": "a"}), node("a"), node("m", role=MASTER_LABEL), node("x", role="other")]
    choices = choose(requirements(zone="a"), nodes, [pool("worker"), pool("master")], None)
    assert [(choice.node, choice.against) for choice in choices] == [("a", Against.NOT_SELECTED), ("b", None)]


def test_a_node_that_two_custom_pools_claim_is_left_alone() -> None:
    both = node("n", {"node-role.kubernetes.io/infra": "", names.ROLE_LABEL: ""})
    (choice,) = choose(requirements(), [both], [pool("worker"), pool("infra"), pool("kata-oc")], None)
    assert choice.against is Against.OTHER_POOL


@pytest.mark.parametrize(
    ("pools", "nodes", "converged"),
    [
        ([pool("master"), pool("worker", machines=0)], [node("m", role=MASTER_LABEL)], True),
        ([pool("master"), pool("worker", machines=2)], [node("m", role=MASTER_LABEL)], False),
        ([pool("master"), pool("worker", machines=0)], [], False),
        ([pool("master"), pool("worker", machines=0), pool("infra")], [node("m", role=MASTER_LABEL)], False),
        ([pool("worker", machines=0)], [node("m", role=MASTER_LABEL)], False),
        ([], [node("m", role=MASTER_LABEL)], False),
    ],
)
def test_converged_clusters_are_told_by_their_pools(
    pools: list[JsonObject], nodes: list[JsonObject], converged: bool
) -> None:
    assert is_converged(pools, nodes) is converged


def test_on_a_converged_cluster_neither_selector_nor_base_label_narrow() -> None:
    choices = choose(
        requirements(check=True, converged=True, zone="a"), [node("m", role=MASTER_LABEL)], [pool("master")], None
    )
    assert [choice.chosen for choice in choices] == [True]


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"a b": "c"}},
        {"matchExpressions": [{"key": "a", "operator": "Near"}]},
        {"matchLabels": {"a": "/"}},
    ],
)
def test_a_selector_that_cannot_be_read_is_refused_for_good(selector: JsonObject) -> None:
    with pytest.raises(Refused) as caught:
        requirements_of({"spec": {"kataConfigPoolSelector": selector}}, converged=False)
    assert (caught.value.reason, caught.value.again) == ("InvalidPoolSelector", None)


@pytest.mark.parametrize(
    ("version", "supported"),
    [
        (release, False)
        for release in [
            "4.18.0",
            "4.19.0",
            "4.19.27",
            "4.20.0",
            "4.20.17",
            "4.21.0",
            "4.21.8",
            "4.20.10",
            "4.21.9-rc1",
            "nonsense",
            "4.21",
        ]
    ]
    + [
        (release, True)
        for release in [
            "4.19.28",
            "4.19.100",
            "4.20.18",
            "4.21.9",
            "4.21.10",
            "4.22.0",
            "4.25.1",
            "5.0.0",
            "4.22.0-rc.1",
            "4.21.10-rc1",
        ]
    ],
)
def test_releases_are_compared_within_their_minor(version: str, supported: bool) -> None:
    assert release_can(version) is supported
    if supported:
        require_release(version)
        return
    with pytest.raises(Refused) as caught:
        require_release(version)
    least = "4.19.28, 4.20.18, 4.21.9"
    expected = f"OpenShift version {version} does not support CoCo bare metal (minimum required: {least} or higher)"
    assert caught.value.message == expected


def test_a_cluster_without_a_release_is_not_asked() -> None:
    require_release("")


def test_a_label_makes_no_runtime_host_of_a_node_whose_machine_is_in_a_confidential_pool() -> None:
    """Somebody who may write labels puts the node into a pool of hosts; its Machine says where it belongs."""
    cluster = {"spec": {"mode": "Enforce", "pools": [
        {"name": "infra", "trustModel": "ContainersHost"}, {"name": "kata-oc", "trustModel": "ContainersHost"}]}}  # fmt: skip
    labelled = node("n", {"node-role.kubernetes.io/infra": ""})
    pools = [pool("worker"), pool("infra"), pool("kata-oc")]
    (choice,) = choose(requirements(), [labelled], pools, cluster)
    assert choice.against is Against.OTHER_POOL
    machine = {"status": {"nodeName": "n", "pool": "worker"}}
    (choice,) = choose(requirements(), [labelled], pools, cluster, [machine])
    assert choice.against is Against.TRUST_MODEL
    kata = node("n", {names.ROLE_LABEL: ""})
    hosts = {"spec": {"mode": "Enforce", "pools": [{"name": "worker", "trustModel": "ContainersHost"},
                                                   {"name": "kata-oc", "trustModel": "ContainersHost"}]}}  # fmt: skip
    assert choose(requirements(), [kata], pools, hosts)[0].chosen
    confidential = {"status": {"nodeName": "n", "pool": "infra"}}
    assert choose(requirements(), [kata], pools, hosts, [confidential])[0].against is Against.TRUST_MODEL
