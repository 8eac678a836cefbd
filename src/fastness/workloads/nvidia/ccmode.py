"""The confidential mode of a node's GPUs, as a state machine.

Somebody asks for a mode with the label `nvidia.com/cc.mode`; NVIDIA's manager takes the GPUs out of use, switches and resets
them, and says in `nvidia.com/cc.mode.state` and `nvidia.com/cc.ready.state` what came of it.

    UNMANAGED ──manager──▶ OFF ◀──▶ CHANGING ◀──▶ ON        devtools: a mode for debugging that protects nothing
                                 │       │
                              BLOCKED   FAILED               a workload on the GPU holds it; the reset went wrong

* A GPU in the confidential mode serves no ordinary guest, and the other way round; in every other state it serves nobody, so no
  class counts such a node.
* The mode of a GPU that a workload uses is not changed: its guest would lose it. The change waits and says for whom.
* ON without ready is still CHANGING: the GPU has the mode, but its guests could not verify it yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from fastness.kinds.objects import labels_of

Object = Mapping[str, Any]
REQUESTED: Final = "nvidia.com/cc.mode"
STATE: Final = "nvidia.com/cc.mode.state"
READY: Final = "nvidia.com/cc.ready.state"
PRESENT: Final = "nvidia.com/gpu.present"
ON, OFF, DEVTOOLS, FAILED = "on", "off", "devtools", "failed"
MODES: Final = (ON, OFF, DEVTOOLS)


class CcState(StrEnum):
    """Where the GPUs of a node are."""

    NO_GPU = "NoGpu"
    UNMANAGED = "Unmanaged"
    OFF = "Off"
    ON = "On"
    DEVTOOLS = "Devtools"
    CHANGING = "Changing"
    BLOCKED = "Blocked"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


# Where a node can go from a state; anything else means that the labels were written by somebody who is not the manager.
STEPS: Final[Mapping[CcState, frozenset[CcState]]] = {
    CcState.NO_GPU: frozenset({CcState.UNMANAGED}),
    CcState.UNMANAGED: frozenset({CcState.OFF, CcState.ON, CcState.CHANGING, CcState.FAILED, CcState.NO_GPU}),
    CcState.OFF: frozenset({CcState.CHANGING, CcState.BLOCKED, CcState.FAILED, CcState.NO_GPU}),
    CcState.ON: frozenset({CcState.CHANGING, CcState.BLOCKED, CcState.FAILED, CcState.NO_GPU}),
    CcState.DEVTOOLS: frozenset({CcState.CHANGING, CcState.BLOCKED, CcState.FAILED, CcState.NO_GPU}),
    CcState.CHANGING: frozenset(
        {CcState.ON, CcState.OFF, CcState.DEVTOOLS, CcState.BLOCKED, CcState.FAILED, CcState.NO_GPU}
    ),
    CcState.BLOCKED: frozenset({CcState.CHANGING, CcState.ON, CcState.OFF, CcState.DEVTOOLS, CcState.FAILED}),
    CcState.FAILED: frozenset({CcState.CHANGING, CcState.NO_GPU}),
    CcState.UNKNOWN: frozenset(CcState),
}


@dataclass(frozen=True, slots=True)
class GpuMode:
    """The state, why it is that one, and what to do where it is not a good one."""

    state: CcState
    reason: str
    hint: str = ""

    @property
    def confidential(self) -> bool:
        """Whether guests that prove themselves can have the GPU."""
        return self.state is CcState.ON

    @property
    def ordinary(self) -> bool:
        """Whether other guests can have it."""
        return self.state is CcState.OFF


def mode_of(node: Object, users: Sequence[str] = ()) -> GpuMode:
    """The state of a node's GPUs; `users` are the pods that have one."""
    labels = labels_of(node)
    state, requested, ready = labels.get(STATE), labels.get(REQUESTED), labels.get(READY)
    if labels.get(PRESENT) != "true":
        return GpuMode(CcState.NO_GPU, "feature discovery found no GPU")
    if state is None:
        hint = "Look at the pods nvidia-cc-manager; the ClusterPolicy must have ccManager.enabled."
        return GpuMode(CcState.UNMANAGED, f"no manager has written {STATE}", hint)
    if state == FAILED:
        hint = "Read the log of nvidia-cc-manager on the node; a cold reset of the host usually helps."
        return GpuMode(CcState.FAILED, "the manager could not change the mode of a GPU", hint)
    if state not in MODES or requested not in (None, "", *MODES):
        odd = (STATE, state) if state not in MODES else (REQUESTED, requested)
        return GpuMode(CcState.UNKNOWN, f"{odd[0]} is {odd[1]!r}", f"Use one of {', '.join(MODES)}.")
    if requested and requested != state:
        return _on_its_way(state, requested, users)
    return _settled(state, ready)


def _on_its_way(state: str, requested: str, users: Sequence[str]) -> GpuMode:
    # The manager cannot change the mode of a GPU while a pod has it.
    if users:
        pods = ", ".join(users[:3]) + (f" and {len(users) - 3} more" if len(users) > 3 else "")
        return GpuMode(
            CcState.BLOCKED, f"{pods} use a GPU that should go from {state} to {requested}", "Delete them, or wait."
        )
    return GpuMode(CcState.CHANGING, f"the mode goes from {state} to {requested}")


def _settled(state: str, ready: str | None) -> GpuMode:
    if state == DEVTOOLS:
        return GpuMode(
            CcState.DEVTOOLS, "the mode is for debugging and protects nothing", f"Label the node {REQUESTED}=on."
        )
    if state == ON and ready != "true":
        return GpuMode(CcState.CHANGING, f"the mode is on, and {READY} is not true yet")
    if state == OFF and ready == "true":
        return GpuMode(CcState.CHANGING, f"the mode is off, and {READY} is still true")
    return GpuMode(CcState.ON if state == ON else CcState.OFF, f"the mode is {state}")


def follows(before: CcState, after: CcState) -> bool:
    """Whether a node can come from one state to the other; the same state again always can."""
    return before is after or after is CcState.UNKNOWN or after in STEPS[before]
