"""The MachineOSConfig that the cluster writes for a pool that nobody described an image for.

    next_act(pool, config, mode)    what is to be done: make it, bring it to another place, hand it over, take it away, nothing

It is an ordinary one, so that checks, builds, rollout and return are those of every other. Its label says that the cluster made
it, and an annotation what the cluster wrote: somebody who changes its spec takes it over, and it is theirs from then on. It goes
with the setting, and with its pool.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, Final

from fastness.crypto.digests import sha256
from fastness.formats import json
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, condition, is_being_deleted, labels_of, metadata, object_name
from fastness.machineconfig.rollout.image_mode import ImageMode, PushPlace, UpdatePath, gets_an_image

Object = Mapping[str, Any]
WRITTEN: Final = "fastness.dev/image-by-default-spec"


class Act(Enum):
    """What is to be done about the MachineOSConfig of a pool."""

    NOTHING = auto()
    MAKE = auto()
    MOVE = auto()
    HAND_OVER = auto()
    REMOVE = auto()
    KEEP_FOR_NODES = auto()


def next_act(pool: Object | None, config: Object | None, mode: ImageMode) -> Act:
    """What is to be done for a pool whose MachineOSConfig is this one, or none."""
    if mode.unreadable or pool is None or is_being_deleted(pool):
        return Act.NOTHING
    if config is None:
        return Act.MAKE if gets_an_image(pool, mode) else Act.NOTHING
    if is_being_deleted(config) or not is_by_default(config):
        return Act.NOTHING
    if _digest(config.get("spec")) != annotations_of(config).get(WRITTEN):
        return Act.HAND_OVER
    if mode.path is UpdatePath.DIRECT:
        return Act.KEEP_FOR_NODES if why_not_removed(config) else Act.REMOVE
    if mode.place is not None and config.get("spec") != described(object_name(pool).name, mode.place):
        return Act.MOVE
    return Act.NOTHING


def is_by_default(config: Object) -> bool:
    """Whether the cluster made a MachineOSConfig by itself."""
    return labels_of(config).get(names.BY_DEFAULT_LABEL) == "true"


def why_not_removed(config: Object) -> str:
    """Why nodes would not come back if a MachineOSConfig went; empty where they would."""
    removable = condition(config, names.REMOVABLE) or {}
    return str(removable.get("message") or "") if removable.get("status") == "False" else ""


def described(pool: str, place: PushPlace) -> JsonObject:
    """The spec for a pool: nothing is added to its configuration."""
    return {
        "machineConfigPool": {"name": pool}, "imageBuilder": {"imageBuilderType": "Job"},
        "renderedImagePushSecret": {"name": place.secret}, "renderedImagePushSpec": place.spec(pool),
    }  # fmt: skip


def manifest(pool: Object, place: PushPlace) -> JsonObject:
    """The whole object."""
    name = object_name(pool).name
    spec = described(name, place)
    owner = {
        "apiVersion": names.API_VERSION, "kind": "MachineConfigPool", "name": name, "uid": metadata(pool)["uid"],
        "controller": True,
    }  # fmt: skip
    return {
        "apiVersion": names.API_VERSION, "kind": "MachineOSConfig",
        "metadata": {
            "name": name, "labels": {names.BY_DEFAULT_LABEL: "true"}, "annotations": {WRITTEN: _digest(spec)},
            "ownerReferences": [owner],
        },
        "spec": spec,
    }  # fmt: skip


def move(pool: Object, place: PushPlace) -> JsonObject:
    """The merge patch that brings it to another place."""
    spec = described(object_name(pool).name, place)
    return {"metadata": {"annotations": {WRITTEN: _digest(spec)}}, "spec": spec}


def hand_over() -> JsonObject:
    """The merge patch that leaves it to whoever changed it: it stays when the setting and even its pool go."""
    return {
        "metadata": {"labels": {names.BY_DEFAULT_LABEL: None}, "annotations": {WRITTEN: None}, "ownerReferences": None}
    }


def _digest(spec: Any) -> str:
    return str(sha256(json.canonical(spec or {})))
