"""Pinned images: which sets a node is to have, as its Node says it, and what a pool reports about its nodes.

A node has the sets of all its pools. The control plane resolves them and notes names and generations on the Node, as it notes
the desired config; so a node needs no right to read pools, or to list sets, and in pools that enforce attestation the Machine
decides here as it does everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.names import PoolCondition, Progress
from fastness.kinds.objects import condition, is_being_deleted, metadata, object_name
from fastness.machineconfig.rollout.status import folded

Object = Mapping[str, Any]
MAX_SETS: Final = 200  # one hundred of a custom pool, and one hundred of the workers
SYNCHRONIZER: Final = "PinnedImageSets"
MISSING: Final = "PinnedImageSetMissing"
_MOST_TOLD: Final = 10


def listed_sets(pool: Object) -> list[str]:
    """The sets that a pool lists, by name."""
    return [str(entry.get("name")) for entry in (pool.get("spec") or {}).get("pinnedImageSets") or ()]


def generations(pools: Iterable[Object], sets: Mapping[str, Object]) -> dict[str, int]:
    """What a node of these pools is to have: each set that exists, with its generation."""
    listed = sorted({name for pool in pools for name in listed_sets(pool)})
    return {
        name: int(metadata(sets[name]).get("generation") or 1)
        for name in listed
        if name in sets and not is_being_deleted(sets[name])
    }


def note_of(asked: Mapping[str, int]) -> str:
    """Sets and generations as a Node carries them."""
    return " ".join(f"{name}={generation}" for name, generation in sorted(asked.items()))


def read_note(text: str) -> dict[str, int]:
    """The sets that a Node names; what no control plane wrote is left out, because anybody may write annotations."""
    asked: dict[str, int] = {}
    for entry in text.split()[:MAX_SETS]:
        name, _, generation = entry.partition("=")
        if name and generation.isascii() and generation.isdigit() and 0 < len(generation) < 10 and int(generation):
            asked[name] = int(generation)
    return asked


class NodePins(NamedTuple):
    """One node of a pool: the sets that it is to have, and its MachineConfigNode, which tells what it has."""

    name: str
    asked: Mapping[str, int]
    config_node: Object


def has_all(node: NodePins) -> bool:
    """Whether a node says that every set is pulled and pinned, each in the generation that it is to have."""
    reported = {
        entry.get("name"): entry for entry in (node.config_node.get("status") or {}).get("pinnedImageSets") or ()
    }
    return not failure_of(node) and all(
        (reported.get(name) or {}).get("currentGeneration") == generation for name, generation in node.asked.items()
    )


def failure_of(node: NodePins) -> str:
    """Why a node could not pull or pin its images; empty where nothing failed."""
    degraded = condition(node.config_node, Progress.PINNED_IMAGE_SETS_DEGRADED) or {}
    return str(degraded.get("message") or "it does not say why") if degraded.get("status") == "True" else ""


def pool_pins(pool: Object, sets: Mapping[str, Object], nodes: Sequence[NodePins], now: datetime) -> JsonObject | None:
    """Conditions and counts of a pool as they should be; None where it never had to do with pinned images."""
    asked = bool(listed_sets(pool)) or any(node.asked for node in nodes)
    status = pool.get("status") or {}
    if not asked and condition(pool, PoolCondition.PINNED_IMAGE_SETS_DEGRADED) is None:
        return None
    reason, message = _failure(pool, sets, nodes)
    conditions = folded(pool, PoolCondition.PINNED_IMAGE_SETS_DEGRADED, reason, message, now)
    others = [
        entry
        for entry in status.get("poolSynchronizersStatus") or ()
        if entry.get("poolSynchronizerType") != SYNCHRONIZER
    ]
    own = [_counts(pool, nodes)] if asked else []
    return {"conditions": conditions, "poolSynchronizersStatus": [*others, *own]}


def _failure(pool: Object, sets: Mapping[str, Object], nodes: Sequence[NodePins]) -> tuple[str, str]:
    missing = sorted(name for name in listed_sets(pool) if name not in sets)
    if missing:
        words = "PinnedImageSets do" if len(missing) > 1 else "PinnedImageSet does"
        return MISSING, f"{words} not exist: {', '.join(missing)}"
    failing = sorted((node.name, why) for node in nodes if (why := failure_of(node)))
    if not failing:
        return names.AS_EXPECTED, ""
    more = f"; and {len(failing) - _MOST_TOLD} more" if len(failing) > _MOST_TOLD else ""
    return names.PREFETCH_FAILED, "; ".join(f"node {name}: {why}" for name, why in failing[:_MOST_TOLD]) + more


def _counts(pool: Object, nodes: Sequence[NodePins]) -> JsonObject:
    """`ready` is what has all of its images, `unavailable` what failed; the rest is on its way."""
    updated = sum(has_all(node) for node in nodes)
    failing = sum(bool(failure_of(node)) for node in nodes)
    return {
        "poolSynchronizerType": SYNCHRONIZER, "machineCount": len(nodes), "updatedMachineCount": updated,
        "readyMachineCount": updated, "availableMachineCount": len(nodes) - failing,
        "unavailableMachineCount": failing, "observedGeneration": int(metadata(pool).get("generation") or 0),
    }  # fmt: skip


def name_of(config_node: Object) -> str:
    """The pool that counts a node, empty while nobody knows."""
    pool = str((((config_node.get("spec") or {}).get("pool")) or {}).get("name") or "")
    return "" if pool == names.NOT_YET_SET else pool


def by_name(objects: Iterable[Object]) -> dict[str, Object]:
    """Objects by their names."""
    return {object_name(obj).name: obj for obj in objects}
