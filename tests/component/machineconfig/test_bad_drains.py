"""Drains while a node vanishes or the clock jumps: nobody is held up, and nothing ends early."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

import pytest

from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import ObjectName, annotations_of
from fastness.kinds.registry import find
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import PatchType, WriteOptions
from fastness.machineconfig.loops.updates.drain import Drains
from fastness.runtime.clock import SystemClock
from tests.component.machineconfig.worker_pool import (
    BUDGET,
    CONFIG,
    NODE,
    POD,
    QUICK,
    WorkerPool,
    config,
    until,
)
from tests.embedded.fixtures import Embedded
from tests.virtual import SeededEntropy, VirtualClock

EVENT = find("", "v1", "events").resource


async def test_a_node_that_vanishes_during_its_drain_holds_up_nobody(workers: WorkerPool) -> None:
    for name in ("a", "b"):
        await workers.add_node(name)
    good = (await workers.settled())["spec"]["configuration"]["name"]
    await blocked_pod(workers, "a")
    await blocked_pod(workers, "b")
    await workers.cluster.create(CONFIG, config("50-motd"))

    async def draining() -> str:
        nodes = (await workers.cluster.list(NODE)).items
        return next((n["metadata"]["name"] for n in nodes if (n.get("spec") or {}).get("unschedulable")), "")

    gone = await until(draining, "nobody drains")
    await workers.cluster.delete(NODE, gone)
    other = "b" if gone == "a" else "a"
    await workers.cluster.delete(BUDGET, f"keep-{other}", "default")
    pool = await workers.settled(goal_is_not=good)
    assert pool["status"]["machineCount"] == pool["status"]["updatedMachineCount"] == 1
    assert pool["status"]["unavailableMachineCount"] == 0
    assert not (await workers.cluster.get(NODE, other)).get("spec", {}).get("unschedulable")


async def blocked_pod(workers: WorkerPool, node: str) -> None:
    """A pod on a node that a budget keeps there."""
    name = f"web-{node}"
    meta = {"name": name, "namespace": "default", "labels": {"app": node}}
    body = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    await workers.cluster.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body})
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await workers.cluster.patch(POD, name, ready, PatchType.MERGE, "default", WriteOptions(subresource="status"))
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": f"keep-{node}", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": node}}},
    }  # fmt: skip
    await workers.cluster.create(BUDGET, budget)


class JumpingClock(VirtualClock):
    """A clock whose wall time somebody sets."""

    def __init__(self) -> None:
        super().__init__()
        self.off = timedelta()

    def now(self) -> datetime:
        return super().now() + self.off


@pytest.mark.parametrize("jump", [timedelta(days=-3650), timedelta(days=3650)], ids=["back", "ahead"])
async def test_a_clock_that_jumps_neither_ends_nor_hastens_a_drain(embedded_server: Embedded, jump: timedelta) -> None:
    cluster, clock = embedded_server.cluster, JumpingClock()
    request = {names.DESIRED_DRAIN: "drain-rendered-worker-1"}
    meta = {"name": "a", "annotations": request}
    await cluster.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
    body = {"nodeName": "a", "containers": [{"name": "c", "image": "i"}]}
    pod = {"name": "web", "namespace": "default", "labels": {"app": "a"}}
    await cluster.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": pod, "spec": body})
    budget = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    keep = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "default"},
    }
    await cluster.create(BUDGET, {**keep, "spec": budget})
    async with Informers(cluster, clock=SystemClock(), entropy=SeededEntropy()) as informers:
        drains = Drains(cluster, informers, clock, QUICK)
        first = await drains.reconcile(ObjectName("", "a"))
        clock.off = jump
        second = await drains.reconcile(ObjectName("", "a"))
        assert first == second, "only time that passed counts"
        reasons = {event["reason"] for event in (await cluster.list(EVENT)).items}
        assert not reasons & {"DrainFailed", "DrainThresholdExceeded"}
        await cluster.delete(BUDGET, "keep", "default")
        for _ in range(3):
            await drains.reconcile(ObjectName("", "a"))
            with suppress(NotFound):
                await cluster.delete(POD, "web", "default")
        node = await cluster.get(NODE, "a")
        assert annotations_of(node)[names.LAST_APPLIED_DRAIN] == request[names.DESIRED_DRAIN]
