"""How far the record has come: one ConfigMap, changed only under the condition that nobody else did.

    {"size", "root", "epoch", "doors": {door: {sequence, hash, size, time}},
     "intent": {"time", "batches": [name…], "refused": [[name, door, reason]…]} | absent}

`intent` names the batches that are being folded in, in their order, and those that are refused, before a tile is written. From
there on the tiles are determined, so a sequencer that was stopped, or one that does not know yet that it lost the lead, writes
the same bytes as its successor. `epoch` counts how often the record was restarted under a new name (`record.live.epoch`).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from fastness.crypto.merkle import EMPTY_ROOT
from fastness.formats import json
from fastness.keys.errors import DamagedRecord
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.record.order import Head

NAME: Final = "record-head"
_AS: Final = WriteOptions(manager="record")


@dataclass(frozen=True, slots=True)
class Intent:
    """Batches that are being folded in, and those that are refused: name, claimed door, reason."""

    time: str
    batches: tuple[str, ...]
    refused: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RecordHead:
    """The state of the record at a version of its object; an empty version means that there is none yet."""

    size: int = 0
    root: bytes = EMPTY_ROOT
    doors: Mapping[str, Head] = field(default_factory=dict)
    intent: Intent | None = None
    version: str = ""
    epoch: int = 1

    def intending(self, intent: Intent) -> RecordHead:
        """The same state with something begun."""
        return replace(self, intent=intent)


async def read_head(cluster: Cluster) -> RecordHead:
    """The state of the record; raises DamagedRecord."""
    try:
        stored = await cluster.get(CONFIG_MAP.resource, NAME, NAMESPACE)
    except NotFound:
        return RecordHead()
    return parse_head(stored)


def parse_head(stored: Mapping[str, Any]) -> RecordHead:
    """The state that a ConfigMap holds; raises DamagedRecord."""
    try:
        state = json.decode(stored["data"]["head"].encode())
        doors = {
            name: Head(door["sequence"], door["hash"], door["size"], door.get("time", ""))
            for name, door in state["doors"].items()
        }
        begun = state.get("intent")
        intent = _intent(begun) if begun else None
        root = base64.b64decode(state["root"], validate=True)
        version, epoch = stored["metadata"]["resourceVersion"], int(state.get("epoch", 1))
        return RecordHead(int(state["size"]), root, doors, intent, version, epoch)
    # An error and never an empty record: a state that somebody damaged would otherwise have it begin again.
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedRecord(
            f"ConfigMap {NAMESPACE}/{NAME} does not hold the state of a record",
            "Somebody changed it by hand. Restore it from a backup or from the last `fastness audit export`.",
        ) from error


def _intent(begun: Mapping[str, Any]) -> Intent:
    refused = tuple((str(name), str(door), str(reason)) for name, door, reason in begun.get("refused", ()))
    return Intent(begun["time"], tuple(begun["batches"]), refused)


async def write_head(cluster: Cluster, head: RecordHead) -> RecordHead:
    """Move on from the version that `head` was read at; raises Conflict, AlreadyExists when somebody else did."""
    state: JsonObject = {
        "size": head.size,
        "root": base64.b64encode(head.root).decode(),
        "epoch": head.epoch,
        "doors": {name: door.to_json() for name, door in sorted(head.doors.items())},
    }
    if head.intent is not None:
        state["intent"] = {
            "time": head.intent.time, "batches": list(head.intent.batches),
            "refused": [list(batch) for batch in head.intent.refused],
        }  # fmt: skip
    # Canonical: two sequencers that work out the same state write the same bytes, and a diff shows what really changed.
    data = {"head": json.canonical(state).decode()}
    if head.version:
        # Under the version that was read: two sequencers, one of which has lost the lead unknowingly, cannot both go on.
        patch = {"metadata": {"resourceVersion": head.version}, "data": data}
        written = await cluster.patch(CONFIG_MAP.resource, NAME, patch, PatchType.MERGE, NAMESPACE, _AS)
    else:
        metadata = {"name": NAME, "namespace": NAMESPACE}
        written = await cluster.create(
            CONFIG_MAP.resource, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}, _AS
        )
    return replace(head, version=written["metadata"]["resourceVersion"])
