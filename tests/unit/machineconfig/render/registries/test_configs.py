"""One config for each pool with the built-in label: names, owners, runtimes, refusals, bounds."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.formats import data_url
from fastness.kinds.fastness_dev.trust_model import TrustModel
from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.registries import files
from fastness.machineconfig.render.registries.configs import RegistryConfigs, registry_configs
from fastness.machineconfig.render.registries.objects import RegistryObjects
from fastness.machineconfig.render.settings.choices import runs_containerd
from fastness.machineconfig.render.validate import problems
from tests.unit.machineconfig.build import pool
from tests.unit.machineconfig.render.registries.build import idms, image, objects, signed

MIRRORED = idms("a", {"quay.io": ["m.io"]})


def built_in(name: str, runtime: str = "") -> dict[str, Any]:
    made = pool(name)
    made["metadata"]["labels"][names.BUILT_IN_LABEL] = ""
    if runtime:
        made["metadata"]["annotations"] = {names.CONTAINER_RUNTIME: runtime}
    return made


def configs(given: RegistryObjects, *pools: dict[str, Any], controller: Any = None) -> RegistryConfigs:
    return registry_configs(given, pools or (built_in("worker"),), controller, "fastness-1")


def paths(config: dict[str, Any]) -> list[str]:
    return [entry["path"] for entry in config["spec"]["config"].get("storage", {}).get("files", ())]


def test_a_config_looks_like_all_that_are_generated() -> None:
    config = configs(objects(None, MIRRORED)).configs["worker"]
    assert config["metadata"] == {
        "name": "99-worker-generated-registries",
        "labels": {names.ROLE_LABEL: "worker"},
        "annotations": {names.GENERATED_BY: "fastness-1"},
        "ownerReferences": [
            {"apiVersion": "config.openshift.io/v1", "kind": "Image", "name": "cluster", "uid": "image-uid"}
        ],
    }
    assert config["kind"] == "MachineConfig"
    file = config["spec"]["config"]["storage"]["files"][0]
    assert (file["path"], file["mode"], file["overwrite"]) == (names.REGISTRIES_CONF, 0o644, True)
    assert b'location = "m.io"' in data_url.decode(file["contents"]["source"])
    assert not [problem for problem in problems(config, TrustModel.CONFIDENTIAL_CLUSTER) if problem.fatal]


def test_every_pool_with_the_label_has_one_and_no_other() -> None:
    going = built_in("arbiter")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    result = configs(objects(None, MIRRORED), built_in("master"), built_in("worker"), pool("infra"), going)
    assert set(result.configs) == {"master", "worker"}
    assert set(result.specs) == {"99-master-generated-registries", "99-worker-generated-registries"}


def test_a_custom_pool_with_another_runtime_than_workers_has_its_own() -> None:
    own, same, silent = pool("gpu"), pool("infra"), pool("edge")
    own["metadata"]["annotations"] = {names.CONTAINER_RUNTIME: "containerd"}
    same["metadata"]["annotations"] = {names.CONTAINER_RUNTIME: "crio"}
    given = objects(None, MIRRORED)
    result = configs(given, built_in("worker"), own, same, silent)
    assert set(result.configs) == {"worker", "gpu"}
    assert paths(result.configs["gpu"]) == ["/etc/containerd/certs.d/quay.io/hosts.toml"]
    result = configs(given, built_in("worker", "containerd"), own, same, silent)
    assert set(result.configs) == {"worker", "infra"}
    assert paths(result.configs["infra"]) == [names.REGISTRIES_CONF]


def test_an_image_alone_makes_a_config_without_files() -> None:
    assert paths(configs(objects()).configs["worker"]) == []


def test_without_an_image_there_is_nothing() -> None:
    assert configs(RegistryObjects(digest_mirrors=[MIRRORED])) == RegistryConfigs()


def test_an_object_that_is_wrong_stops_all_pools() -> None:
    result = configs(objects(None, idms("bad", {"A B": ["m"]})), built_in("master"), built_in("worker", "containerd"))
    assert result.configs == {}
    assert result.settings is None
    assert set(result.refused) == {"master", "worker"}
    assert result.reasons["worker"].startswith('ImageDigestMirrorSet bad: invalid format for source "A B" (')


def test_what_a_runtime_cannot_be_told_stops_its_pools_alone() -> None:
    given = objects(image(blocked=["b.io"]), MIRRORED)
    result = configs(given, built_in("master"), built_in("worker", "containerd"))
    assert set(result.configs) == {"master"}
    assert result.reasons == {
        "worker": "Image cluster: containerd cannot be told this: blockedRegistries (run this pool with CRI-O, or remove it)"
    }
    assert result.settings is not None


def test_a_pool_with_containerd_has_its_files() -> None:
    result = configs(objects(None, MIRRORED), built_in("worker", "containerd"))
    assert paths(result.configs["worker"]) == ["/etc/containerd/certs.d/quay.io/hosts.toml"]
    assert result.lacking == {}


def test_a_policy_of_a_namespace_is_lacking_there() -> None:
    result = configs(
        objects(None, signed("p", "a.io", namespace="team")), built_in("worker", "containerd"), built_in("master")
    )
    assert set(result.configs) == {"worker", "master"}
    assert set(result.lacking) == {"worker"}
    assert result.refused == {}


@pytest.mark.parametrize(
    ("of_pool", "of_cluster", "containerd"),
    [
        ("", "", False), ("containerd", "", True), ("", "containerd", True), ("cri-o", "containerd", False),
        ("containerd", "cri-o", True), ("crio", "", False),
    ],
)  # fmt: skip
def test_the_pool_says_which_runtime_it_has_or_else_the_cluster(
    of_pool: str, of_cluster: str, containerd: bool
) -> None:
    controller = {"metadata": {"annotations": {names.CONTAINER_RUNTIME: of_cluster}}} if of_cluster else None
    assert runs_containerd(built_in("worker", of_pool), controller) == containerd


@pytest.mark.parametrize("runtime", ["", "containerd"])
def test_files_have_a_bound(runtime: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 200)
    result = configs(
        objects(None, idms("a", {"quay.io": [f"m{n}.io" for n in range(20)]})), built_in("worker", runtime)
    )
    assert "more than 200 bytes" in result.reasons["worker"]
