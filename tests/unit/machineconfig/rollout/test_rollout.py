"""The budget, the candidates and their order, and the quorum; searched for a way to exceed the budget."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastness.kinds.machineconfiguration import names
from fastness.kube.admission import Allowed, Denied
from fastness.machineconfig.render.errors import BadMaxUnavailable
from fastness.machineconfig.rollout.nodes import Goal, NodeFacts, facts
from fastness.machineconfig.rollout.rollout import (
    Quorum,
    called_back,
    candidates,
    max_unavailable,
    order,
    quorum_allows,
    target_patch,
)
from tests.unit.machineconfig.build import node, pool

GOAL, OLD = Goal("new"), "old"


@pytest.mark.parametrize(
    ("value", "budget"), [(None, 1), (2, 2), (0, 1), ("50%", 2), ("60%", 2), ("100%", 4), ("1%", 1), ("0%", 1)]
)
def test_the_budget_of_four_nodes(value: Any, budget: int) -> None:
    """Appendix A.2 of the behaviour."""
    spec = {} if value is None else {"maxUnavailable": value}
    assert max_unavailable(pool("worker", **spec), 4) == budget


@pytest.mark.parametrize("value", ["50 percent", "60", "40 %", "", [], "%"])
def test_a_budget_that_cannot_be_understood_is_an_error(value: Any) -> None:
    with pytest.raises(BadMaxUnavailable, match=r"pool worker: spec\.maxUnavailable") as caught:
        max_unavailable(pool("worker", maxUnavailable=value), 4)
    assert caught.value.hint


def test_an_arbiter_pool_has_a_budget_of_one_whatever_it_says() -> None:
    assert max_unavailable(pool("arbiter", maxUnavailable=3), 4) == 1


def ready(name: str, **more: Any) -> NodeFacts:
    return facts(node(name, current=OLD, **more))


def test_zones_go_one_after_the_other_and_old_nodes_before_young_ones() -> None:
    """Appendix A.3 of the behaviour."""
    made = [
        ready("none-newest", created="2026-01-03T00:00:00Z"),
        ready("z-newest", zone="ZZZ", created="2026-01-03T00:00:00Z"),
        ready("r-new", zone="RRR", created="2026-01-02T00:00:00Z"),
        ready("none-old", created="2026-01-01T00:00:00Z"),
        ready("z-old", zone="ZZZ", created="2026-01-01T00:00:00Z"),
        ready("q", zone="QQQ", created="2026-01-09T00:00:00Z"),
        ready("none-newer", created="2026-01-02T00:00:00Z"),
        ready("r-old", zone="RRR", created="2026-01-01T00:00:00Z"),
        ready("z-newer", zone="ZZZ", created="2026-01-02T00:00:00Z"),
    ]
    expected = ["q", "r-old", "r-new", "z-old", "z-newer", "z-newest", "none-old", "none-newer", "none-newest"]
    assert [node_facts.name for node_facts in order(made, GOAL)] == expected
    for budget in range(1, 9):
        assert [node_facts.name for node_facts in candidates(made, GOAL, budget).nodes] == expected[:budget]


def test_a_node_that_joined_and_was_told_nothing_is_told_although_it_alone_would_fill_the_budget() -> None:
    joined, down = NodeFacts("a", ready=True), NodeFacts("b", ready=False)
    assert not joined.unavailable
    assert candidates([joined], GOAL, 1).nodes == (joined,)
    assert candidates([joined, down], GOAL, 1).nodes == (), "one that is down fills it"
    told = NodeFacts("a", ready=True, desired=GOAL.config)
    assert told.unavailable, "until it says that it has what it was told"


def test_nodes_that_are_unavailable_use_up_the_budget() -> None:
    nodes = [ready("a"), ready("b"), facts(node("c", current=OLD, ready=False))]
    assert candidates(nodes, GOAL, 1).nodes == ()
    assert "1 node is unavailable, at most 1 may be" in candidates(nodes, GOAL, 1).why
    assert len(candidates(nodes, GOAL, 2).nodes) == 1


@pytest.mark.row("003-09")
def test_a_node_that_is_stuck_where_it_is_goes_first_in_the_place_that_it_takes_already() -> None:
    stuck = [facts(node(name, current=OLD, desired=OLD, state="Degraded")) for name in ("s", "t")]
    nodes = [ready("a"), *stuck]
    assert [entry.name for entry in candidates(nodes, GOAL, 1).nodes] == ["s"]
    assert [entry.name for entry in candidates(nodes, GOAL, 2).nodes] == ["s", "t"]
    assert [entry.name for entry in candidates(nodes, GOAL, 3).nodes] == ["s", "t", "a"]
    # Who is unavailable for another reason has the place of both.
    away = facts(node("u", current=OLD, ready=False))
    assert candidates([*nodes, away], GOAL, 1).nodes == ()


def test_nodes_that_failed_on_the_way_use_it_up_too_so_a_bad_config_stops() -> None:
    failed = facts(node("f", current=OLD, desired="new", state="Degraded"))
    assert candidates([failed, ready("a")], GOAL, 1).nodes == ()
    assert len(candidates([failed, ready("a"), ready("b")], GOAL, 2).nodes) == 1


def test_a_node_that_failed_towards_another_config_is_a_candidate_which_heals_it() -> None:
    failed = facts(node("f", current=OLD, desired="bad", state="Degraded"))
    assert candidates([failed], Goal(OLD), 1).nodes == (failed,)


def test_a_node_that_failed_while_cordoned_is_called_back_though_it_is_not_ready() -> None:
    stuck = facts(node("f", current=OLD, desired="bad", state="Degraded", unschedulable=True))
    other = ready("a")
    assert candidates([stuck, other], Goal(OLD), 1).nodes == (stuck,)
    assert candidates([stuck], GOAL, 1).nodes == (stuck,), "also towards a third config: it is out of service already"


def test_a_node_that_is_working_on_what_nobody_wants_is_called_back_at_once() -> None:
    working = facts(node("w", current=OLD, desired="bad", state="Working", unschedulable=True))
    assert candidates([working], Goal(OLD), 1).nodes == (working,)
    assert candidates([working], GOAL, 1).nodes == ()


def test_cordoned_nodes_and_those_already_told_are_no_candidates() -> None:
    nodes = [facts(node("a", current=OLD, unschedulable=True)), facts(node("b", current="new"))]
    assert candidates(nodes, GOAL, 5).nodes == ()


def test_leaving_image_mode_is_an_update() -> None:
    layered = facts(node("a", current="new", images=("i", "i")))
    assert candidates([layered], GOAL, 1).nodes == (layered,)
    assert target_patch(layered, GOAL)["metadata"]["annotations"] == {
        names.DESIRED_CONFIG: "new",
        names.DESIRED_IMAGE: None,
    }
    assert target_patch(layered, Goal("new", "i"))["metadata"]["annotations"][names.DESIRED_IMAGE] == "i"


def test_the_node_of_the_operator_goes_last() -> None:
    choice = candidates([ready("a"), ready("b")], GOAL, 2, operator_node="a")
    assert ([node_facts.name for node_facts in choice.nodes], choice.deferred) == (["b"], "a")
    alone = candidates([ready("a")], GOAL, 2, operator_node="a")
    assert ([node_facts.name for node_facts in alone.nodes], alone.deferred) == (["a"], "")


def test_masters_and_arbiter_are_never_unavailable_at_the_same_time() -> None:
    done, busy = facts(node("m", current="new")), facts(node("m2", current="new", ready=False))
    behind = ready("m3")
    assert isinstance(quorum_allows("master", Quorum([done], [busy], GOAL)), Denied)
    assert quorum_allows("master", Quorum([done], [done], GOAL)) == Allowed()
    assert isinstance(quorum_allows("arbiter", Quorum([busy], [done], GOAL)), Denied)
    assert quorum_allows("arbiter", Quorum([behind], [done], GOAL)) == Denied("masters come first: m3")
    assert quorum_allows("arbiter", Quorum([behind], [done], GOAL, master_paused=True)) == Allowed()
    assert isinstance(quorum_allows("arbiter", Quorum([busy], [done], GOAL, master_paused=True)), Denied)
    assert quorum_allows("worker", Quorum([busy], [busy], GOAL)) == Allowed()


NODES = st.lists(
    st.builds(
        lambda number, current, desired, state, ready, zone: facts(
            node(f"n{number}", current=current, desired=desired, state=state, ready=ready, zone=zone)
        ),
        st.integers(0, 999),
        st.sampled_from(["old", "new", ""]),
        st.sampled_from(["old", "new", "bad"]),
        st.sampled_from(["Done", "Working", "Degraded", "Unreconcilable"]),
        st.booleans(),
        st.sampled_from(["", "a", "b"]),
    ),
    max_size=12,
    unique_by=lambda node_facts: node_facts.name,
)


@given(NODES, st.integers(1, 6))
def test_candidates_never_exceed_what_the_budget_leaves(nodes: list[NodeFacts], budget: int) -> None:
    choice = candidates(nodes, GOAL, budget)
    used = sum(node_facts.unavailable for node_facts in nodes)
    fresh = [node_facts for node_facts in choice.nodes if not called_back(node_facts, GOAL)]
    assert len(fresh) <= max(0, budget - used)
    assert all(node_facts.ready for node_facts in fresh)
    assert not any(node_facts.targets(GOAL) for node_facts in choice.nodes)
    assert choice.nodes or choice.why


@pytest.mark.parametrize(
    ("current", "state", "ready", "back"),
    [
        ("new", "Degraded", False, True),
        ("new", "Working", False, True),
        ("old", "Degraded", False, True),
        ("old", "Degraded", True, False),
        ("old", "Working", False, False),
    ],
)
def test_a_node_on_its_way_to_an_unwanted_config_is_called_back_without_budget(
    current: str, state: str, ready: bool, back: bool
) -> None:
    lost = facts(node("lost", current=current, desired="bad", state=state, ready=ready))
    busy = facts(node("busy", current="old", desired="new", state="Working"))
    assert called_back(lost, GOAL) is back
    assert (lost in candidates([lost, busy], GOAL, 1).nodes) is back


@given(st.integers(1, 10), st.integers(1, 4), st.lists(st.integers(0, 99), max_size=80), st.integers(0, 3))
def test_any_order_of_updates_keeps_the_budget_and_undo_brings_every_node_back(
    size: int, budget: int, chances: list[int], failures: int
) -> None:
    """Nodes finish or fail in any order, cordoned or not; half way the change is taken back.

    Never are more on the move than the budget allows; a node that only stops trying is not on the move.
    """
    nodes = {f"n{number}": node(f"n{number}", current="old") for number in range(size)}
    goal = Goal("new")

    def moving() -> int:
        states = [facts(member) for member in nodes.values()]
        return sum(member.unavailable and member.current != member.desired for member in states)

    def tick(chance: int) -> None:
        for member in candidates([facts(member) for member in nodes.values()], goal, budget).nodes:
            notes = nodes[member.name]["metadata"]["annotations"]
            notes |= {names.DESIRED_CONFIG: goal.config, names.STATE: "Working"}
        assert moving() <= budget
        working = [member for member in nodes.values() if facts(member).unavailable]
        if not working:
            return
        picked = working[chance % len(working)]
        if goal.config == "new" and chance % 4 < failures:
            picked["metadata"]["annotations"][names.STATE] = "Degraded"
            picked["spec"] = {"unschedulable": chance % 3 == 0}
        else:
            picked["metadata"]["annotations"] |= {names.CURRENT_CONFIG: goal.config, names.STATE: "Done"}
            picked["spec"] = {}

    for chance in chances:
        tick(chance)
    goal = Goal("old")
    for chance in range(3 * size + len(chances) + 3):
        tick(chance)
    assert all(facts(member).updated(goal) for member in nodes.values())


def test_a_node_that_failed_towards_an_older_goal_goes_before_others_because_it_may_try_again_by_itself() -> None:
    astray = facts(node("z", current=OLD, desired="bad", state="Degraded"))
    assert candidates([ready("a"), astray], GOAL, 1).nodes == (astray,)
    assert [node_facts.name for node_facts in candidates([ready("a"), ready("b"), astray], GOAL, 2).nodes] == ["z", "a"]
    underway = facts(node("z", current=OLD, desired="new", state="Working"))
    assert candidates([ready("a"), underway], GOAL, 1).nodes == (), "and takes its place until it has arrived"


@given(
    st.integers(1, 8),
    st.integers(1, 3),
    st.lists(st.tuples(st.sampled_from(["arrive", "fail", "retry", "goal"]), st.integers(0, 99)), max_size=60),
)
@example(2, 1, [("goal", 1), ("arrive", 0), ("fail", 0), ("goal", 2), ("retry", 0)])
def test_agents_that_try_again_towards_whatever_they_were_told_keep_the_budget_through_any_goals(
    size: int, budget: int, story: list[tuple[str, int]]
) -> None:
    """A failed node tries again whenever it likes, also towards a goal that is not the pool's any more."""
    nodes = {f"n{number}": node(f"n{number}", current="c0") for number in range(size)}
    goal = Goal("c0")
    for what, chance in story:
        chosen = {
            "arrive": [member for member in nodes.values() if not facts(member).done and not facts(member).degraded],
            "fail": [member for member in nodes.values() if not facts(member).done and not facts(member).degraded],
            "retry": [member for member in nodes.values() if facts(member).failing],
        }.get(what, [])
        if what == "goal":
            goal = Goal(f"c{chance % 4}")
        elif chosen:
            notes = chosen[chance % len(chosen)]["metadata"]["annotations"]
            notes |= {
                "arrive": {names.CURRENT_CONFIG: notes[names.DESIRED_CONFIG], names.STATE: "Done"},
                "fail": {names.STATE: "Degraded"},
                "retry": {names.STATE: "Working"},
            }[what]
        for member in candidates([facts(member) for member in nodes.values()], goal, budget).nodes:
            nodes[member.name]["metadata"]["annotations"] |= {names.DESIRED_CONFIG: goal.config, names.STATE: "Working"}
        busy = [member for member in nodes.values() if facts(member).unavailable]
        assert len(busy) <= budget
