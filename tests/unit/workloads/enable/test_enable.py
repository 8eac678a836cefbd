"""One step to confidential containers: checks, what is made, what is kept, and which machines restart."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from fastness.cli.config.offline import assumed_pool
from fastness.crypto.secret import SecretBytes, SecretText
from fastness.kinds.kata import names
from fastness.kinds.kata.names import Tee
from fastness.machineconfig.rollout.plan import State
from fastness.workloads import host_configs as hostconfigs
from fastness.workloads.enable import manifests
from fastness.workloads.enable.changes import Action, ObjectChange, compared, differences
from fastness.workloads.enable.inputs import LOOKED_AT, EnableRequest, Snapshot
from fastness.workloads.enable.preflight import Check, Result, preflight, refusals
from fastness.workloads.enable.steps import Step, open_changes, reboots, steps
from fastness.workloads.intel.dcap import DcapInputs, Serving
from fastness.workloads.nvidia.policy import check, cluster_policy

Object = dict[str, Any]
WORKER = "node-role.kubernetes.io/worker"
TDX, SNP = EnableRequest(Tee.TDX), EnableRequest(Tee.SNP)
DCAP = DcapInputs(
    SecretText("0123456789abcdef" * 2), SecretText("user-token-user-token"), SecretText("other-token-other-token"), "m0",
    Serving(b"C", SecretBytes(b"K"), b"A"),
)  # fmt: skip


def node(name: str, **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": {WORKER: "", **labels}}, "status": {"capacity": {}}}


def tdx_host(name: str, **labels: str) -> Object:
    host = node(name, **{names.BASE_LABEL: "true", names.TDX_LABEL: "true", **labels})
    return {**host, "status": {"capacity": {"tdx.intel.com/keys": "31", "sgx.intel.com/enclave": "110"}}}


MASTER: Object = {
    "metadata": {
        "name": "m0",
        "labels": {"node-role.kubernetes.io/master": "", "node-role.kubernetes.io/control-plane": ""},
    }
}


def snapshot(nodes: list[Object] | None = None, state: Object | None = None, **objects: Any) -> Snapshot:
    pools = [assumed_pool("master"), {**assumed_pool("worker"), "status": {"machineCount": 2}}]
    given: Object = {
        "pools": pools,
        "configs": [],
        "nodes": [tdx_host("w0"), tdx_host("w1"), MASTER] if nodes is None else nodes,
    }
    all_kinds: dict[str, Any] = {kind.plural: [] for kind, _ in LOOKED_AT}
    return Snapshot(State(**{**given, **(state or {})}), {**all_kinds, **objects})


def with_everything(cluster: Snapshot, done: list[Step]) -> Snapshot:
    """The snapshot after the steps were taken."""
    objects = {plural: list(items or ()) for plural, items in cluster.objects.items()}
    configs = list(cluster.state.configs)
    for change in open_changes(done):
        target = configs if change.resource.kind == "MachineConfig" else objects[change.resource.plural]
        target.append(deepcopy(change.target))
    return Snapshot(replace(cluster.state, configs=configs), objects)


def named(checks: list[Check], result: Result) -> list[str]:
    return [check.name for check in checks if check.result is result]


def test_good_cluster_has_nothing_against_it() -> None:
    checks = preflight(snapshot(), TDX, has_key=True)
    assert {check.result for check in checks} == {Result.OK}


def made(done: list[Step]) -> list[str]:
    return [change.named for change in open_changes(done)]


def test_everything_of_the_manual_is_made_in_order() -> None:
    objects = made(steps(snapshot(), TDX, DCAP))
    assert objects[:3] == [
        "Namespace openshift-sandboxed-containers-operator",
        "OperatorGroup openshift-sandboxed-containers-operator/sandboxed-containers-operator-group",
        "Subscription openshift-sandboxed-containers-operator/sandboxed-containers-operator",
    ]
    assert "MachineConfig 99-enable-intel-tdx" in objects
    assert "MachineConfig 100-iommu-kernel-args" not in objects
    assert objects[-2:] == [
        "ConfigMap openshift-sandboxed-containers-operator/osc-feature-gates",
        "KataConfig example-kataconfig",
    ]
    with_gpu = made(steps(snapshot(), replace(SNP, gpu=True)))
    assert {
        "MachineConfig 100-iommu-kernel-args",
        "ClusterPolicy gpu-cluster-policy",
        "NodeFeatureRule nvidia-kernel-modules",
    } <= set(with_gpu)
    assert not any("intel-dcap" in name or "tdx" in name for name in with_gpu)


@pytest.mark.parametrize("enabling", [TDX, SNP, replace(TDX, gpu=True), replace(SNP, gpu=True, trustee=False)])
def test_after_it_was_done_nothing_is_left_to_do(enabling: EnableRequest) -> None:
    before = snapshot()
    done = steps(before, enabling, DCAP)
    after = with_everything(before, done)
    again = steps(after, enabling, DCAP)
    assert made(again) == []
    assert all(step.done for step in again)
    assert not reboots(after, enabling, again)


def test_what_others_did_under_other_names_is_kept() -> None:
    subscription = {"metadata": {"name": "mine", "namespace": "openshift-operators"}, "spec": {"name": "nfd"},
                    "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription"}  # fmt: skip
    group = {"metadata": {"name": "mine", "namespace": names.NAMESPACE}}
    config = hostconfigs.tdx_config("worker")
    config["metadata"]["name"] = "50-mine"
    kata = {"metadata": {"name": "other"}, "spec": {}}
    cluster = snapshot(
        state={"configs": [config]}, subscriptions=[subscription], operatorgroups=[group], kataconfigs=[kata],
        nodefeaturediscoveries=[{"metadata": {"name": "x", "namespace": "y"}}],
    )  # fmt: skip
    done = made(steps(cluster, TDX, DCAP))
    assert "Subscription openshift-nfd/nfd" not in done
    assert "Namespace openshift-nfd" in done, "rules of the manual still go there"
    assert not any(
        step.startswith(("OperatorGroup openshift-sandboxed", "MachineConfig", "KataConfig", "NodeFeatureDiscovery"))
        for step in done
    )


def test_half_a_host_config_is_completed_by_ours() -> None:
    half = hostconfigs.tdx_config("kata-oc")
    half["spec"]["kernelArguments"] = ["kvm_intel.tdx=1"]
    (change,) = next(
        step for step in steps(snapshot(state={"configs": [half]}), TDX, DCAP) if step.title == "hosts"
    ).changes
    assert change.action is Action.CHANGE
    assert change.fields[0].startswith("nohibernate: ")
    assert change.patch["spec"]["kernelArguments"] == ["kvm_intel.tdx=1", "nohibernate"]
    assert change.patch["metadata"]["labels"] == {"machineconfiguration.openshift.io/role": "kata-oc"}


def test_gates_are_opened_and_their_mode_left_alone() -> None:
    gates = {
        "metadata": {"name": names.FEATURE_GATES, "namespace": names.NAMESPACE},
        "data": {"deploymentMode": "DaemonSet"},
    }
    changes = steps(snapshot(configmaps=[gates]), SNP)[-1].changes
    assert (changes[0].action, changes[0].fields, changes[0].patch) == (
        Action.CHANGE, ("data.confidential",), {"data": {"confidential": "true"}},
    )  # fmt: skip
    with_mode = steps(snapshot(configmaps=[gates]), replace(SNP, mode="MachineConfig"))[-1].changes[0]
    assert with_mode.fields == ("data.confidential", "data.deploymentMode")


def test_policy_for_gpus_is_mended_field_by_field() -> None:
    policy = cluster_policy()
    policy["metadata"]["name"] = "mine"
    policy["spec"]["driver"]["enabled"] = True
    policy["spec"]["vfioManager"]["env"] = [{"name": "MINE", "value": "1"}]
    (change,) = next(
        step for step in steps(snapshot(clusterpolicies=[policy]), replace(SNP, gpu=True)) if step.title == "gpus"
    ).changes
    assert change.named == "ClusterPolicy mine"
    assert len(change.fields) == 2
    spec = {
        **policy["spec"],
        **{key: {**policy["spec"].get(key, {}), **value} for key, value in change.patch["spec"].items()},
    }
    assert check({"spec": spec}) == []
    assert {"name": "MINE", "value": "1"} in change.patch["spec"]["vfioManager"]["env"]


def test_tokens_in_use_are_never_changed_and_a_lost_half_of_tls_makes_both_anew() -> None:
    before = snapshot()
    after = with_everything(before, steps(before, TDX, DCAP))
    secret = next(secret for secret in after.all("secrets") if secret["metadata"]["name"] == "pccs-secrets")
    secret["data"] = {"PCCS_API_KEY": "b3RoZXI="}
    assert made(steps(after, TDX, replace(DCAP, serving=Serving(b"X", SecretBytes(b"Y"), b"Z")))) == []
    others = [config_map for config_map in after.all("configmaps") if config_map["metadata"]["name"] != "pccs-ca"]
    lost = Snapshot(after.state, {**after.objects, "configmaps": others})
    assert made(steps(lost, TDX, replace(DCAP, serving=Serving(b"X", SecretBytes(b"Y"), b"Z")))) == [
        "Secret intel-dcap/pccs-tls", "ConfigMap intel-dcap/pccs-ca",
    ]  # fmt: skip


def test_plan_shows_the_pool_that_the_kataconfig_will_bring() -> None:
    cluster = snapshot()
    plan = reboots(cluster, TDX, steps(cluster, TDX, DCAP))
    (pool,) = plan.pools
    assert pool.pool == "kata-oc"
    assert [node.name for node in pool.nodes or ()] == ["w0", "w1"]
    assert plan.reboots
    sources = {step.source for step in pool.steps}
    assert {"50-enable-sandboxed-containers-extension", "99-enable-intel-tdx"} <= sources


def test_masters_get_it_where_they_are_the_workers() -> None:
    both = {
        "metadata": {"name": "m0", "labels": {**MASTER["metadata"]["labels"], WORKER: "", names.BASE_LABEL: "true"}}
    }
    cluster = snapshot([both], state={"pools": [assumed_pool("master"), assumed_pool("worker")]})
    assert (cluster.pool, cluster.roles) == ("master", ("master",))
    config = next(
        change for change in open_changes(steps(cluster, replace(TDX, gpu=True), DCAP)) if "iommu" in change.named
    )
    assert config.target["metadata"]["labels"] == {"machineconfiguration.openshift.io/role": "master"}
    plan = reboots(cluster, TDX, steps(cluster, TDX, DCAP))
    assert [pool.pool for pool in plan.pools] == ["master"]


def test_cluster_without_machine_configs_gets_the_daemon_set_and_no_reboots() -> None:
    cluster = snapshot(state={"pools": []})
    done = steps(cluster, TDX, DCAP)
    gates = next(change for change in open_changes(done) if "osc-feature-gates" in change.named)
    assert gates.target["data"]["deploymentMode"] == "DaemonSet"
    assert not any("MachineConfig " in name for name in made(done))
    (kernel,) = [check for check in preflight(cluster, TDX, has_key=True) if check.name == "kernel"]
    assert "their images must boot with kvm_intel.tdx=1 nohibernate" in kernel.message
    assert not reboots(cluster, TDX, done)


ENFORCING = {"spec": {"mode": "Enforce"}}
CONFIDENTIAL = {"spec": {"mode": "Enforce", "pools": [{"name": "worker", "trustModel": "ContainersHost"}]}}


@pytest.mark.parametrize(
    ("cluster", "enabling", "check_name", "message"),
    [
        (snapshot(state={"cluster": ENFORCING}), TDX, "trust model", "pool worker and kata-oc: ConfidentialCluster"),
        (snapshot(state={"cluster": CONFIDENTIAL}), TDX, "trust model", "pool kata-oc: ConfidentialCluster"),
        (snapshot(kataconfigs=None), TDX, "kinds", "kataconfigs.kataconfiguration.openshift.io"),
        (snapshot([MASTER]), TDX, "nodes", "there are no workers"),
        (
            snapshot([{**tdx_host("w0"), "status": {"nodeInfo": {"osImage": "Red Hat Enterprise Linux 9"}}}]), TDX, "nodes",
            "w0: runs Red Hat Enterprise Linux 9, and only CoreOS hosts are supported",
        ),
        (
            snapshot([node("w0", **{names.BASE_LABEL: "true"})], nodefeatures=[{}], nodefeaturerules=[{}]), SNP, "hardware",
            "discovery looked, and no node has snp (found: none)",
        ),
        (
            snapshot(clusterversions=[{"metadata": {"name": "version"}, "status": {"desired": {"version": "4.19.3"}}}]), TDX,
            "release", "w0, w1: x86_64 without a GPU needs OpenShift 4.19.28 or later",
        ),
        (
            snapshot(clusterversions=[{"metadata": {"name": "version"}, "status": {"desired": {"version": "4.20.18"}}}]),
            replace(TDX, gpu=True), "release", "x86_64 with a GPU needs OpenShift 4.21.9 or later",
        ),
        (
            snapshot(kataconfigs=[{"metadata": {"name": "k", "deletionTimestamp": "x"}, "spec": {}}]), TDX, "KataConfig",
            "k is being removed",
        ),
    ],
)  # fmt: skip
def test_what_stands_against_it_is_refused_with_the_reason(
    cluster: Snapshot, enabling: EnableRequest, check_name: str, message: str
) -> None:
    against = refusals(preflight(cluster, enabling, has_key=True))
    assert check_name in [check.name for check in against]
    check = next(check for check in against if check.name == check_name)
    assert message in check.message
    assert check.hint


def test_degraded_pool_refuses_and_a_paused_one_warns() -> None:
    worker = {**assumed_pool("worker"), "status": {"machineCount": 1, "conditions": [
        {"type": "Degraded", "status": "True", "message": "disk full"}]}}  # fmt: skip
    pools = [assumed_pool("master"), worker]
    assert (
        "pool worker is degraded: disk full"
        in refusals(preflight(snapshot(state={"pools": pools}), SNP, has_key=False))[0].message
    )
    paused = {**assumed_pool("worker"), "status": {"machineCount": 1}}
    paused["spec"] = {**paused["spec"], "paused": True}
    cluster = snapshot(state={"pools": [assumed_pool("master"), paused]})
    assert "pool" in named(preflight(cluster, SNP, has_key=False), Result.WARN)


def test_intel_needs_a_key_and_a_place() -> None:
    assert named(preflight(snapshot(), TDX, has_key=False), Result.REFUSE) == ["quotes"]
    assert refusals(preflight(snapshot(), replace(TDX, dcap=False), has_key=False)) == []
    workers = [tdx_host("w0")]
    assert "no control-plane node" in refusals(preflight(snapshot(workers), TDX, has_key=True))[0].message
    assert refusals(preflight(snapshot(workers), replace(TDX, pccs_node="w0"), has_key=True)) == []
    (nowhere,) = refusals(preflight(snapshot(workers), replace(TDX, pccs_node="w7"), has_key=True))
    assert (nowhere.message, nowhere.hint) == (
        "PCCS is to run on w7, and there is no such node",
        "Give the name of a node: w0.",
    )
    with_key = snapshot(secrets=[{"metadata": {"name": "pccs-secrets", "namespace": "intel-dcap"}}])
    assert refusals(preflight(with_key, TDX, has_key=False)) == []


def test_what_is_not_known_yet_is_never_a_refusal() -> None:
    fresh = snapshot([node("w0"), MASTER])
    assert refusals(preflight(fresh, SNP, has_key=False)) == []
    dark = snapshot([node("w0", **{names.BASE_LABEL: "true"}), MASTER], nodefeatures=[{}], nodefeaturerules=[{}])
    checks = preflight(dark, TDX, has_key=True)
    assert refusals(checks) == [], "a TDX host shows itself only after the restart that this step causes"
    assert any("kvm_intel.tdx=1" in check.message for check in checks)


def test_warnings_tell_what_will_not_work_yet() -> None:
    keyless = {**tdx_host("w0"), "status": {"capacity": {}}}
    other = node(
        "w1", **{names.SNP_LABEL: "true", "nvidia.com/gpu.present": "true", "nvidia.com/cc.mode.state": "failed"}
    )
    checks = preflight(snapshot([keyless, other, MASTER]), replace(TDX, gpu=True), has_key=True)
    warnings = " ".join(check.message for check in checks if check.result is Result.WARN)
    for part in (
        "w0 offers no tdx.intel.com/keys",
        "also has snp",
        "no node offers sgx.intel.com/enclave",
        "w1: the manager could not",
    ):
        assert part in warnings


@pytest.mark.parametrize(
    ("target", "present", "paths"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, []),
        ({"a": {"b": [{"c": 1}]}}, {"a": {"b": [{"c": 1, "d": 2}]}}, []),
        ({"a": [1, 2]}, {"a": [1]}, ["a"]),
        ({"a": {"b": [{"c": 1}]}}, {"a": {"b": [{"c": 2}]}}, ["a.b[0].c"]),
        ({"a": "", "b": {}, "c": False}, {}, []),
        ({"a": {"b": 1}}, {"a": None}, ["a"]),
    ],
)
def test_present_objects_are_compared_by_what_is_wanted(target: Object, present: Object, paths: list[str]) -> None:
    assert list(differences(target, present)) == paths


def test_rule_that_somebody_changed_is_put_right() -> None:
    rule = manifests.hardware_rule()
    rule["spec"]["rules"][3]["extendedResources"] = {}
    change: ObjectChange = compared(snapshot(nodefeaturerules=[rule]), manifests.hardware_rule())
    assert (change.action, change.fields) == (Action.CHANGE, ("spec.rules[3].extendedResources.tdx.intel.com/keys",))
