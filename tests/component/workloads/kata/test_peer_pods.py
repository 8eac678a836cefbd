"""Peer pods and the console's dashboard over the embedded API: objects come, follow and go; pods are counted."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from fastness.kinds.kata import names
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition
from fastness.kinds.registry import find
from fastness.kube.errors import NotFound
from fastness.kube.port import PatchType, WriteOptions
from fastness.observe import metrics
from tests.component.machineconfig.worker_pool import CONFIG, WorkerPool, open_worker_pool
from tests.component.workloads.kata.story import (
    CLASS,
    CONFIG_MAP,
    KATA,
    NAMESPACE,
    feature_gates,
    is_done,
    is_gone,
    kata_config,
    until,
    until_equal,
)
from tests.embedded.fixtures import Embedded

DAEMON_SET = find("apps", "v1", "daemonsets").resource
SECRET = find("", "v1", "secrets").resource
POD = find("", "v1", "pods").resource
CONSOLE = names.DASHBOARD_NAMESPACE


@pytest.fixture
async def workers(embedded_server: Embedded) -> AsyncIterator[WorkerPool]:
    """One worker."""
    async with open_worker_pool(embedded_server) as pool:
        await pool.add_node("worker-0")
        await pool.settled()
        yield pool


async def put(workers: WorkerPool, name: str, **data: str) -> None:
    place = {"name": name, "namespace": names.NAMESPACE}
    await workers.cluster.create(CONFIG_MAP, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": place, "data": data})


async def data_of(workers: WorkerPool, name: str, namespace: str = names.NAMESPACE) -> JsonObject | None:
    try:
        return (await workers.cluster.get(CONFIG_MAP, name, namespace)).get("data") or {}
    except NotFound:
        return None


async def adaptors(workers: WorkerPool) -> list[str]:
    daemon_sets = (await workers.cluster.list(DAEMON_SET)).items
    return [
        daemon_set["metadata"]["name"] for daemon_set in daemon_sets if daemon_set["metadata"]["name"] == names.ADAPTOR
    ]


async def counted() -> list[float]:
    """Class, pods, failed pods, percent."""
    gauges = dict(
        line.rsplit(" ", 1) for line in metrics.exposition().decode().splitlines() if line.startswith("kata_")
    )
    gauge_names = ("runtimeclass_available", "total_remote_pods", "failed_remote_pods", "remote_workload_failure_ratio")
    return [float(value) for name in gauge_names for key, value in gauges.items() if key.endswith(name)]


async def test_the_dashboard_reaches_the_console_follows_its_source_and_goes(workers: WorkerPool) -> None:
    await feature_gates(workers.cluster)
    await workers.cluster.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CONSOLE}})
    await put(workers, names.DASHBOARD, panels="{}")
    await workers.cluster.create(KATA, kata_config())
    await until_equal(lambda: data_of(workers, names.DASHBOARD, CONSOLE), {"panels": "{}"})
    copy = await workers.cluster.get(CONFIG_MAP, names.DASHBOARD, CONSOLE)
    assert copy["metadata"]["labels"]["console.openshift.io/dashboard"] == "true"
    change = {"data": {"panels": None, "more": "[]"}}
    await workers.cluster.patch(CONFIG_MAP, names.DASHBOARD, change, PatchType.MERGE, names.NAMESPACE)
    await until_equal(lambda: data_of(workers, names.DASHBOARD, CONSOLE), {"more": "[]"})
    await workers.cluster.delete(KATA, "example-kataconfig")
    await is_gone(workers.cluster)
    assert await data_of(workers, names.DASHBOARD, CONSOLE) is None
    assert await data_of(workers, names.DASHBOARD) == {"more": "[]"}


async def test_peer_pods_come_and_go_and_their_pods_are_counted(workers: WorkerPool) -> None:
    await feature_gates(workers.cluster, confidential="true")
    await put(workers, names.PEER_PODS_MAP, CLOUD_PROVIDER="azure")
    await workers.cluster.create(KATA, kata_config(enablePeerPods=True))
    config = await until(workers.cluster, is_done)
    assert (condition(config, "PeerPodsReady") or {})["reason"] == "SecretMissing"
    assert await data_of(workers, names.PEER_PODS_MAP) == {"CLOUD_PROVIDER": "azure", "DISABLECVM": "false"}
    place = {"name": names.PEER_PODS_SECRET, "namespace": names.NAMESPACE}
    await workers.cluster.create(SECRET, {"apiVersion": "v1", "kind": "Secret", "metadata": place})
    await until_equal(lambda: adaptors(workers), [names.ADAPTOR])
    assert names.REMOTE_CLASS in [
        runtime_class["metadata"]["name"] for runtime_class in (await workers.cluster.list(CLASS)).items
    ]
    await until_equal(counted, [1.0, 0.0, 0.0, 0.0])
    for name in ("good", "bad"):
        spec = {"runtimeClassName": names.REMOTE_CLASS, "containers": [{"name": "c", "image": "i"}]}
        meta = {"name": name, "namespace": "default"}
        await workers.cluster.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    await until_equal(counted, [1.0, 2.0, 2.0, 100.0])
    running = {"status": {"phase": "Running"}}
    status = WriteOptions(subresource="status")
    await workers.cluster.patch(POD, "good", running, PatchType.MERGE, "default", status)
    await until_equal(counted, [1.0, 2.0, 1.0, 50.0])
    for name in ("good", "bad"):
        await workers.cluster.delete(POD, name, "default")
    await until_equal(counted, [1.0, 0.0, 0.0, 0.0])
    await workers.cluster.delete(KATA, "example-kataconfig")
    await is_gone(workers.cluster)
    await until_equal(counted, [0.0, 0.0, 0.0, 0.0])
    assert await adaptors(workers) == []
    left = {config["metadata"]["name"] for config in (await workers.cluster.list(CONFIG)).items}
    assert not left & {names.REMOTE_CONFIG, names.REMOTE_RUNTIME_CONFIG}
    assert await data_of(workers, names.PEER_PODS_MAP) is not None
