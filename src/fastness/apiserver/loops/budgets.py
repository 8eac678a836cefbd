"""The status of disruption budgets, so that `kubectl get pdb` and drains tell how many pods may go.

The eviction subresource does not trust this status: it counts for itself. Here the same function is asked and its answer shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import POD, POD_DISRUPTION_BUDGET
from fastness.kinds.objects import ObjectName, object_name, with_condition
from fastness.kube.budgets import assess
from fastness.kube.controllers.controller import Done, Object, Source
from fastness.kube.errors import NotFound
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.runtime.clock import Clock

BUDGETS = POD_DISRUPTION_BUDGET.resource
PODS = POD.resource
_AS = WriteOptions(manager="disruption-controller", subresource="status")
ANY = "*"


def _namespace_of(pod: Object) -> Iterable[ObjectName]:
    """All budgets of the pod's namespace: the name stands for every one."""
    return (ObjectName(object_name(pod).namespace, ANY),)


class BudgetStatus:
    """Keeps the status of disruption budgets."""

    name = "disruption"
    sources: Sequence[Source] = (Source(BUDGETS), Source(PODS, keys=_namespace_of))
    writes: Sequence[Resource] = (BUDGETS,)

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    async def reconcile(self, key: ObjectName) -> Done:
        """Count, and write when the count changed."""
        budgets = await self._budgets(key)
        if budgets:
            pods = (await self._cluster.list(PODS, Scope(key.namespace))).items
            for budget in budgets:
                await self._write(budget, pods)
        return Done()

    async def _budgets(self, key: ObjectName) -> list[JsonObject]:
        if key.name == ANY:
            return (await self._cluster.list(BUDGETS, Scope(key.namespace))).items
        try:
            return [await self._cluster.get(BUDGETS, key.name, key.namespace)]
        except NotFound:
            return []

    async def _write(self, budget: JsonObject, pods: list[JsonObject]) -> None:
        assessment = assess(budget, pods)
        before = budget.get("status") or {}
        enough = assessment.allowed > 0
        conditions = with_condition(
            before.get("conditions") or [], kind="DisruptionAllowed", status="True" if enough else "False",
            reason="SufficientPods" if enough else "InsufficientPods", message="", now=self._clock.now(),
            generation=budget["metadata"].get("generation"),
        )  # fmt: skip
        status = {
            "currentHealthy": assessment.healthy, "desiredHealthy": assessment.desired, "expectedPods": assessment.expected,
            "disruptionsAllowed": assessment.allowed, "observedGeneration": budget["metadata"].get("generation", 1),
            "conditions": conditions,
        }  # fmt: skip
        if any(before.get(name) != value for name, value in status.items()):
            place = object_name(budget)
            try:
                await self._cluster.patch(
                    BUDGETS, place.name, {"status": status}, PatchType.MERGE, place.namespace, _AS
                )
            except NotFound:
                return
