"""The MachineConfigNode follows its node, and leaves out what the API would refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import ObjectName
from fastness.kube.informers import Informers
from fastness.kube.port import PatchType
from fastness.machineconfig.loops.nodes.config_nodes import ConfigNodes
from fastness.runtime.clock import SystemClock, SystemEntropy
from tests.component.machineconfig.worker_pool import CONFIG_NODE, NODE, until
from tests.embedded.fixtures import Embedded

IMAGE = "registry.example.com/os/rhcos@sha256:" + "ab" * 32
LOCAL_IMAGE = "localhost:5000/os/rhcos@sha256:" + "ab" * 32


@asynccontextmanager
async def config_nodes(embedded: Embedded) -> AsyncIterator[ConfigNodes]:
    clock = SystemClock()
    async with Informers(embedded.cluster, clock=clock, entropy=SystemEntropy()) as informers:
        loop = ConfigNodes(embedded.cluster, informers, clock)
        for source in loop.sources:
            await informers.of(source.resource).synced()
        yield loop


async def settled(embedded: Embedded, loop: ConfigNodes, image: str | None) -> JsonObject:
    """The MachineConfigNode after the loop saw the node with its image."""

    async def followed() -> JsonObject | None:
        await loop.reconcile(ObjectName("", "a"))
        nodes = {node["metadata"]["name"]: node for node in (await embedded.cluster.list(CONFIG_NODE)).items}
        expected = None if image is None else {"desiredImage": image}
        return nodes["a"] if "a" in nodes and nodes["a"]["spec"].get("configImage") == expected else None

    node: JsonObject = await until(followed, "the MachineConfigNode does not follow")
    return node


async def test_an_image_that_the_field_refuses_is_left_out(embedded_server: Embedded) -> None:
    notes = {names.DESIRED_CONFIG: "rendered-worker-1", names.DESIRED_IMAGE: LOCAL_IMAGE}
    meta = {"name": "a", "annotations": notes}
    await embedded_server.cluster.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
    async with config_nodes(embedded_server) as loop:
        node = await settled(embedded_server, loop, None)
        assert node["spec"]["configVersion"] == {"desired": "rendered-worker-1"}


async def test_an_image_comes_and_goes_with_what_the_node_should_boot(embedded_server: Embedded) -> None:
    meta = {"name": "a", "annotations": {names.DESIRED_IMAGE: IMAGE}}
    await embedded_server.cluster.create(NODE, {"apiVersion": "v1", "kind": "Node", "metadata": meta})
    async with config_nodes(embedded_server) as loop:
        await settled(embedded_server, loop, IMAGE)
        patch = {"metadata": {"annotations": {names.DESIRED_IMAGE: None}}}
        await embedded_server.cluster.patch(NODE, "a", patch, PatchType.MERGE)
        await settled(embedded_server, loop, None)
