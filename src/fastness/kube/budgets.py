"""How many pods a disruption budget lets go now.

A budget guards the pods that its selector picks in its namespace. Healthy are those that are Ready and not on their way out;
`minAvailable` or `maxUnavailable`, as a number or a percentage of the expected pods, says how many must stay. Percentages are
rounded up, as Kubernetes does, so that a budget never allows more than it says.

The eviction subresource asks before it deletes; the controller that keeps the budget's status, and the plan of a rollout, ask the
same function.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fastness.formats.selectors import LabelSelector, label_selector_from_object
from fastness.kinds.objects import condition, is_being_deleted, labels_of

FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Budget:
    """What a budget allows, in the terms of its status."""

    expected: int
    healthy: int
    desired: int

    @property
    def allowed(self) -> int:
        """How many pods may be evicted now."""
        return max(0, self.healthy - self.desired)


def guards(budget: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    """Whether the budget's selector picks the pod; both are of one namespace."""
    return selector_of(budget).matches(labels_of(pod))


def selector_of(budget: Mapping[str, Any]) -> LabelSelector:
    """The selector of a budget, for asking about many pods; nothing when it has none."""
    return label_selector_from_object((budget.get("spec") or {}).get("selector"))


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether the pod is Ready and staying."""
    ready = condition(pod, "Ready")
    return ready is not None and ready.get("status") == "True" and not is_being_deleted(pod)


def needs_no_budget(pod: Mapping[str, Any]) -> bool:
    """Whether a pod may go without asking: finished, not started, or already on its way out."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in FINISHED or phase == "Pending" or is_being_deleted(pod)


def assess(budget: Mapping[str, Any], pods: Iterable[Mapping[str, Any]]) -> Budget:
    """What the budget allows, given the pods of its namespace."""
    spec = budget.get("spec") or {}
    selector = selector_of(budget)
    running = (pod for pod in pods if (pod.get("status") or {}).get("phase") not in FINISHED)
    guarded = [pod for pod in running if selector.matches(labels_of(pod))]
    expected, healthy = len(guarded), sum(map(is_ready, guarded))
    if "maxUnavailable" in spec:
        desired = max(0, expected - _scaled(spec["maxUnavailable"], expected))
    elif "minAvailable" in spec:
        desired = _scaled(spec["minAvailable"], expected)
    else:
        desired = 1
    return Budget(expected, healthy, desired)


def _scaled(value: Any, total: int) -> int:
    """A number, or a percentage of `total` rounded up; nonsense counts as zero, which blocks nothing it should not."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(0, value)
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdigit():
        return math.ceil(int(value[:-1]) * total / 100)
    return 0
