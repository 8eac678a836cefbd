"""Watches the budget of a pool: never are more of its nodes out of service because of us than it allows.

A node is out of service because of us from the write that sends it to another config until it reports that it has arrived, and
while it is cordoned for a drain that its agent asked for. A machine that somebody switched off is not our doing, and one that
failed before it was drained still works. The watch sees every write, so no moment is too short for it.

The budget of a story is only ever raised: what it was a moment ago, of which a controller may not have heard yet, is never more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fastness.cluster.embedded.store.records import LogEntry
from fastness.cluster.port import EventType
from fastness.domain.machineconfig.nodes import drain_verb, facts
from fastness.domain.machineconfig.rollout import max_unavailable
from fastness.formats import json
from fastness.model.kind import JsonObject
from fastness.model.machineconfiguration import names
from fastness.model.objects import annotations_of


def disturbed(node: JsonObject) -> bool:
    """Whether a node is out of service because of a rollout."""
    seen = facts(node)
    cordoned = bool((node.get("spec") or {}).get("unschedulable"))
    drained = cordoned and drain_verb(annotations_of(node).get(names.DESIRED_DRAIN, "")) == names.DRAIN
    going = seen.managed and seen.desired != seen.current and not seen.failing
    return going or drained


@dataclass
class Budget:
    """The nodes of the only pool that has any."""

    pool: str = names.WORKER
    most: int = 1
    worst: int = 0
    disturbed: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)

    def wrote(self, entry: LogEntry) -> str:
        """What a write breaks; nothing when it breaks nothing."""
        plural, name = entry.record.key.plural, entry.record.key.name
        if plural == "machineconfigpools" and name == self.pool and entry.type is not EventType.DELETED:
            self.most = max(self.most, max_unavailable(json.decode(entry.record.body), len(self.nodes)))
        if plural != "nodes":
            return ""
        known = name in self.disturbed
        self.nodes.discard(name)
        self.disturbed.discard(name)
        if entry.type is EventType.DELETED:
            return ""
        self.nodes.add(name)
        if disturbed(json.decode(entry.record.body)):
            self.disturbed.add(name)
        self.worst = max(self.worst, len(self.disturbed))
        if known or name not in self.disturbed or len(self.disturbed) <= self.most:
            return ""
        return f"{len(self.disturbed)} of at most {self.most} nodes are out of service because of us: {sorted(self.disturbed)}"
