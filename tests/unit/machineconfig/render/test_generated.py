"""KubeletConfig and ContainerRuntimeConfig become files; forbidden settings are told all at once."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from fastness.formats import data_url as dataurl
from fastness.formats import json
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.container_runtime import containerruntime_spec
from fastness.machineconfig.render.errors import BadSettings
from fastness.machineconfig.render.generated import (
    KUBELET,
    MAX_PER_POOL,
    RUNTIME,
    base_configs,
    fits,
    generate,
    generated_name,
    next_suffix,
    selects_pool,
)
from fastness.machineconfig.render.kubelet import kubelet_spec
from fastness.machineconfig.render.render import Rendered, render
from fastness.machineconfig.render.validate import problems
from tests.unit.machineconfig.build import pool

CONTROLLER = {"metadata": {"name": "machine-config-controller"}, "spec": {"clusterDNSIP": "172.30.0.10"}}


def kubelet(settings: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {"kind": KUBELET, "metadata": {"name": "k"}, "spec": {"kubeletConfig": settings or {}, **spec}}


def runtime(**settings: Any) -> dict[str, Any]:
    return {"kind": RUNTIME, "metadata": {"name": "c"}, "spec": {"containerRuntimeConfig": settings}}


def files(spec: dict[str, Any]) -> dict[str, str]:
    entries = (spec["config"].get("storage") or {}).get("files", ())
    return {entry["path"]: dataurl.contents(entry["contents"]).decode() for entry in entries}


def test_kubelet_settings_are_merged_into_the_clusters() -> None:
    spec = kubelet_spec(
        kubelet({"maxPods": 500, "authentication": {"webhook": {"enabled": True}}}), "worker", CONTROLLER
    )
    settings = json.decode(files(spec)["/etc/kubernetes/kubelet.conf"].encode())
    assert (settings["maxPods"], settings["cgroupDriver"], settings["clusterDNS"]) == (500, "systemd", ["172.30.0.10"])
    assert settings["authentication"]["webhook"] == {"enabled": True}
    assert settings["authentication"]["anonymous"] == {"enabled": False}


def test_log_level_and_sizing_go_where_the_unit_reads_them() -> None:
    spec = kubelet_spec(kubelet(logLevel=4, autoSizingReserved=True), "worker")
    assert files(spec)["/etc/node-sizing-enabled.env"] == "NODE_SIZING_ENABLED=true\n"
    [unit] = spec["config"]["systemd"]["units"]
    assert unit["name"] == "kubelet.service"
    assert 'KUBELET_LOG_LEVEL=4"' in unit["dropins"][0]["contents"]


@pytest.mark.parametrize(
    ("config", "place", "says"),
    [
        (kubelet({"cgroupDriver": "cgroupfs"}), "worker", "cgroupDriver"),
        (kubelet({"clusterDNS": []}), "worker", "clusterDNS"),
        (kubelet({"clusterDomain": "x"}), "worker", "clusterDomain"),
        (kubelet({"featureGates": {}}), "worker", "featureGates"),
        (kubelet({"failSwapOn": False}), "worker", "failSwapOn"),
        (kubelet({"memorySwap": {"swapBehavior": "x"}}), "worker", "swapBehavior"),
        (kubelet({"systemReserved": {"cpu": "1"}}, autoSizingReserved=True), "worker", "systemReserved"),
        (kubelet({"systemReservedCgroup": "/a", "systemCgroups": "/b"}), "worker", "systemReservedCgroup"),
        (kubelet({"staticPodPath": ""}), "master", "staticPodPath"),
        (kubelet({"staticPodPath": "/x"}), "worker", "staticPodPath"),
        (kubelet(logLevel=11), "worker", "logLevel"),
        (kubelet(tlsSecurityProfile={"type": "Ancient"}), "worker", "tlsSecurityProfile"),
    ],
)
def test_what_the_cluster_depends_on_is_refused(config: dict[str, Any], place: str, says: str) -> None:
    with pytest.raises(BadSettings, match=says):
        kubelet_spec(config, place)


def test_all_refused_settings_are_told_at_once() -> None:
    with pytest.raises(BadSettings, match=r"cgroupDriver.*failSwapOn.*logLevel"):
        kubelet_spec(kubelet({"cgroupDriver": "x", "failSwapOn": False}, logLevel=99), "worker")


def test_a_worker_may_empty_the_path_of_static_pods() -> None:
    settings = json.decode(
        files(kubelet_spec(kubelet({"staticPodPath": ""}), "worker"))["/etc/kubernetes/kubelet.conf"].encode()
    )
    assert settings["staticPodPath"] == ""


@pytest.mark.parametrize(
    ("profile", "version"),
    [
        ({"type": "Modern"}, "VersionTLS13"),
        ({"type": "Old"}, "VersionTLS10"),
        ({"type": "Custom", "custom": {"minTLSVersion": "VersionTLS12", "ciphers": ["X"]}}, "VersionTLS12"),
    ],
)
def test_tls_profiles(profile: dict[str, Any], version: str) -> None:
    spec = kubelet_spec(kubelet(tlsSecurityProfile=profile), "worker")
    assert json.decode(files(spec)["/etc/kubernetes/kubelet.conf"].encode())["tlsMinVersion"] == version


def test_the_log_level_of_the_runtime_is_the_drop_in_of_the_manual() -> None:
    spec = containerruntime_spec(runtime(logLevel="debug"))
    [(path, text)] = files(spec).items()
    assert path == "/etc/crio/crio.conf.d/01-ctrcfg-logLevel"
    assert tomllib.loads(text) == {"crio": {"runtime": {"log_level": "debug"}}}
    assert spec["config"]["storage"]["files"][0]["mode"] == 0o644


def test_every_setting_is_a_drop_in_of_its_own() -> None:
    spec = containerruntime_spec(runtime(pidsLimit=4096, logSizeMax="16Ki", defaultRuntime="crun", overlaySize="8G"))
    settings = {path.rpartition("-")[2]: tomllib.loads(text) for path, text in files(spec).items()}
    assert settings["pidsLimit"] == {"crio": {"runtime": {"pids_limit": 4096}}}
    assert settings["logSizeMax"] == {"crio": {"runtime": {"log_size_max": 16384}}}
    assert settings["defaultRuntime"] == {"crio": {"runtime": {"default_runtime": "crun"}}}
    assert tomllib.loads(files(spec)["/etc/containers/storage.conf"])["storage"]["options"]["overlay"] == {
        "size": "8000000000"
    }


@pytest.mark.parametrize(
    "settings",
    [
        {"logLevel": "loud"},
        {"pidsLimit": 3},
        {"pidsLimit": "x"},
        {"logSizeMax": "4Ki"},
        {"logSizeMax": "much"},
        {"overlaySize": "-1"},
        {"defaultRuntime": "gvisor"},
        {"additionalImageStores": [{"path": "relative"}]},
        {"additionalImageStores": [{"path": '/a"\n[crio]'}]},
        {"additionalArtifactStores": [{"path": "/a"}]},
    ],
)
def test_runtime_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(BadSettings, match=r"spec\.containerRuntimeConfig"):
        containerruntime_spec(runtime(**settings))


def test_an_unlimited_log_and_empty_settings_are_good() -> None:
    assert "-1" in next(iter(files(containerruntime_spec(runtime(logSizeMax="-1"))).values()))
    assert files(containerruntime_spec(runtime())) == {}


def test_names_carry_the_number_that_the_owner_remembers() -> None:
    owner = kubelet()
    assert generate(KUBELET, owner, "infra", "v")["metadata"]["name"] == "99-infra-generated-kubelet"
    owner["metadata"]["annotations"] = {names.NAME_SUFFIX: "2"}
    assert generate(KUBELET, owner, "infra", "v")["metadata"]["name"] == "99-infra-generated-kubelet-2"
    assert generated_name(RUNTIME, "worker") == "99-worker-generated-containerruntime"


def test_numbers_are_given_out_until_a_pool_has_ten() -> None:
    owners: list[dict[str, Any]] = []
    for number in range(MAX_PER_POOL):
        suffix = next_suffix(owners)
        assert suffix == (str(number) if number else "")
        owners.append({"metadata": {"annotations": {names.NAME_SUFFIX: suffix}}})
    with pytest.raises(BadSettings):
        next_suffix(owners)
    del owners[4]
    assert next_suffix(owners) == "4"


def test_generated_configs_say_their_owner_and_are_good() -> None:
    made = generate(RUNTIME, runtime(logLevel="debug"), "worker", "v1")
    assert made["metadata"]["labels"] == {names.ROLE_LABEL: "worker"}
    assert made["metadata"]["annotations"] == {names.GENERATED_BY: "v1"}
    assert made["metadata"]["ownerReferences"][0]["kind"] == RUNTIME
    assert problems(made) == []


def test_a_selector_decides_which_pools_an_owner_is_for() -> None:
    owner = runtime()
    owner["spec"]["machineConfigPoolSelector"] = {"matchLabels": {f"{names.POOL_LABEL_PREFIX}infra": ""}}
    assert selects_pool(owner, pool("infra"))
    assert not selects_pool(owner, pool("worker"))
    assert not selects_pool(runtime(), pool("worker"))
    owner["spec"]["machineConfigPoolSelector"] = {"matchExpressions": "x"}
    assert not selects_pool(owner, pool("infra"))


@pytest.mark.parametrize("role", ["master", "worker"])
def test_a_pool_with_nothing_but_its_base_configs_renders(role: str) -> None:
    configs = base_configs(role, CONTROLLER, "v1")
    assert [machine_config["metadata"]["name"] for machine_config in configs] == [
        f"00-{role}",
        f"01-{role}-container-runtime",
        f"01-{role}-kubelet",
    ]
    assert isinstance(render(pool(role), configs), Rendered)
    for config in configs:
        fits(config, role, TrustModel.CONFIDENTIAL_CLUSTER)
    configs[0]["spec"]["fips"] = True
    with pytest.raises(BadSettings, match="FIPS"):
        fits(configs[0], role, TrustModel.CONFIDENTIAL_CLUSTER)
