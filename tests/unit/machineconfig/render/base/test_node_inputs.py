"""What a base is made from: chosen where it can be chosen, never guessed, and missing by the name of its field."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.base.node_inputs import (
    Distribution,
    NodeInputs,
    NodeSources,
    Proxy,
    Runtime,
    choices,
    read_inputs,
)
from fastness.machineconfig.render.generated import Owners
from tests.unit.machineconfig.build import CERTIFICATE, controller_config, pool

GOOD = controller_config()


def annotated(name: str = "worker", **notes: str) -> JsonObject:
    made = pool(name)
    keys = {"runtime": names.CONTAINER_RUNTIME, "distribution": names.DISTRIBUTION, "pause": names.PAUSE_IMAGE}
    made["metadata"]["annotations"] = {keys[key]: value for key, value in notes.items()}
    return made


def missing(controller: JsonObject | None, **more: Any) -> str:
    return "; ".join(map(str, read_inputs(pool(), controller, **more)[1]))


def test_a_controller_config_that_says_everything_leaves_nothing_open() -> None:
    proxy = {"httpProxy": "http://p:1", "noProxy": "a,b"}
    stated = controller_config(proxy=proxy, ipFamilies="DualStack", cloudProviderConfig="x = 1\n")
    inputs, absent = read_inputs(pool(), stated)
    assert absent == []
    assert (inputs.cluster_dns, inputs.ip_families) == ("172.30.0.10", "DualStack")
    assert (inputs.runtime, inputs.distribution) == (Runtime.CRIO, Distribution.KUBERNETES)
    assert (inputs.proxy, inputs.cloud_conf) == (Proxy("http://p:1", "", "a,b"), "x = 1\n")
    assert inputs.kubelet_ca == CERTIFICATE


def test_a_pool_chooses_before_the_cluster_does_and_a_custom_one_takes_over_what_workers_chose() -> None:
    def runtime(of: JsonObject, workers: JsonObject | None = None) -> Runtime:
        return read_inputs(of, GOOD, workers=workers)[0].runtime

    workers = annotated(runtime="containerd")
    assert runtime(pool()) is Runtime.CRIO
    assert runtime(workers) is Runtime.CONTAINERD
    assert runtime(pool("infra"), workers) is Runtime.CONTAINERD
    assert runtime(annotated("infra", runtime="crio"), workers) is Runtime.CRIO
    assert runtime(pool("master"), workers) is Runtime.CRIO, "what workers have says nothing about the control plane"


@pytest.mark.parametrize(
    ("controller", "says"),
    [
        (None, "spec.clusterDNSIP is missing"),
        (controller_config(clusterDNSIP=""), "spec.clusterDNSIP is missing"),
        (controller_config(clusterDNSIP="kube-dns"), "spec.clusterDNSIP is 'kube-dns', which is no address"),
        (controller_config(kubeAPIServerServingCAData=None), "spec.kubeAPIServerServingCAData is missing"),
        (controller_config(kubeAPIServerServingCAData="eA=="), "spec.kubeAPIServerServingCAData holds no certificate"),
        (controller_config(additionalTrustBundle="#"), "spec.additionalTrustBundle holds no certificate"),
        (controller_config(ipFamilies="IPv5"), "spec.ipFamilies is 'IPv5'"),
        (controller_config(proxy={"httpProxy": "http://a b"}), "spec.proxy.httpProxy has blanks"),
        (controller_config(proxy={"noProxy": "a\nLD_PRELOAD=/x"}), "spec.proxy.noProxy has blanks"),
        (controller_config(proxy={"httpsProxy": "http://$(id)"}), "spec.proxy.httpsProxy has blanks"),
        (controller_config(notes={names.CONTAINER_RUNTIME: "docker"}), "container-runtime is 'docker'"),
        (controller_config(notes={names.DISTRIBUTION: ""}), "annotation fastness.dev/distribution is missing"),
        (controller_config(notes={names.PAUSE_IMAGE: 'a"\nx'}), "annotation fastness.dev/pause-image"),
        (controller_config(notes={names.CONFIG_SERVER: "http://x"}), "annotation fastness.dev/config-server"),
        (controller_config(notes={names.CONFIG_SERVER: "https://x y"}), "annotation fastness.dev/config-server"),
    ],
)
def test_what_is_missing_or_cannot_be_is_named_by_its_field(controller: JsonObject | None, says: str) -> None:
    assert says in missing(controller)


@pytest.mark.parametrize(
    "odd", [{"infra": []}, {"infra": {"status": 3}}, {"proxy": "x"}, {"images": []}, {"infra": "x"}]
)
def test_embedded_objects_of_any_shape_are_read(odd: dict[str, Any]) -> None:
    assert "Traceback" not in missing(controller_config(**odd))


def test_openshift_needs_more_and_has_one_runtime() -> None:
    notes = {names.DISTRIBUTION: "openshift"}
    images = {"infraImageKey": "registry.example/pod:1"}
    assert missing(controller_config(notes=notes, images=images)) == ""
    assert "spec.images.infraImageKey is missing" in missing(controller_config(notes=notes))
    assert "apiServerInternalURI is missing" in missing(controller_config(notes=notes, images=images, infra=None))
    other = {"infra": {"status": {"apiServerInternalURI": "http://api"}}}
    assert "is no https URL" in missing(controller_config(notes=notes, images=images, **other))
    containerd = controller_config(notes={**notes, names.CONTAINER_RUNTIME: "containerd"}, images=images)
    assert "OpenShift's nodes have CRI-O" in missing(containerd)


def test_a_pool_that_enforces_needs_to_know_whom_its_machines_join() -> None:
    assert missing(GOOD, attested=True) == ""
    assert "kube-root-ca.crt is missing" in missing(GOOD, attested=True, sources=NodeSources())
    assert missing(GOOD, attested=True, sources=NodeSources(api_ca=CERTIFICATE)) == ""
    assert "apiServerInternalURI is missing" in missing(controller_config(infra=None), attested=True)
    assert missing(controller_config(infra=None)) == "", "elsewhere nobody needs it"


def test_everything_is_told_at_once_with_what_to_do() -> None:
    text = missing(controller_config(clusterDNSIP="", kubeAPIServerServingCAData=None))
    assert "clusterDNSIP" in text
    assert "kubectl patch controllerconfig machine-config-controller" in text
    assert "kubeAPIServerServingCAData" in text


@pytest.mark.parametrize(
    ("platform", "flag", "finds"),
    [("AWS", "external", False), ("VSphere", "external", True), ("BareMetal", "", True), ("None", "", True)],
)
def test_the_platform_decides_who_gives_a_node_its_address(platform: str, flag: str, finds: bool) -> None:
    inputs = NodeInputs(platform=platform)
    assert (inputs.cloud_provider, inputs.finds_address) == (flag, finds)


def test_an_external_platform_may_have_a_cloud_controller() -> None:
    external = {"type": "External", "external": {"cloudControllerManager": {"state": "External"}}}
    stated = controller_config(infra={"status": {"platformStatus": external}})
    assert read_inputs(pool(), stated)[0].cloud_provider == "external"


def test_the_pull_secret_is_in_no_text_about_the_inputs() -> None:
    assert "canary" not in repr(NodeInputs(sources=NodeSources(pull_secret="canary")))


def owners(*pools: JsonObject, **cluster: Any) -> Owners:
    confidential = {"spec": cluster} if cluster else None
    return Owners.of([], [], GOOD, pools=[pool(), *pools], confidential=confidential)


def test_a_custom_pool_has_a_base_of_its_own_only_where_it_differs_from_the_workers() -> None:
    assert owners(pool("infra")).base_of("infra")[0] == "00-worker"
    assert owners(annotated("infra", runtime="containerd")).base_of("infra")[0] == "00-infra"
    assert owners(annotated("infra", runtime="crio")).base_of("infra")[0] == "00-worker"
    mixed = owners(pool("infra"), mode="Enforce", pools=[{"name": "infra", "trustModel": "None"}])
    assert mixed.base_of("infra")[0] == "00-infra", "its machines attest nothing"
    assert mixed.base_of("worker")[0] == "00-worker"
    assert Owners.of([], [], GOOD, pools=[annotated("infra", runtime="containerd")]).base_of("infra")[0] == "00-worker"


def test_only_enforcing_makes_the_agent_the_one_who_makes_keys() -> None:
    def attested(mode: str) -> bool:
        return owners(mode=mode).inputs("worker")[0].attested

    assert [attested(mode) for mode in ("Disabled", "Audit", "Enforce")] == [False, False, True]
    assert owners(mode="Audit").inputs("worker")[0].trust is TrustModel.CONFIDENTIAL_CLUSTER


def test_what_pools_of_one_role_may_differ_in_is_all_that_annotations_and_trust_decide() -> None:
    base = read_inputs(pool(), GOOD)[0]
    for other in (
        annotated(runtime="containerd"), annotated(distribution="openshift"), annotated(pause="registry.example/pause:1"),
    ):  # fmt: skip
        assert choices(read_inputs(other, GOOD)[0]) != choices(base)
    assert choices(read_inputs(pool(), GOOD, TrustModel.CONTAINERS_HOST)[0]) != choices(base)
    assert choices(read_inputs(pool(), GOOD, attested=True)[0]) != choices(base)
