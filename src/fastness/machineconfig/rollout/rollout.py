"""Who goes next: the budget of a pool and the nodes that may start now.

* The budget is `maxUnavailable`: a number or a percentage rounded down, never less than one; an arbiter pool has one.
* Nodes that are unavailable use it up, whoever made them so. Nodes that failed on the way to the goal use it up too: a config
  that breaks machines stops by itself.
* A node that failed on the way to an older goal is available, but its agent tries again when it likes. So it goes before others,
  and keeps a place of the budget until it was told.
* A node that is not well where it is has used up a place already, and goes first, in that place: what it goes back to, or the
  next image, replaces what is wrong with it. Otherwise it would keep the whole pool where it is, itself included.
* A node that is on its way to a config that nobody wants any more is called back at once: taking a bad config back always heals.
* A candidate is a node that is ready and was not told to go to the goal yet. When there are more than the budget allows, zones
  go one after the other and old nodes before young ones.
* A node may be held back by `hold`, which knows what the node would meet: an image whose reference values do not count yet.
* A node of an enforcing pool whose machine is not attested goes nowhere and uses up nothing: the caller leaves it out, and
  `held_text` names it.
* Where an arbiter shares the quorum with masters, the two pools never have unavailable nodes at the same time.

The node controller writes the annotations; `plan` shows the same order beforehand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fastness.formats.errors import QuantityError
from fastness.formats.quantity import scaled
from fastness.formats.words import counted
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import object_name
from fastness.kube.admission import Allowed, Denied
from fastness.machineconfig.render.errors import BadMaxUnavailable
from fastness.machineconfig.rollout.nodes import Goal, NodeFacts

Object = Mapping[str, Any]
HoldReason = Callable[[NodeFacts], str | None]
"""Why a node must not be sent to the goal yet; None when it may go."""

# A status is read by people and copied to every watcher; in a pool of thousands the names would be most of it.
MOST_NAMED: Final = 10


def held_text(held: Mapping[str, str]) -> str:
    """Who stays where it is, and why: nodes by name, those with the same reason together; empty for nobody."""
    by_reason: dict[str, list[str]] = {}
    for name in sorted(held):
        by_reason.setdefault(held[name], []).append(name)
    return "; ".join(f"held back: {named(nodes)} ({why})" for why, nodes in sorted(by_reason.items()))


def named(nodes: Sequence[str]) -> str:
    """Names of nodes for a sentence, as many as one reads."""
    more = f" and {len(nodes) - MOST_NAMED} more" if len(nodes) > MOST_NAMED else ""
    return ", ".join(nodes[:MOST_NAMED]) + more


def free(_: NodeFacts) -> str | None:
    """Nothing holds a node back."""
    return None


def mergeable(goal: Goal, then: HoldReason) -> HoldReason:
    """Hold back who has overlays that cannot be merged: doors would give it nothing. Ask `then` about the others."""

    def why(node: NodeFacts) -> str | None:
        if goal.overlays.get(node.name, "") is None:
            return f"the NodeOverlays for {node.name} cannot be merged: see their condition Valid"
        return then(node)

    return why


@dataclass(frozen=True, slots=True)
class Choice:
    """The nodes that may start now, in order; `why` says what holds back the others, `deferred` who waits for a reason."""

    nodes: tuple[NodeFacts, ...] = ()
    capacity: int = 0
    why: str = ""
    deferred: str = ""


@dataclass(frozen=True, slots=True)
class Quorum:
    """What the pools that share a quorum must know of each other."""

    masters: Sequence[NodeFacts]
    arbiters: Sequence[NodeFacts]
    master_goal: Goal
    master_paused: bool = False


def max_unavailable(pool: Object, size: int) -> int:
    """How many nodes of the pool may be unavailable at once; raises BadMaxUnavailable."""
    # Whatever the spec says: the arbiter is one voice of the quorum, and there is no second one to take its place.
    if object_name(pool).name == names.ARBITER:
        return 1
    value = (pool.get("spec") or {}).get("maxUnavailable")
    if value is None:
        return 1
    try:
        # Rounded down, so that a percentage is never exceeded; but with none at all the pool would never change again, security
        # fixes included.
        return max(1, scaled(value, size, round_up=False, path="spec.maxUnavailable"))
    except QuantityError as error:
        # No guess: a budget that cannot be read stops the rollout, and the status says so.
        raise BadMaxUnavailable(
            f"pool {object_name(pool).name}: spec.maxUnavailable: {error.message}", error.hint
        ) from error


def candidates(
    nodes: Iterable[NodeFacts],
    goal: Goal,
    budget: int,
    *,
    unavailable: int | None = None,
    operator_node: str = "",
    hold: HoldReason = free,
) -> Choice:
    """The nodes that may be told to go to the goal now.

    `unavailable` saves counting where the caller keeps the count; `operator_node` is the node that runs the controllers of a
    master pool and goes last; `hold` says who waits for something else.
    """
    back, waiting, failing, used = _sorted_out(nodes, goal)
    # Counted before `hold` takes any away: a node that failed and is held back still has its place in the budget.
    stuck = sum(node.stuck for node in waiting)
    astray = sum(node.failing for node in waiting) + stuck
    held = next((why for why in map(hold, (*back, *waiting)) if why is not None), "")
    if held:
        back = tuple(node for node in back if hold(node) is None)
        waiting = [node for node in waiting if hold(node) is None]
    used = (used if unavailable is None else unavailable) - stuck
    # A node that comes back is busy for a moment, so it counts even if it was available until now.
    capacity = budget - used - sum(not node.unavailable for node in back)
    if capacity <= 0:
        return Choice(
            back, why=f"{counted(budget - capacity, 'node is', 'nodes are')} unavailable, at most {budget} may be"
        )
    # A config that breaks machines stops here: as many have failed as may be away, and none of them will come back by itself.
    if failing >= capacity:
        return Choice(back, why=f"{counted(failing, 'node')} failed to reach {goal.config}")
    capacity -= failing
    deferred = ""
    # The node that runs the controllers goes last: draining it moves them, in the middle of the rollout that they steer.
    if operator_node and len(waiting) > 1 and any(node.name == operator_node for node in waiting):
        waiting, deferred = [node for node in waiting if node.name != operator_node], operator_node
    if len(waiting) > capacity or astray:
        waiting = _within(waiting, capacity, astray)
    why = "" if waiting or back else held or "no node is ready for an update"
    return Choice((*back, *waiting), capacity, why, deferred)


def _within(waiting: Iterable[NodeFacts], capacity: int, astray: int) -> list[NodeFacts]:
    """As many as there is room for: who failed or is stuck elsewhere first, others only where all of these have a place."""
    lost: list[NodeFacts] = []
    others: list[NodeFacts] = []
    for node in sorted(waiting, key=lambda node: node.age_order):
        (lost if node.failing or node.stuck else others).append(node)
    return [*lost[:capacity], *others[: max(0, capacity - astray)]]


def _sorted_out(nodes: Iterable[NodeFacts], goal: Goal) -> tuple[tuple[NodeFacts, ...], list[NodeFacts], int, int]:
    """Who is called back, who waits, how many failed to reach the goal, how many are unavailable; in one pass."""
    back: list[NodeFacts] = []
    waiting: list[NodeFacts] = []
    failing = used = 0
    for node in nodes:
        used += node.unavailable
        if node.targets(goal):
            failing += node.failing
        elif called_back(node, goal):
            back.append(node)
        # Only who is ready is told: a node that is down says nothing about the config, and would come up in the middle of a
        # change that nobody watches.
        elif node.ready:
            waiting.append(node)
    return tuple(sorted(back, key=lambda node: node.age_order)), waiting, failing, used


def called_back(node: NodeFacts, goal: Goal) -> bool:
    """Whether a node is told at once, without asking the budget.

    Either it still has what it should have and only has to stop trying something else, or it failed on its way elsewhere and
    is out of service already. Waiting for it to become ready would wait for ever: it is cordoned for an update that nobody
    wants any more.
    """
    if node.targets(goal) or not node.current:
        return False
    # It has what it should have and only has to stop trying: that disturbs nobody, so the budget is not asked.
    returns = node.has(goal) and node.moving
    return returns or (node.failing and not node.ready)


def order(nodes: Iterable[NodeFacts], goal: Goal) -> tuple[NodeFacts, ...]:
    """The nodes that are not at the goal, in the order in which they would go."""
    return tuple(sorted((node for node in nodes if not node.updated(goal)), key=lambda node: node.age_order))


def quorum_allows(pool: str, quorum: Quorum) -> Allowed | Denied:
    """Whether a pool that shares the quorum may go on."""
    if pool == names.MASTER:
        # Two masters and an arbiter are three voices: with one of each away there is no quorum, so no API and nobody to end the
        # rollout.
        busy = [node.name for node in quorum.arbiters if node.unavailable]
        return Denied(f"arbiter {', '.join(busy)} is unavailable") if busy else Allowed()
    if pool != names.ARBITER:
        return Allowed()
    busy = [node.name for node in quorum.masters if node.unavailable]
    if busy:
        return Denied(f"master {', '.join(busy)} is unavailable")
    behind = [node.name for node in quorum.masters if not node.updated(quorum.master_goal)]
    # Paused masters never arrive; an arbiter that waited for them would never be updated.
    if behind and not quorum.master_paused:
        return Denied(f"masters come first: {', '.join(behind)}")
    return Allowed()


def target_patch(node: NodeFacts, goal: Goal) -> JsonObject:
    """The merge patch that tells a node where to go; without an image of its own a pool takes the image annotation away."""
    overlay = goal.overlay(node)
    notes = {names.DESIRED_CONFIG: goal.config, names.DESIRED_IMAGE: goal.image or None}
    # Nothing is said about overlays to who has none and was told of none; to who has some, "none" is a word.
    if overlay or node.current_overlay or node.desired_overlay:
        notes[names.DESIRED_OVERLAY] = overlay
    # All in one patch: an agent that saw the new config with the old image would begin an update that nobody asked for.
    return {"metadata": {"annotations": notes}}
