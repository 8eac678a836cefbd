"""What a release of a disk key leaves on the Machine: when it was, and which proof it rested on.

It is written after the release is on the record and before the bytes leave; nothing of the Machine's standing changes. The number
of the release is in the answer, and told to nobody else. Of two releases that were made from one version of the Machine one is
written: whoever comes second gets no answer, and asks again.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from fastness.disks.volumes import is_pinned, volume_of
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import object_name, rfc3339, view
from fastness.kinds.trusted_execution.disks import VolumeStatus
from fastness.kinds.trusted_execution.machine import MACHINE, Machine
from fastness.kube.errors import Conflict
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.protocol.disk_report import MOST_OPENINGS

TRIES: Final = 8
_STATUS: Final = WriteOptions(manager="disk-keys", subresource="status")


async def note_unlocked(
    cluster: Cluster, stored: JsonObject, volume: str, opening: int, verdict: str, now: datetime
) -> None:
    """Write on a Machine, as it was read, that the key of a volume was released; raises Conflict, ApiError."""
    machine = object_name(stored).name
    read = _numbers(stored, volume)
    news = {"released": opening, "unlockedAt": rfc3339(now), "unlockedBy": verdict}
    for _ in range(TRIES):
        if _numbers(stored, volume) != read:
            raise Conflict(f"volume {volume} of machine {machine} was released or reported since it was read")
        # The Clevis pin gives proof of no release: a list of those would only grow.
        told = news if is_pinned(view(stored, Machine)) else {**news, "unproved": _unproved(stored, volume, opening)}
        disks = [_noted(entry, volume, told) for entry in (stored.get("status") or {}).get("disks") or ()]
        version = {"resourceVersion": stored["metadata"]["resourceVersion"]}
        try:
            patch = {"metadata": version, "status": {"disks": disks}}
            await cluster.patch(MACHINE.resource, machine, patch, PatchType.MERGE, NAMESPACE, _STATUS)
            return
        except Conflict:
            # Others write about the machine, too: ours is put into the list as it is now.
            stored = await cluster.get(MACHINE.resource, machine, NAMESPACE)
    raise Conflict(f"machine {machine} changes too fast")


def _numbers(machine: JsonObject, volume: str) -> tuple[int, int]:
    """The last release of a volume, and the one that is recorded: an answer is made from both."""
    recorded = volume_of(view(machine, Machine), volume) or VolumeStatus()
    return recorded.released, recorded.generation


def _unproved(machine: JsonObject, volume: str, opening: int) -> list[int]:
    recorded = volume_of(view(machine, Machine), volume) or VolumeStatus()
    return [*recorded.unproved, opening][-MOST_OPENINGS:]


def _noted(entry: JsonObject, volume: str, news: JsonObject) -> JsonObject:
    if entry["volume"] != volume:
        return entry
    # One that is doubtful stays so: that its key was asked for again settles nothing.
    state = entry["state"] if entry.get("doubtful") else "Made"
    return {**entry, **news, "state": state}
