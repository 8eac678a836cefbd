"""PodDisruptionBudget: how many pods of a set may be evicted at a time.

The status is a promise with a generation: an eviction may only be granted from a status that speaks of the present spec.
`disrupted_pods` holds pods whose eviction was granted and which are still seen.
"""

from __future__ import annotations

from fastness.kinds.kubernetes.native import native
from fastness.kinds.objects import Condition, LabelSelector, Metadata, View

POD_DISRUPTION_BUDGET = native("policy", "PodDisruptionBudget")


class PodDisruptionBudgetSpec(View):
    """Which pods, and how many of them."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(View):
    """What is allowed now."""

    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, str] | None = None
    conditions: tuple[Condition, ...] = ()


class PodDisruptionBudget(View):
    """A budget as evictions see it."""

    metadata: Metadata = Metadata()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
