"""Watches the budget of a pool: never are more of its nodes out of service because of us than it allows.

A node is out of service because of us from the write that sends it to another config until it reports that it has arrived, and
while it is cordoned for a drain that its agent asked for. A machine that somebody switched off is not our doing, and one that
failed before it was drained still works. The watch sees every write, so no moment is too short for it.

A node whose machine is not trusted or did not prove itself any more goes nowhere and uses up nothing, until it has arrived
somewhere after all: with it the pool would wait for ever.

The budget of a story is only ever raised: what it was a moment ago, of which a controller may not have heard yet, is never more.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fastness.apiserver.store.records import LogEntry
from fastness.attestation.machine.proof_age import proof_of
from fastness.attestation.status.cluster import DEFAULT_INTERVAL
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, view
from fastness.kinds.trusted_execution.machine import Machine
from fastness.kube.port import EventType
from fastness.machineconfig.rollout.nodes import facts
from fastness.machineconfig.rollout.rollout import max_unavailable
from tests.simulation.loop import LoopClock


def disturbed(node: JsonObject) -> bool:
    """Whether a node is out of service because of a rollout."""
    state = facts(node)
    cordoned = bool((node.get("spec") or {}).get("unschedulable"))
    drained = cordoned and names.drain_verb(annotations_of(node).get(names.DESIRED_DRAIN, "")) == names.DRAIN
    going = state.managed and state.desired != state.current and not state.failing
    return going or drained


@dataclass
class Budget:
    """The nodes of the only pool that has any."""

    pool: str = names.WORKER
    most: int = 1
    worst: int = 0
    disturbed: set[str] = field(default_factory=set)
    nodes: set[str] = field(default_factory=set)
    machines: dict[str, Machine] = field(default_factory=dict)
    spared: set[str] = field(default_factory=set)

    def wrote(self, entry: LogEntry) -> str:
        """What a write breaks; nothing when it breaks nothing."""
        plural, name = entry.record.key.plural, entry.record.key.name
        if plural == "machineconfigpools" and name == self.pool and entry.type is not EventType.DELETED:
            self.most = max(self.most, max_unavailable(json.decode(entry.record.body), len(self.nodes)))
        if plural == "machines":
            self._machine(view(json.decode(entry.record.body), Machine), gone=entry.type is EventType.DELETED)
        if plural != "nodes":
            return ""
        counted_before = name in self.disturbed
        self.nodes.discard(name)
        self.disturbed.discard(name)
        if entry.type is EventType.DELETED:
            return ""
        self.nodes.add(name)
        if disturbed(json.decode(entry.record.body)):
            self.disturbed.add(name)
        else:
            self.spared.discard(name)
        self.spared |= {
            node for node in self.disturbed if node in self.machines and not self._proved(self.machines[node])
        }
        counted = self.disturbed - self.spared
        self.worst = max(self.worst, len(counted))
        if counted_before or name not in counted or len(counted) <= self.most:
            return ""
        return f"{len(counted)} of at most {self.most} nodes are out of service because of us: {sorted(counted)}"

    def _machine(self, machine: Machine, *, gone: bool) -> None:
        """A Machine was written: while it is not trusted, or gone, its node is held."""
        name = machine.status.node_name
        if not name:
            return
        self.machines[name] = machine
        if name in self.disturbed and (gone or not self._proved(machine)):
            self.spared.add(name)

    @staticmethod
    def _proved(machine: Machine) -> bool:
        return proof_of(machine, LoopClock().now(), DEFAULT_INTERVAL).good
