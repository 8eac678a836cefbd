"""Seed 000, options of machine configuration: which are refused where the node is measured, and which stay as they were."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.acceptance.cluster import GROUP, Acceptance, a_file, machine_config
from tests.patience import eventually

REFUSED = "99-worker-refused"
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"


def refuses(cluster: Acceptance, obj: dict[str, Any], field: str) -> None:
    """Apply a config that a confidential pool must refuse, look, and take it back."""
    before, configs = cluster.rendered(), cluster.rendered_configs()
    applied = cluster.apply(obj)
    assert "Warning" in applied.err
    assert field in applied.err
    eventually(lambda: REFUSED in cluster.degraded(), f"the refusal of {field}")
    assert field in cluster.degraded()
    row = cluster.kubectl("get", "mcp", "worker").rows[1]
    assert row[4] == "True"  # DEGRADED
    assert cluster.rendered_configs() == configs
    assert not cluster.degraded("master")
    assert len(cluster.ready()) == cluster.workers
    cluster.kubectl("delete", "mc", REFUSED)
    eventually(lambda: not cluster.degraded(), "the pool to heal")
    assert cluster.rendered() == before


@pytest.mark.row("000-06")
@pytest.mark.row("000-21")
@pytest.mark.row("000-25")
@pytest.mark.row("000-26")
@pytest.mark.row("000-27")
@pytest.mark.row("000-30")
@pytest.mark.row("000-31")
def test_kernel_arguments_degrade_the_pool_and_taking_them_back_heals_it(cluster: Acceptance) -> None:
    refuses(cluster, machine_config(REFUSED, kernelArguments=["debug"]), "kernelArguments")


@pytest.mark.row("000-07")
def test_another_kernel_is_refused(cluster: Acceptance) -> None:
    refuses(cluster, machine_config(REFUSED, kernelType="realtime"), "kernelType")


@pytest.mark.row("000-08")
def test_fips_is_refused(cluster: Acceptance) -> None:
    refuses(cluster, machine_config(REFUSED, fips=True), "fips")


@pytest.mark.row("000-09")
def test_extensions_are_refused(cluster: Acceptance) -> None:
    refuses(cluster, machine_config(REFUSED, extensions=["usbguard"]), "extensions")


@pytest.mark.row("000-10")
def test_kernel_arguments_of_ignition_itself_are_refused(cluster: Acceptance) -> None:
    refuses(cluster, machine_config(REFUSED, config={"kernelArguments": {"shouldExist": ["debug"]}}), "kernelArguments")


@pytest.mark.row("000-11")
@pytest.mark.parametrize("path", ["/boot/loader/entries/other.conf", "/etc/default/grub", "/etc/kernel/cmdline"])
def test_files_that_change_the_boot_are_refused(cluster: Acceptance, path: str) -> None:
    refuses(cluster, machine_config(REFUSED, config=a_file(path, "debug")), "config.storage.files[0]")


@pytest.mark.row("000-14")
@pytest.mark.row("000-23")
def test_values_that_change_nothing_are_accepted(cluster: Acceptance) -> None:
    before = cluster.rendered()
    quiet = machine_config("99-worker-quiet", config=a_file("/etc/quiet", "quiet"))
    quiet["spec"] |= {"kernelType": "default", "fips": False, "kernelArguments": [], "extensions": []}
    cluster.apply(quiet)
    eventually(lambda: cluster.rendered() != before and cluster.updated(), "the new rendered config")
    assert cluster.contents("/etc/quiet") == {"quiet"}


@pytest.mark.row("000-16")
@pytest.mark.row("000-17")
@pytest.mark.row("000-18")
@pytest.mark.row("000-24")
def test_files_units_and_ssh_keys_reach_every_node(cluster: Acceptance) -> None:
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAcceptanceOfSeedZeroZeroZeroRowEighteen you@example.org"
    unit = {
        "name": "told.service",
        "enabled": True,
        "contents": "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n",
    }
    dropin = {"name": "crio.service", "dropins": [{"name": "10-told.conf", "contents": "[Service]\nNice=1\n"}]}
    config = a_file("/etc/motd", "hello") | {
        "systemd": {"units": [unit, dropin]},
        "passwd": {"users": [{"name": "core", "sshAuthorizedKeys": [key]}]},
    }
    cluster.apply(machine_config("99-worker-all", config=config))
    eventually(lambda: cluster.contents("/etc/motd") == {"hello"} and cluster.updated(), "the config on all nodes")
    assert cluster.contents("/etc/systemd/system/told.service") == {unit["contents"]}
    assert cluster.contents("/etc/systemd/system/crio.service.d/10-told.conf") == {"[Service]\nNice=1\n"}
    keys = cluster.contents("/home/core/.ssh/authorized_keys.d/ignition")
    assert all(text and key in text for text in keys)
    rendered = cluster.rendered()
    assert {
        node["metadata"]["annotations"]["machineconfiguration.openshift.io/currentConfig"] for node in cluster.nodes()
    } == {rendered}


@pytest.mark.row("000-19")
@pytest.mark.row("000-20")
def test_settings_of_the_kubelet_and_of_the_runtime_reach_the_nodes(cluster: Acceptance) -> None:
    selector = {
        "machineConfigPoolSelector": {"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}}
    }
    for kind, name, spec in (
        ("KubeletConfig", "more-pods", {"kubeletConfig": {"maxPods": 321}}),
        ("ContainerRuntimeConfig", "fewer-pids", {"containerRuntimeConfig": {"pidsLimit": 4321}}),
    ):
        cluster.apply(
            {
                "apiVersion": "machineconfiguration.openshift.io/v1",
                "kind": kind,
                "metadata": {"name": name},
                "spec": {**selector, **spec},
            }
        )
        cluster.kubectl("wait", f"{kind.lower()}/{name}", "--for=condition=Success", "--timeout=30s")

    def everywhere(text: str) -> bool:
        return all(
            any(text in file.read_text(errors="replace") for file in root.rglob("etc/**/*") if file.is_file())
            for root in cluster.roots()
        )

    eventually(lambda: everywhere("321") and everywhere("4321") and cluster.updated(), "the settings on all nodes")


@pytest.mark.row("000-22")
def test_an_unknown_version_and_a_relative_path_name_their_place(cluster: Acceptance) -> None:
    for config, place in (
        ({"ignition": {"version": "9.9.0"}}, "9.9.0"),
        (a_file("etc/relative", "x"), "the path must be absolute"),
    ):
        wrong = machine_config("99-worker-wrong", config=config)
        cluster.live.kubectl("apply", "-f", "-", stdin=wrong)
        eventually(lambda place=place: place in cluster.degraded(), f"the reason {place}")  # type: ignore[misc]
        assert "99-worker-wrong" in cluster.degraded()
        cluster.kubectl("delete", "mc", "99-worker-wrong")
        eventually(lambda: not cluster.degraded(), "the pool to heal")


@pytest.mark.row("000-13")
def test_control_groups_v1_degrade_the_pool_and_other_settings_of_their_kind_work(cluster: Acceptance) -> None:
    def nodes(**spec: str) -> dict[str, Any]:
        return {"apiVersion": "config.openshift.io/v1", "kind": "Node", "metadata": {"name": "cluster"}, "spec": spec}

    configs = cluster.rendered_configs()
    assert "Warning: unsupported cgroup mode 'v1'" in cluster.apply(nodes(cgroupMode="v1")).err
    eventually(lambda: "unsupported cgroup mode 'v1'" in cluster.degraded(), "the refusal")
    assert "kernel arguments, which confidential pools refuse" in cluster.degraded()
    assert cluster.rendered_configs() == configs
    cluster.apply(nodes(cgroupMode="v2", workerLatencyProfile="MediumUpdateAverageReaction"))
    eventually(lambda: not cluster.degraded() and cluster.rendered_configs() != configs, "the pool to heal")
    eventually(
        lambda: (
            all("nodeStatusUpdateFrequency: 20s" in str(text) for text in cluster.contents(KUBELET_CONF))
            and cluster.updated()
        ),
        "the latency profile on every node",
    )
    cluster.kubectl("delete", "nodes.config.openshift.io", "cluster")
    eventually(lambda: cluster.rendered_configs() >= configs and cluster.updated(), "the pool to be where it was")


@pytest.mark.row("000-12")
def test_a_kata_config_for_a_confidential_pool_is_refused_with_the_way_out(cluster: Acceptance) -> None:
    kata = {"apiVersion": "kataconfiguration.openshift.io/v1", "kind": "KataConfig", "metadata": {"name": "example"}}
    refused = cluster.live.kubectl("apply", "-f", "-", stdin={**kata, "spec": {}})
    assert refused.code != 0
    assert "has the trust model ConfidentialCluster" in refused.err
    assert "trustModel ContainersHost" in refused.err
    assert not cluster.get("kataconfig", "example")


@pytest.mark.row("000-15")
def test_no_machine_goes_to_an_image_that_it_could_not_prove(cluster: Acceptance) -> None:
    before, booted = cluster.rendered(), [node["metadata"]["annotations"] for node in cluster.nodes()]
    image = f"registry.example/os@sha256:{'a' * 64}"
    cluster.apply(machine_config("99-worker-image", osImageURL=image))

    def waiting() -> str:
        return str(cluster.condition("mcp", "worker", "Updating").get("message", ""))

    eventually(lambda: "no ApprovedImage" in waiting(), "the pool to say what it waits for")
    assert image in waiting()
    assert "fastness image approve" in waiting()
    assert [node["metadata"]["annotations"] for node in cluster.nodes()] == booted
    cluster.kubectl("delete", "mc", "99-worker-image")
    eventually(lambda: cluster.rendered() == before and cluster.updated(), "the pool to be where it was")


@pytest.mark.row("000-28")
@pytest.mark.row("000-35")
def test_a_custom_pool_shares_the_fate_of_worker_unless_it_is_of_another_model(cluster: Acceptance) -> None:
    roles = {"key": f"{GROUP}/role", "operator": "In", "values": ["worker", "infra"]}
    selector = {"matchLabels": {"node-role.kubernetes.io/infra": ""}}
    cluster.apply(
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "MachineConfigPool",
            "metadata": {"name": "infra"},
            "spec": {"machineConfigSelector": {"matchExpressions": [roles]}, "nodeSelector": selector},
        }
    )
    eventually(lambda: cluster.rendered("infra"), "the pool's first config")
    cluster.apply(machine_config(REFUSED, kernelArguments=["debug"]))
    eventually(lambda: REFUSED in cluster.degraded() and REFUSED in cluster.degraded("infra"), "both to be degraded")
    # The same config in an ordinary pool: a lowering, so the API asks for this very change to be confirmed.
    pools = {"spec": {"pools": [{"name": "infra", "trustModel": "None"}]}}
    patch = ("patch", "confidentialcluster", "cluster", "--type=merge", "-p")
    refused = cluster.live.kubectl(*patch, json.dumps(pools))
    note, _, digest = refused.err.split("annotation ")[1].strip().partition("=")
    cluster.kubectl(*patch, json.dumps({**pools, "metadata": {"annotations": {note: digest}}}))
    eventually(lambda: not cluster.degraded("infra"), "the ordinary pool to be rendered")
    arguments = cluster.get("mc", cluster.rendered("infra"))["spec"]["kernelArguments"]
    assert arguments == ["debug"]
    assert REFUSED in cluster.degraded()
    cluster.kubectl("delete", "mc", REFUSED)
    cluster.kubectl(*patch, json.dumps({"spec": {"pools": None}}))
    cluster.kubectl("delete", "mcp", "infra")
    eventually(lambda: not cluster.degraded() and cluster.updated(), "the pool to heal")


@pytest.mark.row("000-93")
def test_who_is_to_blame_is_said_by_the_pool_and_by_the_plan(cluster: Acceptance) -> None:
    (cluster.live.home / "refused.yaml").write_text(json.dumps(machine_config(REFUSED, fips=True)))
    planned = cluster.fastness("plan", "-f", "refused.yaml")
    assert REFUSED in planned.out + planned.err
    assert "fips" in planned.out + planned.err
    cluster.apply(machine_config(REFUSED, fips=True))
    eventually(lambda: REFUSED in cluster.degraded(), "the refusal")
    assert "fips" in cluster.degraded()
    cluster.kubectl("delete", "mc", REFUSED)
    eventually(lambda: not cluster.degraded(), "the pool to heal")


@pytest.mark.row("000-32")
def test_a_machine_that_comes_to_a_degraded_pool_joins_with_the_last_good_config(cluster: Acceptance) -> None:
    good = cluster.rendered()
    cluster.apply(machine_config(REFUSED, fips=True))
    eventually(lambda: REFUSED in cluster.degraded(), "the refusal")
    assert cluster.fastness("sim", "add").code == 0
    eventually(lambda: len(cluster.ready()) == cluster.workers + 1, "the third node")
    current = "machineconfiguration.openshift.io/currentConfig"
    assert {node["metadata"]["annotations"].get(current) for node in cluster.nodes()} == {good}
    cluster.kubectl("delete", "mc", REFUSED)
    eventually(lambda: not cluster.degraded(), "the pool to heal")
