"""Somebody removes the operator as the manual says, namespace and all, and asks for the runtime afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fastness.app.embedded import PlaneOptions, running
from fastness.kinds.kata import names
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import condition
from fastness.kinds.registry import find
from fastness.kube.port import Cluster
from tests.component.workloads.kata.story import (
    KATA,
    NAMESPACE,
    feature_gates,
    in_progress,
    is_done,
    is_gone,
    kata_config,
    until,
    until_equal,
    until_told,
)
from tests.component.workloads.kata.test_lost_labels import manifest, touched
from tests.component.workloads.kata.test_virtual_machines import ready

GROUP = find("operators.coreos.com", "v1", "operatorgroups").resource
SUBSCRIPTION = find("operators.coreos.com", "v1alpha1", "subscriptions").resource
VERSION = find("operators.coreos.com", "v1alpha1", "clusterserviceversions").resource
CSV = f"{names.OPERATOR}.v1.12.0"


async def install_operator(cluster: Cluster) -> None:
    """The operator with its gates, as the manual installs it."""
    await feature_gates(cluster, deploymentMode="MachineConfig")
    await cluster.create(GROUP, manifest("osc-operatorgroup.yaml"))
    await cluster.create(SUBSCRIPTION, manifest("osc-subscription.yaml"))
    await until_equal(lambda: phases(cluster), {CSV: "Succeeded"})


async def phases(cluster: Cluster) -> dict[str, Any]:
    versions = (await cluster.list(VERSION)).items
    return {version["metadata"]["name"]: (version.get("status") or {}).get("phase") for version in versions}


async def names_of(cluster: Cluster, resource: Resource) -> list[str]:
    return sorted(obj["metadata"]["name"] for obj in (await cluster.list(resource)).items)


async def remembered(cluster: Cluster) -> JsonObject:
    home = await cluster.get(NAMESPACE, "fastness-system")
    return {
        key: value for key, value in (home["metadata"].get("annotations") or {}).items() if key == names.OPERATOR_SEEN
    }


async def remove_operator(cluster: Cluster) -> None:
    """Subscription, then namespace: with it goes the version."""
    await cluster.delete(SUBSCRIPTION, names.OPERATOR, names.NAMESPACE)
    await cluster.delete(NAMESPACE, names.NAMESPACE)
    await until_equal(lambda: phases(cluster), {})

    async def there() -> bool:
        return names.NAMESPACE in await names_of(cluster, NAMESPACE)

    await until_equal(there, False)


@pytest.mark.row("001-154")
async def test_a_kataconfig_after_its_operator_was_removed_is_left_alone_until_it_is_back(tmp_path: Path) -> None:
    async with running(PlaneOptions(tmp_path / "state", machines=1, profile="containers")) as plane:
        cluster = plane.server.cluster
        await until_equal(lambda: ready(cluster), ["worker-0"])
        await install_operator(cluster)
        await until_equal(lambda: remembered(cluster), {names.OPERATOR_SEEN: CSV})
        await remove_operator(cluster)
        before = await touched(cluster)
        await cluster.create(KATA, kata_config())
        config = await until(cluster, lambda config: in_progress(config) == ("False", "OperatorMissing"))
        assert f"operator {CSV} was removed" in (condition(config, "InProgress") or {})["message"]
        assert not config["metadata"].get("finalizers")
        assert await touched(cluster) == before
        await until_told(cluster, "OperatorMissing")
        await install_operator(cluster)
        await until(cluster, is_done)

        # Removed once more, too early: what is installed stays as it is, and a deletion waits for the operator too.
        before = await touched(cluster)
        await remove_operator(cluster)
        config = await until(cluster, lambda config: in_progress(config) == ("False", "OperatorMissing"))
        assert config["status"]["kataNodes"]["installed"] == ["worker-0"]
        assert "kata" in config["status"]["runtimeClasses"]
        await cluster.delete(KATA, "example-kataconfig")
        await until(cluster, lambda config: config["metadata"].get("deletionTimestamp"))
        assert await touched(cluster) == before
        await install_operator(cluster)
        await is_gone(cluster)
