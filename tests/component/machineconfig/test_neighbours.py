"""Beside another machine-config operator: ours does not start, says so, and takes over only when told to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner

from fastness.app.controllers import product_loops
from fastness.app.other_operators import held_back
from fastness.cli.support.cluster_health import neighbours
from fastness.cli.support.doctor import doctor
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import rfc3339
from fastness.kinds.registry import find
from fastness.kube.informers import Informers
from fastness.kube.port import PatchType
from fastness.machineconfig.loops.other_operators import NAMESPACE, other_operator
from fastness.runtime.clock import SystemClock
from tests.embedded.fixtures import Embedded
from tests.virtual import SeededEntropy

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
SPACE = find("", "v1", "namespaces").resource
DEPLOYMENT = find("apps", "v1", "deployments").resource
LEASE = find("coordination.k8s.io", "v1", "leases").resource
CONTROLLER = find("machineconfiguration.openshift.io", "v1", "controllerconfigs").resource


async def namespace(embedded: Embedded) -> None:
    await embedded.cluster.create(SPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})


async def deploy(embedded: Embedded, replicas: int, name: str = "machine-config-controller") -> None:
    labels = {"k8s-app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    meta = {"name": name, "namespace": NAMESPACE}
    await embedded.cluster.create(
        DEPLOYMENT, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": body}
    )


async def lease(embedded: Embedded, renewed: datetime, holder: str = "host_1", **more: Any) -> None:
    body: JsonObject = {"holderIdentity": holder, "leaseDurationSeconds": 60, "renewTime": micro(renewed), **more}
    meta = {"name": "machine-config-controller", "namespace": NAMESPACE}
    await embedded.cluster.create(
        LEASE, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": body}
    )


def micro(moment: datetime) -> str:
    return rfc3339(moment).replace("Z", ".000000Z")


async def test_an_empty_cluster_has_nobody_else(embedded_server: Embedded) -> None:
    assert await other_operator(embedded_server.cluster, NOW) is None
    assert await held_back(embedded_server.cluster, (), NOW) == {}


async def test_what_an_operator_left_behind_is_no_operator(embedded_server: Embedded) -> None:
    await namespace(embedded_server)
    await deploy(embedded_server, 0)
    await lease(embedded_server, NOW - timedelta(hours=1))
    notes = {"machineconfiguration.openshift.io/generated-by-version": "v4.21"}
    stamp = {"metadata": {"annotations": notes}}
    await embedded_server.cluster.patch(CONTROLLER, "machine-config-controller", stamp, PatchType.MERGE)
    assert await other_operator(embedded_server.cluster, NOW) is None


@pytest.mark.parametrize("name", ["machine-config-controller", "machine-config-operator"])
async def test_a_deployment_that_wants_to_run_is_one(embedded_server: Embedded, name: str) -> None:
    await namespace(embedded_server)
    await deploy(embedded_server, 1, name)
    sign = await other_operator(embedded_server.cluster, NOW)
    assert sign == f"Deployment {NAMESPACE}/{name} wants 1 replica"


@pytest.mark.parametrize(
    ("ago", "holder", "active"), [(100, "host_1", True), (200, "host_1", False), (10, "", False)],
    ids=["renewed lately", "left behind", "given back"],
)  # fmt: skip
async def test_a_lease_counts_while_somebody_renews_it(
    embedded_server: Embedded, ago: int, holder: str, active: bool
) -> None:
    await namespace(embedded_server)
    await lease(embedded_server, NOW - timedelta(seconds=ago), holder)
    assert (await other_operator(embedded_server.cluster, NOW) is not None) is active


async def test_the_family_does_not_start_without_being_adopted_and_the_others_do(embedded_server: Embedded) -> None:
    await namespace(embedded_server)
    await deploy(embedded_server, 1)
    cluster, clock, entropy = embedded_server.cluster, SystemClock(), SeededEntropy()
    held = await held_back(cluster, (), NOW)
    assert set(held) == {"machine-config"}
    assert await held_back(cluster, ("machine-config",), NOW) == {}
    async with Informers(cluster, clock=clock, entropy=entropy) as informers:
        every = {loop.name for loop in product_loops(cluster, informers, clock, entropy)}
        some = {loop.name for loop in product_loops(cluster, informers, clock, entropy, without=held)}
    left_out = every - some
    assert {"machine-config-render", "machine-config-rollout", "machine-config-drain", "user-data"} <= left_out
    assert "challenge-sweeper" in some


async def test_the_doctor_says_it_with_the_way_out(embedded_server: Embedded) -> None:
    await namespace(embedded_server)
    before, *_ = await neighbours(embedded_server.cluster, NOW)
    assert (before.state, before.fix) == ("ok", "")
    await deploy(embedded_server, 1)
    after, *_ = await neighbours(embedded_server.cluster, NOW)
    assert after.state == "optional"
    assert "wants 1 replica" in after.found
    assert "--adopt machine-config" in after.fix


def test_the_doctor_names_a_kubeconfig_that_is_not_there() -> None:
    result = CliRunner().invoke(doctor, ["--kubeconfig", "/no/such/file"])
    assert result.exit_code != 0
    assert "/no/such/file" in result.output
