"""The state machine, story by story: what is told, what waits for what, what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fastness.kinds.kata import names
from fastness.kinds.kata.config import FINALIZER
from fastness.kinds.kata.names import InstallState
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, condition, labels_of
from fastness.workloads.kata.inputs import Ensure, LetGo, Mark, PodUse, Ref, Remove
from fastness.workloads.kata.mode import DeploymentMode, FeatureGates, read_gates
from fastness.workloads.kata.plan import plan
from tests.unit.workloads.kata.builders import BASE, SNP, TDX, pool
from tests.unit.workloads.kata.pretend_cluster import PretendCluster

PLAIN = FeatureGates()
CONFIDENTIAL = FeatureGates(confidential=True)
DAEMON_SET = FeatureGates(deployment_mode=DeploymentMode.DAEMON_SET)
KATA_POD = {
    "metadata": {"name": "p", "namespace": "d"}, "spec": {"runtimeClassName": "kata"}, "status": {"phase": "Running"},
}  # fmt: skip


def reported(world: PretendCluster, kind: str = "InProgress") -> tuple[str, str, str]:
    entry = condition(world.config or {}, kind) or {}
    return str(entry.get("status")), str(entry.get("reason")), str(entry.get("message"))


def installed(gates: FeatureGates = PLAIN, count: int = 2) -> PretendCluster:
    world = PretendCluster(gates, count)
    world.settle()
    assert world.in_progress == ("False", "")
    return world


def test_the_first_thing_told_is_that_it_begins_with_no_nodes() -> None:
    world = PretendCluster(PLAIN, 2)
    world.look()
    assert world.config is not None
    assert reported(world) == ("True", "Installing", "Performing initial installation of kata-cc on cluster")
    assert world.config["status"]["kataNodes"] == {"nodeCount": 0, "readyNodeCount": 0}
    assert world.config["status"]["waitingForMcoToStart"] is True
    assert world.config["metadata"]["finalizers"] == [FINALIZER]
    assert world.classes == []


@pytest.mark.parametrize("gates", [PLAIN, DAEMON_SET])
def test_classes_appear_when_the_last_node_is_done_and_go_first(gates: FeatureGates) -> None:
    world = PretendCluster(gates, 2)
    while world.in_progress != ("False", "") if (world.config or {}).get("status") else True:
        assert world.classes == []
        world.look()
        world.others()
    world.look()
    assert world.config is not None
    assert world.classes == world.config["status"]["runtimeClasses"] == ["kata", "kata-nvidia-gpu"]
    assert reported(world) == ("False", "", "")
    world.delete()
    world.look()
    assert reported(world) == ("True", "Uninstalling", "Removing kata-cc from cluster")
    assert all(
        "deletionTimestamp" in runtime_class["metadata"]
        for ref, runtime_class in world.objects.items()
        if ref.kind == "RuntimeClass"
    )
    world.look()
    assert world.classes == []
    world.settle()
    assert world.config is None


@pytest.mark.parametrize("gates", [PLAIN, DAEMON_SET])
def test_a_node_that_fails_is_told_in_its_own_words_and_the_others_go_on(gates: FeatureGates) -> None:
    world = PretendCluster(gates, 3)
    world.broken = {"worker-1"}
    for _ in range(40):
        world.look()
        world.others()
    world.look()
    assert world.config is not None
    lists = world.config["status"]["kataNodes"]
    assert lists["installed"] == ["worker-0", "worker-2"]
    assert "Failed" in world.reasons
    assert lists["nodeCount"] == 3
    assert world.classes == []
    world.broken = set()
    world.settle()
    assert reported(world) == ("False", "", "")


def test_the_failure_is_told_exactly() -> None:
    world = PretendCluster(PLAIN, 1)
    world.broken = {"worker-0"}
    for _ in range(6):
        world.look()
        world.others()
    world.look()
    assert reported(world) == ("True", "Failed", "Node worker-0 Degraded: no")
    assert world.config is not None
    assert world.config["status"]["kataNodes"]["failedToInstall"] == ["worker-0"]


def test_pods_that_use_a_class_hold_a_deletion_up() -> None:
    world = installed()
    world.pods = [KATA_POD]
    world.delete()
    step = world.look()
    expected = 'Existing pods using "kata" RuntimeClass found. Please delete the pods manually for KataConfig deletion to proceed'
    assert reported(world) == ("False", "BlockedByExistingKataPods", expected)
    assert step.actions == ()
    assert step.again == 15.0
    assert world.config is not None
    assert world.config["status"]["kataNodes"]["installed"] == ["worker-0", "worker-1"]
    world.pods = [{**KATA_POD, "status": {"phase": "Succeeded"}}]
    world.settle()
    assert world.config is None


def test_pods_that_cannot_be_listed_hold_a_deletion_up_too() -> None:
    world = installed()
    world.delete()
    step = plan(replace(world.inputs(), pods=PodUse(error="etcd is away")))
    assert step.status is not None
    assert step.status.in_progress == (False, "BlockedByExistingKataPods", "Failed to list kata pods: etcd is away")
    assert step.actions == ()


def test_a_deletion_waits_for_an_installation_that_is_under_way() -> None:
    world = PretendCluster(PLAIN, 2)
    for _ in range(3):
        world.look()
        world.others()
    world.delete()
    world.settle()
    assert world.config is None
    assert world.reasons == ["Installing", "", "Uninstalling"]


def test_a_deletion_does_not_wait_for_one_that_failed() -> None:
    world = PretendCluster(PLAIN, 2)
    world.broken = {"worker-0"}
    for _ in range(8):
        world.look()
        world.others()
    world.delete()
    world.settle()
    assert world.config is None
    assert "" not in world.reasons


def test_a_deletion_does_not_wait_for_nodes_that_are_away_for_long() -> None:
    world = PretendCluster(PLAIN, 1)
    world.look()
    world.others()
    world.look()
    world.ready("worker-0", yes=False)
    world.delete()
    world.look()
    assert world.reasons[-1] == "Uninstalling"


def test_a_deletion_before_anything_began_leaves_at_once() -> None:
    world = PretendCluster(PLAIN, 1)
    world.delete()
    assert world.config is None
    assert plan(world.inputs()).actions == ()


@pytest.mark.parametrize(
    ("gates", "labels", "spec", "reason"),
    [
        (PLAIN, {}, {"checkNodeEligibility": True}, "NoEligibleNodes"),
        (PLAIN, {}, {"kataConfigPoolSelector": {"matchLabels": {"no": "node"}}}, "NoMatchingNodes"),
        (PLAIN, {}, {"kataConfigPoolSelector": {"matchLabels": {"a b": "c"}}}, "InvalidPoolSelector"),
        (FeatureGates(layered_image=True), {}, {}, "LayeredImageMissing"),
    ],
)
def test_what_cannot_begin_makes_nothing_and_says_why(
    gates: FeatureGates, labels: dict[str, str], spec: JsonObject, reason: str
) -> None:
    world = PretendCluster(gates, 1, **spec)
    world.settle()
    assert reported(world)[:2] == ("False", reason)
    assert world.objects == {}
    assert names.ROLE_LABEL not in labels_of(world.nodes["worker-0"])
    assert world.config is not None
    assert "finalizers" not in world.config["metadata"]


def test_it_begins_by_itself_when_discovery_labels_a_node() -> None:
    world = PretendCluster(PLAIN, 1, checkNodeEligibility=True)
    assert world.look().again == 20.0
    world.nodes["worker-0"]["metadata"]["labels"] |= BASE
    world.settle()
    assert reported(world) == ("False", "", "")
    assert world.classes == ["kata"]


def test_a_release_that_is_too_old_is_refused_and_nothing_is_changed() -> None:
    world = PretendCluster(CONFIDENTIAL, 1)
    step = plan(replace(world.inputs(), version="4.19.0"))
    assert step.status is not None
    assert step.status.in_progress.reason == "UnsupportedOCPVersion"
    assert step.actions == ()
    assert plan(replace(world.inputs(), version="4.19.0", gates=PLAIN)).actions != ()


def test_machine_configs_that_are_not_served_are_refused_or_gone_around() -> None:
    world = PretendCluster(PLAIN, 1, served=False)
    world.settle()
    assert reported(world)[1] == "DeploymentModeUnavailable"
    world.gates = FeatureGates(deployment_mode=DeploymentMode.FALLBACK)
    world.settle()
    assert reported(world) == ("False", "", "")
    assert labels_of(world.nodes["worker-0"])[names.STATE_LABEL] == InstallState.INSTALLED


def test_the_mode_stays_until_the_config_is_gone_and_the_refusal_is_told() -> None:
    world = installed()
    world.gates = DAEMON_SET
    world.settle()
    assert reported(world)[:2] == ("False", "")
    assert reported(world, "GatesUnderstood")[1] == "ModeChangeRefused"
    assert not any(ref.kind == "DaemonSet" and ref.name == names.INSTALLER for ref in world.objects)
    world.gates = PLAIN
    world.settle()
    assert condition(world.config or {}, "GatesUnderstood") is None


def test_nonsense_in_the_gates_is_told_and_stops_nothing() -> None:
    world = installed(read_gates({"data": {"confidential": "maybe"}}))
    assert reported(world, "GatesUnderstood")[:2] == ("False", "BadValue")
    assert "'maybe' is not true or false" in reported(world, "GatesUnderstood")[2]


def test_one_kind_of_tee_then_two_then_none() -> None:
    world = PretendCluster(CONFIDENTIAL, 2)
    world.settle()
    assert reported(world, "ConfidentialReady")[:2] == ("False", "NoTeePlatform")
    assert world.classes == ["kata", "kata-nvidia-gpu"]
    world.nodes["worker-0"]["metadata"]["labels"] |= TDX
    world.settle()
    assert condition(world.config or {}, "ConfidentialReady") is None
    assert "kata-cc" in world.classes
    world.nodes["worker-1"]["metadata"]["labels"] |= SNP
    world.settle()
    expected = "multiple TEE platforms detected; only one per cluster supported"
    assert reported(world, "ConfidentialReady") == ("False", "MultipleTeePlatforms", expected)
    assert "kata-cc" not in world.classes
    assert {"kata-cc-tdx", "kata-cc-snp"} <= set(world.classes)
    world.gates = PLAIN
    world.settle()
    assert world.classes == ["kata", "kata-nvidia-gpu"]


def test_a_class_that_a_pod_uses_is_not_taken_away() -> None:
    world = PretendCluster(CONFIDENTIAL, 1)
    world.nodes["worker-0"]["metadata"]["labels"] |= TDX
    world.settle()
    world.pods = [{**KATA_POD, "spec": {"runtimeClassName": "kata-cc"}}]
    world.gates = PLAIN
    world.settle()
    assert "kata-cc" in world.classes
    world.pods = []
    world.settle()
    assert "kata-cc" not in world.classes


def test_another_tee_brings_the_class_again_with_its_handler() -> None:
    world = PretendCluster(CONFIDENTIAL, 1)
    world.nodes["worker-0"]["metadata"]["labels"] |= TDX
    world.settle()
    del world.nodes["worker-0"]["metadata"]["labels"][names.TDX_LABEL]
    world.nodes["worker-0"]["metadata"]["labels"] |= SNP
    world.pods = [{**KATA_POD, "spec": {"runtimeClassName": "kata-cc"}}]
    world.settle()
    assert world.objects[Ref("RuntimeClass", "kata-cc")]["handler"] == "kata-tdx"
    world.pods = []
    world.settle()
    assert world.objects[Ref("RuntimeClass", "kata-cc")]["handler"] == "kata-snp"


def test_a_class_that_somebody_deletes_is_held_while_pods_run_and_made_again() -> None:
    world = installed()
    world.objects[Ref("RuntimeClass", "kata")]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.pods = [KATA_POD]
    assert world.look().again == 10.0
    assert "kata" in world.classes
    world.pods = []
    world.look()
    assert "kata" not in world.classes
    world.settle()
    assert "kata" in world.classes


def test_classes_without_a_config_are_let_go_when_nobody_uses_them() -> None:
    world = installed()
    for ref, runtime_class in world.objects.items():
        if ref.kind == "RuntimeClass":
            runtime_class["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.config = None
    assert {action.ref.name for action in plan(world.inputs()).actions if isinstance(action, LetGo)} == {
        "kata",
        "kata-nvidia-gpu",
    }
    world.pods = [KATA_POD]
    assert {action.ref.name for action in plan(world.inputs()).actions if isinstance(action, LetGo)} == {
        "kata-nvidia-gpu"
    }


def test_a_log_level_rolls_through_the_pool_and_back() -> None:
    world = installed()
    assert world.config is not None
    assert Ref("ContainerRuntimeConfig", names.RUNTIME_CONFIG) not in world.objects
    world.config["spec"]["logLevel"] = "debug"
    world.look()
    world.look()
    assert reported(world) == ("True", "Updating", "Adding and/or removing kata-enabled nodes")
    assert world.classes == ["kata", "kata-nvidia-gpu"]
    world.settle()
    assert reported(world) == ("False", "", "")
    spec = world.objects[Ref("ContainerRuntimeConfig", names.RUNTIME_CONFIG)]["spec"]
    assert spec["containerRuntimeConfig"] == {"logLevel": "debug"}
    world.config["spec"]["logLevel"] = "info"
    world.settle()
    assert spec["containerRuntimeConfig"] == {"logLevel": "info"}


@pytest.mark.parametrize("gates", [PLAIN, DAEMON_SET])
def test_nodes_join_and_leave_a_running_installation(gates: FeatureGates) -> None:
    world = installed(gates)
    world.add("worker-9")
    world.look()
    world.look()
    assert reported(world)[1] == "Updating"
    world.settle()
    assert world.config is not None
    assert world.config["status"]["kataNodes"]["installed"] == ["worker-0", "worker-1", "worker-9"]
    world.config["spec"]["kataConfigPoolSelector"] = {"matchLabels": {"keep": "yes"}}
    world.nodes["worker-0"]["metadata"]["labels"]["keep"] = "yes"
    world.settle()
    assert world.config["status"]["kataNodes"] == {"nodeCount": 1, "readyNodeCount": 1, "installed": ["worker-0"]}
    assert names.ROLE_LABEL not in labels_of(world.nodes["worker-9"])


def test_refused_nodes_are_told_with_the_reason_and_the_others_are_installed() -> None:
    world = PretendCluster(PLAIN, 2)
    world.nodes["worker-1"]["status"]["nodeInfo"] = {"osImage": "Red Hat Enterprise Linux 9.4 (Plow)"}
    world.settle()
    assert reported(world) == ("False", "", "")
    status, reason, message = reported(world, "NodesRefused")
    assert (status, reason) == ("True", "UnsupportedOperatingSystem")
    assert message.startswith("worker-1 runs Red Hat Enterprise Linux 9.4 (Plow), and only CoreOS hosts are supported")
    assert world.config is not None
    assert world.config["status"]["kataNodes"]["installed"] == ["worker-0"]


def test_a_cluster_of_confidential_machines_is_refused_as_a_whole() -> None:
    world = PretendCluster(PLAIN, 2)
    step = plan(replace(world.inputs(), cluster={"spec": {"mode": "Enforce"}}))
    assert step.actions == ()
    assert step.status is not None
    assert step.status.in_progress.reason == "ConfidentialClusterPool"
    assert "worker-0 pool worker has the trust model ConfidentialCluster" in step.status.in_progress.message


def test_a_layered_image_replaces_the_extension() -> None:
    world = PretendCluster(FeatureGates(layered_image=True), 1)
    layered = {"data": {"osImageURL": "example.com/os@sha256:1", "kernelArguments": "a=1  b"}}
    made = [action for action in plan(replace(world.inputs(), layered=layered)).actions if isinstance(action, Ensure)]
    spec = next(ensure.obj["spec"] for ensure in made if ensure.obj["metadata"]["name"] == names.IMAGE_CONFIG)
    assert spec == {
        "config": {"ignition": {"version": "3.2.0"}}, "osImageURL": "example.com/os@sha256:1", "kernelArguments": ["a=1", "b"],
    }  # fmt: skip
    world = installed()
    world.gates = FeatureGates(layered_image=True)
    actions = plan(replace(world.inputs(), layered=layered)).actions
    assert Remove(Ref("MachineConfig", names.EXTENSION_CONFIG)) in actions


def test_on_a_converged_cluster_the_master_pool_gets_it() -> None:
    world = PretendCluster(PLAIN, 1).inputs()
    master = {
        **world.nodes[0],
        "metadata": {**world.nodes[0]["metadata"], "labels": {"node-role.kubernetes.io/master": ""}},
    }
    pools = [pool("master", "rendered-master-1", ("00-master",)), pool("worker", machines=0)]
    world = replace(world, nodes=[master], pools=pools)
    made = [action for action in plan(world).actions if isinstance(action, Ensure)]
    assert made[0].obj["metadata"]["labels"]["machineconfiguration.openshift.io/role"] == "master"
    assert "MachineConfigPool" not in {ensure.ref.kind for ensure in made}


def eligible(gates: FeatureGates, count: int = 2) -> PretendCluster:
    """Nodes that discovery labelled have the runtime."""
    world = PretendCluster(gates, 0, checkNodeEligibility=True)
    for number in range(count):
        world.add(f"worker-{number}", **BASE)
    world.settle()
    assert world.in_progress == ("False", "")
    return world


def on(node: str) -> JsonObject:
    return {**KATA_POD, "spec": {"runtimeClassName": "kata", "nodeName": node}}


@pytest.mark.parametrize("gates", [PLAIN, DAEMON_SET])
def test_labels_that_vanish_are_told_and_touch_neither_node_nor_class(gates: FeatureGates) -> None:
    world = eligible(gates)
    before = (world.objects, world.classes, {name: dict(annotations_of(node)) for name, node in world.nodes.items()})
    for node in world.nodes.values():
        del node["metadata"]["labels"][names.BASE_LABEL]
    labels = {name: dict(labels_of(node)) for name, node in world.nodes.items()}
    world.settle()
    after = (world.objects, world.classes, {name: dict(annotations_of(node)) for name, node in world.nodes.items()})
    assert after == before
    assert {name: dict(labels_of(node)) for name, node in world.nodes.items()} == labels
    assert reported(world) == ("False", "", "")
    assert reported(world, "RemovalHeld")[:2] == ("True", "LabelsLost")
    assert "worker-1 has the runtime and lost its label" in reported(world, "RemovalHeld")[2]
    assert world.config is not None
    assert world.config["status"]["kataNodes"]["nodeCount"] == 2
    for node in world.nodes.values():
        node["metadata"]["labels"] |= BASE
    world.settle()
    assert condition(world.config, "RemovalHeld") is None


@pytest.mark.parametrize("gates", [PLAIN, DAEMON_SET])
def test_a_node_that_never_had_the_labels_gets_nothing_while_those_of_others_are_lost(gates: FeatureGates) -> None:
    world = eligible(gates, 1)
    world.add("worker-1")
    del world.nodes["worker-0"]["metadata"]["labels"][names.BASE_LABEL]
    world.settle()
    assert names.ROLE_LABEL not in labels_of(world.nodes["worker-1"])


@pytest.mark.parametrize("gates", [PLAIN, DAEMON_SET])
def test_a_node_that_is_taken_out_keeps_the_runtime_until_its_pods_are_gone(gates: FeatureGates) -> None:
    world = installed(gates)
    world.pods = [on("worker-0")]
    assert world.config is not None
    world.nodes["worker-1"]["metadata"]["labels"]["kata"] = "yes"
    world.config["spec"]["kataConfigPoolSelector"] = {"matchLabels": {"kata": "yes"}}
    world.settle()
    assert names.ROLE_LABEL in labels_of(world.nodes["worker-0"])
    assert reported(world, "RemovalHeld")[1] == "BlockedByExistingKataPods"
    assert "worker-0 is to lose the runtime" in reported(world, "RemovalHeld")[2]
    assert "d/p runs in it" in reported(world, "RemovalHeld")[2]
    assert world.look().again == 15.0
    step = plan(replace(world.inputs(), pods=PodUse(error="etcd is away")))
    assert not [action for action in step.actions if isinstance(action, Mark)]
    world.pods = [on("worker-1")]
    world.settle()
    assert names.ROLE_LABEL not in labels_of(world.nodes["worker-0"])
    assert names.ROLE_LABEL in labels_of(world.nodes["worker-1"])
    assert condition(world.config, "RemovalHeld") is None


def test_a_deletion_is_not_held_up_by_labels_that_are_lost() -> None:
    world = eligible(PLAIN)
    for node in world.nodes.values():
        del node["metadata"]["labels"][names.BASE_LABEL]
    world.settle()
    world.delete()
    world.settle()
    assert world.config is None
    assert not any(names.ROLE_LABEL in labels_of(node) for node in world.nodes.values())
