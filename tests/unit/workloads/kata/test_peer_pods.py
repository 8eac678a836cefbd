"""Peer pods: files on nodes before the class, an adaptor when its owner said where, gates that reach it, a clean way back."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from fastness.formats.data_url import decode
from fastness.kinds.kata import names, runtime
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition
from fastness.workloads.kata.inputs import Ref
from fastness.workloads.kata.mode import DeploymentMode, FeatureGates, UpdateStrategy
from fastness.workloads.kata.peer_pods import CLASS, CONFIG_NAMES, CREDENTIALS, SETTINGS, adaptor
from tests.unit.workloads.kata.builders import requirements
from tests.unit.workloads.kata.pretend_cluster import PretendCluster

PLAIN = FeatureGates()
CONFIDENTIAL = FeatureGates(confidential=True)
DAEMON_SET = FeatureGates(deployment_mode=DeploymentMode.DAEMON_SET)
ADAPTOR = Ref("DaemonSet", names.ADAPTOR, names.NAMESPACE)
IMAGE = Ref("ConfigMap", "azure-podvm-image-cm", names.NAMESPACE)
OF_THE_ADAPTOR = {
    ADAPTOR,
    Ref("ServiceAccount", names.ADAPTOR, names.NAMESPACE),
    Ref("SecurityContextConstraints", names.ADAPTOR),
}
REMOTE_POD: JsonObject = {
    "metadata": {"name": "p", "namespace": "d"}, "spec": {"runtimeClassName": "kata-remote"}, "status": {"phase": "Running"},
}  # fmt: skip


def config_map(ref: Ref, **data: str) -> JsonObject:
    return {"kind": ref.kind, "metadata": {"name": ref.name, "namespace": ref.namespace}, "data": data}


def peer_pods(gates: FeatureGates = PLAIN, *, complete: bool = True, **spec: Any) -> PretendCluster:
    world = PretendCluster(gates, 2, enablePeerPods=True, **spec)
    if complete:
        world.objects[SETTINGS] = config_map(SETTINGS, CLOUD_PROVIDER="azure", INITDATA="mine")
        world.objects[CREDENTIALS] = config_map(CREDENTIALS, AZURE_CLIENT_ID="eA==")
        world.objects[IMAGE] = config_map(IMAGE, IMAGE_GALLERY_NAME="mine")
    return world


def ready(world: PretendCluster) -> str:
    return str((condition(world.config or {}, "PeerPodsReady") or {}).get("reason", ""))


def variables(world: PretendCluster, name: str = names.ADAPTOR) -> dict[str, Any]:
    pod = world.objects[Ref("DaemonSet", name, names.NAMESPACE)]["spec"]["template"]["spec"]
    return {variable["name"]: variable.get("value") for variable in pod["containers"][0]["env"]}


def test_the_machine_configs_bring_one_file_each() -> None:
    world = peer_pods()
    world.look()
    files = {}
    for name in CONFIG_NAMES:
        made = world.objects[Ref("MachineConfig", name)]
        assert made["metadata"]["labels"]["machineconfiguration.openshift.io/role"] == "kata-oc"
        (file,) = made["spec"]["config"]["storage"]["files"]
        assert file["mode"] == 0o644
        files[file["path"]] = decode(file["contents"]["source"])
    assert files == dict(runtime.REMOTE_FILES)
    assert set(files) == {"/opt/kata/configuration-remote.toml", "/etc/crio/crio.conf.d/50-kata-remote"}
    dropped = tomllib.loads(files[names.REMOTE_RUNTIME_FILE].decode())
    assert dropped["crio"]["runtime"]["runtimes"]["kata-remote"]["runtime_config_path"] == names.REMOTE_FILE
    assert (
        tomllib.loads(files[names.REMOTE_FILE].decode())["hypervisor"]["remote"]["remote_hypervisor_socket"]
        == runtime.SOCKET
    )


def test_the_class_waits_until_the_pool_has_the_files_and_nodes_have_the_pool() -> None:
    world = PretendCluster(PLAIN, 2)
    world.settle()
    assert world.config is not None
    world.config["spec"]["enablePeerPods"] = True
    world.look()
    assert CLASS not in world.objects
    assert world.in_progress == ("True", "Updating")
    world.settle()
    assert CLASS in world.objects
    assert world.in_progress == ("False", "")


@pytest.mark.parametrize("gates", [PLAIN, DAEMON_SET])
def test_nothing_is_left_but_what_the_owner_made(gates: FeatureGates) -> None:
    world = peer_pods(gates)
    world.settle()
    assert set(world.objects) >= OF_THE_ADAPTOR
    assert world.objects[CLASS]["overhead"]["podFixed"] == {"cpu": "250m", "memory": "120Mi"}
    world.delete()
    world.settle()
    assert world.config is None
    assert set(world.objects) == {SETTINGS, CREDENTIALS, IMAGE}


def test_without_machine_configs_the_installer_is_told() -> None:
    world = peer_pods(DAEMON_SET)
    world.settle()
    assert variables(world, names.INSTALLER)[names.PEER_PODS_VARIABLE] == "true"
    assert not [ref for ref in world.objects if ref.kind == "MachineConfig"]
    world = PretendCluster(DAEMON_SET, 1)
    world.settle()
    assert names.PEER_PODS_VARIABLE not in variables(world, names.INSTALLER)


@pytest.mark.parametrize(("confidential", "disable", "built"), [(True, "false", "yes"), (False, "true", "no")])
def test_the_gate_decides_about_confidential_machines_and_leaves_other_keys(
    confidential: bool, disable: str, built: str
) -> None:
    world = peer_pods(FeatureGates(confidential=confidential))
    world.settle()
    assert world.objects[SETTINGS]["data"] == {"CLOUD_PROVIDER": "azure", "INITDATA": "mine", "DISABLECVM": disable}
    assert world.objects[IMAGE]["data"] == {"IMAGE_GALLERY_NAME": "mine", "CONFIDENTIAL_COMPUTE_ENABLED": built}
    assert variables(world)["DISABLECVM"] == disable
    world.gates = FeatureGates(confidential=not confidential)
    world.settle()
    assert world.objects[SETTINGS]["data"]["DISABLECVM"] != disable
    assert variables(world)["DISABLECVM"] != disable


def test_the_gate_changes_nothing_where_peer_pods_are_not_asked_for() -> None:
    world = PretendCluster(CONFIDENTIAL, 1)
    world.objects[SETTINGS] = config_map(SETTINGS, CLOUD_PROVIDER="azure")
    world.settle()
    assert world.objects[SETTINGS]["data"] == {"CLOUD_PROVIDER": "azure"}


def test_what_the_owner_has_not_made_is_told_one_after_the_other_and_the_adaptor_waits() -> None:
    world = peer_pods(complete=False)
    world.settle()
    assert ready(world) == "ConfigMissing"
    assert SETTINGS not in world.objects
    world.objects[SETTINGS] = config_map(SETTINGS)
    world.settle()
    assert ready(world) == "ProviderMissing"
    world.objects[SETTINGS]["data"]["CLOUD_PROVIDER"] = "aws"
    world.settle()
    assert ready(world) == "SecretMissing"
    assert ADAPTOR not in world.objects
    world.objects[CREDENTIALS] = config_map(CREDENTIALS)
    world.settle()
    assert ready(world) == ""
    assert ADAPTOR in world.objects


def test_an_immutable_config_map_is_not_written_and_told_when_it_contradicts_the_gate() -> None:
    world = peer_pods(CONFIDENTIAL)
    world.objects[SETTINGS] |= {"immutable": True}
    before = dict(world.objects[SETTINGS]["data"])
    world.settle()
    assert ready(world) == "ConfigImmutable"
    assert world.objects[SETTINGS]["data"] == before
    world.objects[SETTINGS]["data"]["DISABLECVM"] = "false"
    world.settle()
    assert ready(world) == ""


def test_everything_stays_while_a_pod_uses_the_class_and_goes_after_it() -> None:
    world = peer_pods()
    world.settle()
    assert world.config is not None
    world.pods = [REMOTE_POD]
    world.config["spec"]["enablePeerPods"] = False
    world.settle()
    assert set(world.objects) >= {CLASS, *OF_THE_ADAPTOR, *(Ref("MachineConfig", name) for name in CONFIG_NAMES)}
    world.pods = []
    world.settle()
    assert not set(world.objects) & {CLASS, *OF_THE_ADAPTOR, *(Ref("MachineConfig", name) for name in CONFIG_NAMES)}
    assert world.in_progress == ("False", "")
    assert set(world.objects) >= {SETTINGS, CREDENTIALS}


def test_the_adaptor_is_replaced_as_its_gate_says() -> None:
    world = peer_pods()
    *_, rolling = adaptor(world.inputs(), requirements())
    assert rolling.obj["spec"]["updateStrategy"]["type"] == "RollingUpdate"
    world.gates = FeatureGates(adaptor_update=UpdateStrategy.ON_DELETE)
    *_, daemon_set = adaptor(world.inputs(), requirements())
    assert daemon_set.obj["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert daemon_set.differs(rolling.obj)
    pod = daemon_set.obj["spec"]["template"]["spec"]
    assert pod["containers"][0]["envFrom"] == [
        {"configMapRef": {"name": "peer-pods-cm"}}, {"secretRef": {"name": "peer-pods-secret"}},
    ]  # fmt: skip
