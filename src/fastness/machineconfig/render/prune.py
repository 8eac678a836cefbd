"""Which rendered configs may be forgotten.

A rendered config is in use while a pool points at it, in spec or status, or a node has it or is on its way to it (first boot
included: the annotation of a machine's first config is what its agent compares with). Of the unused ones of each pool the
youngest five stay, so that taking back a change finds its config; the rest goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, metadata, object_name

Object = Mapping[str, Any]
KEPT: Final = 5


def is_rendered(config: Object) -> bool:
    """Whether a MachineConfig is the result of rendering: its name says so and a pool owns it."""
    return object_name(config).name.startswith(names.RENDERED_PREFIX) and rendered_for(config) != ""


def rendered_for(config: Object) -> str:
    """The pool that a rendered config belongs to, empty when no pool owns it."""
    owners = metadata(config).get("ownerReferences") or ()
    return next((str(owner.get("name")) for owner in owners if owner.get("kind") == "MachineConfigPool"), "")


def in_use(pools: Iterable[Object], nodes: Iterable[Object]) -> frozenset[str]:
    """The names of rendered configs that somebody needs."""
    used: set[str] = set()
    for pool in pools:
        for part in (pool.get("spec"), pool.get("status")):
            used.add(str(((part or {}).get("configuration") or {}).get("name") or ""))
    for node in nodes:
        notes = annotations_of(node)
        used.update(
            notes.get(key, "") for key in (names.CURRENT_CONFIG, names.DESIRED_CONFIG, names.FIRST_PIVOT_CONFIG)
        )
    return frozenset(used - {""})


def prunable(configs: Iterable[Object], used: frozenset[str], keep: int = KEPT) -> tuple[str, ...]:
    """The names of rendered configs that can go, oldest first."""
    unused: dict[str, list[tuple[str, str]]] = {}
    for config in configs:
        name = object_name(config).name
        if name not in used and is_rendered(config):
            unused.setdefault(rendered_for(config), []).append((metadata(config).get("creationTimestamp") or "", name))
    gone = [entry for entries in unused.values() for entry in sorted(entries)[: max(0, len(entries) - keep)]]
    return tuple(name for _, name in sorted(gone))
