"""The labels that a node needs before GPU classes count it, each with its reason and what brings it about.

One table for the confidential class and the ordinary one; what `workloads.kata.classes` selects by is the same set, and a
test holds the two together. The labels for kernel modules (gdrcopy, gds, peermem) are not here: on hosts that hand their GPUs to
guests no driver runs, so their absence is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from fastness.kinds.kata import names
from fastness.kinds.kata.names import TRUE, Tee
from fastness.kinds.objects import labels_of
from fastness.workloads.nvidia.ccmode import PRESENT, READY, STATE

Object = Mapping[str, Any]
CONFIDENTIAL_CLASS: Final = "kata-cc-nvidia-gpu"
ORDINARY_CLASS: Final = "kata-nvidia-gpu"


class Needed(NamedTuple):
    """One label: its value, why it is needed, and what sets it."""

    label: str
    value: str
    reason: str
    by: str


_BASE: Final = (
    Needed(
        names.BASE_LABEL, TRUE, "the node can run virtual machines", "the rule runtime.kata of Node Feature Discovery"
    ),
)
_GPU: Final = (
    Needed(PRESENT, TRUE, "the node has a GPU", "NVIDIA's operator, when it finds one"),
    Needed("nvidia.com/gpu.deploy.vfio-manager", TRUE, "GPUs are bound to vfio-pci", "ClusterPolicy vfioManager.enabled"),
    Needed(
        "nvidia.com/gpu.deploy.kata-sandbox-device-plugin", TRUE, "pods can request GPUs",
        "ClusterPolicy kataSandboxDevicePlugin.enabled",
    ),
)  # fmt: skip
_OPEN: Final = (
    Needed(STATE, "off", "a GPU in confidential mode serves no ordinary guest", "the label nvidia.com/cc.mode=off"),
    Needed(READY, "false", "the mode was left", "NVIDIA's manager, when it is done"),
)
_CLOSED: Final = (
    Needed(STATE, "on", "the GPU encrypts what leaves it", "the label nvidia.com/cc.mode=on, or ccManager.defaultMode"),
    Needed(READY, TRUE, "guests can verify the GPU", "NVIDIA's manager, when it is done"),
    Needed("nvidia.com/gpu.deploy.cc-manager", TRUE, "something keeps the mode", "ClusterPolicy ccManager.enabled"),
)
_TEES: Final = (Tee.TDX, Tee.SNP)
NEEDED: Final[Mapping[str, tuple[Needed, ...]]] = {
    CONFIDENTIAL_CLASS: (*_BASE, *_GPU, *_CLOSED),
    ORDINARY_CLASS: (*_GPU, *_OPEN),
}


def missing(node: Object, runtime_class: str) -> list[str]:
    """What a node lacks for a GPU class, one sentence each; empty when it can have it. Raises KeyError for other classes."""
    labels = labels_of(node)
    lacking = [
        f"{needed.label}={needed.value} (it is {labels.get(needed.label, 'not set')}): {needed.reason}; set by {needed.by}"
        for needed in NEEDED[runtime_class]
        if labels.get(needed.label) != needed.value
    ]
    if runtime_class == CONFIDENTIAL_CLASS and not any(labels.get(tee.label) == TRUE for tee in _TEES):
        labels_of_tees = " or ".join(f"{tee.label}={TRUE}" for tee in _TEES)
        lacking.append(
            f"{labels_of_tees}: the guest itself must be confidential; set by the rules of Node Feature Discovery"
        )
    return lacking


def able(nodes: Iterable[Object], runtime_class: str) -> list[Object]:
    """The nodes that have everything for a GPU class."""
    return [node for node in nodes if not missing(node, runtime_class)]
