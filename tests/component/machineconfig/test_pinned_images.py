"""Pinned images in the control plane: which sets a node is told to have, and what its pool reports."""

from __future__ import annotations

from typing import Any

from fastness.kinds.kind import JsonObject
from fastness.kinds.machineconfiguration import names
from fastness.kinds.objects import annotations_of, condition
from fastness.kinds.registry import find
from fastness.kube.port import PatchType, WriteOptions
from tests.component.machineconfig.test_enforcing import enforce
from tests.component.machineconfig.worker_pool import CONFIG_NODE, MCO, NODE, POOL, WorkerPool, until
from tests.proven import proven_machine

SETS = find(MCO, "v1", "pinnedimagesets").resource
IMAGE = "quay.example/team/app@sha256:" + "0" * 64


async def store(workers: WorkerPool, name: str, *images: str) -> None:
    spec = {"pinnedImages": [{"name": image} for image in images or (IMAGE,)]}
    body = {"apiVersion": f"{MCO}/v1", "kind": "PinnedImageSet", "metadata": {"name": name}, "spec": spec}
    await workers.cluster.create(SETS, body)


async def lists(workers: WorkerPool, pool: str, *sets: str) -> None:
    spec = {"pinnedImageSets": [{"name": name} for name in sets]}
    await workers.cluster.patch(POOL, pool, {"spec": spec}, PatchType.MERGE)


async def noted(workers: WorkerPool, node: str, text: str | None) -> None:
    async def so() -> bool:
        return annotations_of(await workers.cluster.get(NODE, node)).get(names.PINNED_IMAGE_SETS) == text

    await until(so, f"{node} is not told {text!r}")


async def reports(workers: WorkerPool, node: str, degraded: str = "", **generations: int) -> None:
    """What an agent writes; the sets in the generations that it has."""
    state = {
        "type": "PinnedImageSetsDegraded", "status": "True" if degraded else "False",
        "reason": names.PREFETCH_FAILED if degraded else names.AS_EXPECTED, "message": degraded,
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }  # fmt: skip
    sets = [{"name": n, "desiredGeneration": g, "currentGeneration": g} for n, g in generations.items()]
    status = {"status": {"conditions": [state], "pinnedImageSets": sets}}
    options = WriteOptions(subresource="status")

    async def there() -> bool:
        return node in {each["metadata"]["name"] for each in (await workers.cluster.list(CONFIG_NODE)).items}

    await until(there, "there is no MachineConfigNode")
    await workers.cluster.patch(CONFIG_NODE, node, status, PatchType.MERGE, "", options)


async def counts(workers: WorkerPool, **expected: int) -> JsonObject:
    async def so() -> Any:
        status = (await workers.pool()).get("status") or {}
        entries = status.get("poolSynchronizersStatus") or [{}]
        return entries[0] if all(entries[0].get(f"{key}MachineCount") == n for key, n in expected.items()) else None

    return dict(await until(so, f"the pool does not count {expected}"))


async def says(workers: WorkerPool, status: str, words: str, kind: str = "PinnedImageSetsDegraded") -> JsonObject:
    async def so() -> Any:
        state = condition(await workers.pool(), kind) or {}
        return state if state.get("status") == status and words in str(state.get("message")) else None

    return dict(await until(so, f"{kind} is not {status} with {words!r}"))


async def test_a_node_is_told_the_sets_of_its_pool_by_name_and_generation_and_again_when_one_changes(
    workers: WorkerPool,
) -> None:
    await workers.add_node("a")
    await store(workers, "base")
    await store(workers, "tools")
    await lists(workers, "worker", "tools", "base")
    await noted(workers, "a", "base=1 tools=1")
    other = {"spec": {"pinnedImages": [{"name": IMAGE.replace("0", "1")}]}}
    await workers.cluster.patch(SETS, "base", other, PatchType.MERGE)
    await noted(workers, "a", "base=2 tools=1")
    await lists(workers, "worker")
    await noted(workers, "a", "")


async def test_a_node_of_a_custom_pool_has_the_sets_of_the_workers_too(workers: WorkerPool) -> None:
    selector = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": ["worker", "infra"]}]}
    spec = {"machineConfigSelector": selector, "nodeSelector": {"matchLabels": {f"{names.NODE_ROLE_PREFIX}infra": ""}}}
    body = {"apiVersion": f"{MCO}/v1", "kind": "MachineConfigPool", "metadata": {"name": "infra"}, "spec": spec}
    await workers.cluster.create(POOL, body)
    await workers.add_node("a")
    await store(workers, "base")
    await store(workers, "extra")
    await lists(workers, "worker", "base")
    await lists(workers, "infra", "extra")
    await noted(workers, "a", "base=1")
    label = {"metadata": {"labels": {f"{names.NODE_ROLE_PREFIX}infra": ""}}}
    await workers.cluster.patch(NODE, "a", label, PatchType.MERGE)
    await noted(workers, "a", "base=1 extra=1")


async def test_where_attestation_is_enforced_no_label_brings_a_node_the_sets_of_another_pool(
    workers: WorkerPool,
) -> None:
    selector = {"matchExpressions": [{"key": names.ROLE_LABEL, "operator": "In", "values": ["worker", "infra"]}]}
    spec = {"machineConfigSelector": selector, "nodeSelector": {"matchLabels": {f"{names.NODE_ROLE_PREFIX}infra": ""}}}
    body = {"apiVersion": f"{MCO}/v1", "kind": "MachineConfigPool", "metadata": {"name": "infra"}, "spec": spec}
    await workers.cluster.create(POOL, body)
    await workers.add_node("a")
    await proven_machine(workers.cluster, "a", 1)
    await enforce(workers.cluster)
    await store(workers, "base")
    await store(workers, "extra")
    await lists(workers, "worker", "base")
    await lists(workers, "infra", "extra")
    label = {"metadata": {"labels": {f"{names.NODE_ROLE_PREFIX}infra": ""}}}
    await workers.cluster.patch(NODE, "a", label, PatchType.MERGE)
    await noted(workers, "a", "base=1")
    await workers.settled()
    await noted(workers, "a", "base=1")


async def test_a_pool_counts_what_its_nodes_report(workers: WorkerPool) -> None:
    for node in ("a", "b", "c"):
        await workers.add_node(node)
    await store(workers, "base")
    await lists(workers, "worker", "base")
    await counts(workers, updated=0, ready=0, available=3, unavailable=0)
    await reports(workers, "a", base=1)
    await reports(workers, "b", degraded="quay.example/gone: not found")
    counted = await counts(workers, updated=1, ready=1, available=2, unavailable=1)
    assert counted["poolSynchronizerType"] == "PinnedImageSets"
    assert counted["machineCount"] == 3
    state = await says(workers, "True", "node b: quay.example/gone: not found")
    assert state["reason"] == "PrefetchFailed"
    await says(workers, "True", "", kind="Degraded")
    for node in ("b", "c"):
        await reports(workers, node, base=1)
    await counts(workers, updated=3, ready=3, available=3, unavailable=0)
    await says(workers, "False", "")
    await says(workers, "False", "", kind="Degraded")
    # A generation that no node has yet takes the count back.
    other = {"spec": {"pinnedImages": [{"name": IMAGE.replace("0", "1")}]}}
    await workers.cluster.patch(SETS, "base", other, PatchType.MERGE)
    await counts(workers, updated=0, ready=0, available=3)


async def test_a_set_that_does_not_exist_degrades_the_pool_and_rollouts_go_on(workers: WorkerPool) -> None:
    await workers.add_node("a")
    await store(workers, "base")
    await lists(workers, "worker", "base", "nowhere")
    state = await says(workers, "True", "PinnedImageSet does not exist: nowhere")
    assert state["reason"] == "PinnedImageSetMissing"
    await noted(workers, "a", "base=1")
    assert (condition(await workers.settled(), "Updated") or {})["status"] == "True"
    await workers.cluster.delete(SETS, "base")
    await says(workers, "True", "PinnedImageSets do not exist: base, nowhere")
    await noted(workers, "a", "")
    await lists(workers, "worker")
    await says(workers, "False", "")
    assert not (await workers.pool())["status"].get("poolSynchronizersStatus")


async def test_a_pool_that_pins_nothing_says_nothing_about_it(workers: WorkerPool) -> None:
    await workers.add_node("a")
    pool = await workers.settled()
    assert condition(pool, "PinnedImageSetsDegraded") is None
    assert "poolSynchronizersStatus" not in pool["status"]
    assert names.PINNED_IMAGE_SETS not in annotations_of(await workers.cluster.get(NODE, "a"))
