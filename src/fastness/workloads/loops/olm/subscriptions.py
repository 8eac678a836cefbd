"""Subscriptions: what each gets next, as a plan, and what its status tells.

    Subscription ─ resolve ─ InstallPlan (approved, or waiting for a person) ─ status: currentCSV, installedCSV, state

The status is written only when something about it changed; a condition that no longer holds is taken back. `installedCSV` is the
version that is there, `currentCSV` the one that is being installed or is there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import ObjectName, is_being_deleted, object_name, rfc3339, with_condition
from fastness.kinds.openshift.operators import CLUSTER_SERVICE_VERSION, INSTALL_PLAN, SUBSCRIPTION
from fastness.kube.controllers.controller import GONE, Done, Keys, Object, Source
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.informers import Informer, Informers
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from fastness.runtime.clock import Clock
from fastness.workloads.loops.olm.catalogs import SOURCES
from fastness.workloads.olm import resolve
from fastness.workloads.olm.catalog import Release, entries, part
from fastness.workloads.olm.plans import COMPLETE, conflict

SUBSCRIPTIONS: Final = SUBSCRIPTION.resource
PLANS: Final = INSTALL_PLAN.resource
VERSIONS: Final = CLUSTER_SERVICE_VERSION.resource
_AS: Final = WriteOptions(manager="operator-subscriptions")
_STATUS: Final = WriteOptions(manager="operator-subscriptions", subresource="status")


def in_namespace_of(informer: Informer) -> Keys:
    """The keys of all objects of an informer in the namespace of what changed: operators of one namespace look at each other."""

    def keys(obj: Object) -> Iterable[ObjectName]:
        return [object_name(neighbour) for neighbour in informer.list(object_name(obj).namespace)]

    return keys


def itself_and(others: Keys) -> Keys:
    """An object's own key and those of its neighbours."""

    def keys(obj: Object) -> Iterable[Hashable]:
        return dict.fromkeys((object_name(obj), *others(obj)))

    return keys


class Subscriptions:
    """Makes plans for Subscriptions and tells how far they are."""

    name = "operator-subscriptions"
    writes: Sequence[Resource] = (SUBSCRIPTIONS, PLANS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._subscriptions = informers.of(SUBSCRIPTIONS)
        near = in_namespace_of(self._subscriptions)
        self.sources: Sequence[Source] = (
            Source(SUBSCRIPTIONS, keys=itself_and(near)), Source(PLANS, keys=_owner),
            Source(VERSIONS, keys=near), Source(SOURCES, keys=self._everywhere),
        )  # fmt: skip

    def _everywhere(self, _: Object) -> Iterable[ObjectName]:
        return [object_name(subscription) for subscription in self._subscriptions.list()]

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring one Subscription a step on."""
        try:
            subscription = await self._cluster.get(SUBSCRIPTIONS, key.name, key.namespace)
        except NotFound:
            return GONE
        if is_being_deleted(subscription):
            return Done()
        here = Scope(namespace=key.namespace)
        versions = (await self._cluster.list(VERSIONS, here)).items
        sources = (await self._cluster.list(SOURCES)).items
        rivals = (await self._cluster.list(SUBSCRIPTIONS, here)).items
        answer = conflict(subscription, rivals) or resolve.resolve(subscription, sources, versions)
        if isinstance(answer, resolve.Problem):
            await self._tell(subscription, {}, answer)
            return Done()
        plan = await self._plan(subscription, answer.target) if answer.target is not None else None
        await self._tell(subscription, _reached(subscription, answer, plan), None, plan)
        return Done()

    async def _plan(self, subscription: JsonObject, target: Release) -> JsonObject | None:
        """The plan for a release, made if it is not there."""
        place = object_name(subscription)
        generation = _generation(subscription) + 1
        plan = resolve.install_plan(subscription, target, generation)
        try:
            return await self._cluster.get(PLANS, plan["metadata"]["name"], place.namespace)
        except NotFound:
            with suppress(AlreadyExists):
                return await self._cluster.create(PLANS, plan, _AS)
        return None

    async def _tell(
        self,
        subscription: JsonObject,
        reached: JsonObject,
        problem: resolve.Problem | None,
        plan: JsonObject | None = None,
    ) -> None:
        """Write what changed of the status."""
        stored = part(subscription, "status")
        conditions = _conditions(
            [dict(entry) for entry in entries(stored.get("conditions"))], problem, plan, self._clock
        )
        status = {**reached, "conditions": conditions}
        if all(stored.get(key) == value for key, value in status.items()):
            return
        patch = {"status": {**status, "lastUpdated": rfc3339(self._clock.now())}}
        place = object_name(subscription)
        with suppress(NotFound):
            await self._cluster.patch(SUBSCRIPTIONS, place.name, patch, PatchType.MERGE, place.namespace, _STATUS)


def _generation(subscription: JsonObject) -> int:
    """How many plans were made for a Subscription."""
    generation = part(subscription, "status").get("installPlanGeneration")
    return generation if isinstance(generation, int) else 0


def _owner(plan: Object) -> Iterable[ObjectName]:
    name = resolve.owner_of_plan(plan)
    return (ObjectName(object_name(plan).namespace, name),) if name else ()


def _reached(subscription: JsonObject, answer: resolve.Resolved, plan: JsonObject | None) -> JsonObject:
    """The part of the status that says what is installed and what comes."""
    status = part(subscription, "status")
    installed = answer.installed.csv if answer.installed else str(status.get("installedCSV") or "")
    reached: JsonObject = {"installedCSV": installed} if installed else {}
    if plan is None or answer.target is None:
        return {**reached, "currentCSV": installed, "state": resolve.AT_LATEST} if installed else reached
    place = object_name(plan)
    reference = {
        "apiVersion": INSTALL_PLAN.api_version, "kind": INSTALL_PLAN.kind, "name": place.name, "namespace": place.namespace,
        "uid": plan["metadata"]["uid"], "resourceVersion": plan["metadata"]["resourceVersion"],
    }  # fmt: skip
    old = part(status, "installPlanRef")
    return {
        **reached, "currentCSV": answer.target.csv, "state": resolve.UPGRADING,
        "installPlanGeneration": part(plan, "spec").get("generation", 1),
        # The version in the reference is that of the first look: following every change would never come to rest.
        "installPlanRef": old if old.get("uid") == reference["uid"] else reference,
        "installplan": {key: reference[key] for key in ("apiVersion", "kind", "name", "uid")},
    }  # fmt: skip


def _conditions(
    stored: list[JsonObject], problem: resolve.Problem | None, plan: JsonObject | None, clock: Clock
) -> list[JsonObject]:
    """What is wrong, what is waited for; a condition that was never needed is not shown."""
    now, conditions = clock.now(), list(stored)
    unhealthy = problem is not None and problem.condition == resolve.UNHEALTHY
    conditions = with_condition(
        conditions, kind=resolve.UNHEALTHY, status="True" if unhealthy else "False", now=now,
        reason=problem.reason if problem and unhealthy else "AllCatalogSourcesHealthy",
        message=problem.message if problem and unhealthy else "all available catalogsources are healthy",
    )  # fmt: skip
    conditions = [entry for entry in conditions if entry.get("type") not in (resolve.UNRESOLVED, resolve.PENDING)]
    if problem is not None and not unhealthy:
        old = [entry for entry in stored if entry.get("type") == problem.condition]
        conditions += with_condition(
            old, kind=problem.condition, status="True", reason=problem.reason, message=problem.message, now=now
        )
    elif plan is not None and part(plan, "status").get("phase") != COMPLETE:
        old = [entry for entry in stored if entry.get("type") == resolve.PENDING]
        reason = "Installing" if part(plan, "spec").get("approved") else "RequiresApproval"
        conditions += with_condition(old, kind=resolve.PENDING, status="True", reason=reason, message="", now=now)
    return conditions
