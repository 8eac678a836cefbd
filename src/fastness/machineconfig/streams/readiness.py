"""Whether rendering may begin, as far as streams go: they were looked at, and by this version of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, condition
from fastness.machineconfig.render.inputs import Obstacle

Object = Mapping[str, Any]
# Reasons of the condition `OSImageStreamsAvailable`.
OFFERED: Final = "StreamsOffered"
NO_SOURCE: Final = "NoSource"
DEFERRED: Final = "UpdateInProgress"
UNREADABLE: Final = "SourceUnreadable"


def streams_obstacle(streams: Object | None, settings: Object | None, version: str) -> Obstacle | None:
    """What a render has to wait for; `settings` is the MachineConfiguration, which says how streams stand."""
    state = condition(settings or {}, names.STREAMS_AVAILABLE)
    if state is None:
        return Obstacle("the streams of operating systems were not looked at yet")
    made_by = annotations_of(streams or {}).get(names.CONTROLLER_VERSION, version)
    if made_by != version and state.get("reason") != NO_SOURCE:
        return Obstacle(f"the OSImageStream is of {made_by}, this is {version}")
    offered = ((streams or {}).get("status") or {}).get("availableStreams")
    # Pools would take the image of the ControllerConfig now and that of a stream later: two reboots for one change.
    if not offered and state.get("reason") == UNREADABLE:
        return Obstacle(f"the streams of operating systems cannot be read: {state.get('message')}", lasting=True)
    return None
