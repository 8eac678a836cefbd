"""The loops of the product, driven by hand: any order comes to rest, and at rest another look changes nothing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from fastness.app.controllers import product_loops
from fastness.enrolment.trusted_cluster import Doors
from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import rfc3339
from fastness.kinds.registry import find
from fastness.kube.controllers.controller import Controller
from fastness.kube.informers import Informers
from fastness.kube.port import Cluster, PatchType
from fastness.machineconfig.loops.timing import SIMULATED
from fastness.runtime.clock import SystemClock
from tests.embedded.fixtures import Embedded
from tests.unit.kinds.registry_examples import REGISTRIES as EXAMPLES
from tests.virtual import SeededEntropy

MCO = "machineconfiguration.openshift.io"
CONFIG = find(MCO, "v1", "machineconfigs").resource
POOL = find(MCO, "v1", "machineconfigpools").resource
KUBELET = find(MCO, "v1", "kubeletconfigs").resource
NODE = find("", "v1", "nodes").resource
CHALLENGE = find("fastness.dev", "v1alpha1", "spentchallenges").resource
DOORS = Doors("https://gate.example", "https://config.example", "-----BEGIN CERTIFICATE-----")
MAX_ROUNDS = 40


class Loops:
    """All loops of the product over one API, one reconcile at a time in an order that a seed chooses."""

    def __init__(self, embedded: Embedded, informers: Informers, seed: int) -> None:
        self.cluster: Cluster = embedded.cluster
        self.store = embedded.server.api.store
        self._informers = informers
        self._random = random.Random(seed)
        self.controllers: list[Controller] = product_loops(
            self.cluster, informers, SystemClock(), SeededEntropy(seed), timing=SIMULATED, doors=lambda: DOORS
        )

    async def settle(self) -> None:
        """Rounds until one changes nothing."""
        for _ in range(MAX_ROUNDS):
            before = self.store.revision
            await self.round()
            if self.store.revision == before:
                return
        raise AssertionError("the loops do not come to rest")

    async def round(self) -> None:
        """Every key of every loop once."""
        await self._caught_up()
        work = [(entry, key) for entry in self.controllers for key in await self._keys(entry)]
        self._random.shuffle(work)
        for controller, key in work:
            await controller.reconcile(key)
            await self._caught_up()

    async def _keys(self, controller: Controller) -> list[Any]:
        due = set(getattr(controller, "always", ()))
        for source in controller.sources:
            for obj in (await self.cluster.list(source.resource)).items:
                due.update(source.keys(obj))
        return sorted(due)

    async def _caught_up(self) -> None:
        """Let the caches see what was written: events are on their way in this very loop."""
        await self._informers.synced()
        for _ in range(20):
            await asyncio.sleep(0)


def config(name: str, content: str, role: str = "worker") -> JsonObject:
    files = [{"path": "/etc/motd", "mode": 420, "contents": {"source": f"data:,{content}"}}]
    body = {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}
    meta = {"name": name, "labels": {names.ROLE_LABEL: role}}
    return {"apiVersion": f"{MCO}/v1", "kind": "MachineConfig", "metadata": meta, "spec": {"config": body}}


async def populate(cluster: Cluster) -> None:
    """Nodes in every state, good and bad configs, owners of generated configs, challenges old and new."""
    done = {names.STATE: "Done"}
    for number, notes in enumerate(({}, done, {names.STATE: "Degraded", names.REASON: "no"})):
        labels = {f"{names.NODE_ROLE_PREFIX}worker": ""}
        meta = {"name": f"n{number}", "labels": labels, "annotations": notes}
        await cluster.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
    await cluster.create(CONFIG, config("50-good", "hello"))
    selector = {"matchLabels": {f"{names.POOL_LABEL_PREFIX}worker": ""}}
    spec = {"machineConfigPoolSelector": selector, "kubeletConfig": {"maxPods": 100}}
    kubelet = {"apiVersion": f"{MCO}/v1", "kind": "KubeletConfig", "metadata": {"name": "pods"}, "spec": spec}
    await cluster.create(KUBELET, kubelet)
    for kind in ("images", "imagedigestmirrorsets", "clusterimagepolicies", "imagepolicies"):
        await cluster.create(find("config.openshift.io", "v1", kind).resource, EXAMPLES[f"{kind}.config.openshift.io"])
    now = SystemClock().now()
    for name, moment in (("old", now - timedelta(hours=1)), ("new", now + timedelta(hours=1))):
        made = {"apiVersion": "fastness.dev/v1alpha1", "kind": "SpentChallenge", "metadata": {"name": name}}
        await cluster.create(CHALLENGE, {**made, "spec": {"expires": rfc3339(moment)}})


async def run(embedded: Embedded, seed: int, play: Callable[[Loops], Any]) -> None:
    async with Informers(embedded.cluster, clock=SystemClock(), entropy=SeededEntropy(seed)) as informers:
        await play(Loops(embedded, informers, seed))


@pytest.mark.parametrize("seed", range(4))
async def test_any_order_comes_to_rest_and_another_look_changes_nothing(embedded_server: Embedded, seed: int) -> None:
    async def play(loops: Loops) -> None:
        await populate(loops.cluster)
        await loops.settle()
        before = loops.store.revision
        await loops.round()
        assert loops.store.revision == before
        pool = await loops.cluster.get(POOL, "worker")
        sources = [entry["name"] for entry in pool["spec"]["configuration"]["source"]]
        generated = {"99-worker-generated-kubelet", "99-worker-generated-registries"}
        assert {"00-worker", "50-good", *generated} <= set(sources)
        assert {entry["metadata"]["name"] for entry in (await loops.cluster.list(CHALLENGE)).items} == {"new"}

    await run(embedded_server, seed, play)


async def test_a_change_in_the_middle_is_followed_and_taking_it_back_leads_back(embedded_server: Embedded) -> None:
    async def play(loops: Loops) -> None:
        await populate(loops.cluster)
        await loops.settle()
        first = (await loops.cluster.get(POOL, "worker"))["spec"]["configuration"]["name"]
        await loops.cluster.create(CONFIG, config("60-more", "other"))
        await loops.round()
        await loops.cluster.patch(POOL, "worker", {"spec": {"paused": True}}, PatchType.MERGE)
        await loops.settle()
        assert (await loops.cluster.get(POOL, "worker"))["spec"]["configuration"]["name"] != first
        await loops.cluster.delete(CONFIG, "60-more")
        await loops.settle()
        assert (await loops.cluster.get(POOL, "worker"))["spec"]["configuration"]["name"] == first

    await run(embedded_server, 7, play)
