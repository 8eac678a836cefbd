"""Which configs a pool is made of, and in which order they are merged.

The order has two groups, each by name: first the configs of role `worker`, then all others. In a custom pool what is meant for
the pool therefore wins over what is meant for workers, whatever the names are. A missing or empty selector selects nothing;
rendered configs are results and never sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fastness.formats.selectors import label_selector_from_object
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import is_being_deleted, labels_of, object_name
from fastness.machineconfig.render.prune import is_rendered

Object = Mapping[str, Any]


def selected(pool: Object, configs: Iterable[Object]) -> list[Object]:
    """The configs that the pool selects, by name; raises SelectorError."""
    value = (pool.get("spec") or {}).get("machineConfigSelector")
    if not value or selects_everything(pool):
        return []
    selector = label_selector_from_object(value, "spec.machineConfigSelector")
    found = [
        config
        for config in configs
        if selector.matches(labels_of(config)) and not is_rendered(config) and not is_being_deleted(config)
    ]
    return sorted(found, key=_by_name)


def selects_everything(pool: Object) -> bool:
    """Whether the selector is there and empty, which is taken for a mistake."""
    value = (pool.get("spec") or {}).get("machineConfigSelector")
    return isinstance(value, Mapping) and not value.get("matchLabels") and not value.get("matchExpressions")


def merge_order(configs: Iterable[Object]) -> list[Object]:
    """Configs for workers first, then the others; by name within each, and stable for equal names."""
    return sorted(configs, key=lambda config: (role_of(config) != names.WORKER, _by_name(config)))


def role_of(config: Object) -> str:
    """The role that a config is meant for, empty without the label."""
    return labels_of(config).get(names.ROLE_LABEL, "")


def _by_name(config: Object) -> bytes:
    # Byte order, which is not the order of Python's strings beyond the basic plane.
    return object_name(config).name.encode()
