"""`fastness doctor` about confidential containers: combinations that are not supported, and GPUs that are not ready."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from fastness.cli.main import cli
from fastness.cli.support.doctor import PLATFORMS
from fastness.cli.support.host_check import hosts
from fastness.kinds.registry import find
from fastness.kube.port import PatchType, WriteOptions
from fastness.workloads.compat.tables import Platform
from fastness.workloads.nvidia.policy import cluster_policy
from tests.embedded.fixtures import Embedded

Object = dict[str, Any]


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["--openshift", "4.21.9"], "bare metal, x86_64, Intel TDX, OpenShift 4.21.9: GA", 0),
        (["--openshift", "4.21.9", "--gpu", "--tee", "snp"], "TP (Technology Preview: do not use it in production)", 0),
        (["--openshift", "4.20.18", "--gpu"], "unsupported, x86_64 with a GPU needs OpenShift 4.21.9 or later", 1),
        (["--openshift", "4.18.1"], "unsupported, x86_64 without a GPU needs OpenShift 4.19.28 or later", 1),
        (["--openshift", "soon"], "unsupported, 'soon' is not a release", 1),
        (
            ["--openshift", "4.21.9", "--architecture", "s390x", "--platform", "IBM Z bare metal", "--tee", "se"],
            ": GA",
            0,
        ),
    ],
)
def test_a_combination_is_judged_by_the_tables(arguments: list[str], message: str, code: int) -> None:
    result = CliRunner().invoke(cli, ["doctor", "-o", "json", *arguments])
    report = json.loads(result.stdout)
    (finding,) = [entry for entry in report["findings"] if entry["name"] == "confidential containers"]
    assert message in finding["found"]
    assert (finding["state"] == "missing") is bool(code)
    assert result.exit_code >= code
    assert not code or finding["fix"]


def test_platforms_of_the_option_are_those_of_the_tables() -> None:
    assert tuple(Platform) == PLATFORMS


async def test_a_cluster_is_told_which_of_its_nodes_are_not_supported_and_why(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    labels = {
        "node-role.kubernetes.io/worker": "",
        "intel.feature.node.kubernetes.io/tdx": "true",
        "nvidia.com/gpu.present": "true",
    }
    nodes = find("", "v1", "nodes").resource
    await cluster.create(nodes, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "w0", "labels": labels}})
    assert (await hosts(cluster))[0].found == "not an OpenShift cluster: the tables of releases do not apply"
    versions = find("config.openshift.io", "v1", "clusterversions").resource
    await cluster.create(
        versions, {"apiVersion": versions.api_version, "kind": "ClusterVersion", "metadata": {"name": "version"}}
    )
    status = {"status": {"history": [{"state": "Completed", "version": "4.20.18"}]}}
    await cluster.patch(versions, "version", status, PatchType.MERGE, "", WriteOptions(subresource="status"))
    policy: Object = cluster_policy()
    policy["spec"]["driver"]["enabled"] = True
    await cluster.create(find("nvidia.com", "v1", "clusterpolicies").resource, policy)
    unsupported, wrong, unmanaged = await hosts(cluster)
    assert unsupported.found.startswith(
        "w0: bare metal, x86_64, Intel TDX, NVIDIA H100, OpenShift 4.20.18: unsupported, "
    )
    assert unsupported.fix == "Upgrade to 4.21.9 or later."
    assert "ClusterPolicy gpu-cluster-policy: spec.driver.enabled is true: set it to false, because" in wrong.found
    assert "no manager has written" in unmanaged.found
