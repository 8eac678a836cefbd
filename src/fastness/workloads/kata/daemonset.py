"""Installing through a DaemonSet: where no machine configs are, a pod on every chosen node installs, when its turn comes.

A label on the node carries the handshake. The pod compares what is installed and says `installed`, or `waiting_to_install`;
the control plane answers `installing` when it is the node's turn; the pod installs, waits until the node works again, and
says `installed`. Leaving is the same in the other direction; a change that only a boot completes says `waiting_for_reboot`.

* One node at a time, over both directions, because a node that is leaving is as unavailable as one that arrives.
* A node that leaves keeps its role label until nothing is left on it. One that is busy is let finish first.
* A node that never began, or that waits for its turn, has nothing to lose: its labels go at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fastness.kinds.kata import names
from fastness.kinds.kata.config import DEFAULT_LOG_LEVEL
from fastness.kinds.kata.names import InstallState
from fastness.kinds.objects import annotations_of, labels_of, object_name
from fastness.workloads.kata import peer_pods
from fastness.workloads.kata.eligibility import NodeRequirements
from fastness.workloads.kata.inputs import Action, Ensure, Inputs, Mark, Object, Ref, ref_of
from fastness.workloads.kata.mode import DeploymentMode
from fastness.workloads.kata.objects import installers, monitors
from fastness.workloads.kata.status import NodeLists, by_label, gather, next_turn, state_of

_OURS: Final = (names.ROLE_LABEL, names.STATE_LABEL)
_NOTHING_TO_LOSE: Final = (None, InstallState.WAITING_TO_INSTALL, InstallState.UNINSTALLED)
_MUST_LEAVE: Final = (InstallState.INSTALLED, InstallState.FAILED)
_COMES_BACK: Final = (InstallState.WAITING_TO_UNINSTALL, InstallState.UNINSTALLED, InstallState.FAILED_TO_UNINSTALL)


class DaemonSetInstaller:
    """Brings nodes to the runtime and back, in clusters without machine configs; all of it pure."""

    mode: Final = DeploymentMode.DAEMON_SET

    def objects(self, inputs: Inputs, config: Object, requirements: NodeRequirements) -> list[Ensure]:
        """What must be there: the DaemonSets with what they need, and the monitor."""
        level = str((config.get("spec") or {}).get("logLevel") or DEFAULT_LOG_LEVEL)
        if not inputs.namespace:
            return []
        remote = peer_pods.on_nodes(inputs)
        return [
            *installers(requirements.role_label, level, inputs.pull_secret, peer_pods=remote),
            *monitors(requirements.role_label),
        ]

    def marks(self, inputs: Inputs, requirements: NodeRequirements, chosen: Sequence[str]) -> list[Action]:
        """Role labels of the chosen, the way out for the others, and whose turn it is."""
        members, marks = frozenset(chosen), list[Mark]()
        for node in inputs.nodes:
            name = object_name(node).name
            mark = _arriving(node, requirements) if name in members else _leaving(node)
            marks += [mark] if mark is not None else []
        # A node whose labels change now gets its turn at the next look, when they are there.
        changed = {mark.node for mark in marks}
        concerned = [node for node in inputs.nodes if object_name(node).name in members or _is_ours(node)]
        turns = [Mark(name, {names.STATE_LABEL: state}) for name, state in next_turn(concerned) if name not in changed]
        return [*marks, *turns]

    def lists(self, inputs: Inputs, requirements: NodeRequirements, chosen: Sequence[str]) -> NodeLists:
        """Where every node is."""
        members = frozenset(chosen)
        return gather(
            by_label(node, enabled=object_name(node).name in members)
            for node in inputs.nodes
            if object_name(node).name in members or state_of(node) not in _NOTHING_TO_LOSE
        )

    def is_done(self, inputs: Inputs, requirements: NodeRequirements, chosen: Sequence[str], lists: NodeLists) -> bool:
        """Whether every chosen node says that it has the runtime, and no other node has something to lose."""
        return not lists.unfinished and len(lists.of("installed")) == len(chosen)

    def leave(self, inputs: Inputs, requirements: NodeRequirements) -> list[Action]:
        """What makes every node lose the runtime: each is put on its way out."""
        return self.marks(inputs, requirements, ())

    def is_gone(self, inputs: Inputs) -> bool:
        """Whether no node carries our labels."""
        return not any(_is_ours(node) for node in inputs.nodes)

    def remains(self, inputs: Inputs) -> list[Ref]:
        """What may go when no node has the runtime any more: the DaemonSets, their accounts and the rights of these."""
        made = [*installers("", "", {}), *monitors("")]
        return [ref_of(ensure.obj) for ensure in reversed(made)]


def _is_ours(node: Object) -> bool:
    return any(key in labels_of(node) for key in _OURS)


def _arriving(node: Object, requirements: NodeRequirements) -> Mark | None:
    """What a chosen node lacks: its role, or a way back when it was leaving."""
    labels: dict[str, str | None] = {}
    if requirements.role_label not in labels_of(node):
        labels[requirements.role_label] = ""
    if state_of(node) in _COMES_BACK:
        labels[names.STATE_LABEL] = InstallState.WAITING_TO_INSTALL
    return Mark(object_name(node).name, labels) if labels else None


def _leaving(node: Object) -> Mark | None:
    """What a node needs that must lose the runtime; None where there is nothing to do, or it is busy."""
    state, name = state_of(node), object_name(node).name
    if state in _NOTHING_TO_LOSE:
        if not _is_ours(node) and names.FAILURE not in annotations_of(node):
            return None
        return Mark(name, dict.fromkeys(key for key in _OURS if key in labels_of(node)), {names.FAILURE: None})
    if state in _MUST_LEAVE:
        return Mark(name, {names.STATE_LABEL: InstallState.WAITING_TO_UNINSTALL}, {names.FAILURE: None})
    return None
