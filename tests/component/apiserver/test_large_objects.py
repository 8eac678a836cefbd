"""Changes of large objects are decided beside the loop: never on a state that is gone."""

from __future__ import annotations

import asyncio

import pytest

from fastness.kinds.kind import JsonObject
from fastness.kinds.registry import find
from fastness.kube.errors import Conflict
from fastness.kube.port import PatchType
from tests.embedded.fixtures import Embedded

CONFIG_MAPS = find("", "v1", "configmaps").resource


def large(name: str) -> JsonObject:
    """A ConfigMap that leaves the loop."""
    data = {f"k{number}": "x" * 50 for number in range(1500)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


async def test_a_large_change_that_met_another_one_is_decided_anew(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    await cluster.create(CONFIG_MAPS, large("a"))
    patches = [{"data": {f"new{number}": str(number)}} for number in range(4)]
    await asyncio.gather(*(cluster.patch(CONFIG_MAPS, "a", change, PatchType.MERGE, "default") for change in patches))
    data = (await cluster.get(CONFIG_MAPS, "a", "default"))["data"]
    assert {f"new{number}": str(number) for number in range(4)}.items() <= data.items(), "no change was lost"


async def test_a_condition_on_the_version_holds_for_large_objects_too(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    version = (await cluster.create(CONFIG_MAPS, large("a")))["metadata"]["resourceVersion"]
    patches = [{"metadata": {"resourceVersion": version}, "data": {"who": str(number)}} for number in range(2)]
    results = await asyncio.gather(
        *(cluster.patch(CONFIG_MAPS, "a", change, PatchType.MERGE, "default") for change in patches),
        return_exceptions=True,
    )
    assert sorted(isinstance(result, Conflict) for result in results) == [False, True]


async def test_of_two_large_creates_of_one_name_one_is_refused(embedded_server: Embedded) -> None:
    results = await asyncio.gather(
        *(embedded_server.cluster.create(CONFIG_MAPS, large("a")) for _ in range(2)), return_exceptions=True
    )
    assert sorted(isinstance(result, Exception) for result in results) == [False, True]


async def test_a_large_object_that_is_deleted_while_it_is_changed_is_gone(embedded_server: Embedded) -> None:
    cluster = embedded_server.cluster
    await cluster.create(CONFIG_MAPS, large("a"))
    await asyncio.gather(
        cluster.patch(CONFIG_MAPS, "a", {"data": {"b": "c"}}, PatchType.MERGE, "default"),
        cluster.delete(CONFIG_MAPS, "a", "default"),
        return_exceptions=True,
    )
    await _gone(embedded_server)


async def _gone(embedded: Embedded) -> None:
    from fastness.kube.errors import NotFound

    with pytest.raises(NotFound):
        await embedded.cluster.get(CONFIG_MAPS, "a", "default")
