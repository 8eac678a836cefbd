"""Streams of operating system images: what pools may follow, and what stays."""

from __future__ import annotations

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import condition
from fastness.kinds.registry import find
from fastness.kube.errors import Forbidden
from fastness.kube.port import PatchType, WriteOptions
from tests.component.machineconfig.worker_pool import CONFIG, POOL, WorkerPool, until

STREAM = find("machineconfiguration.openshift.io", "v1", "osimagestreams").resource


async def offer_streams(workers: WorkerPool, *streams: str) -> list[JsonObject]:
    """Have exactly these streams on offer, the first by default."""
    digest = "@sha256:" + "0" * 64
    offers = [
        {"name": name, "osImage": f"{name}.example/os{digest}", "osExtensionsImage": f"{name}.example/ext{digest}"}
        for name in streams
    ]
    status = {"status": {"availableStreams": offers, "defaultStream": streams[0]}}
    await workers.cluster.patch(STREAM, "cluster", status, PatchType.MERGE, "", WriteOptions(subresource="status"))
    return offers


async def render_message(workers: WorkerPool) -> str:
    """Why the pool cannot be rendered, once it says so."""

    async def reason() -> str:
        state = condition(await workers.pool(), "RenderDegraded") or {}
        return str(state["message"]) if state.get("status") == "True" else ""

    return str(await until(reason, "rendering does not fail"))


async def test_a_pool_takes_no_stream_that_is_not_on_offer_and_says_so_when_an_offer_ends(workers: WorkerPool) -> None:
    await workers.add_node("a")
    good = (await workers.settled())["spec"]["configuration"]["name"]
    follow = {"spec": {"osImageStream": {"name": "rhel-10"}}}
    with pytest.raises(
        Forbidden, match=r"must reference a valid stream .* rhel-10 is not on offer \(there are: none\)"
    ):
        await workers.cluster.patch(POOL, "worker", follow, PatchType.MERGE)
    spec = {"defaultStream": "rhel-10"}
    made = {"apiVersion": names.API_VERSION, "kind": "OSImageStream", "metadata": {"name": "cluster"}, "spec": spec}
    await workers.cluster.create(STREAM, made)
    offers = await offer_streams(workers, "rhel-10")
    await workers.cluster.patch(POOL, "worker", follow, PatchType.MERGE)
    pool = await workers.settled(goal_is_not=good)
    assert pool["status"]["osImageStream"] == {"name": "rhel-10"}
    config = await workers.cluster.get(CONFIG, pool["spec"]["configuration"]["name"])
    assert config["spec"]["osImageURL"] == offers[0]["osImage"]
    await offer_streams(workers, "rhel-11")
    assert "the stream rhel-10, which is not on offer (there are: rhel-11)" in await render_message(workers)
    await workers.cluster.patch(POOL, "worker", {"spec": {"paused": True}}, PatchType.MERGE)
    assert await workers.goal() == pool["spec"]["configuration"]["name"]
    with pytest.raises(Forbidden, match="Deletion of OSImageStream resources is not allowed"):
        await workers.cluster.delete(STREAM, "cluster")
