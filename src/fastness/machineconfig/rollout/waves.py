"""RolloutPolicy: a change travels in waves, is watched, and stops by itself.

* A wave is a number of machines or a share of the pool, rounded up; what is left after the last one goes in a wave of its own.
* A wave is complete when that many machines have the config. Then it soaks: the next one waits, counted from the moment at which
  completeness was first seen. `WaveState` is all that has to be remembered, and it is given back.
* `stopOn.degraded` machines that failed on the way to this goal, or gave it up (`trying`), stop everything; taking the config
  back starts afresh, because the goal is another one.
* Outside the window nothing starts; what has started goes on. A node that is called back never waits: it only stops trying.
* A clock that jumps back never makes a soak longer than it is.

`rollout.candidates` still applies: waves only lower the number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from fastness.formats.errors import DurationError, SelectorError
from fastness.formats.quantity import duration
from fastness.formats.selectors import label_selector_from_object
from fastness.formats.words import counted
from fastness.kinds.objects import labels_of, object_name
from fastness.machineconfig.render.errors import BadPolicy
from fastness.machineconfig.rollout.nodes import Goal, NodeFacts
from fastness.machineconfig.rollout.rollout import Choice, called_back

Object = Mapping[str, Any]
_NO_GOAL: Final = Goal("")
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True, slots=True)
class Wave:
    """One wave: how many machines in all may have the config when it is over, and how long it is watched."""

    bound: int
    soak: timedelta


@dataclass(frozen=True, slots=True)
class WaveState:
    """What is remembered between two looks: the goal, the wave (from 1), when it was first seen complete."""

    goal: str = ""
    wave: int = 0
    complete_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """How many more machines may start now (None: any number), the new state, and why others wait."""

    room: int | None
    state: WaveState
    waiting: str | None = None
    stopped: str | None = None
    until: datetime | None = None
    goal: Goal = _NO_GOAL

    def limit(self, choice: Choice) -> Choice:
        """The choice of `rollout.candidates`, cut to what the policy leaves; who is called back never waits."""
        if self.room is None:
            return choice
        back = tuple(node for node in choice.nodes if called_back(node, self.goal))
        fresh = [node for node in choice.nodes if not called_back(node, self.goal)]
        if len(fresh) <= self.room:
            return choice
        # The order that `plan` shows; a choice is in it only where the budget had to choose.
        allowed = sorted(fresh, key=lambda node: node.age_order)[: max(0, self.room)]
        return Choice((*back, *allowed), self.room, self.stopped or self.waiting or "", choice.deferred)


def policy_of(pool: Object, policies: Sequence[Object]) -> Object | None:
    """The policy that a pool follows; of several that select it, the first by name."""
    labels = labels_of(pool)
    for policy in sorted(policies, key=lambda candidate: object_name(candidate).name):
        try:
            if label_selector_from_object(_spec(policy).get("poolSelector")).matches(labels):
                return policy
        # It cannot say which pools it means; to hold all of them would let one bad policy stop every rollout.
        except SelectorError:
            continue
    return None


def hold(policy: Object | None, nodes: Sequence[NodeFacts], goal: Goal, now: datetime, state: WaveState) -> Hold:
    """What the policy allows now; raises BadPolicy."""
    return replace(_hold(policy, nodes, goal, now, state), goal=goal)


def _hold(policy: Object | None, nodes: Sequence[NodeFacts], goal: Goal, now: datetime, state: WaveState) -> Hold:
    if policy is None:
        return Hold(None, WaveState(goal.key))
    spec = _spec(policy)
    # Another goal starts with its first wave: that what was before was good says nothing about this one.
    state = state if state.goal == goal.key else WaveState(goal.key, 1)
    limit = _degraded_limit(spec)
    # Only failures on the way to this goal: a machine that has been broken for months must not stop every rollout.
    failed = sum(node.degraded and node.desired == goal.config for node in nodes)
    gave_up = sum(node.gave_up == goal.target(node) for node in nodes)
    # Before window and waves: a stop must be said, also where nothing would start anyway.
    if failed + gave_up >= limit:
        also = f", {gave_up} tried for too long and went back" if gave_up else ""
        degraded = counted(failed, "machine is", "machines are")
        return Hold(0, state, stopped=f"{degraded} degraded{also}; the policy stops at {limit}")
    opens = next_opening(spec.get("window"), now)
    if opens is not None and opens > now:
        return Hold(0, state, waiting=f"the window opens at {opens.isoformat(timespec='minutes')}", until=opens)
    return _in_waves(waves(spec, len(nodes)), nodes, goal, now, state)


def waves(spec: Object, size: int) -> tuple[Wave, ...]:
    """The waves of a pool of this size, the last one with all that is left."""
    planned: list[Wave] = []
    bound = 0
    for entry in spec.get("waves") or ():
        # Rounded up: 1 % of twenty machines is one, or the first wave of a small pool would be nobody.
        share = entry.get("count") or -(-int(entry.get("percent") or 0) * size // 100)
        bound = min(size, bound + max(1, share))
        planned.append(Wave(bound, policy_duration(entry.get("soak") or "0s", "spec.waves[].soak")))
    if bound < size or not planned:
        planned.append(Wave(size, timedelta()))
    return tuple(planned)


@dataclass(frozen=True, slots=True)
class Schedule:
    """How a policy would split a pool, for a plan: its waves, the limit, the window as written; or why nothing would start."""

    policy: str
    waves: tuple[Wave, ...] = ()
    stop_at: int = 1
    window: str = ""
    problem: str | None = None

    def wave_of(self, position: int) -> int:
        """The wave (from 1) of the machine that arrives at this position, counted from 0."""
        later = (number for number, wave in enumerate(self.waves, 1) if position < wave.bound)
        return next(later, max(1, len(self.waves)))


def schedule_of(pool: Object, policies: Sequence[Object], size: int) -> Schedule | None:
    """How the policy that a pool follows splits so many machines; None when it follows none."""
    policy = policy_of(pool, policies)
    if policy is None:
        return None
    spec, name = _spec(policy), object_name(policy).name
    try:
        return Schedule(name, waves(spec, size), _degraded_limit(spec), _window_text(spec.get("window")))
    except BadPolicy as error:
        return Schedule(name, problem=f"{error.message} ({error.hint})")


def _window_text(window: Object | None) -> str:
    """The window in words; raises BadPolicy for one that cannot be understood."""
    if not window:
        return ""
    next_opening(window, datetime(2026, 1, 1, tzinfo=UTC))
    days = ", ".join(window.get("days") or ()) or "every day"
    return f"{days} from {window['start']} for {window['duration']} ({window.get('timeZone') or 'UTC'})"


def next_opening(window: Object | None, now: datetime) -> datetime | None:
    """`now` while the window is open, otherwise when it opens next; None when there is no window."""
    if not window:
        return None
    try:
        zone = ZoneInfo(str(window.get("timeZone") or "UTC"))
        start = time.fromisoformat(str(window.get("start")))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadPolicy(f"spec.window: {error}", "write start as 22:00 and timeZone as Europe/Berlin") from error
    length = policy_duration(window.get("duration"), "spec.window.duration")
    days = set(window.get("days") or _DAYS)
    today = now.astimezone(zone).date()
    # A window of one day may still be open on the next; a week ahead there is always one.
    for offset in range(-1 - length.days, 9):
        day = today + timedelta(days=offset)
        # Wall clock of the zone, so that a window at 22:00 is at 22:00 on both sides of a change to summer time.
        opens = datetime.combine(day, start, zone)
        if _DAYS[day.weekday()] not in days or opens + length <= now:
            continue
        return max(opens, now)
    raise BadPolicy("spec.window never opens", "name at least one day of the week")


def policy_duration(text: object, field: str) -> timedelta:
    """A duration in a policy; raises BadPolicy."""
    try:
        return duration(text, field)
    except DurationError as error:
        raise BadPolicy(str(error), error.hint) from error


def _in_waves(plan: Sequence[Wave], nodes: Sequence[NodeFacts], goal: Goal, now: datetime, state: WaveState) -> Hold:
    # Two counts: who has arrived completes a wave, who was told uses it up. With one of them a slow machine would let another
    # start in its place.
    arrived = sum(node.updated(goal) for node in nodes)
    started = sum(node.targets(goal) for node in nodes)
    number = min(max(1, state.wave), len(plan))
    # A clock that was set back must not make the soak longer than it is.
    since = min(state.complete_since, now) if state.complete_since else None
    while number < len(plan):
        wave = plan[number - 1]
        if arrived < wave.bound:
            return Hold(max(0, wave.bound - started), WaveState(goal.key, number), f"wave {number} of {len(plan)}")
        since = since or now
        if now < since + wave.soak:
            ends = since + wave.soak
            why = f"wave {number} of {len(plan)} is watched until {ends.isoformat(timespec='seconds')}"
            return Hold(0, WaveState(goal.key, number, since), why, until=ends)
        # The loop goes on in the same look, so that waves without a soak, or already full ones, do not take a turn each.
        number, since = number + 1, None
    return Hold(None, WaveState(goal.key, number))


def _degraded_limit(spec: Object) -> int:
    stop = spec.get("stopOn")
    value = stop.get("degraded") if isinstance(stop, Mapping) else None
    # One, where nothing usable is said: the cautious reading of a policy that somebody wrote to be cautious.
    return value if isinstance(value, int) and value > 0 else 1


def _spec(policy: Object) -> Object:
    spec = policy.get("spec")
    return spec if isinstance(spec, Mapping) else {}
