"""Streams of operating system images: what pools may follow, and what stays."""

from __future__ import annotations

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import condition
from fastness.kinds.registry import find
from fastness.kube.errors import Forbidden
from fastness.kube.port import PatchType, WriteOptions
from tests.component.machineconfig.worker_pool import CONFIG, NODE, POOL, WorkerPool, config, until
from tests.unanswered import unanswered_port

CONTROLLER = find("machineconfiguration.openshift.io", "v1", "controllerconfigs").resource
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


async def test_a_pool_whose_base_image_nobody_knows_is_degraded_and_never_updated_until_somebody_names_it(
    workers: WorkerPool,
) -> None:
    await workers.add_node("a")
    plain = (await workers.settled())["spec"]["configuration"]["name"]
    image = "registry.example/os@sha256:" + "a" * 64
    await workers.cluster.create(CONFIG, config("99-os", osImageURL=image))
    overridden = (await workers.settled(goal_is_not=plain))["spec"]["configuration"]["name"]
    note = {"metadata": {"annotations": {names.BASE_IMAGE: names.UNKNOWN_IMAGE}}}
    await workers.cluster.patch(NODE, "a", note, PatchType.MERGE)
    await workers.cluster.delete(CONFIG, "99-os")
    message = await render_message(workers)
    assert "no base image known" in message
    assert "and a recorded none" in message
    assert await workers.goal() == overridden, "nobody is sent to a config that means no image"
    base = "registry.example/base@sha256:" + "b" * 64
    [controller] = (await workers.cluster.list(CONTROLLER)).items
    named = {"spec": {"baseOSContainerImage": base}}
    await workers.cluster.patch(CONTROLLER, controller["metadata"]["name"], named, PatchType.MERGE)
    pool = await workers.settled(goal_is_not=overridden)
    rendered = await workers.cluster.get(CONFIG, pool["spec"]["configuration"]["name"])
    assert rendered["spec"]["osImageURL"] == base
    assert (condition(pool, "RenderDegraded") or {}).get("status") == "False"


async def test_a_tag_is_refused_where_no_registry_can_be_asked(workers: WorkerPool) -> None:
    await workers.add_node("a")
    plain = (await workers.settled())["spec"]["configuration"]["name"]
    with unanswered_port() as port:
        await workers.cluster.create(CONFIG, config("99-os", osImageURL=f"127.0.0.1:{port}/os:9"))
        told = await render_message(workers)
        assert f"127.0.0.1:{port}/os:9 cannot be read: 127.0.0.1:{port} cannot be asked" in told
        assert await workers.goal() == plain
