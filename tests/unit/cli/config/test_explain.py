"""`fastness render --explain`: which row of the base wrote something and why, and who said something else later; offline."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from fastness.kinds.machineconfiguration import names
from tests.unit.machineconfig.build import CERTIFICATE, controller_config, file, ignition, mc, pool

CONTROLLER = controller_config()
KUBELETS = {
    "apiVersion": names.API_VERSION, "kind": "KubeletConfig", "metadata": {"name": "pods"},
    "spec": {
        "machineConfigPoolSelector": {"matchLabels": {f"{names.POOL_LABEL_PREFIX}worker": ""}},
        "kubeletConfig": {"maxPods": 500},
    },
}  # fmt: skip
MINE = mc("99-arp", ignition(file("/etc/sysctl.d/arp.conf"), units=[{"name": "kubelet.service", "enabled": False}]))


def explained(directory: Path, place: str, *objects: Mapping[str, object], arguments: tuple[str, ...] = ()) -> Result:
    path = directory / "all.yaml"
    path.write_text(yaml.safe_dump_all(map(dict, objects)))
    pooled = arguments if "--pool" in arguments else ("--pool", "worker", *arguments)
    return CliRunner().invoke(cli, ["render", *pooled, "--explain", place, str(path)])


def test_a_row_of_the_base_says_why_and_settings_that_override_it_are_named(tmp_path: Path) -> None:
    shown = explained(tmp_path, "/etc/kubernetes/kubelet.conf", CONTROLLER, KUBELETS).output.splitlines()
    assert shown[0] == "file /etc/kubernetes/kubelet.conf"
    assert shown[1].startswith(
        "  01-worker-kubelet, row '/etc/kubernetes/kubelet.conf' (every node): the kubelet's settings"
    )
    assert shown[2].startswith(
        "  99-worker-generated-kubelet: generated from KubeletConfig pods; overrides contents.source"
    )


def test_what_a_user_overrides_is_told_field_by_field(tmp_path: Path) -> None:
    arp = explained(tmp_path, "/etc/sysctl.d/arp.conf", CONTROLLER, MINE).output
    assert "99-arp: a MachineConfig of this cluster's users; overrides contents.source, mode" in arp
    unit = explained(tmp_path, "kubelet.service", CONTROLLER, MINE).output
    assert unit.endswith("overrides enabled\n")


def test_a_directory_stands_for_everything_below_it(tmp_path: Path) -> None:
    shown = explained(tmp_path, "/etc/sysctl.d", CONTROLLER).output
    assert shown.count("00-worker, row '/etc/sysctl.d/") == 6


def test_of_two_rows_the_one_that_holds_is_told(tmp_path: Path) -> None:
    secret = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "kube-root-ca.crt", "namespace": "kube-system"},
              "data": {"ca.crt": CERTIFICATE}}  # fmt: skip
    plain = explained(tmp_path, "fastness-agent.service", CONTROLLER).output
    measured = explained(tmp_path, "fastness-agent.service", CONTROLLER, secret, arguments=("--confidential",)).output
    assert "pools whose image is not measured" in plain
    assert "the measured image brings the unit" in measured


def test_a_custom_pool_has_the_workers_base_or_its_own(tmp_path: Path) -> None:
    place, infra = "/etc/containerd/config.toml", pool("infra")
    inherited = explained(tmp_path, place, CONTROLLER, pool(), infra, arguments=("--pool", "infra"))
    assert "is called '/etc/containerd/config.toml'" in inherited.output
    infra["metadata"]["annotations"] = {names.CONTAINER_RUNTIME: "containerd"}
    own = explained(tmp_path, place, CONTROLLER, pool(), infra, arguments=("--pool", "infra"))
    assert "01-infra-container-runtime, row" in own.output
    crio = explained(
        tmp_path, "/etc/crio/crio.conf.d/00-default", CONTROLLER, pool(), infra, arguments=("--pool", "infra")
    )
    assert crio.exit_code == 1, "nothing of the workers' runtime is left on its machines"


def test_json_is_for_programs(tmp_path: Path) -> None:
    [part] = json.loads(
        explained(tmp_path, "/etc/sysctl.d/arp.conf", CONTROLLER, MINE, arguments=("-o", "json")).output
    )
    assert (part["kind"], part["name"]) == ("file", "/etc/sysctl.d/arp.conf")
    assert [wrote["config"] for wrote in part["history"]] == ["00-worker", "99-arp"]
    assert part["history"][0]["when"] == "every node"


def test_without_a_controller_config_the_base_is_not_known(tmp_path: Path) -> None:
    result = explained(tmp_path, "/etc/kubernetes/kubelet.conf", MINE)
    assert result.exit_code == 1
    assert "no ControllerConfig" in result.output


def test_a_controller_config_that_lacks_something_is_told_by_the_field(tmp_path: Path) -> None:
    result = explained(tmp_path, "/etc/kubernetes/kubelet.conf", controller_config(clusterDNSIP=""))
    assert result.exit_code == 1
    assert "spec.clusterDNSIP is missing" in result.output


@pytest.mark.parametrize("given", [True, False])
def test_the_pull_secret_comes_from_the_files_or_is_told_to_be_missing(tmp_path: Path, given: bool) -> None:
    content = base64.b64encode(b'{"auths": {"registry.example": {"auth": "eDp5"}}}').decode()
    secret = {
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull-secret", "namespace": "openshift-config"},
        "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": content},
    }  # fmt: skip
    controller = controller_config(pullSecret={"name": "pull-secret", "namespace": "openshift-config"})
    path = tmp_path / "all.yaml"
    path.write_text(yaml.safe_dump_all([controller, *([secret] if given else [])]))
    result = CliRunner().invoke(cli, ["render", "--pool", "worker", "-o", "json", str(path)])
    assert result.exit_code == 0
    assert ("pull-secret is not there" in result.stderr) is not given
    files = json.loads(result.stdout)["spec"]["config"]["storage"]["files"]
    [source] = [entry["contents"]["source"] for entry in files if entry["path"] == "/var/lib/kubelet/config.json"]
    text = base64.b64decode(source.partition("base64,")[2]).decode()
    assert ("eDp5" in text) is given
