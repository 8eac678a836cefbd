"""Which node is in which pool, and how many are in which state, kept event by event.

Labels put a node into a pool, but where attestation is enforced it is in the pool of its Machine, whatever labels say.

A pool of five thousand nodes must not be walked for every heartbeat. `Memberships` is told of each change of a node and adds the
difference to the counts of its pool; only a new goal or new selectors make it count again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration.names import UPDATE_TAINT
from fastness.kinds.objects import object_name
from fastness.machineconfig.rollout.nodes import Counts, Goal, NodeFacts, count, counted, facts
from fastness.pools.membership import PoolSelectors, SeveralPools, machine_membership

NO_GOAL = Goal("")


@dataclass(slots=True)
class PoolMembers:
    """The nodes of one pool: facts by name, counts, and the few sets that a rollout looks at."""

    goal: Goal = NO_GOAL
    nodes: dict[str, NodeFacts] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    marked: set[str] = field(default_factory=set)
    _not_sent: set[str] = field(default_factory=set)
    _failing: set[str] = field(default_factory=set)
    _degraded: set[str] = field(default_factory=set)
    _unavailable: set[str] = field(default_factory=set)

    def put(self, node: NodeFacts) -> None:
        """A node came or changed."""
        self.remove(node.name)
        self.nodes[node.name] = node
        self.counts = self.counts.plus(counted(node, self.goal))
        self._sort(node)

    def _sort(self, node: NodeFacts) -> None:
        if not node.targets(self.goal):
            self._not_sent.add(node.name)
        if node.failing:
            self._failing.add(node.name)
        if node.degraded:
            self._degraded.add(node.name)
        if node.unavailable:
            self._unavailable.add(node.name)

    def remove(self, name: str) -> None:
        """A node left."""
        node = self.nodes.pop(name, None)
        if node is not None:
            self.counts = self.counts.minus(counted(node, self.goal))
            for names in (self._not_sent, self._failing, self._degraded, self._unavailable):
                names.discard(name)

    def aim(self, goal: Goal) -> None:
        """Count against another goal: the one walk over all nodes."""
        if goal == self.goal:
            return
        self.goal = goal
        self.counts = count(self.nodes.values(), goal)
        self._not_sent = {node.name for node in self.nodes.values() if not node.targets(goal)}

    def behind(self) -> list[NodeFacts]:
        """The nodes that were not told to go to the goal, and those that failed on the way to it."""
        return [self.nodes[name] for name in sorted(self._not_sent | self._failing)]

    def unsettled(self) -> list[NodeFacts]:
        """The nodes that a rollout has to do with: not told, failed, or unavailable."""
        return [self.nodes[name] for name in sorted(self._not_sent | self._failing | self._unavailable)]

    def mismarked(self) -> list[str]:
        """The nodes whose taint does not fit: those that wait and are not marked, those that were told and still are."""
        return sorted((self._not_sent - self.marked) | (self.marked & self.nodes.keys()) - self._not_sent)

    def degraded(self) -> list[NodeFacts]:
        """The nodes whose agent says that something is wrong, by name."""
        return [self.nodes[name] for name in sorted(self._degraded)]


class Memberships:
    """All pools and their nodes."""

    def __init__(self, own: Callable[[str], str], enforced: Callable[[str], bool]) -> None:
        self._own = own
        self._enforced = enforced
        self._members: dict[str, PoolMembers] = {}
        self._selectors = PoolSelectors(())
        self._signature: object = None
        self._nodes: dict[str, JsonObject] = {}
        self._place: dict[str, str] = {}
        self.conflicts: dict[str, SeveralPools] = {}
        self.alerts: set[str] = set()
        self.astray: dict[str, str] = {}

    def members(self, pool: str) -> PoolMembers:
        """The nodes of a pool; none for one that has none."""
        return self._members.setdefault(pool, PoolMembers())

    def node(self, name: str) -> JsonObject | None:
        """A node as last seen."""
        return self._nodes.get(name)

    def pools_changed(self, pools: Iterable[JsonObject]) -> None:
        """Use the selectors of these pools; everything is placed anew only if one of them changed."""
        current = list(pools)
        signature = tuple(
            sorted((object_name(pool).name, repr((pool.get("spec") or {}).get("nodeSelector"))) for pool in current)
        )
        if signature == self._signature:
            return
        self._signature = signature
        self._selectors = PoolSelectors(current)
        for node in list(self._nodes.values()):
            self._enter(node)

    def node_changed(self, old: JsonObject | None, new: JsonObject | None) -> set[str]:
        """A node changed; the pools that this concerns."""
        name = object_name(new or old or {}).name
        before = self._place.get(name, "")
        if new is None:
            self._nodes.pop(name, None)
            self.astray.pop(name, None)
            self._leave(name)
            return {before} - {""}
        self._nodes[name] = new
        self._enter(new)
        return {before, self._place.get(name, "")} - {""}

    def machine_changed(self, name: str) -> set[str]:
        """The Machine of a node changed; the pools that this concerns."""
        node = self._nodes.get(name)
        return self.node_changed(node, node) if node is not None else set()

    def demands_changed(self) -> None:
        """What the cluster enforces changed: every node is placed anew."""
        for node in list(self._nodes.values()):
            self._enter(node)

    def pool_of(self, name: str) -> str:
        """The pool that counts a node, empty for none."""
        return self._place.get(name, "")

    def _enter(self, node: JsonObject) -> None:
        name = object_name(node).name
        self.conflicts.pop(name, None)
        self.alerts.discard(name)
        try:
            membership = machine_membership(node, self._selectors, self._own(name), self._enforced)
        except SeveralPools as error:
            self.conflicts[name] = error
            self._leave(name)
            return
        if membership.alert:
            self.alerts.add(name)
        pool = membership.primary
        self._note_labels(node, pool)
        if self._place.get(name) not in (None, pool):
            self._leave(name)
        if pool:
            self._place[name] = pool
            members = self.members(pool)
            members.put(facts(node))
            (members.marked.add if _is_marked(node) else members.marked.discard)(name)

    def _note_labels(self, node: JsonObject, pool: str) -> None:
        """Remember a node whose labels name another pool than its Machine, so that somebody can be told."""
        name = object_name(node).name
        self.astray.pop(name, None)
        try:
            labelled = self._selectors.of(node).primary
        except SeveralPools as error:
            labelled = error.pools[0]
        if labelled and labelled != pool:
            self.astray[name] = labelled

    def _leave(self, name: str) -> None:
        pool = self._place.pop(name, "")
        if pool:
            self.members(pool).remove(name)
            self.members(pool).marked.discard(name)


def _is_marked(node: JsonObject) -> bool:
    return any(taint.get("key") == UPDATE_TAINT["key"] for taint in (node.get("spec") or {}).get("taints") or ())
