"""Pools that select all, nothing, or what another one selects, or want what is not on offer: they say so, and nothing moves."""

from __future__ import annotations

from typing import Any

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, condition
from fastness.kinds.registry import find
from fastness.kube.port import PatchType
from tests.component.machineconfig.worker_pool import (
    NODE,
    POOL,
    WorkerPool,
    until,
)

EVENT = find("", "v1", "events").resource


def custom(name: str, nodes: JsonObject | None, configs: JsonObject | None = None) -> JsonObject:
    both = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": ["worker", name]}]}
    body: JsonObject = {"machineConfigSelector": both if configs is None else configs}
    if nodes is not None:
        body["nodeSelector"] = nodes
    return {"apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "metadata": {"name": name}, "spec": body}


async def heard(workers: WorkerPool, reason: str, about: str) -> JsonObject:
    async def looked() -> JsonObject | None:
        events = (await workers.cluster.list(EVENT)).items
        return next((e for e in events if e["reason"] == reason and e["involvedObject"]["name"] == about), None)

    return await until(looked, f"nobody says {reason}")  # type: ignore[no-any-return]


async def test_a_pool_whose_node_selector_takes_everything_gets_nothing_and_says_so(workers: WorkerPool) -> None:
    await workers.add_node("a")
    before = await workers.settled()
    await workers.cluster.create(POOL, custom("greedy", {}))
    event = await heard(workers, "SelectingAll", "greedy")
    assert event["type"] == "Warning"
    assert (await workers.settled())["status"]["machineCount"] == before["status"]["machineCount"] == 1
    assert not (await workers.cluster.get(POOL, "greedy")).get("status", {}).get("machineCount")


async def test_a_pool_whose_config_selector_finds_nothing_is_degraded_and_one_that_takes_all_is_told(
    workers: WorkerPool,
) -> None:
    nothing = {"matchLabels": {names.ROLE_LABEL: "worker", "no": "such"}}
    await workers.cluster.create(POOL, custom("empty", None, nothing))

    async def degraded() -> Any:
        state = condition(await workers.cluster.get(POOL, "empty"), "RenderDegraded")
        return state if state and state["status"] == "True" else None

    reported = await until(degraded, "it does not say so")
    assert reported["message"].startswith("Failed to render configuration for pool empty: ")
    assert not ((await workers.cluster.get(POOL, "empty"))["spec"].get("configuration") or {}).get("name")


async def test_a_node_that_two_pools_claim_goes_to_neither_and_both_say_so(workers: WorkerPool) -> None:
    await workers.add_node("a")
    good = (await workers.settled())["spec"]["configuration"]["name"]
    for name in ("infra", "storage"):
        await workers.cluster.create(POOL, custom(name, {"matchLabels": {f"{names.NODE_ROLE_PREFIX}{name}": ""}}))
    both = {f"{names.NODE_ROLE_PREFIX}{name}": "" for name in ("infra", "storage")}
    await workers.cluster.patch(NODE, "a", {"metadata": {"labels": both}}, PatchType.MERGE)
    for name in ("infra", "storage"):
        event = await heard(workers, "NodeInSeveralPools", name)
        assert event["type"] == "Warning"
        assert "infra" in event["message"]
        assert "storage" in event["message"]

    async def counted() -> bool:
        pools = {pool["metadata"]["name"]: pool for pool in (await workers.cluster.list(POOL)).items}
        return all(not (pools[name].get("status") or {}).get("machineCount") for name in ("worker", "infra", "storage"))

    assert await until(counted, "somebody counts it")
    assert annotations_of(await workers.cluster.get(NODE, "a"))[names.DESIRED_CONFIG] == good
    await workers.cluster.patch(
        NODE, "a", {"metadata": {"labels": {f"{names.NODE_ROLE_PREFIX}storage": None}}}, PatchType.MERGE
    )

    async def claimed() -> bool:
        return bool(((await workers.cluster.get(POOL, "infra")).get("status") or {}).get("machineCount") == 1)

    assert await until(claimed, "nobody takes it although only one claims it")
