"""An update to another image, with the loops of the product: values first, nodes then, and the old values go at the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from fastness.attestation.loops.images import IMAGES, SETS, Images
from fastness.attestation.loops.retirement import KEY, ImageLives
from fastness.attestation.values.from_images import set_name
from fastness.attestation.values.image_life import KEEP
from fastness.kinds.kind import JsonObject, Resource
from fastness.kinds.kubernetes.core import NODE
from fastness.kinds.machineconfiguration import names
from fastness.kinds.machineconfiguration.config import MACHINE_CONFIG
from fastness.kinds.machineconfiguration.pool import MACHINE_CONFIG_POOL
from fastness.kinds.objects import ObjectName, annotations_of, condition
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType
from fastness.machineconfig.loops.timing import SIMULATED
from fastness.machineconfig.loops.updates.rollout import EVERY, Rollout
from tests.attesting import until
from tests.component.attestation.approvals import approved_image, manifest
from tests.embedded.fixtures import Embedded
from tests.enrolling import ENTROPY, MovedClock, settle_cluster
from tests.proven import proven_machine

A, B = (f"registry.example/os@sha256:{digit * 64}" for digit in "ab")
WATCHED: tuple[Resource, ...] = (MACHINE_CONFIG_POOL.resource, NODE.resource, SETS, IMAGES, MACHINE_CONFIG.resource)


class Fleet:
    """A pool of three nodes, and three loops driven by hand."""

    def __init__(self, cluster: Cluster, informers: Informers, clock: MovedClock) -> None:
        self.cluster = cluster
        self.clock = clock
        self._informers = informers
        self._rollout = Rollout(cluster, informers, clock, SIMULATED)
        self._images = Images(cluster, informers, clock)
        self._lives = ImageLives(cluster, informers, clock)

    async def settle(self) -> None:
        """Every loop, until nothing changes."""
        for _ in range(12):
            before = await self._versions()
            for image in (A, B):
                await self._seen()
                await self._images.reconcile(ObjectName("", set_name(image)))
            await self._seen()
            await self._lives.reconcile(KEY)
            await self._seen()
            await self._rollout.reconcile(EVERY)
            if before == await self._versions():
                return
        raise AssertionError("the loops do not come to rest")

    async def _versions(self) -> list[str]:
        objects = [obj for resource in WATCHED for obj in (await self.cluster.list(resource)).items]
        return sorted(f"{obj['metadata']['uid']}/{obj['metadata']['resourceVersion']}" for obj in objects)

    async def _seen(self) -> None:
        async def same() -> bool:
            cached = [obj for resource in WATCHED for obj in self._informers.of(resource).list()]
            return await self._versions() == sorted(
                f"{obj['metadata']['uid']}/{obj['metadata']['resourceVersion']}" for obj in cached
            )

        await until(same)

    async def approve(self, image: str, digit: str, **notes: str) -> None:
        measured = manifest(dict.fromkeys((4, 7, 11, 12, 14), digit * 64))
        body = approved_image(f"os-{digit}", image, measured)
        body["metadata"]["annotations"] |= notes
        await self.cluster.create(IMAGES, body)

    async def aim(self, config: str) -> None:
        patch = {"spec": {"configuration": {"name": config}}}
        await self.cluster.patch(MACHINE_CONFIG_POOL.resource, "worker", patch, PatchType.MERGE)

    async def finish(self) -> None:
        """Every node that was sent somewhere arrives."""
        for node in (await self.cluster.list(NODE.resource)).items:
            desired = annotations_of(node)[names.DESIRED_CONFIG]
            patch = {"metadata": {"annotations": {names.CURRENT_CONFIG: desired, names.STATE: "Done"}}}
            await self.cluster.patch(NODE.resource, node["metadata"]["name"], patch, PatchType.MERGE)

    async def desired(self) -> list[str]:
        return sorted(
            annotations_of(node)[names.DESIRED_CONFIG] for node in (await self.cluster.list(NODE.resource)).items
        )

    async def waits_for(self) -> str:
        updating = condition(await self.cluster.get(MACHINE_CONFIG_POOL.resource, "worker"), "Updating")
        return str(updating["message"]) if updating else ""

    async def values(self, image: str) -> tuple[str, bool]:
        """The state of the values of an image, and whether they count."""
        spec = (await self.cluster.get(SETS, set_name(image)))["spec"]
        return spec["values"][0].get("state", "Current"), "withdrawn" not in spec


@asynccontextmanager
async def fleet(cluster: Cluster) -> AsyncIterator[Fleet]:
    await settle_cluster(cluster, {"mode": "Enforce", "simulated": True})
    for name, image in (("ca", A), ("cb", B)):
        body: JsonObject = {
            "apiVersion": MACHINE_CONFIG.api_version, "kind": "MachineConfig", "metadata": {"name": name},
            "spec": {"osImageURL": image, "config": {"ignition": {"version": "3.4.0"}}},
        }  # fmt: skip
        await cluster.create(MACHINE_CONFIG.resource, body)
    selector = {"matchLabels": {names.ROLE_LABEL: "worker"}}
    role = f"{names.NODE_ROLE_PREFIX}worker"
    pool = {
        "apiVersion": MACHINE_CONFIG_POOL.resource.api_version, "kind": "MachineConfigPool", "metadata": {"name": "worker"},
        "spec": {
            "machineConfigSelector": selector, "nodeSelector": {"matchLabels": {role: ""}},
            "configuration": {"name": "ca"}, "maxUnavailable": 3,
        },
    }  # fmt: skip
    await cluster.create(MACHINE_CONFIG_POOL.resource, pool)
    for number in range(3):
        notes = {names.CURRENT_CONFIG: "ca", names.DESIRED_CONFIG: "ca", names.STATE: "Done"}
        meta = {"name": f"n{number}", "labels": {role: ""}, "annotations": notes}
        await cluster.create(NODE.resource, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
        await proven_machine(cluster, f"n{number}", number + 1, timedelta(days=30))
    clock = MovedClock()
    async with Informers(cluster, clock=clock, entropy=ENTROPY) as informers:
        made = Fleet(cluster, informers, clock)
        for resource in WATCHED:
            await informers.of(resource).synced()
        yield made


async def test_nodes_wait_for_values_and_old_values_go_a_soak_after_the_last_node(embedded_server: Embedded) -> None:
    async with fleet(embedded_server.cluster) as here:
        await here.approve(A, "a")
        await here.settle()
        assert await here.values(A) == ("Current", True)
        await here.aim("cb")
        await here.settle()
        assert await here.desired() == ["ca"] * 3
        assert B in await here.waits_for()
        await here.approve(B, "b")
        await here.settle()
        assert await here.desired() == ["cb"] * 3
        assert await here.values(A) == ("Retiring", True)
        await here.finish()
        await here.settle()
        assert (await here.values(A), await here.values(B)) == (("Retiring", True), ("Current", True))
        here.clock.ahead = timedelta(minutes=61)
        await here.settle()
        assert (await here.values(A))[1] is False
        committed = condition((await here.cluster.get(IMAGES, "os-a", "fastness-system")), "Committed")
        assert committed is not None
        assert (committed["status"], committed["reason"]) == ("False", "Retired")


async def test_going_back_to_a_retired_image_publishes_it_before_a_node_moves(embedded_server: Embedded) -> None:
    async with fleet(embedded_server.cluster) as here:
        await here.approve(A, "a")
        await here.approve(B, "b")
        await here.settle()
        await here.aim("cb")
        await here.settle()
        await here.finish()
        await here.settle()
        here.clock.ahead = timedelta(minutes=61)
        await here.settle()
        assert (await here.values(A))[1] is False
        await here.aim("ca")
        await here.settle()
        assert await here.values(A) == ("Current", True)
        assert await here.desired() == ["ca"] * 3


async def test_an_image_whose_approval_says_so_is_kept(embedded_server: Embedded) -> None:
    async with fleet(embedded_server.cluster) as here:
        await here.approve(A, "a", **{KEEP: "true"})
        await here.approve(B, "b")
        await here.settle()
        await here.aim("cb")
        await here.settle()
        await here.finish()
        await here.settle()
        here.clock.ahead = timedelta(hours=5)
        await here.settle()
        assert await here.values(A) == ("Current", True)
