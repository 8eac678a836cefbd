"""What a change of NodeOverlays would do, before anything happens.

Every machine that is known is given its overlays twice, as they are and as they would be. Those for whom something changes are
told, machines with the same change together: which overlays they have and would have, and what that changes on top of the
configuration that their pool hands out now, part by part and with its origin; what a running machine does to follow; and how many
of its pool may do so at a time.

Machines are known by their objects, so what they proved is what their last authentic evidence proved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name
from fastness.machineconfig.overlay.merged import Laid
from fastness.machineconfig.overlay.overlay import Overlay, examine, is_member, matching, recipient_of
from fastness.machineconfig.render.blame import Blame
from fastness.machineconfig.render.errors import BadMaxUnavailable, Problem
from fastness.machineconfig.render.merge import EMPTY
from fastness.machineconfig.render.render import Rendered, Setting, render
from fastness.machineconfig.rollout.diff import ConfigChange, compare, text_of
from fastness.machineconfig.rollout.disruption import Decision, decide, policies_of
from fastness.machineconfig.rollout.plan import State, origin_of
from fastness.machineconfig.rollout.rollout import max_unavailable
from fastness.machineconfig.serving import configuration_of

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Group:
    """Machines of one pool for whom the same changes; `machines` are names of Machines and of their nodes.

    `decision` is what those that run do to follow, `budget` how many of the pool may be away for it at once.
    """

    pool: str
    machines: tuple[tuple[str, str], ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    changes: tuple[tuple[ConfigChange, str], ...]
    decision: Decision
    budget: int
    paused: bool

    @property
    def running(self) -> int:
        """How many of the machines are nodes."""
        return sum(bool(node) for _, node in self.machines)

    def to_json(self) -> JsonObject:
        """As `-o json` prints it."""
        return {
            "pool": self.pool,
            "machines": [{"name": name, "node": node} for name, node in self.machines],
            "from": list(self.before),
            "to": list(self.after),
            "running": self.running,
            "actions": [str(action) for action in self.decision.actions],
            "drain": self.decision.drain,
            "atATime": 0 if self.paused else self.budget,
            "changes": [
                {"what": str(change), "source": source, "diff": text_of(change)} for change, source in self.changes
            ],
        }


@dataclass(frozen=True, slots=True)
class OverlayPlan:
    """What becomes of overlays that are applied or deleted."""

    overlays: tuple[tuple[str, str], ...]
    groups: tuple[Group, ...]
    problems: tuple[Problem, ...]
    machines_known: int

    @property
    def fails(self) -> bool:
        """Whether machines would wait for an overlay that cannot be merged."""
        return any(problem.fatal for problem in self.problems)

    def to_json(self) -> JsonObject:
        """As `-o json` prints it."""
        return {
            "overlays": [{"name": name, "change": what} for name, what in self.overlays],
            "fails": self.fails,
            "problems": [problem.to_json() for problem in self.problems],
            "machinesKnown": self.machines_known,
            "groups": [group.to_json() for group in self.groups],
        }


def plan_overlays(state: State, apply: Sequence[Object], delete: Sequence[str]) -> OverlayPlan:
    """What applying overlays and deleting others by name would change, for every machine of the state."""
    was = {object_name(overlay).name: overlay for overlay in state.overlays}
    will = {name: overlay for name, overlay in was.items() if name not in delete}
    will |= {object_name(overlay).name: overlay for overlay in apply}
    read_before, read_after = ({name: examine(overlay) for name, overlay in side.items()} for side in (was, will))
    members = [machine for machine in state.machines if is_member(machine)]
    by_overlays: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[Object]] = {}
    for machine in members:
        who = recipient_of(machine)
        before, after = (
            tuple(object_name(overlay).name for overlay in matching(side.values(), who)) for side in (was, will)
        )
        same = before == after and all(read_before[name].version == read_after[name].version for name in after)
        if not same:
            by_overlays.setdefault((_pool(machine), before, after), []).append(machine)
    groups = [
        _group(
            state,
            key,
            machines,
            [read_before[overlay] for overlay in key[1]],
            [read_after[overlay] for overlay in key[2]],
        )
        for key, machines in sorted(by_overlays.items(), key=lambda item: item[0])
    ]
    changed = [
        (object_name(overlay).name, "changed" if object_name(overlay).name in was else "new") for overlay in apply
    ]
    problems = [problem for name, _ in changed for problem in read_after[name].problems]
    return OverlayPlan(
        (*changed, *((name, "deleted") for name in delete)), tuple(groups), tuple(problems), len(members)
    )


def _group(
    state: State,
    key: tuple[str, tuple[str, ...], tuple[str, ...]],
    machines: Sequence[Object],
    before: Sequence[Overlay],
    after: Sequence[Overlay],
) -> Group:
    pool, names_before, names_after = key
    base = base_document(state, pool)
    difference = compare(*({"config": Laid.of(side).document(base)} for side in (before, after)))
    sides = [Blame([entry.source for entry in side]) for side in (after, before)]
    changes = [
        (change, next(filter(None, (origin_of(change, side) for side in sides)), "")) for change in difference.changes
    ]
    named = sorted(
        (object_name(entry).name, str((entry.get("status") or {}).get("nodeName") or "")) for entry in machines
    )
    decision = decide(difference, policies_of(state.configuration))
    return Group(pool, tuple(named), names_before, names_after, tuple(changes), decision, *_pace(state, pool))


def _pace(state: State, name: str) -> tuple[int, bool]:
    """How many machines of a pool may be away at once, and whether it is paused."""
    pool = next((candidate for candidate in state.pools if object_name(candidate).name == name), None) or {}
    size = sum(_pool(machine) == name for machine in state.machines)
    try:
        return max_unavailable(pool, size), bool((pool.get("spec") or {}).get("paused"))
    # As the rollout: with an unreadable budget nothing starts.
    except BadMaxUnavailable:
        return 0, True


def base_document(state: State, pool: str) -> JsonObject:
    """The Ignition document that a pool hands out now, or would; an empty one for a pool that does not render."""
    stored = next((candidate for candidate in state.pools if object_name(candidate).name == pool), None)
    if stored is None:
        return EMPTY
    name = configuration_of(stored)
    config = next((candidate for candidate in state.configs if name and object_name(candidate).name == name), None)
    if config is not None:
        return (config.get("spec") or {}).get("config") or EMPTY
    made = render(stored, state.configs, Setting(defaults=state.defaults))
    document: JsonObject = made.spec["config"] if isinstance(made, Rendered) else EMPTY
    return document


def _pool(machine: Object) -> str:
    return str((machine.get("status") or {}).get("pool") or "")
