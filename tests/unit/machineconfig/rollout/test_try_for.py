"""How long a machine may try, and what is told to the one that tried for too long."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fastness.kinds.machineconfiguration import names
from fastness.machineconfig.render.errors import BadPolicy
from fastness.machineconfig.rollout.nodes import GAVE_UP, SINCE, Goal, NodeFacts, facts
from fastness.machineconfig.rollout.rollout import candidates, free
from fastness.machineconfig.rollout.try_for import SHORTEST, back_patch, not_again, patience_of, timing, trying
from fastness.machineconfig.rollout.waves import WaveState, hold

NOW = datetime(2026, 6, 1, tzinfo=UTC)
GOAL, MINUTE = Goal("new"), timedelta(minutes=1)
IDLE = NodeFacts("a", True, "old", "old", "Done")


def node_trying_for(ago: timedelta | None, **more: str) -> NodeFacts:
    since = "" if ago is None else str(timing(NodeFacts("n", ready=True), GOAL, NOW - ago)[SINCE])
    return replace(IDLE, desired="new", state="Working", since=since, **more)  # type: ignore[arg-type]


def test_who_tried_for_too_long_is_overdue_and_the_next_deadline_is_known() -> None:
    late, early = node_trying_for(11 * MINUTE), replace(node_trying_for(2 * MINUTE), name="b")
    trials = trying([late, early, IDLE], GOAL, 10 * MINUTE, NOW)
    assert trials == ((late,), (), NOW + 8 * MINUTE)


def test_a_machine_that_arrived_stays_or_goes_elsewhere_is_left_alone() -> None:
    arrived = replace(node_trying_for(60 * MINUTE), current="new", state="Done")
    settling = replace(node_trying_for(60 * MINUTE), current="new")
    elsewhere = replace(node_trying_for(60 * MINUTE), desired="other")
    fresh = replace(node_trying_for(60 * MINUTE), current="")
    assert trying([arrived, settling, elsewhere, fresh, IDLE], GOAL, MINUTE, NOW) == ((), (), None)


@pytest.mark.parametrize("since", ["", "other 2026-01-01T00:00:00Z", "new yesterday", "new"])
def test_what_nobody_timed_counts_from_the_first_look(since: str) -> None:
    node = replace(node_trying_for(None), since=since)
    assert trying([node], GOAL, MINUTE, NOW) == ((), (node,), NOW + MINUTE)


def test_without_patience_in_the_policy_nobody_is_overdue() -> None:
    assert patience_of(None) is patience_of({"spec": {}}) is None
    assert trying([node_trying_for(600 * MINUTE)], GOAL, None, NOW) == ((), (), None)
    assert patience_of({"spec": {"tryFor": "20m"}}) == 20 * MINUTE
    assert patience_of({"spec": {"tryFor": "0s"}}) == SHORTEST
    with pytest.raises(BadPolicy, match=r"spec\.tryFor"):
        patience_of({"spec": {"tryFor": "soon"}})


def test_who_gave_up_is_not_told_the_same_goal_again_but_another_one() -> None:
    patch = back_patch(replace(node_trying_for(MINUTE), current_image="i"), GOAL)["metadata"]["annotations"]
    assert patch == {names.DESIRED_CONFIG: "old", names.DESIRED_IMAGE: "i", SINCE: None, GAVE_UP: "new"}
    node = replace(IDLE, gave_up="new")
    assert candidates([node], GOAL, 1, hold=not_again(GOAL, free)).nodes == ()
    assert "tried new for too long" in candidates([node], GOAL, 1, hold=not_again(GOAL, free)).why
    newer = Goal("newer")
    assert candidates([node], newer, 1, hold=not_again(newer, free)).nodes == (node,)


def test_who_gave_up_counts_like_one_that_failed() -> None:
    policy = {"spec": {"stopOn": {"degraded": 2}, "waves": [{"percent": 100}]}}
    nodes = [replace(IDLE, name=name, gave_up="new") for name in "ab"]
    stopped = hold(policy, nodes, GOAL, NOW, WaveState()).stopped
    assert stopped is not None
    assert "2 tried for too long" in stopped
    assert hold(policy, nodes[:1], GOAL, NOW, WaveState()).stopped is None


def test_the_notes_of_a_node_are_read() -> None:
    notes = {SINCE: "new 2026-01-01T00:00:00Z", GAVE_UP: "older"}
    node_facts = facts({"metadata": {"name": "a", "annotations": notes}})
    assert (node_facts.since, node_facts.gave_up) == (notes[SINCE], "older")
