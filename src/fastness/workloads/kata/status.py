"""The status of a KataConfig, in the words of the manual.

`InProgress` is the condition that people and scripts wait for. Its five normal situations and the two ways to fail are those
of the manual's table, with its exact texts; `reason` and `message` stay empty strings when all is done. Two more say that the
operator is not there (`operator.py`). What else the manual has no word for is a condition of its own that exists only while
there is something to say:

* `ConfidentialReady` False: `confidential` is asked for and cannot be had (no TEE, several kinds of TEE).
* `NodesRefused` True: workers that were asked for and do not get the runtime, each with the reason.
* `RemovalHeld` True: nodes that keep the runtime although they are not chosen any more, because their labels vanished or because
  pods run in it.
* `GatesUnderstood` False: what in the feature-gate ConfigMap could not be read, or cannot hold now.
* `PeerPodsReady` False: `enablePeerPods` is asked for and what the adaptor needs from its owner is not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import condition, with_condition
from fastness.workloads.kata.eligibility import NodeChoice
from fastness.workloads.kata.progress import LISTS, NodeLists

Object = Mapping[str, Any]
IN_PROGRESS: Final = "InProgress"
CONFIDENTIAL_READY: Final = "ConfidentialReady"
NODES_REFUSED: Final = "NodesRefused"
REMOVAL_HELD: Final = "RemovalHeld"
GATES_UNDERSTOOD: Final = "GatesUnderstood"
PEER_PODS_READY: Final = "PeerPodsReady"
_OPTIONAL: Final = (CONFIDENTIAL_READY, NODES_REFUSED, REMOVAL_HELD, GATES_UNDERSTOOD, PEER_PODS_READY)
BLOCKED: Final = "BlockedByExistingKataPods"
MOST_TOLD: Final = 10
MAX_MESSAGE: Final = 2000


class Said(NamedTuple):
    """One condition."""

    status: bool
    reason: str = ""
    message: str = ""


INSTALLING: Final = Said(True, "Installing", "Performing initial installation of kata-cc on cluster")
UPDATING: Final = Said(True, "Updating", "Adding and/or removing kata-enabled nodes")
UNINSTALLING: Final = Said(True, "Uninstalling", "Removing kata-cc from cluster")
FINISHED: Final = Said(False)


def failed(lists: NodeLists) -> Said:
    """A node cannot go on: the first one by name, in its own words."""
    return Said(True, "Failed", str(lists.failures[0])[:MAX_MESSAGE])


def blocked(runtime_class: str) -> Said:
    """Pods still use a class."""
    found = f'Existing pods using "{runtime_class}" RuntimeClass found.'
    return Said(False, BLOCKED, f"{found} Please delete the pods manually for KataConfig deletion to proceed")


def unlisted(error: str) -> Said:
    """Nobody knows whether pods still use a class."""
    return Said(False, BLOCKED, f"Failed to list kata pods: {error}"[:MAX_MESSAGE])


@dataclass(frozen=True, slots=True)
class Status:
    """What is to be told; without lists, those that stand there stay."""

    in_progress: Said
    lists: NodeLists | None
    classes: tuple[str, ...] = ()
    waiting: bool = False
    more: Mapping[str, Said] | None = None


def nodes_refused(choices: Sequence[NodeChoice]) -> Said | None:
    """The workers that were asked for and do not get the runtime."""
    return _about([one for one in choices if one.against is not None and one.against.is_refusal])


def removal_held(choices: Sequence[NodeChoice]) -> Said | None:
    """The workers that keep the runtime for now although something speaks against it."""
    return _about([one for one in choices if one.kept])


def _about(concerned: Sequence[NodeChoice]) -> Said | None:
    if not concerned:
        return None
    told = [f"{one.node} {one.message} ({one.hint})" for one in concerned[:MOST_TOLD]]
    rest = [f"and {len(concerned) - MOST_TOLD} more"] if len(concerned) > MOST_TOLD else []
    return Said(True, str(concerned[0].against), "; ".join([*told, *rest])[:MAX_MESSAGE])


def said_before(config: Object) -> str:
    """The reason of `InProgress` as it stands; empty when it is done or was never said."""
    found = condition(config, IN_PROGRESS)
    return str(found.get("reason") or "") if found is not None and found.get("status") == "True" else ""


def was_said(config: Object) -> bool:
    """Whether the status was ever written."""
    return condition(config, IN_PROGRESS) is not None


def status_patch(config: Object, status: Status, now: datetime) -> JsonObject | None:
    """The merge patch that brings the status there, of our own fields only; None when it is there already."""
    known = config.get("status") or {}
    wanted: JsonObject = {
        "conditions": _conditions(known.get("conditions") or (), status, now),
        "runtimeClasses": list(status.classes) or None,
        "waitingForMcoToStart": status.waiting or None,
        "kataNodes": status.lists.to_json() if status.lists is not None else known.get("kataNodes"),
    }
    patch: JsonObject = {name: value for name, value in wanted.items() if known.get(name) != value}
    if "kataNodes" in patch:
        before = known.get("kataNodes") or {}
        gone = {name: None for name in LISTS if name in before and name not in patch["kataNodes"]}
        patch["kataNodes"] = {**patch["kataNodes"], **gone}
    return patch or None


def _conditions(known: Sequence[Mapping[str, Any]], status: Status, now: datetime) -> list[JsonObject]:
    said = {IN_PROGRESS: status.in_progress, **(status.more or {})}
    kept = [entry for entry in known if entry.get("type") not in _OPTIONAL or entry.get("type") in said]
    result: list[JsonObject] = [dict(entry) for entry in kept]
    for kind, one in said.items():
        truth = "True" if one.status else "False"
        result = with_condition(result, kind=kind, status=truth, reason=one.reason, message=one.message, now=now)
    return result
