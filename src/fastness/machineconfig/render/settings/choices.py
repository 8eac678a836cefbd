"""What a pool chooses by annotation: its container runtime, and whose kubelet its nodes run.

A custom pool that chooses nothing has what workers have, and the ControllerConfig can choose for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, metadata

Object = Mapping[str, Any]
CRIO: Final = "crio"
CONTAINERD: Final = "containerd"
OPENSHIFT: Final = "openshift"


def with_choices(pool: Object, workers: Object | None, controller: Object | None) -> Object:
    """The pool with the annotations that it takes over from those who choose for it."""
    inherited: dict[str, str] = {}
    for chooser in (controller, workers, pool):
        notes = annotations_of(chooser or {})
        inherited |= {key: notes[key] for key in (names.CONTAINER_RUNTIME, names.DISTRIBUTION) if notes.get(key)}
    return {**pool, "metadata": {**metadata(pool), "annotations": {**annotations_of(pool), **inherited}}}


def container_runtime(pool: Object) -> str:
    """The runtime of a pool's machines."""
    return annotations_of(pool).get(names.CONTAINER_RUNTIME) or CRIO


def is_openshift(pool: Object) -> bool:
    """Whether a pool's nodes run OpenShift's kubelet, which ignores gates that it does not know."""
    return annotations_of(pool).get(names.DISTRIBUTION) == OPENSHIFT


def has_chosen_runtime(pool: Object) -> bool:
    """Whether a pool names a runtime itself."""
    return bool(annotations_of(pool).get(names.CONTAINER_RUNTIME))


def runs_containerd(pool: Object, controller: Object | None) -> bool:
    """Whether a pool's machines run containerd: the pool says so, or says nothing and the ControllerConfig does."""
    return container_runtime(with_choices(pool, None, controller)) == CONTAINERD
