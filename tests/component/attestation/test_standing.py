"""A machine that stops proving itself loses its place on its node, step by step, and gets it back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from fastness.agent.boot.prove import BrokerRefused
from fastness.attestation.loops.proof_age import ProofAge
from fastness.attestation.machine.proof_age import LABEL_PREFIX, TAINT_KEY
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import NODE, POD
from fastness.kinds.objects import ObjectName, condition
from fastness.kinds.trusted_execution.machine import MACHINE, NOTE
from fastness.kube.port import PatchType, Scope
from fastness.sim.tee.attester import SimAttester
from tests.attesting import SIMULATED, AttestingWorld, attesting_world, until
from tests.embedded.fixtures import Embedded

DRAINING: JsonObject = {**SIMULATED, "attestation": {"missed": {"cordonAfter": "10m", "drainAfter": "20m"}}}


@pytest.fixture
async def here(embedded_server: Embedded) -> AsyncIterator[AttestingWorld]:
    async with attesting_world(embedded_server.cluster, DRAINING) as world:
        yield world


class Place:
    """An attested machine with a node, and the loop driven by hand."""

    def __init__(self, world: AttestingWorld, attester: SimAttester, machine: JsonObject) -> None:
        self.world = world
        self.attester = attester
        self.key = ObjectName(NAMESPACE, machine["metadata"]["name"])
        self.node_name = machine["status"]["nodeName"]
        self.loop = ProofAge(world.cluster, world.informers, world.clock)

    async def look(self) -> JsonObject:
        """Reconcile with caches that are up to date; the node afterwards."""
        await self._caught_up()
        done = await self.loop.reconcile(self.key)
        assert done.again_after != 0.5, "the caches were behind"
        return await self.node()

    async def _caught_up(self) -> None:
        for resource, namespace, name in (
            (MACHINE.resource, NAMESPACE, self.key.name),
            (NODE.resource, "", self.node_name),
        ):
            informer = self.world.informers.of(resource)
            await informer.synced()
            stored = (await self.world.cluster.get(resource, name, namespace))["metadata"]["resourceVersion"]

            async def same() -> bool:
                cached = informer.get(namespace, name)  # noqa: B023
                return cached is not None and cached["metadata"]["resourceVersion"] == stored  # noqa: B023

            await until(same)

    async def node(self) -> JsonObject:
        return await self.world.cluster.get(NODE.resource, self.node_name)

    async def machine(self) -> JsonObject:
        return await self.world.cluster.get(MACHINE.resource, self.key.name, NAMESPACE)

    async def prove(self) -> None:
        async with self.world.broker(self.attester) as broker:
            await broker.attest()


async def placed(world: AttestingWorld, tee: str = "snp") -> Place:
    await world.approve(tee)
    attester = await world.enrolled(tee)
    machine = await world.machine_object(attester)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": machine["status"]["nodeName"]}, "spec": {}}
    await world.cluster.create(NODE.resource, node)
    place = Place(world, attester, machine)
    await place.prove()
    return place


def tainted(node: JsonObject) -> bool:
    return any(taint["key"] == TAINT_KEY for taint in node["spec"].get("taints") or ())


def attested_labels(node: JsonObject) -> dict[str, str]:
    labels = node["metadata"].get("labels") or {}
    return {name.removeprefix(LABEL_PREFIX): value for name, value in labels.items() if name.startswith(LABEL_PREFIX)}


async def test_a_good_machine_costs_its_node_one_write_and_then_none(here: AttestingWorld) -> None:
    place = await placed(here)
    node = await place.look()
    assert attested_labels(node)["tee"] == "snp"
    assert attested_labels(node)["simulated"] == "true"
    assert node["metadata"]["annotations"][NOTE] == "Affirmed"
    assert not tainted(node)
    again = await place.look()
    assert again["metadata"]["resourceVersion"] == node["metadata"]["resourceVersion"]


async def test_missed_rounds_taint_then_cordon_then_drain_and_a_proof_undoes_it(here: AttestingWorld) -> None:
    place = await placed(here)
    await place.look()
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "work", "namespace": "default"},
        "spec": {"nodeName": place.node_name, "containers": [{"name": "a", "image": "b"}]},
    }  # fmt: skip
    await here.cluster.create(POD.resource, pod)
    here.clock.ahead = timedelta(minutes=31)
    node = await place.look()
    attested = condition(await place.machine(), "Attested")
    assert attested is not None
    assert (attested["status"], attested["reason"]) == ("False", "ProofExpired")
    assert tainted(node)
    assert not node["spec"].get("unschedulable")
    assert attested_labels(node) == {}
    here.clock.ahead = timedelta(minutes=41)
    node = await place.look()
    assert node["spec"]["unschedulable"] is True
    assert len((await here.cluster.list(POD.resource, Scope("default"))).items) == 1
    here.clock.ahead = timedelta(minutes=51)
    await place.look()
    assert (await here.cluster.list(POD.resource, Scope("default"))).items == []
    await place.prove()
    node = await place.look()
    assert not tainted(node)
    assert not node["spec"].get("unschedulable")
    assert attested_labels(node)["tee"] == "snp"
    healed = condition(await place.machine(), "Attested")
    assert healed is not None
    assert healed["status"] == "True"


async def test_a_shorter_interval_taints_nobody_who_was_not_told_of_it(here: AttestingWorld) -> None:
    place = await placed(here)
    patch = {"spec": {"attestation": {"reattestInterval": "1m"}}}
    await here.cluster.patch(CONFIDENTIAL_CLUSTER.resource, "cluster", patch, PatchType.MERGE)
    clusters = here.informers.of(CONFIDENTIAL_CLUSTER.resource)

    async def heard() -> bool:
        return bool(clusters.list()[0]["spec"]["attestation"]["reattestInterval"] == "1m")

    await until(heard)
    here.clock.ahead = timedelta(minutes=10)
    assert not tainted(await place.look())
    await place.prove()
    here.clock.ahead = timedelta(minutes=13)
    assert tainted(await place.look())


async def test_a_node_that_somebody_else_cordoned_stays_cordoned(here: AttestingWorld) -> None:
    place = await placed(here)
    await here.cluster.patch(NODE.resource, place.node_name, {"spec": {"unschedulable": True}}, PatchType.MERGE)
    here.clock.ahead = timedelta(minutes=45)
    assert tainted(await place.look())
    await place.prove()
    node = await place.look()
    assert not tainted(node)
    assert node["spec"]["unschedulable"] is True


async def test_a_quarantine_taints_and_cordons_without_grace(here: AttestingWorld) -> None:
    place = await placed(here)
    await place.look()
    patch = {"spec": {"approval": "Quarantined"}}
    await here.cluster.patch(MACHINE.resource, place.key.name, patch, PatchType.MERGE, NAMESPACE)
    node = await place.look()
    assert tainted(node)
    assert node["spec"]["unschedulable"] is True


async def test_labels_that_a_node_gave_itself_are_taken_away(here: AttestingWorld) -> None:
    place = await placed(here)
    forged = {"metadata": {"labels": {f"{LABEL_PREFIX}chip-generation": "Turin", f"{LABEL_PREFIX}gpu": "yes"}}}
    await here.cluster.patch(NODE.resource, place.node_name, forged, PatchType.MERGE)
    labels = attested_labels(await place.look())
    assert "gpu" not in labels
    assert labels["chip-generation"] == "Genoa"


async def test_the_node_of_a_deleted_machine_is_cordoned(here: AttestingWorld) -> None:
    place = await placed(here)
    await place.look()
    await here.cluster.delete(MACHINE.resource, place.key.name, NAMESPACE)
    machines, nodes = here.informers.of(MACHINE.resource), here.informers.of(NODE.resource)

    async def gone() -> bool:
        node = nodes.get("", place.node_name) or {}
        noted = NOTE in (node.get("metadata", {}).get("annotations") or {})
        return machines.get(NAMESPACE, place.key.name) is None and noted

    await until(gone)
    await place.loop.reconcile(place.key)
    node = await place.node()
    assert node["spec"]["unschedulable"] is True
    assert attested_labels(node) == {}


async def test_audit_mode_tells_and_takes_nothing_away(embedded_server: Embedded) -> None:
    async with attesting_world(embedded_server.cluster, {"mode": "Audit", "simulated": True}) as world:
        place = await placed(world)
        world.clock.ahead = timedelta(hours=3)
        node = await place.look()
        assert node["metadata"]["annotations"][NOTE] == "ProofExpired"
        assert not tainted(node)
        with pytest.raises(BrokerRefused):
            async with world.broker(world.machine("snp")) as broker:
                await broker.attest()
