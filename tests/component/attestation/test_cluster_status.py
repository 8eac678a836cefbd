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
    loop = Confidential(world.cluster, world.informers, world.clock)
    await world.informers.synced()  # the loop has asked for caches that nobody had before
    await loop.reconcile(KEY)
    return await world.cluster.get(CONFIDENTIAL_CLUSTER.resource, "cluster")


def state_of(cluster: JsonObject, kind: str) -> tuple[str, str]:
    reported = condition(cluster, kind)
    assert reported is not None
    return reported["status"], reported["reason"]


async def collateral_published(world: AttestingWorld) -> None:
    """Wait until the broker has told what documents it has."""
    maps = world.informers.of(CONFIG_MAP.resource, Scope(NAMESPACE))

    async def heard() -> bool:
        return maps.get(NAMESPACE, "collateral") is not None

    await until(heard)


async def caught_up(world: AttestingWorld) -> None:
    """Wait until the caches know what the store knows of machines."""
    machines = world.informers.of(MACHINE.resource)

    async def same() -> bool:
        stored = {
            machine["metadata"]["resourceVersion"] for machine in (await world.cluster.list(MACHINE.resource)).items
        }
        return stored == {machine["metadata"]["resourceVersion"] for machine in machines.list()}

    await until(same)


async def test_the_counts_and_conditions_follow_the_machines(embedded_server: Embedded) -> None:
    async with attesting_world(embedded_server.cluster) as world:
        stored = await status(world)
        assert state_of(stored, "Enforcing") == ("True", "Enforce")
        assert state_of(stored, "ValuesReady") == ("False", "Incomplete")
        assert state_of(stored, "Ready") == ("False", "ValuesMissing")
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
        stored = await status(world)
        counts = {name: stored["status"][name] for name in ("enrolled", "attested", "pending", "refused", "revoked")}
        assert counts == {"enrolled": 3, "attested": 1, "pending": 1, "refused": 1, "revoked": 0}
        assert state_of(stored, "ValuesReady") == ("True", "Published")
        assert state_of(stored, "Degraded") == ("True", "MachinesRefused")
        assert state_of(stored, "Ready") == ("True", "AsAsked")
        world.clock.ahead = timedelta(hours=1)
        assert (await status(world))["status"]["attested"] == 0


async def test_a_status_that_says_the_same_is_not_written_again(embedded_server: Embedded) -> None:
    async with attesting_world(embedded_server.cluster) as world:
        await collateral_published(world)
        first = await status(world)
        clusters = world.informers.of(CONFIDENTIAL_CLUSTER.resource)

        async def cache_has_status() -> bool:
            return (clusters.get("", "cluster") or {}) == first

        await until(cache_has_status)
        assert (await status(world))["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_the_cluster_says_whether_the_documents_of_vendors_are_current(embedded_server: Embedded) -> None:
    async with attesting_world(embedded_server.cluster) as world:
        await collateral_published(world)
        assert state_of(await status(world), "CollateralFresh") == ("True", "Current")
        world.clock.ahead = timedelta(minutes=40)
        assert state_of(await status(world), "CollateralFresh") == ("Unknown", "NotTold")
