"""Get and list: the same answers whichever way a cluster is reached."""

from __future__ import annotations

import asyncio

import pytest

from fastness.kube.errors import BadRequest, Expired, NotFound
from fastness.kube.port import Cluster, Scope
from tests.contract.kinds import CONFIG_MAP, NAMESPACE, TICKET, UNKNOWN, config_map, names, ticket
from tests.contract.worlds import World


async def fill(cluster: Cluster, namespace: str, count: int, label: str) -> list[str]:
    """Create labelled ConfigMaps, a few at a time, and return their names in order."""
    ordered = [f"item-{index:04}" for index in range(count)]
    gate = asyncio.Semaphore(16)

    async def create(name: str) -> None:
        async with gate:
            await cluster.create(CONFIG_MAP, config_map(namespace, name, labels={"set": label}))

    async with asyncio.TaskGroup() as group:
        for name in ordered:
            group.create_task(create(name))
    return ordered


async def test_get_returns_what_was_created_with_its_kind_and_metadata(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(CONFIG_MAP, config_map(namespace, "one", {"k": "v"}))
    got = await cluster.get(CONFIG_MAP, "one", namespace)
    assert got == made
    assert (got["kind"], got["apiVersion"], got["data"]) == ("ConfigMap", "v1", {"k": "v"})


async def test_get_of_a_cluster_wide_object_needs_no_namespace(cluster: Cluster, unique: str) -> None:
    await cluster.create(TICKET, ticket(unique))
    assert (await cluster.get(TICKET, unique))["spec"]["pool"] == "worker"


async def test_get_of_a_missing_object_says_which(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(NotFound) as caught:
        await cluster.get(CONFIG_MAP, "absent", namespace)
    assert (caught.value.name, caught.value.kind) == ("absent", "configmaps")
    assert caught.value.message == 'configmaps "absent" not found'


async def test_a_kind_that_is_not_served_is_not_found(cluster: Cluster) -> None:
    with pytest.raises(NotFound):
        await cluster.list(UNKNOWN)
    with pytest.raises(NotFound):
        await cluster.get(UNKNOWN, "x")


@pytest.mark.parametrize("name", ["", "..", "a/b", "a?b", "a%2fb"])
async def test_a_name_that_could_address_something_else_is_refused(cluster: Cluster, namespace: str, name: str) -> None:
    with pytest.raises((BadRequest, NotFound)):
        await cluster.get(CONFIG_MAP, name, namespace)


async def test_list_is_ordered_and_its_items_carry_kind_and_version(cluster: Cluster, namespace: str) -> None:
    for name in ("b", "a", "c"):
        await cluster.create(CONFIG_MAP, config_map(namespace, name, labels={"set": "abc"}))
    page = await cluster.list(CONFIG_MAP, Scope(namespace, labels="set=abc"))
    assert names(page.items) == ["a", "b", "c"]
    assert {(item["kind"], item["apiVersion"]) for item in page.items} == {("ConfigMap", "v1")}
    assert page.next == ""
    assert page.resource_version.isdigit()


async def test_an_empty_list_has_a_version(cluster: Cluster, namespace: str) -> None:
    page = await cluster.list(CONFIG_MAP, Scope(namespace, labels="set=nothing"))
    assert page.items == []
    assert int(page.resource_version) > 0


async def test_list_of_a_namespace_leaves_out_others_and_all_namespaces_do_not(
    cluster: Cluster, namespace: str, unique: str
) -> None:
    other = f"other-{unique}"
    await cluster.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    for where in (namespace, other):
        await cluster.create(CONFIG_MAP, config_map(where, "same", labels={"set": unique}))
    within = await cluster.list(CONFIG_MAP, Scope(namespace, labels=f"set={unique}"))
    assert [item["metadata"]["namespace"] for item in within.items] == [namespace]
    both = await cluster.list(CONFIG_MAP, Scope(labels=f"set={unique}"))
    assert [item["metadata"]["namespace"] for item in both.items] == [other, namespace]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("tier=front", ["a", "c"]),
        ("tier!=front", ["b", "d"]),
        ("tier in (front,back)", ["a", "b", "c"]),
        ("tier notin (front),zone", ["b"]),
        ("!tier", ["d"]),
        ("tier,zone=1", ["a"]),
    ],
)
async def test_label_selectors_choose(cluster: Cluster, namespace: str, selector: str, expected: list[str]) -> None:
    labels = {"a": {"tier": "front", "zone": "1"}, "b": {"tier": "back", "zone": "2"}, "c": {"tier": "front"}, "d": {}}
    for name, own in labels.items():
        await cluster.create(CONFIG_MAP, config_map(namespace, name, labels={**own, "set": "x"}))
    page = await cluster.list(CONFIG_MAP, Scope(namespace, labels=f"set=x,{selector}"))
    assert names(page.items) == expected


async def test_field_selectors_choose_by_name_and_namespace(cluster: Cluster, namespace: str) -> None:
    for name in ("a", "b"):
        await cluster.create(CONFIG_MAP, config_map(namespace, name))
    page = await cluster.list(CONFIG_MAP, Scope(fields=f"metadata.name=b,metadata.namespace={namespace}"))
    assert names(page.items) == ["b"]
    page = await cluster.list(CONFIG_MAP, Scope(namespace, labels="", fields="metadata.name!=b"))
    assert "a" in names(page.items)
    assert "b" not in names(page.items)


async def test_a_field_selector_that_the_kind_does_not_have_is_refused(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(BadRequest):
        await cluster.list(CONFIG_MAP, Scope(namespace, fields="data.key=1"))


async def test_a_selector_that_cannot_be_parsed_is_refused(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(BadRequest):
        await cluster.list(CONFIG_MAP, Scope(namespace, labels="a in (b"))


async def test_pages_join_to_the_whole_list_at_one_version(cluster: Cluster, namespace: str) -> None:
    created = await fill(cluster, namespace, 7, "paged")
    scope = Scope(namespace, labels="set=paged")
    first = await cluster.list(CONFIG_MAP, scope, limit=3)
    await cluster.create(CONFIG_MAP, config_map(namespace, "item-0000a", labels={"set": "paged"}))
    await cluster.delete(CONFIG_MAP, "item-0005", namespace)
    second = await cluster.list(CONFIG_MAP, scope, limit=3, token=first.next)
    third = await cluster.list(CONFIG_MAP, scope, limit=3, token=second.next)
    assert names(first.items) + names(second.items) + names(third.items) == created
    assert first.resource_version == second.resource_version == third.resource_version
    assert third.next == ""


async def test_a_page_without_selectors_says_how_many_remain(cluster: Cluster, namespace: str) -> None:
    await fill(cluster, namespace, 5, "counted")
    total = len((await cluster.list(CONFIG_MAP, Scope(namespace))).items)
    page = await cluster.list(CONFIG_MAP, Scope(namespace), limit=2)
    assert page.remaining == total - 2


async def test_a_page_as_large_as_the_list_has_no_next(cluster: Cluster, namespace: str) -> None:
    await fill(cluster, namespace, 2, "whole")
    page = await cluster.list(CONFIG_MAP, Scope(namespace, labels="set=whole"), limit=2)
    rest = await cluster.list(CONFIG_MAP, Scope(namespace, labels="set=whole"), limit=2, token=page.next)
    assert len(page.items) == 2
    assert page.next == "" or rest.items == []


async def test_a_token_of_nobody_is_refused(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(BadRequest):
        await cluster.list(CONFIG_MAP, Scope(namespace), limit=2, token="bm90IGEgdG9rZW4")


# The real server answers old tokens from snapshots in its cache, also after etcd was compacted: it cannot be made to forget.
@pytest.mark.parametrize("world", ["in-process", "https-embedded"], indirect=True)
async def test_a_token_whose_version_is_gone_expires(world: World, cluster: Cluster, namespace: str) -> None:
    await fill(cluster, namespace, 4, "old")
    page = await cluster.list(CONFIG_MAP, Scope(namespace), limit=2)
    await cluster.delete(CONFIG_MAP, "item-0003", namespace)
    await world.forget_the_past()
    with pytest.raises(Expired):
        await cluster.list(CONFIG_MAP, Scope(namespace), limit=2, token=page.next)


async def test_a_list_without_limit_is_complete_beyond_any_page(cluster: Cluster, namespace: str) -> None:
    created = await fill(cluster, namespace, 620, "large")
    page = await cluster.list(CONFIG_MAP, Scope(namespace, labels="set=large"))
    assert names(page.items) == created
    assert page.next == ""


async def test_a_list_at_least_as_new_as_a_write_contains_it(cluster: Cluster, namespace: str) -> None:
    made = await cluster.create(CONFIG_MAP, config_map(namespace, "fresh", labels={"set": "fresh"}))
    version = made["metadata"]["resourceVersion"]
    page = await cluster.list(CONFIG_MAP, Scope(namespace, labels="set=fresh"), version=version)
    assert names(page.items) == ["fresh"]
    assert int(page.resource_version) >= int(version)


async def test_a_version_that_is_no_number_is_refused(cluster: Cluster, namespace: str) -> None:
    with pytest.raises(BadRequest):
        await cluster.list(CONFIG_MAP, Scope(namespace), version="yesterday")
