"""The status of the ConfidentialCluster tells how many machines stand how, and why the cluster is not ready."""

from __future__ import annotations

from datetime import timedelta

import pytest

from fastness.agent.boot.prove import BrokerRefused
from fastness.attestation.loops.confidential import KEY, Confidential
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.cluster import CONFIDENTIAL_CLUSTER
from fastness.kinds.kind import JsonObject
from fastness.kinds.kubernetes.core import CONFIG_MAP
from fastness.kinds.objects import condition
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.port import Scope
from fastness.sim.tee.images import changed, default_image
from tests.attesting import AttestingWorld, attesting_world, until
from tests.embedded.fixtures import Embedded


async def status(world: AttestingWorld) -> JsonObject:
    await Confidential(world.cluster, world.informers, world.clock).reconcile(KEY)
    return await world.cluster.get(CONFIDENTIAL_CLUSTER.resource, "cluster")


def said(cluster: JsonObject, kind: str) -> tuple[str, str]:
    found = condition(cluster, kind)
    assert found is not None
    return found["status"], found["reason"]


async def told(world: AttestingWorld) -> None:
    """Wait until the broker has told what documents it has."""
    maps = world.informers.of(CONFIG_MAP.resource, Scope(NAMESPACE))

    async def heard() -> bool:
        return maps.get(NAMESPACE, "collateral") is not None

    await until(heard)


async def caught_up(world: AttestingWorld) -> None:
    """Wait until the caches know what the store knows of machines."""
    machines = world.informers.of(MACHINE.resource)

    async def same() -> bool:
        stored = {one["metadata"]["resourceVersion"] for one in (await world.cluster.list(MACHINE.resource)).items}
        return stored == {one["metadata"]["resourceVersion"] for one in machines.list()}

    await until(same)


async def test_the_counts_and_conditions_follow_the_machines(embedded_server: Embedded) -> None:
    async with attesting_world(embedded_server.cluster) as world:
        found = await status(world)
        assert said(found, "Enforcing") == ("True", "Enforce")
        assert said(found, "ValuesReady") == ("False", "Incomplete")
        assert said(found, "Ready") == ("False", "ValuesMissing")
        await world.approve("tpm")
        good = await world.enrolled("tpm")
        bad = await world.enrolled("tpm", changed(default_image(), command_line="init=/bin/sh"))
        await world.enrolled("snp")
        async with world.broker(good) as broker:
            await broker.attest()
        async with world.broker(bad) as broker:
            with pytest.raises(BrokerRefused):
                await broker.attest()
        await caught_up(world)
        found = await status(world)
        counts = {name: found["status"][name] for name in ("enrolled", "attested", "pending", "refused", "revoked")}
        assert counts == {"enrolled": 3, "attested": 1, "pending": 1, "refused": 1, "revoked": 0}
        assert said(found, "ValuesReady") == ("True", "Published")
        assert said(found, "Degraded") == ("True", "MachinesRefused")
        assert said(found, "Ready") == ("True", "AsAsked")
        world.clock.ahead = timedelta(hours=1)
        assert (await status(world))["status"]["attested"] == 0


async def test_a_status_that_says_the_same_is_not_written_again(embedded_server: Embedded) -> None:
    async with attesting_world(embedded_server.cluster) as world:
        await told(world)
        first = await status(world)
        clusters = world.informers.of(CONFIDENTIAL_CLUSTER.resource)

        async def known() -> bool:
            return (clusters.get("", "cluster") or {}) == first

        await until(known)
        assert (await status(world))["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_the_cluster_says_whether_the_documents_of_vendors_are_current(embedded_server: Embedded) -> None:
    async with attesting_world(embedded_server.cluster) as world:
        await told(world)
        assert said(await status(world), "CollateralFresh") == ("True", "Current")
        world.clock.ahead = timedelta(minutes=40)
        assert said(await status(world), "CollateralFresh") == ("Unknown", "NotTold")
