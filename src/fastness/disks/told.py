"""A Machine's volumes in words: the same on the page, by `explain` and by `fastness machine show`."""

from __future__ import annotations

from typing import Final

from fastness.disks.volumes import CONDITION, RECOVERABLE, WEAKER, is_pinned
from fastness.kinds.trusted_execution.disks import UNMEASURED, VolumeStatus
from fastness.kinds.trusted_execution.machine import Machine

_STATES: Final = {
    "Pending": "has a key, not opened yet", "Made": "encrypted, its key was released", "Open": "encrypted, open",
    "RolledBack": "an old copy was opened", "RecordOlder": "its record is older than the disk",
    "Exchanged": "another disk was opened",
    UNMEASURED: "open, and nothing shows that the initrd was left",
}  # fmt: skip


def told_volumes(machine: Machine) -> tuple[str, ...]:
    """A line for each volume of a machine, or why it has none; empty where its pool asks for none and it has none."""
    # In every place that tells of a machine, and before the key is there: that this way is weaker is no footnote.
    weaker = (WEAKER,) if is_pinned(machine) else ()
    if machine.status.disks:
        recoverable = tuple(entry.message for entry in machine.status.conditions if entry.type == RECOVERABLE)
        return (*(told_volume(entry) for entry in machine.status.disks), *recoverable, *weaker)
    if weaker:
        return weaker
    return tuple(f"not encrypted: {entry.message}" for entry in machine.status.conditions if entry.type == CONDITION)


def told_volume(volume: VolumeStatus) -> str:
    """One volume: how it stands, opened by which proof and when, and of when its key is."""
    parts = [f"{volume.volume}: {_STATES.get(volume.state, volume.state)}"]
    if volume.unlocked_at:
        parts.append(f"unlocked by {volume.unlocked_by} at {volume.unlocked_at}")
    if volume.key_id:
        parts.append(f"key {volume.key_id} of {(volume.key_made or '')[:10]}")
    if volume.next_key_id:
        parts.append(f"{volume.next_key_id} replaces it at the next boot")
    if volume.header:
        integrity = str(volume.header.get("integrity"))
        parts.append(str(volume.header.get("cipher")) + (f" with {integrity}" if integrity != "none" else ""))
    if volume.recovery is not None and volume.recovery.at:
        parts.append(told_recovery(volume))
    if volume.message:
        parts.append(volume.message)
    return ", ".join(parts)


def told_recovery(volume: VolumeStatus) -> str:
    """When approvers last had the key of a volume, and what is to be done while it is still its key; empty for never."""
    recovery = volume.recovery
    if recovery is None or not recovery.at:
        return ""
    still = volume.key_id in recovery.keys.split(",") and not volume.next_key_id
    return f"its key was given to {recovery.by} at {recovery.at}" + (", give it a new one" if still else "")
