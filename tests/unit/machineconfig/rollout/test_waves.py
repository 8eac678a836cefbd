"""Waves, soak, stop and window of a RolloutPolicy."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastness.machineconfig.render.errors import BadPolicy
from fastness.machineconfig.rollout.nodes import Goal, NodeFacts, facts
from fastness.machineconfig.rollout.rollout import candidates
from fastness.machineconfig.rollout.waves import WaveState, hold, next_opening, policy_of, waves
from tests.unit.machineconfig.build import node, pool

NOW = datetime(2026, 1, 7, 12, 0, tzinfo=UTC)  # a Wednesday
GOAL = Goal("new")


def nodes(updated: int, total: int, *, working: int = 0, degraded: int = 0) -> list[NodeFacts]:
    made = [node(f"u{number}", current="new") for number in range(updated)]
    made += [node(f"w{number}", current="old", desired="new", state="Working") for number in range(working)]
    made += [node(f"d{number}", current="old", desired="new", state="Degraded") for number in range(degraded)]
    made += [node(f"o{number}", current="old") for number in range(total - len(made))]
    return [facts(member) for member in made]


def policy(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"poolSelector": {}, **spec}}


CANARY = policy(waves=[{"count": 1, "soak": "10m"}, {"percent": 50, "soak": "1h"}])


def test_sizes_are_rounded_up_and_the_rest_is_a_wave_of_its_own() -> None:
    assert [wave.bound for wave in waves(CANARY["spec"], 9)] == [1, 6, 9]
    assert [wave.bound for wave in waves({"waves": [{"percent": 1}]}, 9)] == [1, 9]
    assert [wave.bound for wave in waves({"waves": [{"count": 50}]}, 9)] == [9]
    assert [wave.bound for wave in waves({}, 9)] == [9]


def test_without_a_policy_nothing_is_held() -> None:
    assert hold(None, nodes(0, 9), GOAL, NOW, WaveState()).room is None


def test_a_wave_lets_only_its_own_start() -> None:
    held = hold(CANARY, nodes(0, 9), GOAL, NOW, WaveState())
    assert (held.room, held.state.wave) == (1, 1)
    assert len(held.limit(candidates(nodes(0, 9), GOAL, 5)).nodes) == 1
    assert hold(CANARY, nodes(0, 9, working=1), GOAL, NOW, held.state).room == 0


def test_a_complete_wave_soaks_from_when_it_was_first_seen_and_then_the_next_goes() -> None:
    first = hold(CANARY, nodes(1, 9), GOAL, NOW, WaveState("new", 1))
    assert (first.room, first.until) == (0, NOW + timedelta(minutes=10))
    assert first.waiting is not None
    assert "watched until" in first.waiting
    still = hold(CANARY, nodes(1, 9), GOAL, NOW + timedelta(minutes=9), first.state)
    assert (still.room, still.until) == (0, first.until)
    after = hold(CANARY, nodes(1, 9), GOAL, NOW + timedelta(minutes=10), still.state)
    assert (after.room, after.state.wave) == (5, 2)


def test_the_last_wave_has_no_bound() -> None:
    state = WaveState("new", 2, NOW - timedelta(hours=1))
    held = hold(CANARY, nodes(6, 9), GOAL, NOW, state)
    assert (held.room, held.state.wave) == (None, 3)


def test_another_goal_starts_afresh_so_taking_back_is_also_in_waves() -> None:
    held = hold(CANARY, nodes(0, 9), GOAL, NOW, WaveState("older", 3))
    assert (held.state.wave, held.room) == (1, 1)


def test_a_clock_that_jumps_back_does_not_lengthen_the_soak() -> None:
    state = WaveState("new", 1, NOW + timedelta(days=365))
    assert hold(CANARY, nodes(1, 9), GOAL, NOW, state).until == NOW + timedelta(minutes=10)


def test_degraded_machines_stop_everything() -> None:
    held = hold(CANARY, nodes(0, 9, degraded=1), GOAL, NOW, WaveState())
    assert held.room == 0
    assert held.stopped == "1 machine is degraded; the policy stops at 1"
    patient = policy(waves=CANARY["spec"]["waves"], stopOn={"degraded": 3})
    assert hold(patient, nodes(0, 9, degraded=2), GOAL, NOW, WaveState()).stopped is None
    back = hold(CANARY, nodes(0, 9, degraded=1), Goal("old"), NOW, WaveState())
    assert back.stopped is None, "machines that failed on the way to another goal do not hold up the way back"


def test_a_node_that_is_called_back_does_not_wait_for_wave_or_window() -> None:
    stuck = facts(node("stuck", current="old", desired="bad", state="Degraded", unschedulable=True))
    node_facts = [stuck, facts(node("other", current="newer"))]
    closed = policy(window={"start": "22:00", "duration": "1h"})
    held = hold(closed, node_facts, Goal("old"), NOW, WaveState())
    assert held.room == 0
    assert held.limit(candidates(node_facts, Goal("old"), 5)).nodes == (stuck,)


WINDOW = {"start": "22:00", "duration": "4h", "days": ["Wed"], "timeZone": "Europe/Berlin"}


@pytest.mark.parametrize(
    ("now", "opens"),
    [
        (datetime(2026, 1, 7, 12, tzinfo=UTC), datetime(2026, 1, 7, 21, tzinfo=UTC)),
        (datetime(2026, 1, 7, 21, tzinfo=UTC), datetime(2026, 1, 7, 21, tzinfo=UTC)),
        (datetime(2026, 1, 8, 0, 30, tzinfo=UTC), datetime(2026, 1, 8, 0, 30, tzinfo=UTC)),
        (datetime(2026, 1, 8, 1, tzinfo=UTC), datetime(2026, 1, 14, 21, tzinfo=UTC)),
    ],
)
def test_a_window_runs_over_midnight_in_its_own_zone(now: datetime, opens: datetime) -> None:
    assert next_opening(WINDOW, now) == opens
    held = hold(policy(window=WINDOW), nodes(0, 3), GOAL, now, WaveState())
    assert (held.room == 0) == (opens > now)


def test_a_window_longer_than_a_day_is_still_open_on_the_next() -> None:
    long = {"start": "00:00", "duration": "48h", "days": ["Mon"]}
    assert next_opening(long, datetime(2026, 1, 6, 23, tzinfo=UTC)) == datetime(2026, 1, 6, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    "window", [{**WINDOW, "timeZone": "Moon/Base"}, {**WINDOW, "start": "late"}, {**WINDOW, "duration": "x"}]
)
def test_a_window_that_cannot_be_understood_is_an_error(window: dict[str, Any]) -> None:
    with pytest.raises(BadPolicy):
        next_opening(window, NOW)


def test_a_duration_that_cannot_be_understood_names_its_field() -> None:
    with pytest.raises(BadPolicy, match=r"spec\.window\.duration: 'x' is not a duration") as refused:
        next_opening({**WINDOW, "duration": "x"}, NOW)
    assert refused.value.hint == "write it as 90s, 15m or 1h30m"


def test_the_first_policy_by_name_that_selects_the_pool_counts() -> None:
    label = {"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}}
    mine = {"metadata": {"name": "b"}, "spec": {"poolSelector": label}}
    also = {"metadata": {"name": "a"}, "spec": {"poolSelector": label}}
    other = {"metadata": {"name": "0"}, "spec": {"poolSelector": {"matchLabels": {"x": "y"}}}}
    broken = {"metadata": {"name": "00"}, "spec": {"poolSelector": {"matchLabels": 3}}}
    assert policy_of(pool(), [mine, also, other, broken]) is also
    assert policy_of(pool("infra"), [mine]) is None


@given(st.integers(1, 30), st.lists(st.integers(1, 100), max_size=4), st.integers(0, 30))
def test_no_wave_lets_more_machines_have_the_config_than_its_bound(size: int, shares: list[int], updated: int) -> None:
    updated = min(updated, size)
    spec = policy(waves=[{"percent": share, "soak": "1m"} for share in shares])
    held = hold(spec, nodes(updated, size), GOAL, NOW, WaveState("new", 1))
    bounds = [wave.bound for wave in waves(spec["spec"], size)]
    if held.room is not None and held.room > 0:
        assert updated + held.room == bounds[held.state.wave - 1]
