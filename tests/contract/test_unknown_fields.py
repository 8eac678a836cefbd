"""What we do not know is never lost: unknown fields survive every way to write."""

from __future__ import annotations

from typing import Any

from fastness.kinds.kind import JsonObject
from fastness.kube.port import Cluster, PatchType, Scope, WriteOptions
from tests.contract.kinds import TENANT, tenant

STRANGE: JsonObject = {
    "text": "späße \u2028 \U0001f512 \"quoted\" \\ / \t",
    "empty": {"object": {}, "list": [], "text": ""},
    "numbers": {"large": 9007199254740993, "small": -1, "fraction": 1.5, "zero": 0, "exponent": 1e21},
    "truth": [True, False],
    "deep": {"a": [{"b": [{"c": [1, [2, [3]]]}]}]},
    "odd.key/with~signs": {"": "empty key", "metadata": {"name": "not a name"}, "kind": "NotAKind"},
    "nothing": None,
}  # fmt: skip


async def written(cluster: Cluster, namespace: str) -> JsonObject:
    """An object full of what nobody here knows."""
    made = await cluster.create(TENANT, tenant(namespace, "one", {"strange": STRANGE}))
    assert made["spec"]["strange"] == STRANGE
    return made


async def strange_fields(cluster: Cluster, namespace: str) -> Any:
    """What is left of it by every way to read."""
    got = await cluster.get(TENANT, "one", namespace)
    listed = await cluster.list(TENANT, Scope(namespace))
    assert listed.items == [got]
    async with cluster.watch(TENANT, Scope(namespace), initial=True) as events:
        assert (await anext(events)).object == got
    return got["spec"]["strange"]


async def test_unknown_fields_survive_a_create(cluster: Cluster, namespace: str) -> None:
    await written(cluster, namespace)
    assert await strange_fields(cluster, namespace) == STRANGE


async def test_unknown_fields_survive_a_merge_patch(cluster: Cluster, namespace: str) -> None:
    await written(cluster, namespace)
    await cluster.patch(TENANT, "one", {"metadata": {"labels": {"a": "b"}}}, PatchType.MERGE, namespace)
    assert await strange_fields(cluster, namespace) == STRANGE


async def test_unknown_fields_survive_a_json_patch(cluster: Cluster, namespace: str) -> None:
    await written(cluster, namespace)
    patch = [{"op": "add", "path": "/spec/ours", "value": 1}]
    after = await cluster.patch(TENANT, "one", patch, PatchType.JSON, namespace)
    assert after["spec"]["ours"] == 1
    assert await strange_fields(cluster, namespace) == STRANGE


async def test_unknown_fields_survive_an_apply_of_others(cluster: Cluster, namespace: str) -> None:
    await written(cluster, namespace)
    body = tenant(namespace, "one", {"ours": {"x": 1}})
    after = await cluster.patch(TENANT, "one", body, PatchType.APPLY, namespace, WriteOptions(manager="other"))
    assert after["spec"]["ours"] == {"x": 1}
    assert await strange_fields(cluster, namespace) == STRANGE


async def test_unknown_fields_survive_a_status_patch(cluster: Cluster, namespace: str) -> None:
    await written(cluster, namespace)
    patch = {"status": {"phase": "Ready"}}
    options = WriteOptions(subresource="status")
    after = await cluster.patch(TENANT, "one", patch, PatchType.MERGE, namespace, options)
    assert after["status"] == {"phase": "Ready"}
    assert await strange_fields(cluster, namespace) == STRANGE
