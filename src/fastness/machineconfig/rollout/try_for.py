"""How long a machine may try: `spec.tryFor` of a RolloutPolicy.

    told ─ since … ─ arrived
                   ─ tryFor over ─▶ told to stay with what it has; the goal that it gave up is noted on its Node

* The time counts from the moment at which the machine was told, which its Node keeps; where nobody noted it, from the first look.
* A machine that gave up is not told the same goal again. Another goal, or taking the note away, starts afresh.
* It counts as one that failed: `stopOn.degraded` of them stop the rollout.
* Only who has a config can go back to it. What goes on after a deadline is the agent's way back, which never leaves half of a
  config behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import rfc3339
from fastness.machineconfig.rollout.nodes import GAVE_UP, SINCE, Goal, NodeFacts
from fastness.machineconfig.rollout.rollout import HoldReason
from fastness.machineconfig.rollout.waves import policy_duration

# Zero would take a goal back in the moment in which it was given, for every machine, for ever.
SHORTEST: Final = timedelta(seconds=1)


class Trying(NamedTuple):
    """Who has tried for too long, who must be timed from now on, and when to look again."""

    overdue: tuple[NodeFacts, ...] = ()
    untimed: tuple[NodeFacts, ...] = ()
    until: datetime | None = None


def patience_of(policy: Mapping[str, Any] | None) -> timedelta | None:
    """How long machines under a policy may try; None for ever; raises BadPolicy."""
    text = ((policy or {}).get("spec") or {}).get("tryFor")
    return max(SHORTEST, policy_duration(text, "spec.tryFor")) if text else None


def trying(nodes: Iterable[NodeFacts], goal: Goal, patience: timedelta | None, now: datetime) -> Trying:
    """What the patience of a policy means for the nodes of a pool now."""
    if patience is None:
        return Trying()
    overdue, untimed, ends = list[NodeFacts](), list[NodeFacts](), list[datetime]()
    for node in nodes:
        # Without a current config there is nothing to go back to.
        if not node.targets(goal) or node.updated(goal) or not node.current or not node.moving:
            continue
        since = began(node, goal)
        if since is None:
            # Told by a version that noted nothing, or the note was taken away: it gets the whole time from now on.
            untimed.append(node)
            ends.append(now + patience)
        elif now >= since + patience:
            overdue.append(node)
        else:
            ends.append(since + patience)
    return Trying(tuple(overdue), tuple(untimed), min(ends, default=None))


def began(node: NodeFacts, goal: Goal) -> datetime | None:
    """When a node was told to go to the goal; None when nobody noted it, or not in a way that can be read."""
    config, _, since = node.since.partition(" ")
    try:
        # The note names its goal: a time that was noted for the config before must not cut short the time for this one.
        return datetime.fromisoformat(since) if config == goal.target(node) else None
    except ValueError:
        return None


def not_again(goal: Goal, then: HoldReason) -> HoldReason:
    """Hold back who gave up on this goal; ask `then` about the others."""

    def why(node: NodeFacts) -> str | None:
        # By the name of the target, not by a flag: the name is a digest, so a corrected config or overlay is tried.
        if node.gave_up == goal.target(node):
            return f"{node.name} tried {goal.target(node)} for too long and went back"
        return then(node)

    return why


def timing(node: NodeFacts, goal: Goal, now: datetime) -> dict[str, str | None]:
    """The notes of a node that begins to try now."""
    return {SINCE: f"{goal.target(node)} {rfc3339(now)}", GAVE_UP: None}


def back_patch(node: NodeFacts, goal: Goal) -> JsonObject:
    """The merge patch that tells a node to stay with what it has, and to leave this goal alone."""
    notes: dict[str, str | None] = {
        # In one patch with the note: with the old goal back but no note, the next look would send the node out again.
        names.DESIRED_CONFIG: node.current,
        names.DESIRED_IMAGE: node.current_image,
        SINCE: None,
        GAVE_UP: goal.target(node),
    }
    if node.current_overlay != node.desired_overlay:
        notes[names.DESIRED_OVERLAY] = node.current_overlay
    return {"metadata": {"annotations": notes}}
