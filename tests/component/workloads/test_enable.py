"""`fastness enable` against the embedded API: the whole step, again, half of it, and where it must not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from fastness.cli.main import cli
from fastness.kinds.registry import find
from fastness.kube.port import PatchType
from tests.embedded.fixtures import Embedded

Object = dict[str, Any]
NODES = find("", "v1", "nodes").resource
KATA = find("kataconfiguration.openshift.io", "v1", "kataconfigs").resource
POOLS = find("machineconfiguration.openshift.io", "v1", "machineconfigpools").resource
KEY = {"PCCS_API_KEY": "0123456789abcdef" * 2}


async def run(embedded: Embedded, *arguments: str, env: dict[str, str] | None = None) -> Result:
    command = ["enable", *arguments, "--kubeconfig", str(embedded.kubeconfig)]
    return await asyncio.to_thread(CliRunner().invoke, cli, command, env={"PCCS_API_KEY": "", **(env or {})})


async def hosts(embedded: Embedded) -> None:
    for name, roles in (("m0", ("master", "control-plane")), ("w0", ("worker",)), ("w1", ("worker",))):
        labels = {f"node-role.kubernetes.io/{role}": "" for role in roles}
        obj: Object = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        await embedded.cluster.create(NODES, obj)
    for name in ("master", "worker"):
        spec = {
            "machineConfigSelector": {"matchLabels": {"machineconfiguration.openshift.io/role": name}},
            "nodeSelector": {"matchLabels": {f"node-role.kubernetes.io/{name}": ""}},
        }
        pool: Object = {"apiVersion": POOLS.api_version, "kind": POOLS.kind, "metadata": {"name": name}, "spec": spec}
        await embedded.cluster.create(POOLS, pool)
        if name == "worker":
            from fastness.kube.port import WriteOptions

            counted = {"status": {"machineCount": 2}}
            await embedded.cluster.patch(POOLS, name, counted, PatchType.MERGE, "", WriteOptions(subresource="status"))


async def everything(embedded: Embedded) -> dict[str, str]:
    """Names and versions of all objects that the step may touch."""
    from fastness.workloads.enable.inputs import LOOKED_AT

    objects = {}
    for kind, _ in LOOKED_AT:
        for obj in (await embedded.cluster.list(kind.resource)).items:
            meta = obj["metadata"]
            objects[f"{kind.plural}/{meta.get('namespace', '')}/{meta['name']}"] = meta["resourceVersion"]
    return objects


async def test_plan_changes_nothing_and_doing_it_twice_changes_nothing_either(embedded_server: Embedded) -> None:
    await hosts(embedded_server)
    before = await everything(embedded_server)
    planned = await run(embedded_server, "tdx", "--gpu", "--plan", env=KEY)
    assert planned.exit_code == 0, planned.output
    assert "+ KataConfig example-kataconfig" in planned.stdout
    assert "2 nodes reboot." in planned.stdout
    assert await everything(embedded_server) == before
    done = await run(embedded_server, "tdx", "--gpu", env=KEY)
    assert done.exit_code == 0, done.output
    assert "KataConfig example-kataconfig created" in done.stdout
    after = await everything(embedded_server)
    assert len(after) > len(before) + 25
    again = await run(embedded_server, "tdx", "--gpu")
    assert again.exit_code == 0, again.output
    assert "Nothing is left to do." in again.stdout
    assert "shown only now" not in again.stderr
    assert await everything(embedded_server) == after


async def test_step_that_was_interrupted_goes_on_where_it_was(embedded_server: Embedded) -> None:
    await hosts(embedded_server)
    assert (await run(embedded_server, "snp")).exit_code == 0
    await embedded_server.cluster.delete(KATA, "example-kataconfig")
    gates = find("", "v1", "configmaps").resource
    place = "openshift-sandboxed-containers-operator"
    await embedded_server.cluster.patch(
        gates, "osc-feature-gates", {"data": {"confidential": "no"}}, PatchType.MERGE, place
    )
    result = await run(embedded_server, "snp", "-o", "json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert "KataConfig example-kataconfig created" in result.stderr
    runtime = next(step for step in report["steps"] if step["title"] == "runtime")
    assert [(change["action"], change["fields"]) for change in runtime["changes"]] == [
        ("change", ["data.confidential"]),
        ("create", []),
    ]
    others = {change["action"] for step in report["steps"] if step["title"] != "runtime" for change in step["changes"]}
    assert others == {"keep"}


async def test_confidential_cluster_is_refused_with_the_reason_and_nothing_is_written(
    embedded_server: Embedded,
) -> None:
    await hosts(embedded_server)
    clusters = find("fastness.dev", "v1alpha1", "confidentialclusters").resource
    obj: Object = {
        "apiVersion": clusters.api_version,
        "kind": clusters.kind,
        "metadata": {"name": "cluster"},
        "spec": {"mode": "Enforce", "simulated": True},
    }
    await embedded_server.cluster.create(clusters, obj)
    before = await everything(embedded_server)
    result = await run(embedded_server, "snp")
    assert result.exit_code == 1
    assert "pool worker and kata-oc: ConfidentialCluster; its nodes are confidential machines" in result.stdout
    assert "Nothing was done" in result.stdout
    assert await everything(embedded_server) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tdx", "--select", "nonsense"], "--select: 'nonsense' is not LABEL=VALUE"),
        (["sev"], "Invalid value for '{tdx|snp}'"),
        (["tdx", "--deployment-mode", "magic"], "Invalid value for '--deployment-mode'"),
    ],
)
def test_wrong_use_is_told_before_a_cluster_is_asked(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, ["enable", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
