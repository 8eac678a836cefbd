"""A KubeletConfig becomes files; what the cluster depends on is refused, in the words that users know."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.machineconfig.render import kubelet as rendering
from fastness.machineconfig.render.base.kubelet import CONFIG_FILE
from fastness.machineconfig.render.base.rows import config_file
from fastness.machineconfig.render.errors import BadSettings
from fastness.machineconfig.render.kubelet import is_control_plane, kubelet_remarks, kubelet_spec
from fastness.machineconfig.render.settings.cluster import ClusterSettings
from tests.unit.machineconfig.build import pool
from tests.unit.machineconfig.render.made_files import BASE, files, kubelet_settings
from tests.unit.machineconfig.render.settings.test_tls import INTERMEDIATE, MODERN

WORKER, MASTER, ARBITER, INFRA = (pool(name) for name in ("worker", "master", "arbiter", "infra"))
SECOND_PLANE = pool("plane", nodeSelector={"matchLabels": {"node-role.kubernetes.io/master": ""}})
THIRD_PLANE = pool(
    "third", nodeSelector={"matchExpressions": [{"key": "node-role.kubernetes.io/master", "operator": "Exists"}]}
)
JsonObject = dict[str, Any]


def kubelet(settings: JsonObject | None = None, **spec: Any) -> JsonObject:
    return {"kind": "KubeletConfig", "metadata": {"name": "k"}, "spec": {"kubeletConfig": settings or {}, **spec}}


def test_settings_are_merged_into_the_clusters() -> None:
    spec = kubelet_spec(kubelet({"maxPods": 500, "authentication": {"webhook": {"enabled": True}}}), WORKER, BASE)
    settings = kubelet_settings(spec)
    assert (settings["maxPods"], settings["cgroupDriver"], settings["clusterDNS"]) == (500, "systemd", ["172.30.0.10"])
    assert settings["authentication"]["webhook"] == {"enabled": True}
    assert settings["authentication"]["anonymous"] == {"enabled": False}
    assert list(files(spec)) == ["/etc/kubernetes/kubelet.conf"]


def test_a_setting_is_a_line_of_its_own() -> None:
    assert (
        "\nmaxPods: 500\n"
        in files(kubelet_spec(kubelet({"maxPods": 500}), WORKER, BASE))["/etc/kubernetes/kubelet.conf"]
    )


def test_log_level_and_sizing_are_files_that_units_read() -> None:
    spec = kubelet_spec(kubelet(logLevel=4, autoSizingReserved=True), WORKER, BASE)
    assert files(spec)["/etc/node-sizing-enabled.env"].startswith("NODE_SIZING_ENABLED=true\n")
    logging = files(spec)["/etc/systemd/system/kubelet.service.d/20-logging.conf"]
    assert logging == '[Service]\nEnvironment="KUBELET_LOG_LEVEL=4"\n'
    assert "systemd" not in spec["config"]
    assert {entry["mode"] for entry in spec["config"]["storage"]["files"]} == {0o644}


def test_the_users_reserve_leaves_the_kubelets_file() -> None:
    spec = kubelet_spec(kubelet({"systemReserved": {"memory": "3Gi", "cpu": "1"}}), WORKER, BASE)
    assert "systemReserved" not in kubelet_settings(spec)
    assert files(spec)["/etc/node-sizing-enabled.env"] == (
        "NODE_SIZING_ENABLED=false\nSYSTEM_RESERVED_MEMORY=3Gi\nSYSTEM_RESERVED_CPU=1\nSYSTEM_RESERVED_ES=1Gi\n"
    )


@pytest.mark.parametrize(
    ("config", "place", "message"),
    [
        (kubelet({"cgroupDriver": "cgroupfs"}), WORKER, "cgroupDriver is not allowed to be set, but contains: cgroupfs"),
        (kubelet({"clusterDNS": ["10.0.0.1", "b"]}), WORKER, "clusterDNS is not allowed to be set, but contains: [10.0.0.1 b]"),
        (kubelet({"clusterDNS": []}), WORKER, "clusterDNS is not allowed to be set, but contains: []"),
        (kubelet({"clusterDomain": "x"}), WORKER, "clusterDomain is not allowed to be set, but contains: x"),
        (kubelet({"featureGates": {"B": True, "A": False}}), WORKER,
         "featureGates is not allowed to be set, but contains: map[A:false B:true]"),
        (kubelet({"failSwapOn": False}), WORKER, "failSwapOn is not allowed to be set, but contains: false"),
        (kubelet({"memorySwap": {"swapBehavior": "LimitedSwap"}}), WORKER,
         "swapBehavior is not allowed to be set, but contains: LimitedSwap"),
        (kubelet({"systemReserved": {"cpu": "1"}}, autoSizingReserved=True), WORKER,
         "autoSizingReserved and systemdReserved cannot be set together"),
        (kubelet({"systemReservedCgroup": "/a", "systemCgroups": "/b"}), WORKER,
         "systemReservedCgroup (/a) must match systemCgroups (/b)"),
        (kubelet({"staticPodPath": ""}), MASTER, 'staticPodPath is not allowed to be set for control plane pool "master"'),
        (kubelet({"staticPodPath": "/x"}), ARBITER, 'staticPodPath is not allowed to be set for control plane pool "arbiter"'),
        (kubelet({"staticPodPath": ""}), SECOND_PLANE, 'staticPodPath is not allowed to be set for control plane pool "plane"'),
        (kubelet({"staticPodPath": "/x"}), WORKER, 'staticPodPath must be empty for pool "worker", but contains: /x'),
        (kubelet(logLevel=11), WORKER, "KubeletConfig's LogLevel is not valid [0,10]: 11"),
        (kubelet(logLevel=-1), WORKER, "KubeletConfig's LogLevel is not valid [0,10]: -1"),
        (kubelet(tlsSecurityProfile={"type": "Ancient"}), WORKER,
         "tlsSecurityProfile.type 'Ancient' is not one of Old, Intermediate, Modern, Custom"),
        (kubelet(systemGomaxprocsBehavior="Autosize"), WORKER, "systemGomaxprocsBehavior Autosize is not supported"),
    ],
)  # fmt: skip
def test_what_the_cluster_depends_on_is_refused_in_these_words(
    config: JsonObject, place: JsonObject, message: str
) -> None:
    with pytest.raises(BadSettings) as refused:
        kubelet_spec(config, place, BASE)
    assert refused.value.message == f"KubeletConfiguration: {message}"


def test_all_refused_settings_are_told_at_once() -> None:
    with pytest.raises(BadSettings) as refused:
        kubelet_spec(kubelet({"cgroupDriver": "x", "failSwapOn": False}, logLevel=99), WORKER, BASE)
    assert refused.value.message == (
        "KubeletConfiguration: cgroupDriver is not allowed to be set, but contains: x; "
        "failSwapOn is not allowed to be set, but contains: false; KubeletConfig's LogLevel is not valid [0,10]: 99"
    )


def test_what_is_quoted_has_an_end() -> None:
    with pytest.raises(BadSettings) as refused:
        kubelet_spec(kubelet({"clusterDomain": "x" * 100_000}), WORKER, BASE)
    assert len(refused.value.message) < 400


def test_settings_that_are_no_object_are_refused() -> None:
    with pytest.raises(BadSettings, match=r"spec\.kubeletConfig must be an object"):
        kubelet_spec({"metadata": {"name": "k"}, "spec": {"kubeletConfig": ["a"]}}, WORKER, BASE)


@pytest.mark.parametrize(
    "settings", [{"cgroupDriver": ""}, {"memorySwap": {}}, {"memorySwap": None}, {"failSwapOn": None}]
)
def test_what_says_nothing_is_not_refused(settings: JsonObject) -> None:
    kubelet_spec(kubelet(settings), WORKER, BASE)


def test_a_worker_may_empty_the_path_of_static_pods() -> None:
    assert kubelet_settings(kubelet_spec(kubelet({"staticPodPath": ""}), WORKER, BASE))["staticPodPath"] == ""


def test_control_plane_pools_are_known_by_name_or_by_their_nodes() -> None:
    assert [is_control_plane(each) for each in (MASTER, ARBITER, SECOND_PLANE, THIRD_PLANE)] == [True] * 4
    assert [is_control_plane(each) for each in (WORKER, INFRA, {"metadata": {"name": "a"}})] == [False] * 3


def test_the_own_profile_wins_over_the_clusters_and_that_over_intermediate() -> None:
    modern = ClusterSettings(apiserver={"spec": {"tlsSecurityProfile": {"type": "Modern"}}})
    old = {"type": "Old"}
    plain, cluster, own, empty = (
        kubelet_settings(kubelet_spec(kubelet(tlsSecurityProfile=profile), WORKER, BASE, settings))
        for profile, settings in ((None, None), (None, modern), (old, modern), ({}, modern))
    )
    assert (plain["tlsMinVersion"], plain["tlsCipherSuites"]) == ("VersionTLS12", INTERMEDIATE)
    assert (cluster["tlsMinVersion"], cluster["tlsCipherSuites"]) == ("VersionTLS13", MODERN)
    assert (own["tlsMinVersion"], len(own["tlsCipherSuites"])) == ("VersionTLS10", 21)
    assert empty["tlsMinVersion"] == "VersionTLS13"


def test_what_has_no_effect_is_named() -> None:
    ciphers = ["ECDHE-RSA-AES128-GCM-SHA256", "DHE-RSA-AES128-GCM-SHA256"]
    custom = {"type": "Custom", "custom": {"ciphers": ciphers, "groups": ["X25519"]}}
    assert kubelet_remarks(kubelet({"maxPods": 0}, tlsSecurityProfile=custom), WORKER, BASE) == [
        "kubelets do not know these ciphers, they were left out: DHE-RSA-AES128-GCM-SHA256",
        "tlsSecurityProfile.custom.groups has no effect without the feature gate TLSGroupPreferences",
        "an empty value does not take away what the cluster sets: maxPods",
    ]
    assert kubelet_remarks(kubelet({"maxPods": 7}), WORKER, BASE) == []


def test_settings_are_read_back_from_a_config_and_from_nothing_else() -> None:
    spec = kubelet_spec(kubelet({"maxPods": 7}), WORKER, BASE)
    assert (rendering.settings_in({"spec": spec}) or {})["maxPods"] == 7
    assert rendering.settings_in({"spec": {}}) is None
    broken = rendering.file_spec(config_file(CONFIG_FILE, "a: [\n"))
    assert rendering.settings_in({"spec": broken}) is None
    assert rendering.with_settings(broken, {"maxPods": 8}) == broken
    assert kubelet_settings(rendering.with_settings(spec, {"maxPods": 8}))["maxPods"] == 8
