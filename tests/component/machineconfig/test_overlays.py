"""What people read on a NodeOverlay: whether it is good, how many machines get it, which of them are behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastness.formats import data_url as dataurl
from fastness.kinds.fastness_dev import NAMESPACE
from fastness.kinds.fastness_dev.rollout import NODE_OVERLAY
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import condition
from fastness.kinds.trusted_execution.machine import MACHINE
from fastness.kube.controllers.fenced import FencedCluster
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType, WriteOptions
from fastness.machineconfig.loops.updates.overlays import KEY, NodeOverlays
from fastness.machineconfig.overlay.overlay import examine
from fastness.runtime.clock import SystemEntropy
from tests.embedded.fixtures import Embedded
from tests.virtual import VirtualClock

STATUS = WriteOptions(subresource="status")


def overlay(match: JsonObject, text: str = "x", **more: Any) -> JsonObject:
    files = [{"path": "/etc/rack", "contents": {"source": dataurl.encode(text.encode())}}]
    config = {"ignition": {"version": "3.4.0"}, "storage": {"files": files}, **more}
    return {
        "apiVersion": NODE_OVERLAY.api_version, "kind": NODE_OVERLAY.kind, "metadata": {"name": "rack"},
        "spec": {"match": match, "config": config},
    }  # fmt: skip


class OverlayCluster:
    """A cluster with machines, and the loop."""

    def __init__(self, cluster: Cluster, informers: Informers) -> None:
        self.cluster, self.informers = cluster, informers
        self.loop = NodeOverlays(cluster, informers, VirtualClock())

    async def machine(self, number: int, tee: str, booted_with: str | None = None) -> str:
        """A Machine that proved its TEE, and its node if it has one; the uid."""
        name, node = f"machine-{number}", f"worker-{number}"
        spec = {"id": f"00000000-0000-4000-8000-{number:012}"}
        body = {
            "apiVersion": MACHINE.api_version, "kind": "Machine", "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": spec,
        }  # fmt: skip
        made = await self.cluster.create(MACHINE.resource, body)
        status = {"pool": "worker", "nodeName": node, "keyThumbprint": f"sha256:{number}", "properties": {"tee": tee}}
        await self.cluster.patch(MACHINE.resource, name, {"status": status}, PatchType.MERGE, NAMESPACE, STATUS)
        if booted_with is not None:
            notes = {names.OVERLAYS: booted_with} if booted_with else {}
            meta = {"name": node, "annotations": notes}
            await self.cluster.create(NODE.resource, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
        return str(made["metadata"]["uid"])

    async def status(self, *writes: Resource) -> JsonObject:
        """The status of the overlay after a look of a loop that may write these and nothing else."""
        async with Informers(self.cluster, clock=VirtualClock(), entropy=SystemEntropy()) as informers:
            fenced: Any = FencedCluster(self.cluster, "test", writes)
            loop = NodeOverlays(fenced, informers, VirtualClock())
            for resource in (NODE_OVERLAY.resource, MACHINE.resource, NODE.resource):
                await informers.of(resource).synced()
            await loop.reconcile(KEY)
        return await self.cluster.get(NODE_OVERLAY.resource, "rack")


@asynccontextmanager
async def overlay_cluster(embedded: Embedded) -> AsyncIterator[OverlayCluster]:
    async with Informers(embedded.cluster, clock=VirtualClock(), entropy=SystemEntropy()) as informers:
        yield OverlayCluster(embedded.cluster, informers)


def status_of(overlay: JsonObject, kind: str) -> tuple[str, str]:
    entry = condition(overlay, kind) or {}
    return str(entry["status"]), str(entry["message"])


async def test_an_overlay_says_that_it_is_good_and_how_many_machines_get_it(embedded_server: Embedded) -> None:
    async with overlay_cluster(embedded_server) as here:
        created = overlay({"properties": {"tee": "snp"}})
        version = examine(created).version
        await here.machine(1, "snp", version)
        await here.machine(2, "snp")
        await here.machine(3, "tpm", "")
        await here.cluster.create(NODE_OVERLAY.resource, created)
        stored = await here.status(NODE_OVERLAY.resource)
        assert stored["status"]["matched"] == 2
        assert status_of(stored, "Valid") == ("True", f"can be merged, as {version}")
        assert status_of(stored, "Applied")[0] == "True"


async def test_a_machine_is_matched_by_its_uid(embedded_server: Embedded) -> None:
    async with overlay_cluster(embedded_server) as here:
        uid = await here.machine(1, "tpm")
        await here.machine(2, "tpm")
        await here.cluster.create(NODE_OVERLAY.resource, overlay({"machines": [uid]}))
        assert (await here.status(NODE_OVERLAY.resource))["status"]["matched"] == 1


async def test_a_bad_fragment_is_told_with_its_place_and_the_way_out(embedded_server: Embedded) -> None:
    async with overlay_cluster(embedded_server) as here:
        bad = overlay({"properties": {"tee": "snp"}}, kernelArguments={"shouldExist": ["debug"]})
        await here.cluster.create(NODE_OVERLAY.resource, bad)
        status, message = status_of(await here.status(NODE_OVERLAY.resource), "Valid")
        assert status == "False"
        assert "spec.config.kernelArguments.shouldExist" in message


async def test_nodes_that_are_behind_are_named(embedded_server: Embedded) -> None:
    async with overlay_cluster(embedded_server) as here:
        await here.machine(1, "snp", "rack@000000000000")
        await here.machine(2, "snp", "")
        await here.machine(3, "tpm", "rack@000000000000 other@1")
        await here.machine(4, "tpm", "track@000000000000")
        await here.cluster.create(NODE_OVERLAY.resource, overlay({"properties": {"tee": "snp"}}))
        status, message = status_of(await here.status(NODE_OVERLAY.resource), "Applied")
        assert status == "False"
        assert "worker-1, worker-2: without this version" in message
        assert "worker-3: with it still, though it is for them no more" in message
        assert "worker-4" not in message


async def test_nothing_is_written_while_nothing_changes(embedded_server: Embedded) -> None:
    async with overlay_cluster(embedded_server) as here:
        await here.cluster.create(NODE_OVERLAY.resource, overlay({"properties": {"tee": "snp"}}))
        first = await here.status(NODE_OVERLAY.resource)
        assert await here.status() == first  # a write would be refused


async def test_proving_the_same_again_wakes_nobody(embedded_server: Embedded) -> None:
    async with overlay_cluster(embedded_server) as here:
        machine: JsonObject = {"metadata": {"name": "m"}, "status": {"properties": {"tee": "snp"}, "lastAttested": "1"}}
        keys = here.loop.sources[1].keys
        assert list(keys(machine)) == [KEY]
        machine["status"]["lastAttested"] = "2"
        assert list(keys(machine)) == []
        machine["status"]["properties"] = {"tee": "tdx"}
        assert list(keys(machine)) == [KEY]
