"""Subscriptions, plans and versions on a live API: every phase is seen, approval is asked for, nothing is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from fastness.apiserver.inventory import Inventory
from fastness.apiserver.loops.controllers import kube_loops
from fastness.app.controllers import product_loops
from fastness.app.other_operators import FAMILIES, held_back
from fastness.attestation.admission.trusted_objects import WITHOUT_OWNERS
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.objects import object_name
from fastness.kube.controllers.runner import Runner
from fastness.kube.errors import NotFound
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, Scope
from fastness.runtime.clock import SystemClock
from fastness.workloads.loops.controllers import operator_loops
from fastness.workloads.loops.olm.catalogs import NAMESPACES, SOURCES
from fastness.workloads.loops.olm.subscriptions import PLANS, SUBSCRIPTIONS, VERSIONS
from fastness.workloads.loops.olm.versions import GROUPS
from fastness.workloads.loops.other_operators import DEPLOYMENTS, OPERATORS
from tests.embedded.fixtures import Embedded
from tests.patience import PATIENCE
from tests.virtual import SeededEntropy

TURNS = int(PATIENCE / 0.01)  # of a hundredth of a second each
NS = "openshift-sandboxed-containers-operator"
NAME = "sandboxed-containers-operator"
NEW, OLD = f"{NAME}.v1.12.0", f"{NAME}.v1.11.1"


class World:
    """A cluster in which operators are installed."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def namespace(self, name: str = NS) -> None:
        await self.cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def group(self, *targets: str, name: str = "og") -> None:
        meta, spec = {"name": name, "namespace": NS}, {"targetNamespaces": list(targets)} if targets else {}
        body = {"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": meta, "spec": spec}
        await self.cluster.create(GROUPS, body)

    async def subscribe(self, called: str = NAME, **spec: Any) -> None:
        fields = {
            "channel": "stable",
            "name": NAME,
            "source": "redhat-operators",
            "sourceNamespace": "openshift-marketplace",
        }
        await self.cluster.create(
            SUBSCRIPTIONS,
            {
                "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
                "metadata": {"name": called, "namespace": NS}, "spec": {**fields, **spec},
            },
        )  # fmt: skip

    async def until(self, resource: Resource, name: str, holds: Callable[[JsonObject], bool]) -> JsonObject:
        obj: JsonObject = {}
        for _ in range(TURNS):
            try:
                obj = await self.cluster.get(resource, name, NS)
            except NotFound:
                obj = {}
            if obj and holds(obj):
                return obj
            await asyncio.sleep(0.01)
        raise AssertionError(f"{resource.kind} {name} does not get there: {obj}")

    async def gone(self, resource: Resource, name: str, namespace: str = NS) -> None:
        for _ in range(TURNS):
            try:
                await self.cluster.get(resource, name, namespace)
            except NotFound:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"{resource.kind} {name} stays")

    async def succeeded(self, name: str) -> JsonObject:
        return await self.until(VERSIONS, name, lambda version: version.get("status", {}).get("phase") == "Succeeded")

    async def plan(self) -> JsonObject:
        for _ in range(TURNS):
            plans = (await self.cluster.list(PLANS, Scope(namespace=NS))).items
            if plans and plans[0].get("status"):
                return plans[0]
            await asyncio.sleep(0.01)
        raise AssertionError("no plan")


@pytest.fixture
async def world(embedded_server: Embedded) -> AsyncIterator[World]:
    """The loops of operators and of Kubernetes over a fresh API, at rest."""
    cluster, clock, entropy = embedded_server.cluster, SystemClock(), SeededEntropy(1)
    async with Informers(cluster, clock=clock, entropy=entropy) as informers:
        kube = kube_loops(cluster, Inventory(embedded_server.server.api), clock, "", WITHOUT_OWNERS)
        loops = operator_loops(cluster, informers, clock)
        runner = Runner([*kube.controllers, *loops], informers, clock, entropy, feeds=kube.feeds)
        task = asyncio.create_task(runner.run())
        here = World(cluster)
        for _ in range(TURNS):
            if len((await cluster.list(SOURCES)).items) == 2:
                break
            await asyncio.sleep(0.01)
        yield here
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_subscription_becomes_a_plan_and_a_version_that_goes_through_all_phases(world: World) -> None:
    await world.namespace()
    phases: list[str] = []

    async def follow() -> None:
        async with world.cluster.watch(VERSIONS, Scope(namespace=NS), initial=True) as events:
            async for event in events:
                phase = (event.object.get("status") or {}).get("phase")
                if phase and phase not in phases:
                    phases.append(phase)
                if phase == "Succeeded":
                    return

    following = asyncio.create_task(follow())
    await world.group(NS)
    await world.subscribe(startingCSV=NEW)
    await asyncio.wait_for(following, PATIENCE)
    assert phases == ["Pending", "InstallReady", "Installing", "Succeeded"]
    version = await world.succeeded(NEW)
    assert (version["spec"]["version"], version["spec"]["replaces"]) == ("1.12.0", OLD)
    subscription = await world.until(
        SUBSCRIPTIONS, NAME, lambda obj: obj.get("status", {}).get("state") == "AtLatestKnown"
    )
    assert subscription["status"]["installedCSV"] == subscription["status"]["currentCSV"] == NEW
    assert (await world.plan())["status"]["phase"] == "Complete"
    group = await world.until(GROUPS, "og", lambda obj: bool(obj.get("status")))
    assert group["status"]["namespaces"] == [NS]


async def test_manual_approval_waits_for_a_person_and_an_update_follows_by_itself_when_approved(world: World) -> None:
    await world.namespace()
    await world.group(NS)
    await world.subscribe(startingCSV=OLD, installPlanApproval="Manual")
    plan = await world.plan()
    subscription = await world.until(
        SUBSCRIPTIONS, NAME, lambda obj: obj.get("status", {}).get("state") == "UpgradePending"
    )
    pending = next(entry for entry in subscription["status"]["conditions"] if entry["type"] == "InstallPlanPending")
    assert (plan["status"]["phase"], pending["reason"]) == ("RequiresApproval", "RequiresApproval")
    assert not (await world.cluster.list(VERSIONS)).items
    await world.cluster.patch(PLANS, plan["metadata"]["name"], {"spec": {"approved": True}}, PatchType.MERGE, NS)
    await world.succeeded(OLD)
    both = await world.until(SUBSCRIPTIONS, NAME, lambda obj: obj["status"].get("currentCSV") == NEW)
    assert both["status"]["installedCSV"] == OLD


async def test_automatic_updates_replace_the_old_version(world: World) -> None:
    await world.namespace()
    await world.group(NS)
    await world.subscribe(startingCSV=OLD)
    await world.succeeded(NEW)
    await world.gone(VERSIONS, OLD)


async def test_without_a_group_the_plan_waits_and_goes_on_when_it_is_there(world: World) -> None:
    await world.namespace()
    await world.subscribe()
    plan = await world.plan()
    waiting = await world.until(
        PLANS, plan["metadata"]["name"], lambda obj: bool((obj.get("status") or {}).get("conditions"))
    )
    assert "no operator group" in waiting["status"]["conditions"][0]["message"]
    await world.group()
    await world.succeeded(NEW)


async def test_a_package_that_nobody_offers_is_told_on_the_subscription(world: World) -> None:
    await world.namespace()
    await world.subscribe("odd", channel="beta")
    subscription = await world.until(SUBSCRIPTIONS, "odd", lambda obj: bool(obj.get("status", {}).get("conditions")))
    assert {entry["type"]: entry["status"] for entry in subscription["status"]["conditions"]} == {
        "CatalogSourcesUnhealthy": "False", "ResolutionFailed": "True",
    }  # fmt: skip
    await world.cluster.patch(SUBSCRIPTIONS, "odd", {"spec": {"channel": "stable"}}, PatchType.MERGE, NS)
    await world.group()
    await world.succeeded(NEW)


async def test_the_plan_goes_with_the_subscription_and_the_version_stays_until_deleted(world: World) -> None:
    await world.namespace()
    await world.group(NS)
    await world.subscribe()
    await world.succeeded(NEW)
    name = (await world.plan())["metadata"]["name"]
    await world.cluster.delete(SUBSCRIPTIONS, NAME, NS)
    await world.gone(PLANS, name)
    assert (await world.cluster.get(VERSIONS, NEW, NS))["status"]["phase"] == "Succeeded"
    await world.cluster.delete(NAMESPACES, NS)
    await world.gone(NAMESPACES, NS, "")
    assert not (await world.cluster.list(VERSIONS)).items


async def test_at_rest_nothing_is_written(world: World, embedded_server: Embedded) -> None:
    await world.namespace()
    await world.group(NS)
    await world.subscribe()
    await world.subscribe("second")
    await world.succeeded(NEW)
    await world.until(
        SUBSCRIPTIONS, NAME, lambda subscription: subscription.get("status", {}).get("state") == "AtLatestKnown"
    )
    await world.until(SUBSCRIPTIONS, "second", lambda subscription: bool(subscription.get("status")))
    await asyncio.sleep(0.5)
    before = embedded_server.server.api.store.revision
    loops = operator_loops(
        world.cluster,
        Informers(world.cluster, clock=SystemClock(), entropy=SeededEntropy(2)),
        SystemClock(),
    )
    for loop in loops:
        resource = loop.sources[0].resource
        for obj in (await world.cluster.list(resource)).items:
            await loop.reconcile(object_name(obj))
    assert embedded_server.server.api.store.revision == before


async def test_what_is_not_an_object_of_ours_stops_nobody(world: World) -> None:
    await world.namespace()
    await world.group(NS)
    odd: list[tuple[Resource, JsonObject]] = [
        (SUBSCRIPTIONS, {"kind": "Subscription", "metadata": {"name": "empty", "namespace": NS}}),
        (
            SUBSCRIPTIONS,
            {
                "kind": "Subscription",
                "metadata": {"name": "types", "namespace": NS},
                "spec": {"name": ["x"], "channel": 7},
            },
        ),
        (PLANS, {"kind": "InstallPlan", "metadata": {"name": "mine", "namespace": NS}, "spec": {"approved": True}}),
        (VERSIONS, {"kind": "ClusterServiceVersion", "metadata": {"name": "etcd.v1", "namespace": NS}, "spec": {}}),
    ]
    for resource, body in odd:
        await world.cluster.create(resource, {"apiVersion": resource.api_version, **body})
    await world.until(SUBSCRIPTIONS, "types", lambda obj: bool(obj.get("status")))
    await world.until(VERSIONS, "etcd.v1", lambda obj: obj.get("status", {}).get("phase") == "Pending")
    await world.subscribe()
    await world.succeeded(NEW)


async def test_catalogs_come_back_when_they_are_deleted(world: World) -> None:
    await world.cluster.delete(SOURCES, "redhat-operators", "openshift-marketplace")
    for _ in range(TURNS):
        states = [
            (catalog.get("status") or {}).get("connectionState")
            for catalog in (await world.cluster.list(SOURCES)).items
        ]
        if len(states) == 2 and all(states):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(states)


async def test_a_cluster_with_its_own_olm_is_left_to_it_unless_adopted(embedded_server: Embedded) -> None:
    cluster, now = embedded_server.cluster, datetime.now(UTC)
    assert OPERATORS in FAMILIES
    assert await held_back(cluster, (), now) == {}
    await cluster.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "olm"}})
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    body = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "olm-operator", "namespace": "olm"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": pod},
    }  # fmt: skip
    await cluster.create(DEPLOYMENTS, body)
    held = await held_back(cluster, (), now)
    assert "olm/olm-operator" in held[OPERATORS]
    assert await held_back(cluster, (OPERATORS,), now) == {}
    clock, entropy = SystemClock(), SeededEntropy(1)
    async with Informers(cluster, clock=clock, entropy=entropy) as informers:
        with_it = {loop.name for loop in product_loops(cluster, informers, clock, entropy)}
        without = {loop.name for loop in product_loops(cluster, informers, clock, entropy, without=held)}
    assert "operator-versions" in with_it - without
    await cluster.patch(DEPLOYMENTS, "olm-operator", {"spec": {"replicas": 0}}, PatchType.MERGE, "olm")
    assert await held_back(cluster, (), now) == {}
