"""Enforcing means day two as well: a rollout moves attested machines and nobody else, and says whom it holds and why."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from fastness.attestation.machine.proof_age import TAINT_KEY
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER, CONFIRM_LOWER, NAME
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, condition
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.confirmation import confirmation
from fastness.kube.port import Cluster, PatchType
from tests.component.machineconfig.worker_pool import CONFIG, NODE, POOL, WorkerPool, config, until
from tests.lowering import lowered
from tests.proven import proven_machine


async def enforce(cluster: Cluster) -> None:
    body: JsonObject = {
        "apiVersion": CONFIDENTIAL_CLUSTER.api_version, "kind": CONFIDENTIAL_CLUSTER.kind, "metadata": {"name": NAME},
        "spec": {"mode": "Enforce", "simulated": True},
    }  # fmt: skip
    await cluster.create(CONFIDENTIAL_CLUSTER.resource, body)


async def quarantine(cluster: Cluster, machine: str, approval: str = "Quarantined") -> None:
    await cluster.patch(MACHINE.resource, machine, {"spec": {"approval": approval}}, PatchType.MERGE, NAMESPACE)


async def desired(workers: WorkerPool) -> dict[str, str]:
    nodes = (await workers.cluster.list(NODE)).items
    return {node["metadata"]["name"]: annotations_of(node).get(names.DESIRED_CONFIG, "") for node in nodes}


async def says(workers: WorkerPool, *words: str) -> str:
    """What the pool says, once it says all of this."""

    async def message_of_pool() -> str:
        updating = condition(await workers.pool(), "Updating") or {}
        message = str(updating.get("message", ""))
        return message if all(word in message for word in words) else ""

    return str(await until(message_of_pool, f"the pool does not say {words}"))


async def tainted(workers: WorkerPool, node: str, *effects: str) -> bool:
    """Whether a node carries the taint with exactly these effects."""
    taints = ((await workers.cluster.get(NODE, node)).get("spec") or {}).get("taints") or ()
    return {taint["effect"] for taint in taints if taint["key"] == TAINT_KEY} == set(effects or ("NoSchedule",))


async def spec_of(workers: WorkerPool, **spec: Any) -> None:
    await workers.cluster.patch(CONFIDENTIAL_CLUSTER.resource, NAME, {"spec": spec}, PatchType.MERGE)


async def arrived(workers: WorkerPool, nodes: set[str], than: str) -> Any:
    async def there() -> bool:
        goal, now = await workers.goal(), await desired(workers)
        return goal != than and all(now[name] == goal for name in nodes)

    return await until(there, "not told")


@pytest.mark.row("000-51")
async def test_nodes_that_never_attested_get_no_newer_config_and_are_named(workers: WorkerPool) -> None:
    for name in ("a", "b"):
        await workers.add_node(name)
    before = (await workers.settled())["spec"]["configuration"]["name"]
    await enforce(workers.cluster)
    await workers.cluster.create(CONFIG, config("50-ssh"))
    message = await says(workers, "held back: a, b (it belongs to no Machine that attested)")
    assert "unavailable" not in message
    assert await desired(workers) == {"a": before, "b": before}
    for name in ("a", "b"):
        await until(partial(tainted, workers, name), "the node is not marked")


@pytest.mark.row("000-48")
@pytest.mark.row("000-49")
async def test_a_held_node_uses_up_no_budget_and_the_others_go_on(workers: WorkerPool) -> None:
    for number, name in enumerate(("a", "b", "c"), 1):
        await workers.add_node(name)
        await proven_machine(workers.cluster, name, number)
    before = (await workers.settled())["spec"]["configuration"]["name"]
    await enforce(workers.cluster)
    await quarantine(workers.cluster, "machine-b")

    async def cordoned() -> bool:
        return bool(((await workers.cluster.get(NODE, "b")).get("spec") or {}).get("unschedulable"))

    await until(cordoned, "the node is still in service")
    await workers.cluster.create(CONFIG, config("50-motd"))
    await arrived(workers, {"a", "c"}, before)
    assert (await desired(workers))["b"] == before
    await says(workers, "held back: b (the machine is in quarantine)")
    await quarantine(workers.cluster, "machine-b", "Approved")
    after = await workers.settled(goal_is_not=before)
    assert (await desired(workers))["b"] == after["spec"]["configuration"]["name"]


async def test_what_a_machine_is_sent_to_stands_on_it_before_its_node_hears_of_it(workers: WorkerPool) -> None:
    await enforce(workers.cluster)
    await workers.add_node("a")
    await proven_machine(workers.cluster, "a", 1)
    first = (await workers.settled())["spec"]["configuration"]["name"]
    writes: list[tuple[str, str]] = []

    async def written(goal: str) -> bool:
        machine = await workers.cluster.get(MACHINE.resource, "machine-a", NAMESPACE)
        node_goal = (await desired(workers))["a"]
        if node_goal == goal:
            writes.append((str(machine["status"].get("desiredConfig")), node_goal))
        return node_goal == goal

    async def follows() -> bool:
        machine = await workers.cluster.get(MACHINE.resource, "machine-a", NAMESPACE)
        return bool(machine["status"].get("desiredConfig") == first)

    assert await until(follows, "who came with the goal is written down too")
    await workers.cluster.create(CONFIG, config("50-motd"))
    await arrived(workers, {"a"}, first)
    second = await workers.goal()
    await written(second)
    assert writes[0] == (second, second)
    machine = await workers.cluster.get(MACHINE.resource, "machine-a", NAMESPACE)
    assert machine["status"]["currentConfig"] == first


async def test_a_node_cannot_widen_what_its_machine_may_read(workers: WorkerPool) -> None:
    await enforce(workers.cluster)
    await workers.add_node("a")
    await proven_machine(workers.cluster, "a", 1)
    first = (await workers.settled())["spec"]["configuration"]["name"]
    foreign = f"rendered-master-{'f' * 32}"
    await workers.cluster.patch(POOL, "worker", {"spec": {"paused": True}}, PatchType.MERGE)
    lie = {"metadata": {"annotations": {names.CURRENT_CONFIG: foreign}}}
    await workers.cluster.patch(NODE, "a", lie, PatchType.MERGE)
    await workers.cluster.create(CONFIG, config("50-motd"))
    await workers.cluster.patch(POOL, "worker", {"spec": {"paused": False}}, PatchType.MERGE)
    await arrived(workers, {"a"}, first)
    status = (await workers.cluster.get(MACHINE.resource, "machine-a", NAMESPACE))["status"]
    assert foreign not in (status["desiredConfig"], status["currentConfig"])


async def untainted(workers: WorkerPool, node: str) -> bool:
    taints = ((await workers.cluster.get(NODE, node)).get("spec") or {}).get("taints") or ()
    return all(taint["key"] != TAINT_KEY for taint in taints)


async def test_a_node_without_a_machine_is_marked_however_it_came_to_be_until_it_has_one(workers: WorkerPool) -> None:
    await enforce(workers.cluster)
    real = "worker-" + "a" * 20
    for name in ("by-hand", real, "fake-" + "a" * 20):
        await workers.add_node(name)
        await until(partial(tainted, workers, name), "a node that appeared by itself is not marked")
    await proven_machine(workers.cluster, real, 1)
    await until(lambda: untainted(workers, real), "the machine proved itself")
    assert await tainted(workers, "fake-" + "a" * 20), "a name that looks like another machine's is no claim"
    assert await tainted(workers, "by-hand")


async def test_the_mark_follows_the_pool_and_the_mode(workers: WorkerPool) -> None:
    await workers.add_node("a")
    await enforce(workers.cluster)
    await until(lambda: tainted(workers, "a"), "not marked")
    settings = await workers.cluster.get(CONFIDENTIAL_CLUSTER.resource, NAME)
    spec = {**settings["spec"], "pools": [{"name": "worker", "trustModel": "None"}]}
    confirmed = {CONFIRM_LOWER: confirmation(settings, {**settings, "spec": spec})}
    patch = {"metadata": {"annotations": confirmed}, "spec": spec}
    await workers.cluster.patch(CONFIDENTIAL_CLUSTER.resource, NAME, patch, PatchType.MERGE)
    await until(lambda: untainted(workers, "a"), "nobody asks for a proof any more")


async def test_pods_leave_only_where_the_pool_says_so(workers: WorkerPool) -> None:
    await workers.add_node("a")
    await enforce(workers.cluster)
    await until(lambda: tainted(workers, "a"), "not marked")
    await spec_of(workers, pools=[{"name": "worker", "trustModel": "ConfidentialCluster", "evict": True}])
    await until(lambda: tainted(workers, "a", "NoSchedule", "NoExecute"), "pods may stay")
    await lowered(workers.cluster, {"pools": [{"name": "worker", "trustModel": "ConfidentialCluster", "evict": False}]})
    await until(lambda: tainted(workers, "a"), "pods must still leave")


async def test_who_takes_the_mark_off_a_node_sees_it_come_back(workers: WorkerPool) -> None:
    await workers.add_node("a")
    await enforce(workers.cluster)
    await until(lambda: tainted(workers, "a"), "not marked")
    await workers.cluster.patch(NODE, "a", {"spec": {"taints": None}}, PatchType.MERGE)
    await until(lambda: tainted(workers, "a"), "the mark stays away")
