"""The status of a KataConfig, in the words of the manual: where every node is on its way, and the conditions.

`InProgress` is the condition that people and scripts wait for. Its five normal situations and the two ways to fail are those
of the manual's table, with its exact texts; `reason` and `message` stay empty strings when all is done. Two more say that the
operator is not there (`inputs.Operator`). What else the manual has no word for is a condition of its own that exists only
while there is something to say:

* `ConfidentialReady` False: `confidential` is asked for and cannot be had (no TEE, several kinds of TEE).
* `NodesRefused` True: workers that were asked for and do not get the runtime, each with the reason.
* `RemovalHeld` True: nodes that keep the runtime although they are not chosen any more, because their labels vanished or because
  pods run in it.
* `GatesUnderstood` False: what in the feature-gate ConfigMap could not be read, or cannot hold now.
* `PeerPodsReady` False: `enablePeerPods` is asked for and what the adaptor needs from its owner is not there.

The lists say where nodes are. With MachineConfigs, a node says with annotations what it has (`currentConfig`) and what it does
(`state`); the target is the rendered config of the pool that it should be in. What is *desired* of it is not looked at: that
is set only when its turn comes.

| state | has the target | gets the runtime | list |
| --- | --- | --- | --- |
| Done | yes | yes / no | installed / none |
| Done | no | yes / no | waitingToInstall / waitingToUninstall |
| Working | either | yes / no | installing / uninstalling |
| Degraded, Unreconcilable | either | yes / no | failedToInstall / failedToUninstall |

With a DaemonSet, a label says it directly; a label that is missing or unknown counts as waiting.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from fastness.kinds.kata import names
from fastness.kinds.kata.names import InstallState
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names as mco
from fastness.kinds.objects import annotations_of, condition, labels_of, object_name, with_condition
from fastness.workloads.kata.eligibility import NodeChoice

Object = Mapping[str, Any]
LISTS: Final = (
    "installed", "installing", "waitingToInstall", "failedToInstall", "uninstalling", "waitingToUninstall", "failedToUninstall",
)  # fmt: skip
_COUNTED: Final = ("installed", "installing", "waitingToInstall", "failedToInstall")
_FAILED: Final = (mco.NodeState.DEGRADED, mco.NodeState.UNRECONCILABLE)


class Failure(NamedTuple):
    """A node that could not go on, and what it says."""

    node: str
    message: str

    def __str__(self) -> str:
        return f"Node {self.node} Degraded: {self.message}"


@dataclass(frozen=True, slots=True)
class NodeLists:
    """The lists, each by name; `failures` are the nodes of the failed ones with their own words."""

    places: Mapping[str, tuple[str, ...]]
    failures: tuple[Failure, ...] = ()

    def of(self, name: str) -> tuple[str, ...]:
        """The nodes of one list, by name."""
        return self.places.get(name, ())

    @property
    def node_count(self) -> int:
        """Nodes that have the runtime or shall get it; those that lose it are not counted."""
        return sum(len(self.of(name)) for name in _COUNTED)

    @property
    def moving(self) -> tuple[str, ...]:
        """Nodes that something is done on right now."""
        return (*self.of("installing"), *self.of("uninstalling"))

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Nodes that are not where they should be."""
        return tuple(node for name in LISTS[1:] for node in self.of(name))

    def to_json(self) -> JsonObject:
        """`status.kataNodes`; lists that are empty are left out."""
        lists = {name: list(self.of(name)) for name in LISTS if self.of(name)}
        return {"nodeCount": self.node_count, "readyNodeCount": len(self.of("installed")), **lists}


EMPTY: Final = NodeLists({})


def gather(places_of_nodes: Iterable[tuple[str, str, str]]) -> NodeLists:
    """Lists out of (node, list, what it says); an empty list name means none."""
    places: dict[str, list[str]] = {}
    failures = []
    for node, place, words in sorted(places_of_nodes):
        if place:
            places.setdefault(place, []).append(node)
        if place in ("failedToInstall", "failedToUninstall"):
            failures.append(Failure(node, words))
    return NodeLists({name: tuple(nodes) for name, nodes in places.items()}, tuple(failures))


def by_config(node: Object, target: str, *, enabled: bool) -> tuple[str, str, str]:
    """Where a node is that machine configs bring there: its name, the list, what it says."""
    notes, name = annotations_of(node), object_name(node).name
    state, arrived = notes.get(mco.STATE, ""), bool(target) and notes.get(mco.CURRENT_CONFIG) == target
    if state in _FAILED:
        return name, "failedToInstall" if enabled else "failedToUninstall", notes.get(mco.REASON, "")
    if state == mco.NodeState.WORKING:
        return name, "installing" if enabled else "uninstalling", ""
    if arrived:
        return name, "installed" if enabled else "", ""
    return name, "waitingToInstall" if enabled else "waitingToUninstall", ""


def state_of(node: Object) -> InstallState | None:
    """What the label of a node says; None when it is missing or nobody knows the word."""
    label = labels_of(node).get(names.STATE_LABEL)
    return InstallState(label) if label in set(InstallState) else None


_INSTALLING: Final = {
    InstallState.INSTALLED: "installed", InstallState.INSTALLING: "installing", InstallState.FAILED: "failedToInstall",
}  # fmt: skip
_UNINSTALLING: Final = {
    InstallState.UNINSTALLED: "", InstallState.UNINSTALLING: "uninstalling", InstallState.WAITING_FOR_REBOOT: "uninstalling",
    InstallState.FAILED_TO_UNINSTALL: "failedToUninstall",
}  # fmt: skip

_TURN: Final = {
    InstallState.WAITING_TO_INSTALL: InstallState.INSTALLING, InstallState.WAITING_TO_UNINSTALL: InstallState.UNINSTALLING,
}  # fmt: skip
_BUSY: Final = (InstallState.INSTALLING, InstallState.UNINSTALLING, InstallState.WAITING_FOR_REBOOT)


def by_label(node: Object, *, enabled: bool) -> tuple[str, str, str]:
    """Where a node is that a DaemonSet brings there."""
    state = state_of(node)
    if enabled:
        place = _INSTALLING.get(state, "waitingToInstall") if state is not None else "waitingToInstall"
    else:
        place = _UNINSTALLING.get(state, "waitingToUninstall") if state is not None else "waitingToUninstall"
    return object_name(node).name, place, annotations_of(node).get(names.FAILURE, "")


def is_ready(node: Object) -> bool:
    """Whether a node works; one that says nothing does."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return all(entry.get("status") == "True" for entry in conditions if entry.get("type") == "Ready")


def next_turn(nodes: Iterable[Object], budget: int = 1) -> tuple[tuple[str, InstallState], ...]:
    """The nodes whose turn it is now where a DaemonSet installs, and what they begin: never more unavailable than the budget.

    * What is being changed or is not ready takes from the budget. A failed node that is ready does not: others go on.
    * By name; a node that failed before comes after those that did not.
    """
    states = [(node, state_of(node)) for node in nodes]
    taken = sum(state in _BUSY or not is_ready(node) for node, state in states)
    waiting = sorted(
        (names.FAILURE in annotations_of(node), object_name(node).name, _TURN[state])
        for node, state in states
        if state in _TURN and is_ready(node)
    )
    return tuple((name, state) for _, name, state in waiting[: max(0, budget - taken)])


IN_PROGRESS: Final = "InProgress"
CONFIDENTIAL_READY: Final = "ConfidentialReady"
NODES_REFUSED: Final = "NodesRefused"
REMOVAL_HELD: Final = "RemovalHeld"
GATES_UNDERSTOOD: Final = "GatesUnderstood"
PEER_PODS_READY: Final = "PeerPodsReady"
_OPTIONAL: Final = (CONFIDENTIAL_READY, NODES_REFUSED, REMOVAL_HELD, GATES_UNDERSTOOD, PEER_PODS_READY)
BLOCKED: Final = "BlockedByExistingKataPods"
MOST_LISTED: Final = 10
MAX_MESSAGE: Final = 2000


class KataCondition(NamedTuple):
    """A condition: whether it is true, its reason and its message."""

    status: bool
    reason: str = ""
    message: str = ""


INSTALLING: Final = KataCondition(True, "Installing", "Performing initial installation of kata-cc on cluster")
UPDATING: Final = KataCondition(True, "Updating", "Adding and/or removing kata-enabled nodes")
UNINSTALLING: Final = KataCondition(True, "Uninstalling", "Removing kata-cc from cluster")
FINISHED: Final = KataCondition(False)


def failed(lists: NodeLists) -> KataCondition:
    """A node cannot go on: the first one by name, in its own words."""
    return KataCondition(True, "Failed", str(lists.failures[0])[:MAX_MESSAGE])


def blocked(runtime_class: str) -> KataCondition:
    """A deletion waits: pods still use a class."""
    sentence = f'Existing pods using "{runtime_class}" RuntimeClass found.'
    return KataCondition(
        False, BLOCKED, f"{sentence} Please delete the pods manually for KataConfig deletion to proceed"
    )


def unlisted(error: str) -> KataCondition:
    """A deletion waits: the pods could not be listed, so nobody knows whether they use a class."""
    return KataCondition(False, BLOCKED, f"Failed to list kata pods: {error}"[:MAX_MESSAGE])


@dataclass(frozen=True, slots=True)
class Status:
    """The status to write; without lists, those that are written already stay."""

    in_progress: KataCondition
    lists: NodeLists | None
    classes: tuple[str, ...] = ()
    waiting: bool = False
    more: Mapping[str, KataCondition] | None = None


def nodes_refused(choices: Sequence[NodeChoice]) -> KataCondition | None:
    """The workers that were asked for and do not get the runtime."""
    return _about([choice for choice in choices if choice.against is not None and choice.against.is_refusal])


def removal_held(choices: Sequence[NodeChoice]) -> KataCondition | None:
    """The workers that keep the runtime for now although something speaks against it."""
    return _about([choice for choice in choices if choice.retained])


def _about(concerned: Sequence[NodeChoice]) -> KataCondition | None:
    if not concerned:
        return None
    sentences = [f"{choice.node} {choice.message} ({choice.hint})" for choice in concerned[:MOST_LISTED]]
    rest = [f"and {len(concerned) - MOST_LISTED} more"] if len(concerned) > MOST_LISTED else []
    return KataCondition(True, str(concerned[0].against), "; ".join([*sentences, *rest])[:MAX_MESSAGE])


def reason_before(config: Object) -> str:
    """The reason of `InProgress` as it stands; empty when it is done or was never said."""
    progress = condition(config, IN_PROGRESS)
    return str(progress.get("reason") or "") if progress is not None and progress.get("status") == "True" else ""


def was_written(config: Object) -> bool:
    """Whether the status was ever written."""
    return condition(config, IN_PROGRESS) is not None


def status_patch(config: Object, status: Status, now: datetime) -> JsonObject | None:
    """The merge patch that brings the status there, of our own fields only; None when it is there already."""
    stored = config.get("status") or {}
    target: JsonObject = {
        "conditions": _conditions(stored.get("conditions") or (), status, now),
        "runtimeClasses": list(status.classes) or None,
        "waitingForMcoToStart": status.waiting or None,
        "kataNodes": status.lists.to_json() if status.lists is not None else stored.get("kataNodes"),
    }
    patch: JsonObject = {name: value for name, value in target.items() if stored.get(name) != value}
    if "kataNodes" in patch:
        before = stored.get("kataNodes") or {}
        gone = {name: None for name in LISTS if name in before and name not in patch["kataNodes"]}
        patch["kataNodes"] = {**patch["kataNodes"], **gone}
    return patch or None


def _conditions(stored: Sequence[Mapping[str, Any]], status: Status, now: datetime) -> list[JsonObject]:
    states = {IN_PROGRESS: status.in_progress, **(status.more or {})}
    remaining = [entry for entry in stored if entry.get("type") not in _OPTIONAL or entry.get("type") in states]
    result: list[JsonObject] = [dict(entry) for entry in remaining]
    for kind, state in states.items():
        truth = "True" if state.status else "False"
        result = with_condition(result, kind=kind, status=truth, reason=state.reason, message=state.message, now=now)
    return result
