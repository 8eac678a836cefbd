"""A RolloutPolicy on the real loops: waves one after the other, a stop, and a status that says so."""

from __future__ import annotations

from typing import Any

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, condition
from fastness.kinds.registry import find
from fastness.kube.events import EVENTS
from fastness.kube.port import PatchType
from fastness.machineconfig.rollout.nodes import GAVE_UP, SINCE
from tests.component.machineconfig.worker_pool import CONFIG, NODE, POOL, WorkerPool, config, until

POLICY = find("fastness.dev", "v1alpha1", "rolloutpolicies").resource
KUBELET = find("machineconfiguration.openshift.io", "v1", "kubeletconfigs").resource
WORKERS = {"matchLabels": {f"{names.POOL_LABEL_PREFIX}worker": ""}}


async def follow(workers: WorkerPool, **spec: Any) -> None:
    body = {"poolSelector": WORKERS, **spec}
    made = {"apiVersion": "fastness.dev/v1alpha1", "kind": "RolloutPolicy", "metadata": {"name": "canary"}}
    await workers.cluster.create(POLICY, {**made, "spec": body})


async def says(workers: WorkerPool, kind: str, status: str = "True", reason: str = "") -> JsonObject:
    async def looked() -> JsonObject | None:
        policy = await workers.cluster.get(POLICY, "canary")
        state = condition(policy, kind)
        right = state and state["status"] == status and (not reason or state["reason"] == reason)
        return policy if right else None

    return await until(looked, f"{kind} does not become {status}")  # type: ignore[no-any-return]


async def nodes_moved(workers: WorkerPool, good: str) -> int:
    nodes = (await workers.cluster.list(NODE)).items
    return sum(annotations_of(node).get(names.DESIRED_CONFIG) != good for node in nodes)


async def test_a_wave_is_watched_before_the_next_and_the_policy_says_where_it_is(workers: WorkerPool) -> None:
    for name in ("a", "b", "c"):
        await workers.add_node(name)
    good = (await workers.settled())["spec"]["configuration"]["name"]
    await follow(workers, waves=[{"count": 1, "soak": "1h"}])
    await says(workers, "Progressing", "False", "Complete")
    await workers.cluster.create(CONFIG, config("50-motd"))
    policy = await says(workers, "Waiting")
    assert policy["status"]["wave"] == 1
    assert policy["status"]["observedGeneration"] == policy["metadata"]["generation"]
    waiting = condition(policy, "Waiting")
    assert waiting is not None
    assert waiting["message"].startswith("worker: wave 1 of 2 is watched until ")
    assert await nodes_moved(workers, good) == 1
    await workers.cluster.patch(POLICY, "canary", {"spec": {"waves": [{"count": 1, "soak": "0s"}]}}, PatchType.MERGE)
    await workers.settled(goal_is_not=good)
    done = await says(workers, "Progressing", "False", "Complete")
    assert done["status"]["wave"] == 0


async def test_a_config_that_breaks_the_first_machine_stops_there_and_taking_it_back_goes_on(
    workers: WorkerPool,
) -> None:
    for name in ("a", "b"):
        await workers.add_node(name)
    good = (await workers.settled())["spec"]["configuration"]["name"]
    await follow(workers, waves=[{"count": 1}], stopOn={"degraded": 1})
    await workers.cluster.patch(POOL, "worker", {"spec": {"maxUnavailable": 2}}, PatchType.MERGE)
    await workers.cluster.create(CONFIG, config("50-bad"))

    async def pointed() -> str:
        goal = await workers.goal()
        if goal != good:
            workers.broken.add(goal)
        return goal if goal != good else ""

    bad = await until(pointed, "not rendered")
    policy = await says(workers, "Stopped", reason="TooManyDegraded")
    stopped = condition(policy, "Stopped")
    assert stopped is not None
    assert "worker: 1 machine is degraded" in stopped["message"]
    assert await nodes_moved(workers, good) == 1
    await workers.cluster.delete(CONFIG, "50-bad")
    await workers.settled(goal_is_not=bad)
    await says(workers, "Stopped", "False")


async def test_a_policy_that_no_pool_follows_any_more_says_so(workers: WorkerPool) -> None:
    await workers.add_node("a")
    await workers.settled()
    await follow(workers, waves=[{"count": 1}])
    await says(workers, "Progressing", "False", "Complete")
    await workers.cluster.patch(
        POLICY, "canary", {"spec": {"poolSelector": {"matchLabels": {"no": "such"}}}}, PatchType.MERGE
    )
    await says(workers, "Progressing", "False", "NoPool")


async def test_settings_that_select_a_pool_no_more_take_their_config_with_them(workers: WorkerPool) -> None:
    await workers.add_node("a")
    before = (await workers.settled())["spec"]["configuration"]["name"]
    body = {"machineConfigPoolSelector": WORKERS, "kubeletConfig": {"maxPods": 10}}
    made = {"apiVersion": names.API_VERSION, "kind": "KubeletConfig", "metadata": {"name": "pods"}}
    await workers.cluster.create(KUBELET, {**made, "spec": body})
    await workers.settled(goal_is_not=before)
    elsewhere = {
        "spec": {"machineConfigPoolSelector": {"matchLabels": {f"{names.POOL_LABEL_PREFIX}worker": None, "no": "x"}}}
    }
    await workers.cluster.patch(KUBELET, "pods", elsewhere, PatchType.MERGE)

    async def gone() -> bool:
        every = [config["metadata"]["name"] for config in (await workers.cluster.list(CONFIG)).items]
        held = (await workers.cluster.get(KUBELET, "pods"))["metadata"].get("finalizers")
        return "99-worker-generated-kubelet" not in every and not held

    assert await until(gone, "the config outlives its reason")
    await until(lambda: back(workers, before), "the pool keeps it")


async def back(workers: WorkerPool, name: str) -> bool:
    return await workers.goal() == name


async def test_a_machine_that_tries_for_too_long_goes_back_and_stops_the_rollout_until_another_goal(
    workers: WorkerPool,
) -> None:
    for name in ("a", "b"):
        await workers.add_node(name)
    good = (await workers.settled())["spec"]["configuration"]["name"]
    await follow(workers, waves=[{"count": 1}], tryFor="1s")
    await workers.cluster.create(CONFIG, config("50-slow"))

    async def pointed() -> str:
        goal = await workers.goal()
        if goal != good:
            workers.stuck.add(goal)
        return goal if goal != good else ""

    slow = await until(pointed, "not rendered")
    policy = await says(workers, "Stopped", reason="TooManyDegraded")
    stopped = condition(policy, "Stopped")
    assert stopped is not None
    assert "1 tried for too long and went back; the policy stops at 1" in stopped["message"]
    assert await nodes_moved(workers, good) == 0
    nodes = (await workers.cluster.list(NODE)).items
    assert sorted(annotations_of(node).get(GAVE_UP, "") for node in nodes) == ["", slow]
    assert all(SINCE not in annotations_of(node) for node in nodes)
    (event,) = [entry for entry in (await workers.cluster.list(EVENTS)).items if entry["reason"] == "GaveUp"]
    assert event["message"].endswith(f"did not reach {slow} in time and stays with {good}")
    await workers.cluster.patch(POLICY, "canary", {"spec": {"tryFor": "10m"}}, PatchType.MERGE)
    await workers.cluster.create(CONFIG, config("52-quick", content="bye"))

    async def arrived() -> bool:
        nodes = (await workers.cluster.list(NODE)).items
        goals = {annotations_of(node).get(names.CURRENT_CONFIG) for node in nodes}
        return goals.isdisjoint({good, slow}) and not any(GAVE_UP in annotations_of(node) for node in nodes)

    await until(arrived, "another goal does not start afresh")


async def test_without_a_deadline_a_machine_may_try_for_ever_and_one_that_comes_later_counts_from_then(
    workers: WorkerPool,
) -> None:
    await workers.add_node("a")
    good = (await workers.settled())["spec"]["configuration"]["name"]
    await follow(workers, waves=[{"count": 1}])

    async def working() -> bool:
        goal = await workers.goal()
        if goal != good:
            workers.stuck.add(goal)
        node = await workers.cluster.get(NODE, "a")
        return annotations_of(node).get(names.STATE) == "Working"

    await workers.cluster.create(CONFIG, config("50-slow"))
    await until(working, "nobody was told")
    assert SINCE not in annotations_of(await workers.cluster.get(NODE, "a"))
    await workers.cluster.patch(POLICY, "canary", {"spec": {"tryFor": "1s"}}, PatchType.MERGE)
    await says(workers, "Stopped", reason="TooManyDegraded")
    assert annotations_of(await workers.cluster.get(NODE, "a"))[names.DESIRED_CONFIG] == good
