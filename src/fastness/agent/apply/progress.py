"""The conditions of a MachineConfigNode: parents, children, and what one says about the others.

- Every type is there from the start: False, reason NotYetOccurred.
- A step is Unknown while it goes on and True when it is over. A child's reason is the names of parent and child joined.
- A parent other than Updated takes Updated away. Updated resets every other step to False, and its message keeps what was done
  and for which config.
- AppliedFilesAndOS is the older word for AppliedFiles and AppliedOSImage: all are written. AppliedOSImage and
  ImagePulledFromRegistry are steps of updates that bring another image; other updates leave them as they are.
- NodeDegraded and the conditions of other writers stand beside the steps and are left alone by them.

Times move only when a status does; when nothing but times would change, nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration.names import NOT_YET_OCCURRED, Progress
from fastness.kinds.objects import with_condition

Object = Mapping[str, Any]
TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
MAX_MESSAGE: Final = 1024
TYPES: Final = (
    Progress.UPDATE_PREPARED, Progress.UPDATE_EXECUTED, Progress.UPDATE_POST_ACTION_COMPLETE, Progress.UPDATE_COMPLETE,
    Progress.UPDATED, Progress.RESUMED, Progress.CORDONED, Progress.DRAINED, Progress.APPLIED_FILES_AND_OS,
    Progress.APPLIED_FILES, Progress.APPLIED_OS_IMAGE, Progress.IMAGE_PULLED, Progress.REBOOTED_NODE,
    Progress.UNCORDONED, Progress.NODE_DEGRADED,
)  # fmt: skip
PINS: Final = (Progress.PINNED_IMAGE_SETS_PROGRESSING, Progress.PINNED_IMAGE_SETS_DEGRADED)
_BESIDE: Final = frozenset({
    Progress.UPDATED, Progress.NODE_DEGRADED, *PINS, Progress.INTERNAL_RELEASE_IMAGE_DEGRADED,
})  # fmt: skip


class Mark(NamedTuple):
    """A step, with its children and the status of each."""

    parent: Progress
    status: str
    message: str
    children: Mapping[Progress, str] = MappingProxyType({})


def initial(before: Sequence[Object], now: datetime) -> list[JsonObject]:
    """The conditions with every type present."""
    conditions = [dict(entry) for entry in before]
    present = {entry.get("type") for entry in conditions}
    for kind in TYPES:
        if kind not in present:
            conditions = with_condition(
                conditions, kind=kind, status=FALSE, reason=NOT_YET_OCCURRED, message="has not happened yet", now=now
            )
    return conditions


def marked(before: Sequence[Object], mark: Mark, now: datetime, config: str) -> list[JsonObject]:
    """The conditions after a step towards a config."""
    conditions = initial(before, now)
    if mark.parent is Progress.UPDATED and mark.status == TRUE:
        conditions = _reset(conditions, now, config)
    elif mark.parent not in _BESIDE and _status(conditions, Progress.UPDATED) == TRUE:
        conditions = _set(
            conditions, Progress.UPDATED, FALSE, mark.parent, f"the node is being updated to {config}", now
        )
    conditions = _set(conditions, mark.parent, mark.status, mark.parent, mark.message, now)
    for child, status in mark.children.items():
        conditions = _set(conditions, child, status, f"{mark.parent}{child}", mark.message, now)
    return conditions


def differs(old: Sequence[Object], new: Sequence[Object]) -> bool:
    """Whether anything but times changed."""
    return [_timeless(entry) for entry in old] != [_timeless(entry) for entry in new]


def _timeless(entry: Object) -> JsonObject:
    return {key: value for key, value in entry.items() if key != "lastTransitionTime"}


def _reset(conditions: list[JsonObject], now: datetime, config: str) -> list[JsonObject]:
    for entry in list(conditions):
        kind = Progress(entry["type"]) if entry.get("type") in set(Progress) else None
        if kind is not None and kind not in _BESIDE and entry.get("status") != FALSE:
            text = f"Action during update to {config}: {entry.get('message', '')}"
            conditions = _set(conditions, kind, FALSE, str(entry.get("reason") or kind), text, now)
    return conditions


def _set(
    conditions: list[JsonObject], kind: Progress, status: str, reason: str, message: str, now: datetime
) -> list[JsonObject]:
    return with_condition(conditions, kind=kind, status=status, reason=reason, message=message[:MAX_MESSAGE], now=now)


def _status(conditions: Sequence[Object], kind: Progress) -> str:
    return next((str(entry.get("status")) for entry in conditions if entry.get("type") == kind), "")
