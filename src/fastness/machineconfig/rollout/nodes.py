"""A node as rollouts see it, and the pool that it belongs to.

`facts` reads a Node once into a small value; every predicate of a rollout is a property of that value, defined here and nowhere
else. The subtle ones:

* A node whose conditions are missing is ready; one that is cordoned is not.
* A node that failed on its way to a config but can still be scheduled is *available*: it may be given another target, which is
  how taking back a bad config heals it.
* What a node goes to is a rendered config and the overlays on top, by their digest. While nobody has told a node which overlays,
  it is to stay with those that it has: one that was installed with overlays is not late for them.
* `Counts` of nodes add and subtract, so that a controller keeps the counts of a pool without walking it at every event.

`rollout` chooses among facts, `status` reports on counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, labels_of, metadata, object_name

Object = Mapping[str, Any]
_RENDERED: Final = re.compile(rf"{names.RENDERED_PREFIX}(.+)-[0-9a-f]{{32}}(?:@[0-9a-f]{{32}})?", re.ASCII)
# Memory and PID pressure are left out: they come and go with the load, and a rollout that stopped for them would stop at random.
_HEALTHY: Final = {"Ready": "True", "DiskPressure": "False", "NetworkUnavailable": "False"}
# What a RolloutPolicy with a deadline notes on a Node: the goal and when it was told, and the goal that it gave up.
SINCE: Final = "fastness.dev/trying-since"
GAVE_UP: Final = "fastness.dev/gave-up"
_KEY_HEX: Final = 12
_FAILED: Final = frozenset({names.NodeState.DEGRADED, names.NodeState.UNRECONCILABLE})


@dataclass(frozen=True, slots=True)
class Goal:
    """What the nodes of a pool should have; `image` is set where the pool has an image of its own.

    `overlays` has the digest of the overlays of every node that gets some, None where they cannot be merged.
    """

    config: str
    image: str = ""
    overlays: Mapping[str, str | None] = field(default_factory=dict, hash=False)

    def overlay(self, node: NodeFacts) -> str:
        """The overlays that a node should have; what it was told last while those that it should have cannot be merged."""
        digest = self.overlays.get(node.name, "")
        return node.desired_overlay if digest is None else digest

    def target(self, node: NodeFacts) -> str:
        """Config and overlays of a node in one word."""
        return names.target_of(self.config, self.overlay(node), self.image)

    @property
    def key(self) -> str:
        """The goal in one word: another one when the config, the image or the overlays of the pool's nodes are others."""
        # By the kinds of overlays and not by node: a machine that comes and has what others have is no new goal.
        kinds = sorted({digest or "" for digest in self.overlays.values()})
        return names.target_of(self.config, sha256(json.canonical(kinds)).hex[:_KEY_HEX] if kinds else "", self.image)


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """All that a rollout knows about one node."""

    name: str
    ready: bool
    current: str = ""
    desired: str = ""
    state: str = ""
    reason: str = ""
    current_image: str | None = None
    desired_image: str | None = None
    current_overlay: str = ""
    desired_overlay: str = ""
    zone: str = ""
    created: str = ""
    since: str = ""
    gave_up: str = ""

    @property
    def managed(self) -> bool:
        """Whether an agent on the node ever reported."""
        return bool(self.current)

    @property
    def done(self) -> bool:
        """Whether the node has what it should have: config, overlays and image."""
        # An agent that never reported has two empty names, which are equal and mean nothing.
        config = bool(self.current) and not self.moving
        no_image = self.current_image is None and self.desired_image is None
        image = no_image or (bool(self.desired_image) and self.current_image == self.desired_image)
        return config and image and self.state == names.NodeState.DONE

    @property
    def moving(self) -> bool:
        """Whether the node was told to go to another config, to other overlays or to another image than it has."""
        other_image = (self.current_image or "") != (self.desired_image or "")
        return self.current != self.desired or self.current_overlay != self.desired_overlay or other_image

    @property
    def degraded(self) -> bool:
        """Whether the agent says that something is wrong."""
        return self.state in _FAILED

    @property
    def failing(self) -> bool:
        """Whether the node failed on the way to another config, or to other overlays."""
        return self.moving and self.degraded

    @property
    def stuck(self) -> bool:
        """Whether the node is not well with the very thing that it has: somebody changed its disk, or a unit does not run."""
        return self.degraded and self.managed and not self.moving

    @property
    def unavailable(self) -> bool:
        """Whether the node counts against the budget."""
        # A failed node that still takes pods is available; counted otherwise, one bad config would lock the pool against its
        # cure. So is one that joined and was told nothing yet: counted, a pool would wait for a node that waits for the pool.
        untold = not self.current and not self.desired
        return not self.ready or not (self.done or self.failing or untold)

    def targets(self, goal: Goal) -> bool:
        """Whether the node was told to go to the goal."""
        told = self.desired == goal.config and self.desired_overlay == goal.overlay(self)
        return told and self.desired_image == (goal.image or None)

    def has(self, goal: Goal) -> bool:
        """Whether the node has the config, the overlays and the image of the goal, whatever it was told."""
        config = self.current == goal.config and self.current_overlay == goal.overlay(self)
        return config and (self.current_image or "") == goal.image

    def updated(self, goal: Goal) -> bool:
        """Whether the node arrived at the goal."""
        return self.done and self.targets(goal)

    @property
    def age_order(self) -> tuple[bool, str, str, str]:
        """Nodes with a zone first, by zone, oldest first; the name settles a tie."""
        # Zone by zone: a bad config then takes out a part of one zone, and replicas that are spread over zones stay up.
        return (not self.zone, self.zone, self.created, self.name)


class Counts(NamedTuple):
    """How many nodes of a pool are in which state."""

    total: int = 0
    updated: int = 0
    ready: int = 0
    unavailable: int = 0
    degraded: int = 0

    def plus(self, other: Counts) -> Counts:
        """The counts of both."""
        return Counts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def minus(self, other: Counts) -> Counts:
        """The counts without the other's."""
        return Counts(*(mine - theirs for mine, theirs in zip(self, other, strict=True)))


def facts(node: Object) -> NodeFacts:
    """Read a node."""
    notes, labels = annotations_of(node), labels_of(node)
    overlay = notes.get(names.CURRENT_OVERLAY, "")
    return NodeFacts(
        name=object_name(node).name,
        ready=_is_ready(node),
        current=notes.get(names.CURRENT_CONFIG, ""),
        desired=notes.get(names.DESIRED_CONFIG, ""),
        state=notes.get(names.STATE, ""),
        reason=notes.get(names.REASON, ""),
        current_image=notes.get(names.CURRENT_IMAGE),
        desired_image=notes.get(names.DESIRED_IMAGE),
        current_overlay=overlay,
        desired_overlay=notes.get(names.DESIRED_OVERLAY, overlay),
        zone=labels.get(names.ZONE_LABEL, ""),
        created=metadata(node).get("creationTimestamp") or "",
        since=notes.get(SINCE, ""),
        gave_up=notes.get(GAVE_UP, ""),
    )


def counted(node: NodeFacts, goal: Goal) -> Counts:
    """The counts of one node, to be added to those of its pool."""
    updated = node.updated(goal)
    return Counts(1, int(updated), int(updated and node.ready), int(node.unavailable), int(node.degraded))


def count(nodes: Iterable[NodeFacts], goal: Goal) -> Counts:
    """The counts of many nodes."""
    total = Counts()
    for node in nodes:
        total = total.plus(counted(node, goal))
    return total


def selector_keys(pool: Object) -> frozenset[str]:
    """The names of all labels that a pool looks at to choose its nodes."""
    selector = (pool.get("spec") or {}).get("nodeSelector") or {}
    plain = selector.get("matchLabels") or {}
    return frozenset([*plain, *(str(entry.get("key")) for entry in selector.get("matchExpressions") or ())])


def selector_labels(pool: Object) -> dict[str, str] | None:
    """The labels that put a node into the pool, where the selector says them plainly; None where it does not."""
    selector = (pool.get("spec") or {}).get("nodeSelector") or {}
    labels = dict(selector.get("matchLabels") or {})
    for entry in selector.get("matchExpressions") or ():
        values = entry.get("values") or []
        if entry.get("operator") == "Exists":
            labels.setdefault(entry["key"], "")
        elif entry.get("operator") == "In" and len(values) == 1:
            labels[entry["key"]] = values[0]
        else:
            return None
    return labels or None


def rendered_pool(config: str) -> str:
    """The pool that a rendered config was rendered for, as its name says; empty for other names."""
    # From the right: pool names may contain hyphens, the digest at the end may not, so a name reads in one way only.
    match = _RENDERED.fullmatch(config)
    return match[1] if match else ""


def first_pool(node: Object) -> str:
    """The custom pool whose config a node booted with for the first time, until it has the pool's labels; empty otherwise."""
    notes = annotations_of(node)
    pool = rendered_pool(notes.get(names.FIRST_PIVOT_CONFIG, ""))
    return "" if pool in names.BUILT_IN_POOLS or names.CUSTOM_POOL_LABELS_APPLIED in notes else pool


def unlabelled_pool(node: Object, machine_pool: str) -> str:
    """The pool whose labels a node lacks and should have, once; empty for none. `machine_pool` is that of its Machine.

    A kubelet of plain Kubernetes may not give its node a role. Enrolment says where a machine belongs; of nodes without a Machine
    a worker is believed, and nobody who says that it is of the control plane: its annotations are the node's own to write.
    """
    if names.CUSTOM_POOL_LABELS_APPLIED in annotations_of(node):
        return ""
    if machine_pool:
        return machine_pool
    claimed = rendered_pool(annotations_of(node).get(names.FIRST_PIVOT_CONFIG, ""))
    has_role = any(label.startswith(names.NODE_ROLE_PREFIX) for label in labels_of(node))
    return first_pool(node) or (claimed if claimed == names.WORKER and not has_role else "")


def drain_request(config: str, *, uncordon: bool = False) -> str:
    """What a node writes to ask for a drain, or to be put back to work, on its way to a config."""
    return f"{names.UNCORDON if uncordon else names.DRAIN}-{config}"


def drain_pending(node: Object) -> str:
    """The request that waits to be carried out, empty for none.

    A drain for a config that is not desired any more is no request: its rollout was withdrawn, and other nodes have the place
    in the budget that this one gave back. Putting a node back to work is always one.
    """
    notes = annotations_of(node)
    request, desired = notes.get(names.DESIRED_DRAIN, ""), notes.get(names.DESIRED_CONFIG, "")
    # An agent that is behind may ask for a drain whose place in the budget another node has by now.
    withdrawn = names.drain_verb(request) == names.DRAIN and bool(desired) and request != drain_request(desired)
    return request if request != notes.get(names.LAST_APPLIED_DRAIN, "") and not withdrawn else ""


def taint_change(node: Object, goal: Goal) -> list[JsonObject] | None:
    """The taints that the node should have: marked while it waits for its turn; None when they are as they should be."""
    taints = list((node.get("spec") or {}).get("taints") or ())
    marked = [taint for taint in taints if _is_update_taint(taint)]
    waits = not facts(node).targets(goal)
    if waits == bool(marked):
        return None
    if waits:
        return [*taints, dict(names.UPDATE_TAINT)]
    return [taint for taint in taints if not _is_update_taint(taint)]


def unmarked_taints(node: Object) -> list[JsonObject] | None:
    """The taints of a node whose turn has come, without the mark; None when it has none."""
    taints = list((node.get("spec") or {}).get("taints") or ())
    others = [taint for taint in taints if not _is_update_taint(taint)]
    return others if len(others) < len(taints) else None


def _is_update_taint(taint: Object) -> bool:
    return taint.get("key") == names.UPDATE_TAINT["key"] and taint.get("effect") == names.UPDATE_TAINT["effect"]


def _is_ready(node: Object) -> bool:
    # A cordoned node takes no pods, whoever cordoned it; for the budget it is away.
    if (node.get("spec") or {}).get("unschedulable"):
        return False
    return all(
        entry.get("status") == _HEALTHY[entry["type"]]
        for entry in (node.get("status") or {}).get("conditions") or ()
        if entry.get("type") in _HEALTHY
    )
