"""InstallPlans are carried out; ClusterServiceVersions go through their phases; OperatorGroups say what they look after.

Each reconcile writes one step, and that write brings the next: a watch shows every phase. Definitions that are missing, groups
that do not fit and successors are looked at every time: nothing has to be deleted and made anew when the cause is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from fastness.kinds.kind import Resource
from fastness.kinds.kubernetes.apiextensions import CUSTOM_RESOURCE_DEFINITION
from fastness.kinds.objects import ObjectName, condition, is_being_deleted, object_name, rfc3339
from fastness.kinds.openshift.operators import OPERATOR_GROUP
from fastness.kube.controllers.controller import GONE, Done, Object, Source
from fastness.kube.errors import AlreadyExists, NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, DeleteOptions, PatchType, Scope, WriteOptions
from fastness.runtime.clock import Clock
from fastness.workloads.loops.olm.subscriptions import PLANS, VERSIONS, in_namespace_of, itself_and
from fastness.workloads.olm import phases, plans
from fastness.workloads.olm.catalog import package_of, part
from fastness.workloads.olm.resolve import version_object

GROUPS: Final = OPERATOR_GROUP.resource
DEFINITIONS: Final = CUSTOM_RESOURCE_DEFINITION.resource
_AS: Final = WriteOptions(manager="operator-versions")
_STATUS: Final = WriteOptions(manager="operator-versions", subresource="status")


class InstallPlans:
    """Carries out plans that are approved."""

    name = "operator-install-plans"
    writes: Sequence[Resource] = (PLANS, VERSIONS)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        near = in_namespace_of(informers.of(PLANS))
        self.sources: Sequence[Source] = (Source(PLANS), Source(GROUPS, keys=near), Source(VERSIONS, keys=near))

    async def reconcile(self, key: ObjectName) -> Done:
        """Take one plan a step on."""
        try:
            plan = await self._cluster.get(PLANS, key.name, key.namespace)
        except NotFound:
            return GONE
        if is_being_deleted(plan):
            return Done()
        here = Scope(namespace=key.namespace)
        groups = (await self._cluster.list(GROUPS, here)).items
        present = [object_name(version).name for version in (await self._cluster.list(VERSIONS, here)).items]
        step = plans.next_step(plan, groups, present)
        for package, release in step.creates:
            with suppress(AlreadyExists):
                await self._cluster.create(VERSIONS, version_object(package, release, key.namespace, groups[0]), _AS)
        status = plans.plan_status(plan, step, self._clock.now())
        if status is not None:
            with suppress(NotFound):
                await self._cluster.patch(PLANS, key.name, {"status": status}, PatchType.MERGE, key.namespace, _STATUS)
        return Done()


class ServiceVersions:
    """Takes ClusterServiceVersions through their phases."""

    name = "operator-versions"
    writes: Sequence[Resource] = (VERSIONS,)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock
        self._versions = informers.of(VERSIONS)
        near = in_namespace_of(self._versions)
        self.sources: Sequence[Source] = (
            Source(VERSIONS, keys=itself_and(near)), Source(GROUPS, keys=near), Source(DEFINITIONS, keys=self._owners),
        )  # fmt: skip

    def _owners(self, definition: Object) -> Iterable[ObjectName]:
        """Versions that need a definition."""
        name = object_name(definition).name
        return [
            place
            for version in self._versions.list()
            if (package := package_of((place := object_name(version)).name)) is not None and name in package.owns
        ]

    async def reconcile(self, key: ObjectName) -> Done:
        """Take one version a step on, or let it go when it was replaced."""
        try:
            version = await self._cluster.get(VERSIONS, key.name, key.namespace)
        except NotFound:
            return GONE
        if is_being_deleted(version):
            return Done()
        here = Scope(namespace=key.namespace)
        groups = (await self._cluster.list(GROUPS, here)).items
        others = (await self._cluster.list(VERSIONS, here)).items
        package = package_of(key.name)
        served = [name for name in (package.owns if package else ()) if await self._serves(name)]
        phase = phases.next_phase(version, package, groups, served, others)
        status = phases.with_phase(version, phase, self._clock.now())
        with suppress(NotFound):
            if status is not None:
                await self._cluster.patch(
                    VERSIONS, key.name, {"status": status}, PatchType.MERGE, key.namespace, _STATUS
                )
            elif phase.phase == phases.DELETING:
                await self._cluster.delete(
                    VERSIONS, key.name, key.namespace, DeleteOptions(uid=version["metadata"]["uid"])
                )
        return Done()

    async def _serves(self, name: str) -> bool:
        """Whether the kind of a definition can be used."""
        try:
            definition = await self._cluster.get(DEFINITIONS, name)
        except NotFound:
            return False
        established = condition(definition, "Established") or {}
        return established.get("status") == "True" and not is_being_deleted(definition)


class OperatorGroups:
    """Says on OperatorGroups which namespaces they look after."""

    name = "operator-groups"
    writes: Sequence[Resource] = (GROUPS,)
    sources: Sequence[Source] = (Source(GROUPS),)

    def __init__(self, cluster: Cluster, informers: Informers, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    async def reconcile(self, key: ObjectName) -> Done:
        """Bring the status of one group in step."""
        try:
            group = await self._cluster.get(GROUPS, key.name, key.namespace)
        except NotFound:
            return GONE
        namespaces = phases.targets(group) or [""]
        if part(group, "status").get("namespaces") == namespaces or is_being_deleted(group):
            return Done()
        patch = {"status": {"namespaces": namespaces, "lastUpdated": rfc3339(self._clock.now())}}
        with suppress(NotFound):
            await self._cluster.patch(GROUPS, key.name, patch, PatchType.MERGE, key.namespace, _STATUS)
        return Done()
