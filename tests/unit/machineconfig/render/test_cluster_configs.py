"""nodes.config and the FeatureGate become configs of every pool; what became of them is told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import condition
from fastness.machineconfig.render.cluster_configs import FEATURE_GATE, NODE_CONFIG, selects_role
from fastness.machineconfig.render.cluster_status import conditions, prohibition, was_looked_at
from fastness.machineconfig.render.errors import BadSettings
from fastness.machineconfig.render.generated import (
    KUBELET,
    RUNTIME,
    Owners,
    base_configs,
    cluster_config_names,
    cluster_manifests,
    generate,
    is_current,
    with_bases,
)
from fastness.machineconfig.render.inputs import Obstacle, obstacle
from fastness.machineconfig.render.proposed_settings import proposed_settings
from fastness.machineconfig.render.render import Rendered, render
from fastness.machineconfig.render.settings.cluster import LOW, MEDIUM, ClusterSettings
from tests.unit.machineconfig.build import pool
from tests.unit.machineconfig.render.made_files import kubelet_settings
from tests.unit.machineconfig.render.settings.test_cluster import apiserver, gate, nodes
from tests.unit.machineconfig.render.settings.test_tls import MODERN
from tests.unit.machineconfig.render.test_inputs import controller

JsonObject = dict[str, Any]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
VERSION = "fastness-2"
POOLS = [pool(name) for name in ("master", "worker", "infra")]
CONTROLLER = controller()
CGROUP_ARGUMENTS = ["systemd.unified_cgroup_hierarchy=1", 'cgroup_no_v1="all"']
ENFORCING = {"spec": {"mode": "Enforce"}}


def owners(*, configs: Any = (), confidential: Any = None, pools: Any = POOLS, **settings: Any) -> Owners:
    return Owners.of(
        [],
        [],
        CONTROLLER,
        settings=ClusterSettings(**settings),
        pools=pools,
        configs=configs,
        confidential=confidential,
    )


def bases(role: str, state: Owners) -> list[JsonObject]:
    return base_configs(role, state.inputs(role)[0], state, VERSION)


def manifests(state: Owners) -> dict[str, JsonObject]:
    made = [config for kind in (NODE_CONFIG, FEATURE_GATE) for config in cluster_manifests(kind, state, VERSION)]
    return {config["metadata"]["name"]: config for config in made}


def test_without_the_objects_there_are_no_configs() -> None:
    assert manifests(owners()) == {}


def test_every_pool_has_both_and_each_carries_the_whole_file() -> None:
    state = owners(
        nodes=nodes(workerLatencyProfile=MEDIUM), feature_gate=gate(["EventedPLEG"]), apiserver=apiserver(type="Modern")
    )
    made = manifests(state)
    assert sorted(made) == [
        f"{number}-{name}-generated-kubelet" for number in (97, 98) for name in ("infra", "master", "worker")
    ]
    for name, config in made.items():
        settings = kubelet_settings(config["spec"])
        assert (settings["cgroupDriver"], settings["featureGates"]) == ("systemd", {"EventedPLEG": True})
        assert settings["tlsCipherSuites"] == MODERN
        assert settings.get("nodeStatusUpdateFrequency", "10s") == ("20s" if "-worker-" in name else "10s")
        assert config["metadata"]["annotations"] == {names.GENERATED_BY: VERSION}
        assert config["metadata"]["labels"] == {names.ROLE_LABEL: name.split("-")[1]}
    [owner] = made["98-worker-generated-kubelet"]["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"], owner["name"]) == ("config.openshift.io/v1", "FeatureGate", "cluster")


def test_the_last_name_wins() -> None:
    state = owners(nodes=nodes(), feature_gate=gate(["EventedPLEG"]))
    kubelet = {"metadata": {"name": "k"}, "spec": {"kubeletConfig": {"maxPods": 7}}}
    configs = [
        *bases("worker", state),
        *manifests(state).values(),
        generate(KUBELET, kubelet, "worker", VERSION, state),
    ]
    rendered = render(POOLS[1], configs)
    assert isinstance(rendered, Rendered)
    settings = kubelet_settings(rendered.spec)
    assert (settings["maxPods"], settings["featureGates"]) == (7, {"EventedPLEG": True})
    assert rendered.spec["kernelArguments"] == CGROUP_ARGUMENTS


def test_kernel_arguments_are_for_the_built_in_pools() -> None:
    made = manifests(owners(nodes=nodes(cgroupMode="v2")))
    assert {name: config["spec"].get("kernelArguments") for name, config in made.items()} == {
        "97-infra-generated-kubelet": None,
        "97-master-generated-kubelet": CGROUP_ARGUMENTS,
        "97-worker-generated-kubelet": CGROUP_ARGUMENTS,
    }


def test_a_confidential_pool_gets_no_kernel_arguments_and_the_object_says_what_to_do() -> None:
    state = owners(nodes=nodes(cgroupMode="v2"), confidential=ENFORCING)
    for config in manifests(state).values():
        assert "kernelArguments" not in config["spec"]
    object_status = {"status": {"conditions": conditions(NODE_CONFIG, nodes(cgroupMode="v2"), state, NOW)}}
    assert (condition(object_status, "Accepted") or {})["status"] == "True", "the rest of it is followed"
    without = condition(object_status, "KernelArgumentsApplied") or {}
    assert (without["status"], without["reason"]) == ("False", "ConfidentialPools")
    assert without["message"] == (
        "machines of infra, master, worker are confidential, and their kernel arguments are part of what they prove: an image "
        'that does not boot with control groups v2 by itself has to bring systemd.unified_cgroup_hierarchy=1 cgroup_no_v1="all"'
    )


def test_a_confidential_pool_that_takes_the_workers_configs_keeps_arguments_out_of_those() -> None:
    """Attack on the pool by accident: workers are ordinary, and a confidential pool selects their configs too."""
    ordinary = {
        "spec": {"mode": "Enforce", "pools": [{"name": name, "trustModel": "None"} for name in ("master", "worker")]}
    }
    made = manifests(owners(nodes=nodes(), confidential=ordinary))
    assert "kernelArguments" not in made["97-worker-generated-kubelet"]["spec"]
    assert made["97-master-generated-kubelet"]["spec"]["kernelArguments"] == CGROUP_ARGUMENTS


def test_gates_that_no_kubelet_knows_make_no_config_and_are_named() -> None:
    state = owners(feature_gate=gate(["AdditionalStorageConfig", "B"]))
    assert manifests(state) == {}
    [accepted] = conditions(FEATURE_GATE, gate(), state, NOW)
    assert (accepted["status"], accepted["message"]) == (
        "True",
        "kubelets of Kubernetes v1.36 do not start with these gates as they are set, they were left out: "
        "AdditionalStorageConfig, B",
    )
    many = owners(feature_gate=gate([f"G{number:03}" for number in range(100)]))
    assert conditions(FEATURE_GATE, gate(), many, NOW)[0]["message"].endswith("G019 and 80 more")


def test_a_forbidden_step_leaves_everything_as_it_is() -> None:
    before = list(manifests(owners(nodes=nodes())).values())
    state = owners(nodes=nodes(workerLatencyProfile=LOW), configs=before)
    assert manifests(state) == {}, "nothing new is made"
    kubelet = {"metadata": {"name": "k"}, "spec": {}}
    assert (
        kubelet_settings(generate(KUBELET, kubelet, "worker", VERSION, state)["spec"])["nodeStatusUpdateFrequency"]
        == "10s"
    )
    [accepted] = conditions(NODE_CONFIG, nodes(workerLatencyProfile=LOW), state, NOW)
    message = f"workerLatencyProfile cannot go from Default to {LOW} directly; set {MEDIUM} first"
    assert (accepted["status"], accepted["message"]) == ("False", message)
    assert prohibition(NODE_CONFIG, nodes(workerLatencyProfile=LOW), state) == message


def test_two_steps_lead_there_and_back() -> None:
    configs: list[JsonObject] = []
    for profile, every in (("", "10s"), (MEDIUM, "20s"), (LOW, "1m"), (MEDIUM, "20s"), ("Default", "10s")):
        configs = list(manifests(owners(nodes=nodes(workerLatencyProfile=profile), configs=configs)).values())
        [worker] = [config for config in configs if config["metadata"]["name"] == "97-worker-generated-kubelet"]
        assert kubelet_settings(worker["spec"])["nodeStatusUpdateFrequency"] == every


def test_the_first_profile_may_be_any() -> None:
    assert manifests(owners(nodes=nodes(workerLatencyProfile=LOW)))
    assert (
        prohibition(NODE_CONFIG, nodes(workerLatencyProfile=LOW), owners(nodes=nodes(workerLatencyProfile=LOW))) == ""
    )


def test_control_groups_v1_change_nothing_and_the_object_says_so() -> None:
    state = owners(nodes=nodes(cgroupMode="v1", workerLatencyProfile=MEDIUM))
    assert manifests(state) == {}
    assert state.settings.latency == "Default"
    [accepted] = conditions(NODE_CONFIG, nodes(cgroupMode="v1"), state, NOW)
    assert (accepted["status"], accepted["message"].partition(":")[0]) == ("False", "unsupported cgroup mode 'v1'")
    assert prohibition(NODE_CONFIG, nodes(cgroupMode="v1"), state) == "", "wrong, not forbidden"


@pytest.mark.parametrize("kind", [NODE_CONFIG, FEATURE_GATE, "APIServer"])
def test_another_name_is_forbidden(kind: str) -> None:
    text = prohibition(kind, {"metadata": {"name": "mine"}, "spec": {}}, owners())
    assert text == 'metadata.name: "mine" has no effect, the object must be called "cluster"'


def test_what_is_generated_is_generated_again_the_same() -> None:
    state = owners(nodes=nodes(), feature_gate=gate(["EventedPLEG"]), apiserver=apiserver(type="Old"))
    state, base = with_bases(state, bases("worker", state))
    for config in [*manifests(state).values(), *base]:
        assert is_current(config, state)
    renamed = manifests(state)["97-worker-generated-kubelet"]
    renamed["metadata"]["name"] = "97-worker-mine"
    assert is_current(renamed, state) is None


def test_a_containerruntimeconfig_is_judged_by_the_runtime_and_the_gates_of_its_pool() -> None:
    ctrcfg = {"metadata": {"name": "c"}, "spec": {"containerRuntimeConfig": {"pidsLimit": 100}}}
    generate(RUNTIME, ctrcfg, "worker", VERSION, owners())
    chosen = pool("worker")
    chosen["metadata"]["annotations"] = {"fastness.dev/container-runtime": "containerd"}
    for name in ("worker", "infra"):
        with pytest.raises(BadSettings, match="run containerd"):
            generate(RUNTIME, ctrcfg, name, VERSION, owners(pools=[chosen, pool("infra")]))
    ctrcfg["spec"] = {"containerRuntimeConfig": {"additionalImageStores": [{"path": "/a"}]}}
    generate(RUNTIME, ctrcfg, "worker", VERSION, owners(feature_gate=gate(["AdditionalStorageConfig"])))
    with pytest.raises(BadSettings, match="needs the feature gate"):
        generate(RUNTIME, ctrcfg, "worker", VERSION, owners())


def looked_at(obj: JsonObject, generation: int = 1) -> JsonObject:
    status = {"conditions": [{"type": "Accepted", "status": "True", "observedGeneration": 1}]}
    return {**obj, "metadata": {**obj["metadata"], "generation": generation}, "status": status}


def wait_of(place: JsonObject, state: Owners, configs: Any = ()) -> Obstacle | None:
    state, base = with_bases(state, [config for role in ("master", "worker") for config in bases(role, state)])
    return obstacle(place, [*base, *configs], state, VERSION, "fastness-")


def test_a_render_waits_until_the_objects_were_looked_at_and_their_configs_are_there() -> None:
    master, worker, _ = POOLS
    assert wait_of(worker, owners()) is None
    fresh = owners(nodes=looked_at(nodes(), generation=2))
    assert wait_of(worker, fresh) == Obstacle("Node of config.openshift.io cluster was not looked at yet")
    assert wait_of(master, owners(feature_gate=gate())) == Obstacle("FeatureGate cluster was not looked at yet")
    state = owners(nodes=looked_at(nodes()), feature_gate=looked_at(gate(["EventedPLEG"])))
    made = manifests(state)
    assert cluster_config_names("worker", state) == ["97-worker-generated-kubelet", "98-worker-generated-kubelet"]
    assert wait_of(worker, state) == Obstacle("MachineConfig 97-worker-generated-kubelet is not there yet")
    assert wait_of(worker, state, made.values()) is None
    other = owners(nodes=looked_at(nodes()), feature_gate=looked_at(gate(["MemoryQoS"])), configs=made.values())
    changed = wait_of(worker, other, made.values())
    assert changed == Obstacle("MachineConfig 97-worker-generated-kubelet is not what its owner says now")


def test_another_tls_profile_is_waited_for_everywhere() -> None:
    state, stored = with_bases(owners(), bases("worker", owners()))
    modern = replace(state, settings=ClusterSettings(apiserver=apiserver(type="Modern")))
    changed = obstacle(POOLS[1], stored, modern, VERSION, "fastness-")
    assert changed == Obstacle("MachineConfig 00-worker is not what its owner says now")


def test_an_object_that_is_refused_blocks_the_pools_that_it_concerns() -> None:
    master, worker, infra = POOLS
    before = list(manifests(owners(nodes=nodes())).values())
    step = owners(nodes=looked_at(nodes(workerLatencyProfile=LOW)), configs=before)
    assert wait_of(master, step, before) is None
    for place in (worker, infra):
        blocked = wait_of(place, step, before)
        assert blocked is not None
        assert blocked.lasting
        assert blocked.why.startswith("Node of config.openshift.io cluster is refused: workerLatencyProfile cannot go")
    preview = owners(feature_gate=looked_at(gate(featureSet="TechPreviewNoUpgrade")))
    blocked = wait_of(master, preview)
    assert blocked is not None
    assert (blocked.lasting, blocked.why.startswith("FeatureGate cluster is refused: featureSet Tech")) == (True, True)


def test_the_release_of_the_cluster_decides_which_gates_count() -> None:
    gates = {"1": "EventedPLEG", "2": "MemoryQoS"}
    releases = [{"version": release, "enabled": [{"name": name}]} for release, name in gates.items()]
    meta = {**CONTROLLER["metadata"], "annotations": {names.RELEASE_IMAGE_VERSION: "2"}}
    settings = ClusterSettings(feature_gate={**gate(), "status": {"featureGates": releases}})
    state = Owners.of([], [], {**CONTROLLER, "metadata": meta}, POOLS, settings=settings)
    assert kubelet_settings(manifests(state)["98-worker-generated-kubelet"]["spec"])["featureGates"] == {
        "MemoryQoS": True
    }


def test_an_object_without_a_look_is_not_current() -> None:
    assert not was_looked_at(nodes())
    assert was_looked_at(looked_at(nodes()))
    assert not was_looked_at(looked_at(nodes(), generation=2))


def test_a_selector_that_selects_all_or_is_broken_selects_no_role() -> None:
    assert selects_role(pool("infra"), "worker")
    assert not selects_role(pool("infra", machineConfigSelector={}), "worker")
    assert not selects_role(pool("infra", machineConfigSelector={"matchExpressions": [{"key": "a"}]}), "worker")


def test_a_proposal_says_all_that_would_be_made_and_what_would_go() -> None:
    kubelet = {
        "metadata": {"name": "k"},
        "spec": {"machineConfigPoolSelector": {"matchLabels": {f"{names.POOL_LABEL_PREFIX}worker": ""}}},
    }
    present = Owners.of([kubelet], [], CONTROLLER, settings=ClusterSettings(nodes=nodes()), pools=POOLS)
    change = ClusterSettings(feature_gate=gate(["EventedPLEG"]), apiserver=apiserver(type="Modern"))
    stored = [config for role in ("master", "worker") for config in bases(role, present)]
    after, made, gone = proposed_settings(present, change, stored, VERSION)
    kubelet_of_masters = next(config for config in made if config["metadata"]["name"] == "01-master-kubelet")
    assert kubelet_settings(kubelet_of_masters["spec"])["tlsCipherSuites"] == MODERN
    assert is_current(kubelet_of_masters, after)
    assert after.settings.feature_gate == gate(["EventedPLEG"])
    assert {config["metadata"]["name"] for config in made} >= {
        "98-infra-generated-kubelet",
        "99-worker-generated-kubelet",
        "01-master-kubelet",
    }
    assert gone == [f"97-{name}-generated-kubelet" for name in ("infra", "master", "worker")]
    with pytest.raises(BadSettings, match="FeatureGate cluster: featureSet OKD has a meaning only where"):
        proposed_settings(present, ClusterSettings(feature_gate=gate(featureSet="OKD")), [], VERSION)
