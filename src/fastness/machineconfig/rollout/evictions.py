"""Which disruption budgets would hold up the drain of a node.

A drain evicts every pod of a node that will not come back by itself on the same node: not those of DaemonSets, not static ones,
not those that have ended. A budget blocks when it guards such a pod and allows no eviction now. That is a look ahead, not a
verdict: pods move and budgets change; but a budget that never allows one is found before the rollout is stuck on it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from fastness.formats.errors import SelectorError
from fastness.kinds.kind import JsonObject
from fastness.kinds.objects import annotations_of, labels_of, metadata, object_name
from fastness.kube.budgets import assess, needs_no_budget, selector_of

Object = Mapping[str, Any]
_MIRROR: Final = "kubernetes.io/config.mirror"


class Blocker(NamedTuple):
    """A budget that allows no eviction of a pod on a node."""

    budget: str
    pod: str

    def to_json(self) -> JsonObject:
        """As `-o json` prints it."""
        return {"podDisruptionBudget": self.budget, "pod": self.pod}


def blockers(pods: Iterable[Object], budgets: Iterable[Object]) -> dict[str, tuple[Blocker, ...]]:
    """For every node with such pods, the budgets that block now."""
    by_namespace: dict[str, list[Object]] = defaultdict(list)
    for pod in pods:
        by_namespace[object_name(pod).namespace].append(pod)
    by_node: dict[str, list[Blocker]] = defaultdict(list)
    for budget in budgets:
        name = object_name(budget)
        there = by_namespace.get(name.namespace, [])
        try:
            selector = selector_of(budget)
            guarded = [pod for pod in there if selector.matches(labels_of(pod))]
            if not guarded or assess(budget, guarded).allowed > 0:
                continue
        # Nobody can say what such a budget guards, and a look ahead does not fail for it.
        except SelectorError:
            continue
        for pod in filter(is_evicted, guarded):
            by_node[str((pod.get("spec") or {}).get("nodeName"))].append(Blocker(str(name), str(object_name(pod))))
    return {node: tuple(sorted(entries)) for node, entries in by_node.items()}


def is_evicted(pod: Object) -> bool:
    """Whether a drain asks this pod to leave, and a budget has a say in it."""
    # The API only mirrors a static pod: its kubelet would make it again at once, as `kubectl drain` knows.
    if not (pod.get("spec") or {}).get("nodeName") or _MIRROR in annotations_of(pod):
        return False
    owners = metadata(pod).get("ownerReferences") or ()
    return not any(owner.get("kind") == "DaemonSet" for owner in owners) and not needs_no_budget(pod)
