"""Several loops write conditions of one pool: none drops what another wrote a moment ago."""

from __future__ import annotations

from typing import Any

import pytest

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import condition, with_condition
from fastness.kube.controllers.fenced import FencedCluster
from fastness.kube.controllers.statuses import TRIES, write_status
from fastness.kube.errors import Conflict
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.runtime.clock import SystemClock
from tests.component.machineconfig.worker_pool import CONFIG, POOL, WorkerPool, config, until
from tests.embedded.fixtures import Embedded

STATUS = WriteOptions(manager="rival", subresource="status")
LOOPS = ("machine-config-render", "machine-config-rollout")


async def write_as_a_rival(cluster: Cluster, kind: str) -> None:
    """Another loop writes a condition, over what the API has at this moment."""
    pool = await cluster.get(POOL, "worker")
    before = (pool.get("status") or {}).get("conditions") or []
    now = SystemClock().now()
    conditions = with_condition(before, kind=kind, status="True", reason="Rival", message="is there", now=now)
    version = {"resourceVersion": pool["metadata"]["resourceVersion"]}
    patch = {"metadata": version, "status": {"conditions": conditions}}
    await cluster.patch(POOL, "worker", patch, PatchType.MERGE, "", STATUS)


async def test_what_another_loop_writes_between_read_and_write_stays(
    workers: WorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await workers.add_node("a")
    before = (await workers.settled())["spec"]["configuration"]["name"]
    disturbed: list[str] = []
    forward = FencedCluster.patch

    async def patch_after_a_rival(
        self: FencedCluster, resource: Resource, name: str, patch: Any, *rest: Any, **more: Any
    ) -> JsonObject:
        manager = next((each.manager for each in rest if isinstance(each, WriteOptions)), "")
        conditions = patch.get("status", {}).get("conditions") if isinstance(patch, dict) else None
        if resource == POOL and name == "worker" and conditions and manager in LOOPS and manager not in disturbed:
            disturbed.append(manager)
            await write_as_a_rival(workers.cluster, f"Rival{len(disturbed)}")
        return await forward(self, resource, name, patch, *rest, **more)

    monkeypatch.setattr(FencedCluster, "patch", patch_after_a_rival)
    await workers.cluster.create(CONFIG, config("50-motd"))
    await workers.settled(goal_is_not=before)
    await workers.cluster.create(CONFIG, config("51-bad", path="relative"))

    async def both_disturbed() -> bool:
        return set(disturbed) == set(LOOPS)

    await until(both_disturbed, "no write of each loop was disturbed")
    await until(lambda: says(workers, "RenderDegraded", "True"), "the pool does not say that it cannot be rendered")
    pool = await workers.pool()
    for number, manager in enumerate(disturbed, 1):
        assert condition(pool, f"Rival{number}"), f"{manager} dropped what another wrote"


async def says(workers: WorkerPool, kind: str, status: str) -> bool:
    return (condition(await workers.pool(), kind) or {}).get("status") == status


async def test_an_object_that_somebody_writes_all_the_time_is_given_up_after_some_tries(
    embedded_server: Embedded,
) -> None:
    cluster = embedded_server.cluster
    selector = {"matchLabels": {names.ROLE_LABEL: "worker"}}
    body = {"apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "metadata": {"name": "worker"},
            "spec": {"machineConfigSelector": selector}}  # fmt: skip
    stale = await cluster.create(POOL, body)
    tries = 0

    class Restless(FencedCluster):
        async def patch(self, *args: Any, **more: Any) -> JsonObject:
            nonlocal tries
            tries += 1
            await write_as_a_rival(cluster, f"Rival{tries}")
            return await super().patch(*args, **more)

    with pytest.raises(Conflict):
        await write_status(Restless(cluster, "test", (POOL,)), POOL, stale, lambda _pool: {"machineCount": 1}, STATUS)
    assert tries == TRIES
    assert await write_status(cluster, POOL, stale, lambda _pool: None, STATUS) == stale
    written = await write_status(cluster, POOL, stale, lambda _pool: {"machineCount": 2}, STATUS)
    assert (written or {})["status"]["machineCount"] == 2
    await cluster.delete(POOL, "worker")
    assert await write_status(cluster, POOL, stale, lambda _pool: {"machineCount": 3}, STATUS) is None
