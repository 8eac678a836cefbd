"""Counts, conditions and messages of a pool."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fastness.machineconfig.rollout.nodes import Counts, Goal, facts
from fastness.machineconfig.rollout.status import BuildPhase, Observed, pool_status, render_condition
from tests.unit.machineconfig.build import node, pool

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GOAL = Goal("rendered-worker-1")
ALL = Counts(total=3, updated=3, ready=3)
SOME = Counts(total=3, updated=1, ready=1, unavailable=1)


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {condition["type"]: (condition["status"], condition["message"]) for condition in status["conditions"]}


def observed(counts: Counts, **more: Any) -> Observed:
    return Observed(counts, more.pop("degraded", ()), more.pop("goal", GOAL), **more)


def test_a_pool_that_is_done_says_with_what_and_follows_the_spec() -> None:
    configuration = {"name": GOAL.config, "source": [{"name": "a"}]}
    status = pool_status(pool("worker", configuration=configuration), observed(ALL), NOW)
    assert status["configuration"] == configuration
    assert status["observedGeneration"] == 3
    assert (status["machineCount"], status["updatedMachineCount"], status["readyMachineCount"]) == (3, 3, 3)
    assert (status["unavailableMachineCount"], status["degradedMachineCount"]) == (0, 0)
    by_type = conditions(status)
    assert by_type["Updated"] == ("True", "All nodes are updated with MachineConfig rendered-worker-1")
    assert by_type["Updating"][0] == by_type["Degraded"][0] == by_type["NodeDegraded"][0] == "False"


@pytest.mark.parametrize("counts", [SOME, ALL._replace(ready=2), ALL._replace(unavailable=1), ALL._replace(updated=2)])
def test_a_pool_that_is_not_done_updates_and_keeps_the_old_configuration(counts: Counts) -> None:
    worker = pool("worker", configuration={"name": "rendered-worker-1"})
    worker["status"] = {"configuration": {"name": "old"}}
    status = pool_status(worker, observed(counts, waiting="wave 1 of 2"), NOW)
    assert status["configuration"] == {"name": "old"}
    by_type = conditions(status)
    assert by_type["Updated"][0] == "False"
    assert by_type["Updating"] == (
        "True",
        "All nodes are updating to MachineConfig rendered-worker-1; waiting: wave 1 of 2",
    )


@pytest.mark.parametrize(
    ("counts", "stream", "said"),
    [
        (ALL, "rhel-9", {"name": "rhel-9"}),
        (ALL, "", None),
        (SOME, "rhel-9", None),
        (ALL._replace(ready=2), "rhel-9", None),
    ],
)
def test_the_stream_of_a_pool_is_what_its_nodes_run_and_not_what_they_are_to_run(
    counts: Counts, stream: str, said: dict[str, str] | None
) -> None:
    assert pool_status(pool(), observed(counts, stream=stream), NOW).get("osImageStream") == said
    before = pool()
    before["status"] = {"osImageStream": {"name": "rhel-8"}}
    status = pool_status(before, observed(counts, stream=stream), NOW)
    assert status["osImageStream"] == said, "None takes away what was said before"


def test_a_degraded_pool_names_no_stream() -> None:
    bad = [facts(node("a", current="x", desired="x", state="Degraded", reason="why"))]
    status = pool_status(pool(), observed(ALL, degraded=bad, stream="rhel-9"), NOW)
    assert (conditions(status)["Degraded"][0], status.get("osImageStream")) == ("True", None)


def test_an_empty_pool_is_updated() -> None:
    assert conditions(pool_status(pool(), observed(Counts()), NOW))["Updated"][0] == "True"


@pytest.mark.parametrize("counts", [Counts(), ALL._replace(updated=0), ALL])
def test_a_pool_without_a_rendered_config_is_not_updated_and_says_why(counts: Counts) -> None:
    by_type = conditions(pool_status(pool(), observed(counts, goal=Goal("")), NOW))
    assert by_type["Updated"] == ("False", "No configuration is rendered yet")
    assert by_type["Updating"][0] == "False"


def test_a_paused_pool_says_so() -> None:
    by_type = conditions(pool_status(pool("worker", paused=True), observed(SOME), NOW))
    assert by_type["Updating"] == ("False", "Pool is paused; will not update to MachineConfig rendered-worker-1")


def test_degraded_nodes_are_counted_and_quoted_in_order() -> None:
    bad = [facts(node(name, current="a", desired="b", state="Degraded", reason=f"why {name}")) for name in ("z", "a")]
    status = pool_status(pool(), observed(SOME._replace(degraded=2), degraded=bad), NOW)
    [condition] = [entry for entry in status["conditions"] if entry["type"] == "NodeDegraded"]
    assert condition["reason"] == "2 nodes are reporting degraded status on sync"
    assert condition["message"] == 'Node a is reporting: "why a", Node z is reporting: "why z"'
    assert conditions(status)["Degraded"] == ("True", condition["message"])


def test_a_render_failure_degrades_the_pool_with_its_message_and_success_clears_it() -> None:
    worker = pool()
    worker["status"] = {
        "conditions": render_condition(worker, "Failed to render configuration for pool worker: x", NOW)
    }
    by_type = conditions(worker["status"])
    assert by_type["RenderDegraded"] == ("True", "Failed to render configuration for pool worker: x")
    assert by_type["Degraded"] == ("True", "")
    rolled = pool_status(worker, observed(ALL), NOW)
    assert conditions(rolled)["Degraded"] == ("True", "")
    assert conditions(rolled)["RenderDegraded"][0] == "True"
    worker["status"] = {"conditions": render_condition({**worker, "status": rolled}, "", NOW)}
    assert conditions(worker["status"])["Degraded"][0] == "False"


def test_rendering_well_does_not_clear_what_nodes_report() -> None:
    bad = [facts(node("a", current="a", desired="b", state="Degraded", reason="why"))]
    status = pool_status(pool(), observed(SOME, degraded=bad), NOW)
    after = {"conditions": render_condition({**pool(), "status": status}, "", NOW)}
    assert conditions(after)["Degraded"] == ("True", 'Node a is reporting: "why"')


def test_transition_times_move_only_with_the_status_and_foreign_fields_stay() -> None:
    worker = pool()
    worker["status"] = {**pool_status(worker, observed(SOME), NOW), "certExpirys": [{"bundle": "x"}]}
    later = NOW + timedelta(hours=1)
    again = pool_status(worker, observed(SOME), later)
    assert again == {**worker["status"]}
    done = pool_status(worker, observed(ALL), later)
    times = {condition["type"]: condition["lastTransitionTime"] for condition in done["conditions"]}
    assert (times["Updated"], times["Degraded"]) == ("2026-01-01T01:00:00Z", "2026-01-01T00:00:00Z")
    assert done["certExpirys"] == [{"bundle": "x"}]


@pytest.mark.parametrize(
    ("build", "paused", "updating", "says"),
    [
        (BuildPhase.INITIAL, False, "True", "Waiting for the image"),
        (BuildPhase.BUILDING, False, "True", "Waiting for the image"),
        (BuildPhase.SUCCEEDED, False, "True", "All nodes are updating"),
        (BuildPhase.FAILED, False, "False", "was not built"),
        (BuildPhase.INTERRUPTED, False, "False", "was not built"),
        (BuildPhase.BUILDING, True, "True", "paused"),
        (BuildPhase.SUCCEEDED, True, "False", "paused"),
    ],
)
def test_a_pool_with_an_image_waits_for_its_build(build: BuildPhase, paused: bool, updating: str, says: str) -> None:
    by_type = conditions(pool_status(pool("worker", paused=paused), observed(SOME, build=build), NOW))
    assert by_type["Updating"][0] == updating
    assert says in by_type["Updating"][1]
    assert (
        (by_type["ImageBuildDegraded"][0] == "True")
        == (build is BuildPhase.FAILED)
        == (by_type["Degraded"][0] == "True")
    )


def test_a_pool_with_an_image_is_done_only_when_the_image_is_there() -> None:
    assert conditions(pool_status(pool(), observed(ALL, build=BuildPhase.BUILDING), NOW))["Updated"][0] == "False"
    ready = observed(ALL, build=BuildPhase.SUCCEEDED, goal=Goal("c", "i"))
    assert conditions(pool_status(pool(), ready, NOW))["Updated"] == (
        "True",
        "All nodes are updated with MachineConfig c and image i",
    )


def test_a_degraded_pool_with_an_image_is_held() -> None:
    bad = [facts(node("a", current="a", desired="b", state="Degraded"))]
    by_type = conditions(pool_status(pool(), observed(SOME, build=BuildPhase.BUILDING, degraded=bad), NOW))
    assert by_type["Updating"][0] == "False"
    assert "held because it is degraded" in by_type["Updating"][1]
