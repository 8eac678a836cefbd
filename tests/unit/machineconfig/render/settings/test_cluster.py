"""What the cluster's own objects mean for a kubelet, and which of them cannot be followed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fastness.machineconfig.render.settings.cluster import (
    DEFAULT,
    LOW,
    MEDIUM,
    ClusterSettings,
    cluster_tls,
    gates_of,
    kubelet_layer,
    node_refusal,
)
from tests.unit.machineconfig.build import pool
from tests.unit.machineconfig.render.settings.test_tls import INTERMEDIATE, MODERN

JsonObject = dict[str, Any]
WORKER, MASTER, INFRA = (pool(name) for name in ("worker", "master", "infra"))


def gate(enabled: list[str] | None = None, disabled: list[str] | None = None, **spec: Any) -> JsonObject:
    lists = {"enabled": enabled, "disabled": disabled}
    return {
        "metadata": {"name": "cluster"},
        "spec": {"featureSet": "CustomNoUpgrade", "customNoUpgrade": lists, **spec},
    }


def nodes(**spec: Any) -> JsonObject:
    return {"metadata": {"name": "cluster"}, "spec": spec}


def apiserver(**profile: Any) -> JsonObject:
    return {"metadata": {"name": "cluster"}, "spec": {"tlsSecurityProfile": profile}}


def test_without_these_objects_there_is_a_tls_profile_and_nothing_else() -> None:
    layer = kubelet_layer(ClusterSettings(), WORKER)
    assert layer == {"tlsMinVersion": "VersionTLS12", "tlsCipherSuites": INTERMEDIATE}


@pytest.mark.parametrize(("profile", "every"), [(DEFAULT, "10s"), (MEDIUM, "20s"), (LOW, "1m")])
def test_workers_report_as_often_as_their_profile_says(profile: str, every: str) -> None:
    settings = ClusterSettings(nodes(workerLatencyProfile=profile), latency=profile)
    assert kubelet_layer(settings, WORKER)["nodeStatusUpdateFrequency"] == every
    assert [kubelet_layer(settings, other).get("nodeStatusUpdateFrequency") for other in (MASTER, INFRA)] == [None] * 2


def test_gates_of_the_custom_set_are_those_of_its_lists() -> None:
    assert gates_of(ClusterSettings(feature_gate=gate(["B", "A"], ["C"]))).values == {"B": True, "A": True, "C": False}
    assert gates_of(ClusterSettings(feature_gate=gate(["A"], ["A"]))).values == {"A": False}, (
        "off is the safer of the two"
    )
    assert (
        gates_of(ClusterSettings(feature_gate=gate(None))).values
        == gates_of(ClusterSettings()).values
        == gates_of(ClusterSettings(feature_gate=gate(["A"], featureSet=""))).values
        == {}
    )


@pytest.mark.parametrize("feature_set", ["TechPreviewNoUpgrade", "DevPreviewNoUpgrade", "OKD"])
def test_a_set_that_nobody_worked_out_is_refused_with_the_way(feature_set: str) -> None:
    refused = gates_of(ClusterSettings(feature_gate=gate(featureSet=feature_set)))
    assert (refused.values, refused.refusal) == (
        {},
        f"featureSet {feature_set} has a meaning only where an operator writes status.featureGates; "
        "list the gates under customNoUpgrade, with featureSet CustomNoUpgrade",
    )


def test_where_an_operator_worked_the_sets_out_its_word_counts_for_this_release() -> None:
    releases = [
        {"version": "4.20", "enabled": [{"name": "Old"}]},
        {"version": "4.21", "enabled": [{"name": "New"}], "disabled": [{"name": "Old"}]},
    ]
    feature_gate = {**gate(featureSet="TechPreviewNoUpgrade"), "status": {"featureGates": releases}}
    settings = ClusterSettings(feature_gate=feature_gate, release="4.21")
    assert gates_of(settings).values == {"New": True, "Old": False}
    assert gates_of(replace(settings, release="")).values == {"Old": True}, "the first, where the release is not known"


def test_kubelets_of_plain_kubernetes_get_the_gates_that_they_know_and_openshifts_get_all() -> None:
    settings = ClusterSettings(feature_gate=gate(["EventedPLEG", "Unknown"]))
    assert kubelet_layer(settings, MASTER)["featureGates"] == {"EventedPLEG": True}
    openshift = {
        **MASTER,
        "metadata": {**MASTER["metadata"], "annotations": {"fastness.dev/distribution": "openshift"}},
    }
    assert kubelet_layer(settings, openshift)["featureGates"] == {"EventedPLEG": True, "Unknown": True}
    assert "featureGates" not in kubelet_layer(ClusterSettings(feature_gate=gate(["Unknown"])), MASTER)


def test_the_clusters_profile_is_that_of_kubelets() -> None:
    layer = kubelet_layer(ClusterSettings(apiserver=apiserver(type="Modern")), WORKER)
    assert (layer["tlsMinVersion"], layer["tlsCipherSuites"]) == ("VersionTLS13", MODERN)


def test_a_profile_of_the_cluster_that_no_kubelet_could_follow_is_intermediate_and_its_names_are_told() -> None:
    settings = ClusterSettings(apiserver=apiserver(type="Custom", custom={"ciphers": ["DHE-A", "DHE-B"]}))
    tls = cluster_tls(settings)
    assert (tls.settings["tlsCipherSuites"], tls.dropped) == (INTERMEDIATE, ("DHE-A", "DHE-B"))
    unknown = cluster_tls(ClusterSettings(apiserver=apiserver(type="Ancient")))
    assert (unknown.settings["tlsCipherSuites"], unknown.dropped) == (INTERMEDIATE, ("Ancient",))


def test_groups_need_their_gate() -> None:
    custom = apiserver(type="Custom", custom={"ciphers": ["AES128-SHA"], "groups": ["X25519"]})
    gated = ClusterSettings(apiserver=custom, feature_gate=gate(["TLSGroupPreferences"]))
    assert kubelet_layer(gated, WORKER)["tlsCurvePreferences"] == [29]
    assert "tlsCurvePreferences" not in kubelet_layer(ClusterSettings(apiserver=custom), WORKER)


@pytest.mark.parametrize(
    ("spec", "standing", "message", "workers_alone"),
    [
        ({}, DEFAULT, "", False),
        ({"cgroupMode": "v2", "workerLatencyProfile": MEDIUM}, DEFAULT, "", False),
        ({"workerLatencyProfile": LOW}, MEDIUM, "", False),
        ({"workerLatencyProfile": ""}, MEDIUM, "", False),
        ({"cgroupMode": "v1"}, DEFAULT,
         "unsupported cgroup mode 'v1': systemd and the kubelet have v2 alone, and another takes kernel arguments, "
         "which confidential pools refuse; set cgroupMode to v2", False),
        ({"workerLatencyProfile": "Slow"}, DEFAULT,
         f"workerLatencyProfile 'Slow' is not one of {DEFAULT}, {MEDIUM}, {LOW}", True),
        ({"workerLatencyProfile": LOW}, DEFAULT,
         f"workerLatencyProfile cannot go from Default to {LOW} directly; set {MEDIUM} first", True),
        ({"workerLatencyProfile": ""}, LOW,
         f"workerLatencyProfile cannot go from {LOW} to Default directly; set {MEDIUM} first", True),
    ],
)  # fmt: skip
def test_what_of_a_nodes_config_cannot_be_followed(
    spec: JsonObject, standing: str, message: str, workers_alone: bool
) -> None:
    assert node_refusal(nodes(**spec), standing) == (message, workers_alone)
