"""Masters, an arbiter that shares their quorum, and nodes that boot straight into a custom pool."""

from __future__ import annotations

from typing import Any

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, condition, labels_of
from fastness.kinds.registry import find
from fastness.kube.port import PatchType, WriteOptions
from tests.component.machineconfig.worker_pool import CONFIG, NODE, POD, POOL, WorkerPool, config, until

INFRASTRUCTURE = find("config.openshift.io", "v1", "infrastructures").resource
EVENT = find("", "v1", "events").resource


async def topology(workers: WorkerPool, name: str) -> None:
    status = {"status": {"controlPlaneTopology": name}}
    await workers.cluster.patch(
        INFRASTRUCTURE, "cluster", status, PatchType.MERGE, "", WriteOptions(subresource="status")
    )


async def add(workers: WorkerPool, name: str, role: str, **notes: str) -> None:
    labels = {f"{names.NODE_ROLE_PREFIX}{role}": ""} if role else {}
    goal = await goal_of(workers, role) if role else ""
    begun = {names.CURRENT_CONFIG: goal, names.DESIRED_CONFIG: goal, names.STATE: "Done"} if goal else {}
    meta = {"name": name, "labels": labels, "annotations": {**begun, **notes}}
    await workers.cluster.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": meta})


async def goal_of(workers: WorkerPool, pool: str) -> str:
    async def rendered() -> str:
        pools = {entry["metadata"]["name"]: entry for entry in (await workers.cluster.list(POOL)).items}
        return str(((pools.get(pool, {}).get("spec") or {}).get("configuration") or {}).get("name") or "")

    return str(await until(rendered, f"{pool} is not rendered"))


async def updated(workers: WorkerPool, pool: str, old: str) -> bool:
    stored = await workers.cluster.get(POOL, pool)
    state = condition(stored, "Updated")
    return await goal_of(workers, pool) != old and state is not None and state["status"] == "True" and done(stored)


def done(pool: JsonObject) -> bool:
    status = pool.get("status") or {}
    return bool((status.get("configuration") or {}).get("name") == pool["spec"]["configuration"]["name"])


async def test_an_arbiter_waits_until_all_masters_have_it_and_is_told_the_topology(workers: WorkerPool) -> None:
    await topology(workers, "HighlyAvailableArbiter")
    old = {pool: await goal_of(workers, pool) for pool in ("master", "arbiter")}
    await add(workers, "m0", "master")
    await add(workers, "m1", "master")
    await add(workers, "a0", "arbiter")
    workers.broken.clear()
    await workers.cluster.create(CONFIG, config("50-master", role="master"))

    async def pointed() -> bool:
        return await goal_of(workers, "master") != old["master"]

    await until(pointed, "the masters are not rendered")
    await workers.cluster.create(CONFIG, config("50-arbiter", role="arbiter"))
    order: list[str] = []

    async def watched() -> bool:
        for node in (await workers.cluster.list(NODE)).items:
            name, notes = node["metadata"]["name"], annotations_of(node)
            moved = notes.get(names.DESIRED_CONFIG) not in (*old.values(), None)
            if moved and name not in order:
                order.append(name)
        return await updated(workers, "arbiter", old["arbiter"]) and await updated(workers, "master", old["master"])

    await until(watched, "the control plane does not get there")
    assert order[-1] == "a0"
    node = await workers.cluster.get(NODE, "a0")
    assert annotations_of(node)[names.CONTROL_PLANE_TOPOLOGY] == "HighlyAvailableArbiter"


async def test_without_an_arbiter_there_is_no_pool_for_one(workers: WorkerPool) -> None:
    await goal_of(workers, "master")
    assert "arbiter" not in {pool["metadata"]["name"] for pool in (await workers.cluster.list(POOL)).items}


async def test_the_master_that_runs_an_operator_goes_last_and_an_event_says_so(workers: WorkerPool) -> None:
    old = await goal_of(workers, "master")
    for name in ("m0", "m1", "m2"):
        await add(workers, name, "master")
    labels = {"k8s-app": "machine-config-operator"}
    meta = {"name": "operator", "namespace": "default", "labels": labels}
    body = {"nodeName": "m0", "containers": [{"name": "c", "image": "i"}]}
    await workers.cluster.create(POD, {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body})
    await workers.cluster.create(CONFIG, config("50-master", role="master"))
    order: list[str] = []

    async def watched() -> bool:
        for node in (await workers.cluster.list(NODE)).items:
            if annotations_of(node).get(names.DESIRED_CONFIG) != old and node["metadata"]["name"] not in order:
                order.append(node["metadata"]["name"])
        return await updated(workers, "master", old)

    await until(watched, "the masters do not get there")
    assert order[-1] == "m0"
    assert "DeferringOperatorNodeUpdate" in {event["reason"] for event in (await workers.cluster.list(EVENT)).items}


def infra() -> dict[str, Any]:
    both = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": ["worker", "infra"]}]}
    body = {"machineConfigSelector": both, "nodeSelector": {"matchLabels": {f"{names.NODE_ROLE_PREFIX}infra": ""}}}
    return {"apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "metadata": {"name": "infra"}, "spec": body}


async def test_a_node_that_booted_into_a_custom_pool_gets_its_labels_once(workers: WorkerPool) -> None:
    await workers.cluster.create(POOL, infra())
    goal = await goal_of(workers, "infra")
    first = {
        names.CURRENT_CONFIG: goal,
        names.DESIRED_CONFIG: goal,
        names.STATE: "Done",
        names.FIRST_PIVOT_CONFIG: goal,
    }
    meta = {"name": "n", "labels": {f"{names.NODE_ROLE_PREFIX}worker": ""}, "annotations": first}
    await workers.cluster.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
    key = f"{names.NODE_ROLE_PREFIX}infra"

    async def labelled() -> bool:
        return key in labels_of(await workers.cluster.get(NODE, "n"))

    await until(labelled, "the pool does not find its node")
    node = await workers.cluster.get(NODE, "n")
    assert annotations_of(node)[names.CUSTOM_POOL_LABELS_APPLIED] == ""
    assert annotations_of(node)[names.DESIRED_CONFIG] == goal, "it was not sent to the config of workers first"

    async def counted() -> bool:
        return bool(((await workers.cluster.get(POOL, "infra")).get("status") or {}).get("machineCount") == 1)

    await until(counted, "the pool does not count it")
    await workers.cluster.patch(NODE, "n", {"metadata": {"labels": {key: None}}}, PatchType.MERGE)

    async def lost() -> bool:
        return not ((await workers.cluster.get(POOL, "infra")).get("status") or {}).get("machineCount")

    await until(lost, "the pool keeps it")
    assert key not in labels_of(await workers.cluster.get(NODE, "n")), "what somebody takes away stays away"


async def test_a_node_of_plain_kubernetes_gets_the_role_that_its_kubelet_could_not_give_it(workers: WorkerPool) -> None:
    goal, master = await goal_of(workers, "worker"), await goal_of(workers, "master")
    await add(workers, "n", "", **{names.FIRST_PIVOT_CONFIG: goal})
    await add(workers, "claims", "", **{names.FIRST_PIVOT_CONFIG: master})

    async def labelled() -> bool:
        return names.WORKER_LABEL in labels_of(await workers.cluster.get(NODE, "n"))

    await until(labelled, "the worker gets no role")
    assert labels_of(await workers.cluster.get(NODE, "claims")) == {}, (
        "a node does not make itself part of the control plane"
    )
    await workers.cluster.patch(NODE, "n", {"metadata": {"labels": {names.WORKER_LABEL: None}}}, PatchType.MERGE)
    await add(workers, "later", "", **{names.FIRST_PIVOT_CONFIG: goal})

    async def went_on() -> bool:
        return names.WORKER_LABEL in labels_of(await workers.cluster.get(NODE, "later"))

    await until(went_on, "the loop stopped")
    assert names.WORKER_LABEL not in labels_of(await workers.cluster.get(NODE, "n")), (
        "what somebody takes away stays away"
    )
