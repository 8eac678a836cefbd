"""A plan in the waves of a policy, with settings that generate configs; and what a policy says of itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import condition
from fastness.machineconfig.render.errors import BadSettings
from fastness.machineconfig.render.generated import KUBELET, RUNTIME, Owners, proposed
from fastness.machineconfig.rollout.plan import Proposal, State, plan
from fastness.machineconfig.rollout.plan_json import to_json
from fastness.machineconfig.rollout.wave_status import PoolProgress, policy_status
from fastness.machineconfig.rollout.waves import Hold, WaveState, schedule_of
from tests.unit.machineconfig.build import file, ignition, mc, pool
from tests.unit.machineconfig.rollout.test_plan import BASE, nodes_of, only, world

NOW = datetime(2026, 1, 7, 12, 0, tzinfo=UTC)
CHANGE = Proposal([mc("50-a", ignition(file("/etc/b")))])


def policy(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "canary", "generation": 3}, "spec": {"poolSelector": {}, **spec}}


CANARY = policy(waves=[{"count": 1, "soak": "10m"}, {"percent": 50}], stopOn={"degraded": 2})


def test_a_plan_is_split_by_the_waves_of_the_policy_and_a_batch_stays_in_its_wave() -> None:
    planned = only(plan(world(BASE, nodes=6, pool={"maxUnavailable": 2}, policies=[CANARY]), CHANGE))
    assert [(node.wave, node.batch) for node in nodes_of(planned)] == [(1, 1), (2, 2), (2, 2), (2, 3), (3, 4), (3, 4)]
    assert planned.waves is not None
    assert (planned.waves.policy, planned.waves.stop_at) == ("canary", 2)
    pool_document = to_json(plan(world(BASE, nodes=6, policies=[CANARY]), CHANGE))["pools"][0]
    assert pool_document["rolloutPolicy"]["waves"] == [
        {"upTo": 1, "soakSeconds": 600.0}, {"upTo": 4, "soakSeconds": 0.0}, {"upTo": 6, "soakSeconds": 0.0},
    ]  # fmt: skip
    assert [node["wave"] for node in pool_document["nodes"]] == [1, 2, 2, 2, 3, 3]


def test_without_a_policy_everything_is_one_wave() -> None:
    planned = only(plan(world(BASE, nodes=3), CHANGE))
    assert planned.waves is None
    assert [(node.wave, node.batch) for node in nodes_of(planned)] == [(1, 1), (1, 2), (1, 3)]


def test_a_policy_that_cannot_be_understood_is_told_in_the_plan() -> None:
    planned = only(plan(world(BASE, policies=[policy(waves=[{"count": 1, "soak": "soon"}])]), CHANGE))
    assert planned.waves is not None
    assert planned.waves.problem is not None
    assert "is not a duration" in planned.waves.problem


def test_the_window_is_told_as_it_was_written() -> None:
    schedule = schedule_of(pool(), [policy(window={"start": "22:00", "duration": "4h", "days": ["Sat", "Sun"]})], 3)
    assert schedule is not None
    assert schedule.window == "Sat, Sun from 22:00 for 4h (UTC)"


@given(st.integers(1, 30), st.integers(1, 6), st.lists(st.integers(1, 8), max_size=4), st.integers(0, 30))
def test_no_batch_is_larger_than_the_budget_or_in_two_waves(
    size: int, budget: int, counts: list[int], updated: int
) -> None:
    policies = [policy(waves=[{"count": count} for count in counts])] if counts else []
    planned = only(plan(world(BASE, nodes=size, pool={"maxUnavailable": budget}, policies=policies), CHANGE))
    batches: dict[int, list[int]] = {}
    for node_plan in nodes_of(planned):
        batches.setdefault(node_plan.batch, []).append(node_plan.wave)
    assert sorted(batches) == list(range(1, len(batches) + 1))
    for waves in batches.values():
        assert len(waves) <= budget
        assert len(set(waves)) == 1
    flat = [node_plan.wave for node_plan in nodes_of(planned)]
    assert flat == sorted(flat)


def kubelet(
    name: str = "pods", pods: int = 100, suffix: str | None = None, role: str = "worker", **spec: Any
) -> JsonObject:
    notes = {} if suffix is None else {names.NAME_SUFFIX: suffix}
    selector = {"matchLabels": {f"{names.POOL_LABEL_PREFIX}{role}": ""}}
    body = {"machineConfigPoolSelector": selector, "kubeletConfig": {"maxPods": pods}, **spec}
    return {"kind": KUBELET, "metadata": {"name": name, "annotations": notes}, "spec": body}


WORKER = pool("worker")
WORKER["metadata"]["labels"] = {f"{names.POOL_LABEL_PREFIX}worker": ""}


def test_a_new_kubelet_config_shows_what_it_generates() -> None:
    state = world(BASE)
    state = State([{**state.pools[0], "metadata": WORKER["metadata"]}], state.configs, state.nodes)
    owners, made, gone = proposed(state.owners, [(KUBELET, kubelet())], [], state.pools, "v")
    assert ([config["metadata"]["name"] for config in made], gone) == (["99-worker-generated-kubelet"], [])
    planned = only(plan(state, Proposal(made, gone, owners)))
    assert [(step.change.path, step.source) for step in planned.steps] == [
        ("/etc/kubernetes/kubelet.conf", "99-worker-generated-kubelet")
    ]


def test_a_second_one_gets_the_next_number_and_a_known_one_keeps_its_own() -> None:
    owners = Owners.of([kubelet("a", suffix=""), kubelet("b", suffix="1")], [], None)
    _, made, _ = proposed(owners, [(KUBELET, kubelet("c")), (KUBELET, kubelet("b", 50))], [], [WORKER], "v")
    assert [config["metadata"]["name"] for config in made] == [
        "99-worker-generated-kubelet-2",
        "99-worker-generated-kubelet-1",
    ]


def test_what_is_deleted_or_selects_the_pool_no_more_goes() -> None:
    owners = Owners.of([kubelet("a", suffix=""), kubelet("b", suffix="1")], [], None)
    after, made, gone = proposed(owners, [(KUBELET, kubelet("b", role="other"))], [(KUBELET, "a")], [WORKER], "v")
    assert made == []
    assert gone == ["99-worker-generated-kubelet", "99-worker-generated-kubelet-1"]
    assert set(after.kubelets) == {"b"}


def test_settings_that_are_not_allowed_say_so() -> None:
    bad = {"kind": RUNTIME, "metadata": {"name": "r"}, "spec": {"containerRuntimeConfig": {"pidsLimit": 1}}}
    bad["spec"]["machineConfigPoolSelector"] = kubelet()["spec"]["machineConfigPoolSelector"]  # type: ignore[index]
    with pytest.raises(BadSettings, match="invalid PidsLimit 1"):
        proposed(Owners(), [(RUNTIME, bad)], [], [WORKER], "v")


def rollout_conditions(status: JsonObject) -> dict[str, tuple[str, str]]:
    conditions = {}
    for kind in ("Progressing", "Waiting", "Stopped"):
        entry = condition({"status": status}, kind)
        assert entry is not None
        conditions[kind] = (entry["status"], entry["reason"])
    return conditions


def test_a_policy_shows_the_lowest_wave_and_names_the_pools() -> None:
    soaking = Hold(0, WaveState("g", 2, NOW), "wave 2 of 3 is watched until then", until=NOW + timedelta(minutes=5))
    moving = Hold(3, WaveState("g", 1), "wave 1 of 3")
    status = policy_status(CANARY, {"a": PoolProgress(soaking), "b": PoolProgress(moving)}, NOW)
    assert (status["wave"], status["observedGeneration"]) == (1, 3)
    assert rollout_conditions(status) == {
        "Progressing": ("True", "RollingOut"), "Waiting": ("True", "WaveHeld"), "Stopped": ("False", "AsExpected"),
    }  # fmt: skip
    waiting = condition({"status": status}, "Waiting")
    assert waiting is not None
    assert waiting["message"] == "a: wave 2 of 3 is watched until then"


def test_a_policy_that_stopped_or_arrived_or_is_wrong_says_so() -> None:
    stopped = policy_status(CANARY, {"a": PoolProgress(Hold(0, WaveState("g", 1), stopped="2 are degraded"))}, NOW)
    assert rollout_conditions(stopped)["Stopped"] == ("True", "TooManyDegraded")
    done = policy_status(CANARY, {"a": PoolProgress(Hold(None, WaveState("g", 3)), complete=True)}, NOW)
    assert (done["wave"], rollout_conditions(done)["Progressing"]) == (0, ("False", "Complete"))
    wrong = policy_status(CANARY, {"a": PoolProgress(problem="spec.window: no")}, NOW)
    assert rollout_conditions(wrong)["Stopped"] == ("True", "Misconfigured")
    assert rollout_conditions(policy_status(CANARY, {}, NOW))["Progressing"] == ("False", "NoPool")


def test_saying_it_twice_changes_nothing() -> None:
    pools = {"a": PoolProgress(Hold(1, WaveState("g", 1), "wave 1 of 2"))}
    first = policy_status(CANARY, pools, NOW)
    assert policy_status({**CANARY, "status": first}, pools, NOW + timedelta(hours=1)) == first
